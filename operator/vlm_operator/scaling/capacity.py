"""What one replica can do, and how long a new one takes: declared to begin with, then as it was measured."""

from vlm_operator.scaling.able import Able
from vlm_operator.scaling.decision import Assumption
from vlm_operator.scaling.policy import Policy, Source, Workers
from vlm_operator.scaling.state import Learned

ENOUGH_SECONDS = 60.0
"""Time with all workers busy after which their number is known."""
SOME_SECONDS = 30.0
"""Busy time after which a rate is used."""
STARTS_NEEDED = 4
"""Start times that outweigh the declared one."""
START_QUANTILE = 0.9


def able(policy: Policy, learned: Learned) -> Able:
    """What a replica can do, by what is declared and what was learned."""
    declared, weight = policy.declared, policy.tuning.capacity_prior_seconds
    # The declared figure weighs as much as a minute of measurement.
    lane = (declared.lane_tokens_per_second * weight + learned.lane.work) / (weight + learned.lane.seconds)
    start, workers = _start_seconds(declared.start_seconds, learned.starts), _workers(policy, learned)
    single, busy = learned.front_end, learned.front_end_busy
    return Able(
        lane=lane,
        images=max(single.value * workers.count, busy.value if busy.seconds >= SOME_SECONDS else 0.0),
        workers=workers,
        start_seconds=start,
        horizon_seconds=start + policy.scrape_seconds + policy.tick_seconds,
    )


def assumptions(policy: Policy, learned: Learned, now: Able) -> tuple[Assumption, ...]:
    """The figures that the estimate rests on, and where each comes from."""
    lane = Source.LEARNED if learned.lane.seconds >= policy.tuning.capacity_prior_seconds else Source.DECLARED
    start = Source.LEARNED if len(learned.starts) >= STARTS_NEEDED else Source.DECLARED
    found = (
        Assumption(name="lane tokens/s", value=now.lane, source=lane),
        Assumption(name="front-end workers", value=now.workers.count, source=now.workers.source),
        Assumption(name="start seconds", value=now.start_seconds, source=start),
        Assumption(name="slots", value=policy.declared.slots, source=Source.DECLARED),
    )
    if now.images <= 0:
        return found
    return (*found, Assumption(name="front-end images/s", value=now.images, source=Source.LEARNED))


def _workers(policy: Policy, learned: Learned) -> Workers:
    """Learned once all of them were busy for a minute."""
    busy, single = learned.front_end_busy, learned.front_end
    if busy.seconds < ENOUGH_SECONDS or single.seconds <= SOME_SECONDS or single.work <= 0:
        return policy.declared.workers
    return Workers(count=min(policy.tuning.workers_most, max(1.0, busy.value / single.value)), source=Source.LEARNED)


def _start_seconds(declared: float, starts: tuple[int, ...]) -> float:
    known = sorted(starts) if len(starts) >= STARTS_NEEDED else sorted((*starts, declared))
    return float(known[min(len(known) - 1, int(START_QUANTILE * len(known)))])
