"""Floors by time of day: which one is in force, and what is wrong with a schedule.

The floor is that of the schedule that fired last, whenever that was; of several that fired at the same moment the
largest counts. Times that a change of the clocks skips fire right after it, times that it repeats fire once, as in
Debian's cron (`cronsim` knows the rules).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from vlm_operator.scaling.policy import Schedule
from vlm_operator.scaling.state import Floor

SOME_DAY = datetime(2000, 1, 1, tzinfo=UTC)
"""To see whether a schedule ever fires: `cronsim` looks 50 years ahead."""
NEVER = "never comes"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is wrong with which field of a schedule."""

    field: str
    message: str
    advice: str


def problem_of(cron: str, time_zone: str) -> Problem | None:
    """Why a schedule cannot be followed; None when it can."""
    try:
        zone = ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        message = f"{time_zone} is no time zone that is known here"
        return Problem(field="timeZone", message=message, advice="use an IANA name, for example Europe/Berlin")
    try:
        next(CronSim(cron, SOME_DAY.astimezone(zone)))
    except CronSimError as error:
        message = f'"{cron}" cannot be read as a cron expression: {str(error).removeprefix("Bad ")} is wrong'
        return Problem(field="schedule", message=message, advice="write five fields, for example 0 7 * * 1-5")
    except StopIteration:
        message = f'"{cron}" {NEVER}'
        return Problem(field="schedule", message=message, advice="name a day that its month has")
    return None


def floor_of(schedules: tuple[Schedule, ...], now: float, known: Floor | None) -> Floor | None:
    """The floor in force at `now`; the one that is known while it still holds. None where no schedule has fired."""
    if not schedules:
        return None
    if known is not None and known.schedules == schedules and known.since <= now < known.until:
        return known
    fired = [(last, schedule) for schedule in schedules if (last := _next(schedule, now, back=True)) is not None]
    if not fired:
        return None
    since = max(last for last, _ in fired)
    strongest = max((schedule for last, schedule in fired if last == since), key=lambda s: s.min_replicas)
    until = min(found if (found := _next(schedule, now)) is not None else inf for schedule in schedules)
    return Floor(schedules=schedules, replicas=strongest.min_replicas, cron=strongest.cron, since=since, until=until)


def _next(schedule: Schedule, now: float, *, back: bool = False) -> float | None:
    """The first time of a schedule after `now`, or going back the last one that is not after it."""
    # Going back starts a moment later, because the first time found lies before the given one.
    start = datetime.fromtimestamp(int(now) + (1 if back else 0), ZoneInfo(schedule.time_zone))
    times: Iterator[datetime] = CronSim(schedule.cron, start, reverse=back)
    found = next(times, None)
    return found.timestamp() if found is not None else None
