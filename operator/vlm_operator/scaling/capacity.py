"""What one replica can do, and how long a new one takes: declared to begin with, then as it was measured."""

from math import ceil

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


def lane_capacity(policy: Policy, learned: Learned) -> float:
    """Prompt tokens per second of one replica: the declared figure, weighed as a minute of measurement."""
    weight = policy.tuning.capacity_prior_seconds
    declared = policy.declared.lane_tokens_per_second
    return (declared * weight + learned.lane.work) / (weight + learned.lane.seconds)


def workers_of(policy: Policy, learned: Learned) -> Workers:
    """Images that a front end prepares side by side: learned once all of its workers were busy for a minute."""
    busy, single = learned.front_end_busy, learned.front_end
    if busy.seconds < ENOUGH_SECONDS or single.seconds <= SOME_SECONDS or single.work <= 0:
        return policy.declared.workers
    return Workers(count=min(policy.tuning.workers_most, max(1.0, busy.value / single.value)), source=Source.LEARNED)


def front_end_capacity(policy: Policy, learned: Learned) -> float:
    """Images per second of one replica; 0 while nothing was measured, and then there is no such stage."""
    busy = learned.front_end_busy
    measured = busy.value if busy.seconds >= SOME_SECONDS else 0.0
    return max(learned.front_end.value * workers_of(policy, learned).count, measured)


def start_seconds(policy: Policy, learned: Learned) -> float:
    """From the creation of a replica until it serves, in nine cases of ten."""
    declared = policy.declared.start_seconds
    known = sorted([*learned.starts, *[declared] * max(0, STARTS_NEEDED - len(learned.starts))])
    return float(known[min(len(known) - 1, int(START_QUANTILE * len(known)))])


def horizon_seconds(policy: Policy, learned: Learned) -> float:
    """From a rise of the load until a replica that is started for it serves."""
    return start_seconds(policy, learned) + policy.scrape_seconds + policy.tick_seconds


def horizon_bins(policy: Policy, learned: Learned) -> int:
    """The same in scrapes."""
    return max(1, ceil(horizon_seconds(policy, learned) / policy.scrape_seconds))


def assumptions(policy: Policy, learned: Learned) -> tuple[Assumption, ...]:
    """The figures that the estimate rests on, and where each comes from."""
    workers = workers_of(policy, learned)
    lane = Source.LEARNED if learned.lane.seconds >= policy.tuning.capacity_prior_seconds else Source.DECLARED
    start = Source.LEARNED if len(learned.starts) >= STARTS_NEEDED else Source.DECLARED
    found = [
        Assumption(name="lane tokens/s", value=lane_capacity(policy, learned), source=lane),
        Assumption(name="front-end workers", value=workers.count, source=workers.source),
        Assumption(name="start seconds", value=start_seconds(policy, learned), source=start),
        Assumption(name="slots", value=policy.declared.slots, source=Source.DECLARED),
    ]
    images = front_end_capacity(policy, learned)
    if images > 0:
        found.append(Assumption(name="front-end images/s", value=images, source=Source.LEARNED))
    return tuple(found)
