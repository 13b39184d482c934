"""What the GPUs say beside the work. They are busy with a single request, so they never count alone.

A target on GPU utilisation counts under work-based scaling only while the engines are half full by another measure. GPUs
that have nothing to do everywhere, while no request runs, veto what their engines seem to need: the gauges of those are
wrong, or requests wait before the engine, where the front end counts.
"""

from dataclasses import replace

from vlm_operator.scaling.decision import Candidate, Reason, Stage
from vlm_operator.scaling.intervals import FULL_FRONT_END
from vlm_operator.scaling.policy import Policy, Signal
from vlm_operator.scaling.reading import gauge_quality
from vlm_operator.scaling.signals import Phase, Quality, Signals
from vlm_operator.scaling.state import Totals

NOT_CORROBORATED = "busy GPUs alone do not count: no stage of the engines is half full"


def corroborated(
    policy: Policy, candidates: tuple[Candidate, ...], stages: tuple[Stage, ...], ready: int
) -> tuple[Candidate, ...]:
    """The candidates, without that of the GPUs while nothing else is busy."""
    fullest = max((stage.level for stage in stages), default=0.0) / max(1, ready)
    if fullest >= policy.tuning.corroborating_share:
        return candidates
    return tuple(
        replace(one, replicas=0, note=NOT_CORROBORATED)
        if one.name == Signal.GPU_UTILIZATION and one.replicas is not None
        else one
        for one in candidates
    )


def gpus_idle(policy: Policy, signals: Signals, totals: Totals, now: float) -> bool:
    """Whether every replica that serves is known to have idle GPUs, and none of them works on a request."""
    if totals.running > 0 or totals.unread or not totals.ready:
        return False
    stale_after = policy.tuning.stale_scrapes * policy.scrape_seconds
    for replica in signals.replicas:
        if replica.phase is Phase.READY:
            gauge = replica.gpu
            if gauge_quality(gauge, now=now, stale_after=stale_after, most=1.0) is not Quality.FINE:
                return False
            if gauge is None or gauge.value is None or gauge.value >= policy.tuning.gpu_idle_share:
                return False
    return True


def front_end_bound(policy: Policy, stages: tuple[Stage, ...], totals: Totals) -> bool:
    """Whether requests pile up before engines that have room."""
    full = totals.able.workers.count + FULL_FRONT_END
    if totals.ready == 0 or totals.front_end / totals.ready < full:
        return False
    lane = next((stage for stage in stages if stage.name is Reason.LANE), None)
    return lane is not None and lane.level / totals.ready < policy.tuning.corroborating_share
