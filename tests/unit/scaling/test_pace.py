"""Windows and paces of autoscaling/v2, by the published examples and as the controller works."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.scaling.scenes import NOON, by_targets, queue, replicas
from vlm_operator.scaling.decide import decide
from vlm_operator.scaling.from_spec import BY_WORK, HPA
from vlm_operator.scaling.pace import noticed, paced, recorded, spared, stabilized
from vlm_operator.scaling.policy import Behavior, Pace, Rules, Select
from vlm_operator.scaling.signals import Signals
from vlm_operator.scaling.state import NEW, Change, Run, Windows

PODS_4 = Pace(percent=False, value=4, period_seconds=60)
PERCENT_10 = Pace(percent=True, value=10, period_seconds=60)


def reached(behavior: Behavior, size: int, wanted: int, *changes: Change) -> int:
    return paced(behavior, changes, size=size, wanted=wanted, now=NOON)


def test_the_published_example_of_two_policies_down() -> None:
    """From 80 to 10 with 4 pods or 10 percent a minute: 8 first, then 10 % rounded up, at the end 4 at a time."""
    behavior = Behavior(up=Rules(), down=Rules(paces=(PODS_4, PERCENT_10)))
    sizes, size = [], 80
    while size > 10:
        size = reached(behavior, size, 10)
        sizes.append(size)
    # In the documentation, in short: 10 % of 80 = 8 pods; in the next 10 % of 72 is 7.2, rounded up to 8. When the number of
    # replicas falls below 40 the second policy of 4 pods takes over.
    assert sizes[:3] == [72, 64, 57]
    below = [before - after for before, after in pairwise(sizes) if before <= 40]
    assert set(below[:-1]) == {4}


SELECT = [
    ("the most change by default", Select.MAX, 72),
    ("the least change where asked", Select.MIN, 76),
    ("none where disabled", Select.DISABLED, 80),
]


@pytest.mark.parametrize(("what", "select", "size"), SELECT, ids=[row[0] for row in SELECT])
def test_which_policy_wins_down(what: str, select: Select, size: int) -> None:
    behavior = Behavior(up=Rules(), down=Rules(select=select, paces=(PODS_4, PERCENT_10)))
    assert reached(behavior, 80, 10) == size, what


def test_the_defaults_up_are_four_or_twice_as_many_in_fifteen_seconds() -> None:
    assert reached(HPA, 1, 100) == 5
    assert reached(HPA, 10, 100) == 20
    assert reached(HPA, 10, 12) == 12
    minimum = replace(HPA, up=replace(HPA.up, select=Select.MIN))
    assert reached(minimum, 10, 100) == 14


def test_percent_up_is_rounded_up_and_down_is_rounded_to_the_larger_change() -> None:
    behavior = Behavior(up=Rules(paces=(PERCENT_10,)), down=Rules(paces=(PERCENT_10,)))
    assert reached(behavior, 1, 100) == 2
    assert reached(behavior, 20, 100) == 22
    assert reached(behavior, 1, 0) == 0
    assert reached(behavior, 19, 0) == 17


def test_what_changed_within_the_period_counts_against_the_pace() -> None:
    behavior = Behavior(up=Rules(paces=(PODS_4,)), down=Rules(paces=(PODS_4,)))
    assert reached(behavior, 13, 100, Change(time=NOON - 30, by=3)) == 14
    assert reached(behavior, 14, 100, Change(time=NOON - 30, by=4)) == 14
    assert reached(behavior, 14, 100, Change(time=NOON - 60, by=4)) == 18
    # A change down within the period lets it go up again by as much, and the other way round.
    assert reached(behavior, 10, 100, Change(time=NOON - 30, by=-2)) == 16
    assert reached(behavior, 10, 0, Change(time=NOON - 30, by=2)) == 4
    assert reached(behavior, 10, 0, Change(time=NOON - 30, by=-4)) == 10


def test_work_goes_up_at_once_and_down_by_a_seventh() -> None:
    assert reached(BY_WORK, 1, 1000) == 1000
    assert [reached(BY_WORK, size, 0) for size in (40, 20, 6, 2, 1)] == [34, 17, 5, 1, 0]


def test_a_window_takes_the_safest_of_what_was_wanted() -> None:
    runs = (Run(start=NOON - 400, end=NOON - 200, value=9), Run(start=NOON - 195, end=NOON - 5, value=5))
    down = {"size": 9, "wanted": 3, "up_seconds": 0.0, "now": NOON}
    assert stabilized(runs, **down, down_seconds=300) == 9
    assert stabilized(runs, **down, down_seconds=200) == 5
    assert stabilized(runs, **down, down_seconds=0) == 3
    up = {"size": 3, "wanted": 12, "down_seconds": 0.0, "now": NOON}
    assert stabilized(runs, **up, up_seconds=300) == 5
    assert stabilized(runs, **up, up_seconds=0) == 12


def test_a_part_is_spared_as_far_as_it_was_wanted_lately() -> None:
    runs = (Run(start=NOON - 4000, end=NOON - 3500, value=20), Run(start=NOON - 3495, end=NOON, value=10))
    within = {"spare": 0.2, "now": NOON}
    assert spared(runs, 10, seconds=3600, **within) == 12
    assert spared(runs, 10, seconds=3000, **within) == 10
    # Of what was wanted at most in the longer time no more is spared, and never less than is wanted now.
    assert spared((Run(start=NOON - 100, end=NOON - 50, value=11), *runs[1:]), 10, seconds=3000, **within) == 11
    assert spared(runs, 13, seconds=3000, **within) == 13
    assert spared((), 3, seconds=3000, **within) == 3


def test_targets_wait_five_minutes_before_they_scale_down() -> None:
    policy, state, found = by_targets(queue(100)), NEW, {}
    for second in range(0, 330, 15):
        signals = Signals(size=4, replicas=replicas(*[100 if second == 0 else 10] * 4, time=NOON + second))
        decision, state = decide(policy, state, signals, NOON + second)
        found[second] = decision.replicas
    assert {second for second, size in found.items() if size < 4} == {second for second in found if second >= 300}


def test_a_window_up_takes_the_lowest_of_what_was_wanted() -> None:
    policy, state = by_targets(queue(100), behavior=replace(HPA, up=replace(HPA.up, window_seconds=60))), NEW
    found = []
    for second in range(0, 90, 15):
        waiting = 100 if second == 0 else 200
        signals = Signals(size=4, replicas=replicas(*[waiting] * 4, time=NOON + second))
        decision, state = decide(policy, state, signals, NOON + second)
        found.append(decision.replicas)
    assert found == [4, 4, 4, 4, 8, 8]


def test_a_change_is_counted_from_the_decision_that_led_to_it() -> None:
    windows = Windows(size=4, decided_at=NOON - 5)
    assert noticed(windows, size=7, now=NOON) == (Change(time=NOON - 5, by=3),)
    assert noticed(windows, size=4, now=NOON) == ()
    old = replace(windows, changes=(Change(time=NOON - 1801, by=1), Change(time=NOON - 100, by=1)))
    assert noticed(old, size=4, now=NOON) == (Change(time=NOON - 100, by=1),)


def test_equal_sizes_in_a_row_are_one_run_and_old_ones_are_forgotten() -> None:
    runs: tuple[Run, ...] = ()
    for second, wanted in ((0, 3), (5, 3), (10, 4), (15, 4)):
        runs = recorded(runs, wanted=wanted, now=NOON + second, keep_seconds=3600)
    assert runs == (Run(start=NOON, end=NOON + 5, value=3), Run(start=NOON + 10, end=NOON + 15, value=4))
    assert [run.value for run in recorded(runs, wanted=5, now=NOON + 3607, keep_seconds=3600)] == [4, 5]


paces = st.lists(
    st.builds(Pace, percent=st.booleans(), value=st.integers(1, 200), period_seconds=st.integers(1, 1800)), max_size=4
).map(tuple)
rules = st.builds(Rules, window_seconds=st.just(0.0), select=st.sampled_from(Select), paces=paces)


@given(
    behavior=st.builds(Behavior, up=rules, down=rules),
    changes=st.lists(st.builds(Change, time=st.floats(NOON - 2000, NOON), by=st.integers(-50, 50)), max_size=8),
    size=st.integers(1, 200),
    wanted=st.integers(0, 200),
)
def test_a_pace_never_turns_a_change_nor_goes_beyond_it(
    behavior: Behavior, changes: list[Change], size: int, wanted: int
) -> None:
    found = paced(behavior, tuple(changes), size=size, wanted=wanted, now=NOON)
    assert min(size, wanted) <= found <= max(size, wanted)
