"""How a decision moves within its bounds, and how the warm pool counts there."""

from dataclasses import replace

import pytest

from unit.scaling.scenes import NOON, Fleet, by_targets, by_work, queue, replicas, run, sizes
from vlm_operator.scaling.bounds import bounds_of, standby_of
from vlm_operator.scaling.decide import decide
from vlm_operator.scaling.decision import Reason
from vlm_operator.scaling.policy import Pool
from vlm_operator.scaling.signals import Signals
from vlm_operator.scaling.state import NEW, Floor

POOLS = [
    # pool, work-based, the least size with minReplicas 2, on standby beside a size of 3 and of 7, with maxReplicas 8
    ("none", Pool(), True, 2, 0, 0),
    ("in rotation under work: within the size", Pool(size=3), True, 5, 0, 0),
    ("in rotation under targets: on top of it", Pool(size=3), False, 2, 0, 0),
    ("on standby: beside it", Pool(size=3, standby=True), True, 2, 3, 1),
    ("on standby under targets: beside it, too", Pool(size=3, standby=True), False, 2, 3, 1),
]


@pytest.mark.parametrize(("what", "pool", "work", "least", "beside", "crowded"), POOLS, ids=[row[0] for row in POOLS])
def test_how_a_pool_counts(  # noqa: PLR0917  # the columns of the table
    what: str, pool: Pool, work: bool, least: int, beside: int, crowded: int
) -> None:
    make = by_work if work else lambda **given: by_targets(queue(1), **given)
    policy = make(min_replicas=2, max_replicas=8, pool=pool)
    assert bounds_of(policy, None).least == least, what
    assert (standby_of(policy, 3), standby_of(policy, 7), standby_of(policy, 8)) == (beside, crowded, 0)


def test_the_largest_floor_wins_and_the_ceiling_is_stronger() -> None:
    floor = Floor(schedules=(), replicas=4, cron="0 7 * * *", since=NOON, until=NOON)
    policy = by_work(min_replicas=2, max_replicas=6)
    assert (bounds_of(policy, floor).least, bounds_of(policy, floor).why) == (4, Reason.SCHEDULE)
    low = replace(floor, replicas=1)
    assert (bounds_of(policy, low).least, bounds_of(policy, low).why) == (2, Reason.FLOOR)
    assert bounds_of(replace(policy, pool=Pool(size=9)), floor).least == 6


def test_a_pool_in_rotation_is_a_floor_under_the_headroom_and_not_added_to_it() -> None:
    """With size 12 the headroom of the estimate is far below the pool; with size 1 it is above it."""
    found = {}
    for size in (0, 1, 12):
        decisions, _ = run(by_work(pool=Pool(size=size)), Fleet(size=8), seconds=900)
        found[size] = {stage.name: stage for stage in decisions[-1].stages}[Reason.LANE]
    assert found[1].need == found[0].need
    assert found[12].headroom == 12
    assert found[12].need == pytest.approx(found[12].level + 12 + found[12].drain)


def test_replicas_above_the_load_are_warm() -> None:
    decisions, _ = run(by_work(pool=Pool(size=4)), Fleet(size=8), seconds=900)
    assert decisions[-1].needed == 2
    assert decisions[-1].replicas >= 6
    standby, _ = run(by_work(pool=Pool(size=4, standby=True)), Fleet(size=8), seconds=900)
    assert (standby[-1].needed, standby[-1].standby) == (standby[-1].replicas, 4)


def test_a_cut_of_the_ceiling_acts_at_once_whatever_is_known() -> None:
    policy = by_work(max_replicas=3)
    for fleet in (Fleet(size=20), Fleet(size=20, silent=frozenset(range(20)))):
        decisions, _ = run(policy, fleet, seconds=10, load=lambda _: 80_000)
        assert sizes(decisions) == [3, 3]
    blind, _ = decide(policy, NEW, Signals(size=20), NOON)
    assert blind.replicas == 3


def test_a_size_below_the_floor_is_raised_at_once() -> None:
    decision, _ = decide(by_work(min_replicas=4), NEW, Signals(size=1), NOON)
    assert decision.replicas == 4
    decision, _ = decide(by_targets(queue(100), min_replicas=4), NEW, Signals(size=1, replicas=replicas(0)), NOON)
    assert (decision.replicas, decision.reason) == (4, Reason.FLOOR)


def test_advice_is_the_same_decision() -> None:
    active, _ = run(by_work(), Fleet(size=8), seconds=300)
    advised, _ = run(by_work(advisory=True), Fleet(size=8), seconds=300)
    assert active == advised
