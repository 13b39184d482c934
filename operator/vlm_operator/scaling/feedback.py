"""The factor on the headroom, moved so that the share of late requests, as the queues show it, averages what is wanted.

This is an adaptive conformal update on a logarithmic scale: whatever the traffic, the long-run mean of the weighted
estimate comes to `late_share`.
"""

from math import exp

from vlm_operator.scaling.bins import level
from vlm_operator.scaling.capacity import Able
from vlm_operator.scaling.policy import Policy
from vlm_operator.scaling.state import History, Learned, Mix, Seen

MOST_WEIGHT = 4.0
STEP_SECONDS = 15.0


def gains_of(policy: Policy, learned: Learned) -> tuple[float, float]:
    """The factors in force, of lane and front end."""
    return learned.gains or (policy.tuning.gain_start, policy.tuning.gain_start)


def late_shares(
    policy: Policy, able: Able, lane: History, mix: Mix, fresh: tuple[Seen, ...]
) -> tuple[float, float] | None:
    """Share of the requests that come in now which are late, by lane and by front end; None where none come in."""
    if not fresh or mix.tokens <= 0:
        return None
    tokens, capacity, tuning = mix.tokens_per_request, able.lane, policy.tuning
    requests = level(lane, policy) / tokens / len(fresh) if tokens > 0 else 0.0
    if requests <= 0:
        return None
    service = tokens / capacity
    residual = min(tuning.residual_most_seconds, lane.dispersion / capacity) / 2
    waiting = (known.sample.waiting or 0.0 for known in fresh)
    in_lane = sum(_late(policy, residual + (ahead - 1) * service) for ahead in waiting if ahead > 0)
    # Little's law: those that wait over the rate at which they come is how long they wait.
    queued = ((known.front_end or 0.0) - able.workers.count for known in fresh)
    in_front = sum(_late(policy, ahead / requests) for ahead in queued if ahead > 0)
    return in_lane / len(fresh), in_front / len(fresh)


def moved(policy: Policy, gains: tuple[float, float], late: tuple[float, float], lane: History) -> tuple[float, float]:
    """The factors after one more bin. Bins weigh by their work, because late requests count and not late times."""
    tuning = policy.tuning
    mean = sum(lane.rates) / len(lane.rates)
    weight = min(MOST_WEIGHT, lane.rates[-1] / mean) if mean > 0 else 1.0
    step = tuning.gain_step * policy.scrape_seconds / STEP_SECONDS * weight
    lane_gain, front_gain = (
        min(tuning.gain_most, max(tuning.gain_least, gain * exp(step * (share - tuning.late_share))))
        for gain, share in zip(gains, late, strict=True)
    )
    return lane_gain, front_gain


def _late(policy: Policy, mean_wait: float) -> float:
    """Share of waits beyond the tolerated one, with an exponential tail."""
    return exp(-policy.tuning.slo_wait_seconds / mean_wait) if mean_wait > 0 else 0.0
