"""How far the signals can be trusted: what freezes scaling down, and what is done without any.

What is missing is never a reason to give up a replica. Without any sample the size stays, and after three minutes is
raised to what was enough for nearly all of the last hour.
"""

from collections.abc import Iterator

from vlm_operator.scaling.bins import bin_of, history_bins
from vlm_operator.scaling.decision import Candidate, Reason
from vlm_operator.scaling.policy import Policy
from vlm_operator.scaling.state import State, Totals


def freeze(
    policy: Policy, state: State, totals: Totals, candidates: tuple[Candidate, ...], *, down_seconds: float, now: float
) -> Reason | None:
    """Why nothing may scale down now; None when it may."""
    if policy.work_based and (totals.incomplete or any(one.replicas is None for one in candidates)):
        return Reason.PARTIAL
    return None if complete(policy, state, down_seconds=down_seconds, now=now) else Reason.REBUILDING


def complete(policy: Policy, state: State, *, down_seconds: float, now: float) -> bool:
    """Whether the windows hold all that a smaller size has to be judged by.

    Those are the sizes wanted in the window to scale down, and under work-based scaling the load of the last hour, or
    since the deployment was first decided on.
    """
    windows, learned = state.windows, state.learned
    if windows.since is None or windows.since > now - down_seconds:
        return False
    if not policy.work_based:
        return True
    if windows.bin is None:
        return False
    first = windows.bin - len(windows.lane.rates) + 1
    needed = max(bin_of(policy, now) - history_bins(policy) + 1, bin_of(policy, learned.since or 0.0) + 1)
    return first <= needed + 1


def blind_floor(policy: Policy, state: State, totals: Totals, now: float) -> int:
    """What was wanted at most for nearly all of the hour before the signals were lost, once they are lost for long."""
    runs, tuning = state.windows.wanted, policy.tuning
    if not runs:
        return 0
    lost = runs[-1].end if totals.newest is None else min(totals.newest, runs[-1].end)
    if now - lost <= tuning.blind_seconds:
        return 0
    oldest = runs[-1].end - tuning.history_seconds
    # Each run lasts for the tick after its last time, too; so one that was seen once counts.
    spans = sorted((run.value, max(0.0, run.end - max(run.start, oldest)) + policy.tick_seconds) for run in runs)
    enough = tuning.blind_quantile * sum(seconds for _, seconds in spans)
    return next((value for value, total in _cumulated(spans) if total >= enough), spans[-1][0])


def _cumulated(spans: list[tuple[int, float]]) -> Iterator[tuple[int, float]]:
    """Each value with the seconds in which no more than it was wanted."""
    total = 0.0
    for value, seconds in spans:
        total += seconds
        yield value, total
