"""How fast the size may follow what is wanted: windows and paces of autoscaling/v2, with the semantics they have there.

A window takes the safest of the sizes wanted within it: the lowest to go up, the highest to go down. A pace limits the
change since the beginning of its period. Source: `pkg/controller/podautoscaler/horizontal.go` of Kubernetes.
"""

from math import ceil, floor

from vlm_operator.scaling.policy import Behavior, Pace, Rules, Select
from vlm_operator.scaling.state import Change, Run, Windows

LONGEST_PERIOD_SECONDS = 1800.0


def recorded(runs: tuple[Run, ...], *, wanted: int, now: float, keep_seconds: float) -> tuple[Run, ...]:
    """The sizes that were wanted, with the one that is wanted now."""
    if runs and runs[-1].value == wanted:
        runs = (*runs[:-1], Run(start=runs[-1].start, end=now, value=wanted))
    else:
        runs = (*runs, Run(start=now, end=now, value=wanted))
    over = next(index for index, run in enumerate(runs) if run.end >= now - keep_seconds)
    return runs[over:] if over else runs


def noticed(windows: Windows, *, size: int, now: float) -> tuple[Change, ...]:
    """The changes of the size, with that since the last decision: it is what that decision led to."""
    changes = windows.changes
    if windows.size is not None and windows.size != size:
        time = windows.decided_at if windows.decided_at is not None else now
        changes = (*changes, Change(time=time, by=size - windows.size))
    if changes and changes[0].time < now - LONGEST_PERIOD_SECONDS:
        changes = tuple(change for change in changes if change.time >= now - LONGEST_PERIOD_SECONDS)
    return changes


def stabilized(
    runs: tuple[Run, ...], *, size: int, wanted: int, up_seconds: float, down_seconds: float, now: float
) -> int:
    """The size nearest to the present one that the windows allow."""
    if wanted > size:
        lowest = wanted
        for run in reversed(runs):
            if run.end <= now - up_seconds or lowest <= size:
                break
            lowest = min(lowest, run.value)
        return max(size, lowest)
    return min(size, _highest(runs, wanted, enough=size, since=now - down_seconds))


def spared(runs: tuple[Run, ...], steady: int, *, spare: float, seconds: float, now: float) -> int:
    """A size with a part of it to spare, as far as it was wanted in a longer time.

    So a size that is right on average does not go down and up with the noise around it, and nothing is spared for ever.
    """
    most = ceil(steady * (1 + spare))
    return min(most, _highest(runs, steady, enough=most, since=now - seconds))


def _highest(runs: tuple[Run, ...], wanted: int, *, enough: int, since: float) -> int:
    """The greatest size that was wanted since then, `wanted` among them; more than enough is not looked for."""
    for run in reversed(runs):
        if run.end <= since or wanted >= enough:
            break
        # There are hundreds of runs where the size is wanted to change at every tick; max() would double the time.
        if run.value > wanted:  # noqa: PLR1730
            wanted = run.value
    return wanted


def paced(behavior: Behavior, changes: tuple[Change, ...], *, size: int, wanted: int, now: float) -> int:
    """The size as far on the way to what is wanted as the paces allow."""
    if wanted > size:
        most = _bound(behavior.up, changes, size=size, now=now, up=True)
        return wanted if most is None else min(wanted, max(size, most))
    if wanted < size:
        least = _bound(behavior.down, changes, size=size, now=now, up=False)
        return wanted if least is None else max(wanted, min(size, least))
    return size


def _bound(rules: Rules, changes: tuple[Change, ...], *, size: int, now: float, up: bool) -> int | None:
    """The size that the paces together allow to reach; None without a limit."""
    if rules.select is Select.DISABLED:
        return size
    bounds = [_reach(pace, changes, size=size, now=now, up=up) for pace in rules.paces]
    if not bounds:
        return None
    furthest = rules.select is Select.MAX
    return max(bounds) if furthest is up else min(bounds)


def _reach(pace: Pace, changes: tuple[Change, ...], *, size: int, now: float, up: bool) -> int:
    began = size - sum(change.by for change in changes if change.time > now - pace.period_seconds)
    if not pace.percent:
        return began + pace.value if up else began - pace.value
    # In whole numbers: 3 * 1.15 is not exact in a float.
    return ceil(began * (100 + pace.value) / 100) if up else floor(began * (100 - pace.value) / 100)
