"""Floors by time of day: which one is in force, and what is wrong with a schedule.

The floor is that of the schedule that fired last, whenever that was; of several that fired at the same moment the
largest counts. Times that a change of the clocks skips fire right after it, times that it repeats fire once, as in
Debian's cron (`cronsim` knows the rules).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from vlm_operator.scaling.policy import Schedule
from vlm_operator.scaling.state import Floor

SOME_DAY = datetime(2000, 1, 1, tzinfo=UTC)
"""To see whether a schedule ever fires: `cronsim` looks 50 years ahead."""
FOLD_HOURS = 2
"""More than clocks are ever set back by."""


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
    wrong = _unreadable(cron)
    if wrong is not None and _unreadable(_in_any_month(cron)) is not None:
        message = f'"{cron}" cannot be read as a cron expression: {wrong} is wrong'
        return Problem(field="schedule", message=message, advice="write five fields, for example 0 7 * * 1-5")
    if wrong is not None or next(CronSim(cron, SOME_DAY.astimezone(zone)), None) is None:
        return Problem(field="schedule", message=f'"{cron}" never comes', advice="name a day that its month has")
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
    moment = datetime.fromtimestamp(int(now), ZoneInfo(schedule.time_zone))
    if moment.fold:
        # In an hour that comes twice all times belong to the first of the two: look from before it, or from after.
        moment += timedelta(hours=FOLD_HOURS if back else -FOLD_HOURS)
    elif back:
        # Going back, the first time found lies before the given one.
        moment += timedelta(seconds=1)
    times: Iterator[datetime] = CronSim(schedule.cron, moment, reverse=back)
    found = (time.timestamp() for time in times)
    return next((time for time in found if (time <= now if back else time > now)), None)


def _unreadable(cron: str) -> str | None:
    """Which field is wrong; days that none of the months has are wrong here, too."""
    try:
        CronSim(cron, SOME_DAY)
    except CronSimError as error:
        return str(error).removeprefix("Bad ")
    return None


def _in_any_month(cron: str) -> str:
    fields = cron.split()
    return " ".join([*fields[:3], "*", *fields[4:]])
