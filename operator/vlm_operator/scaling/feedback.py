"""The factor on the headroom, moved so that the share of late requests, as the queues show it, averages what is wanted.

This is an adaptive conformal update on a logarithmic scale: whatever the traffic, the long-run mean of the weighted
estimate comes to `late_share`.
"""

from math import exp
from statistics import fmean

from vlm_operator.scaling.able import Able
from vlm_operator.scaling.bins import level
from vlm_operator.scaling.policy import Policy
from vlm_operator.scaling.state import History, Learned, Mix, Rate, Seen

MOST_WEIGHT = 4.0
EVEN, UNEVEN = 0.5, 1.0
"""Unevenness under which requests go where the fewest are, and from which they go anywhere."""
STEP_SECONDS = 15.0
BEGUN = 0.1
"""Part of a request in preparation that one which comes at random waits for, beside those that wait: as replays showed."""
FEWEST_TO_COMPARE = 2
"""Replicas."""


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
    # Who chooses the shortest queue finds it a little shorter than it is seen on average.
    shorter = 1.0 - randomness(mix)
    waiting = (known.sample.waiting or 0.0 for known in fresh)
    in_lane = sum(_late(policy, residual + (ahead - shorter) * service) for ahead in waiting if ahead > 0)
    # Little's law: those that wait over the rate at which they come is how long they wait.
    queued = ((known.front_end or 0.0) - able.workers.count for known in fresh)
    begun = BEGUN * (1.0 - shorter)
    in_front = sum(_late(policy, (ahead + begun) / requests) for ahead in queued if ahead >= 0)
    return in_lane / len(fresh), in_front / len(fresh)


def randomness(mix: Mix) -> float:
    """How far requests are routed at random, from 0 to 1."""
    return min(1.0, max(0.0, (mix.unevenness.value - EVEN) / (UNEVEN - EVEN)))


def unevenness(policy: Policy, before: Rate, fresh: tuple[Seen, ...]) -> Rate:
    """With how unevenly the requests in flight lie now."""
    found = [known.sample.in_flight for known in fresh if known.sample.in_flight is not None]
    if len(found) < FEWEST_TO_COMPARE:
        return before
    keep = policy.tuning.capacity_forget
    return Rate(work=before.work * keep + _variance(found), seconds=before.seconds * keep + fmean(found))


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


def _variance(found: list[float]) -> float:
    """Of a sample; the one of the standard library works in exact fractions, which takes its time."""
    mean = fmean(found)
    return sum((value - mean) ** 2 for value in found) / (len(found) - 1)
