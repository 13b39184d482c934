"""Targets are the arithmetic of the Horizontal Pod Autoscaler: its published examples come out as they are written."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.scaling.scenes import NOON, by_targets, by_work, queue, replicas, starting
from vlm_operator.scaling.decide import decide
from vlm_operator.scaling.decision import Reason
from vlm_operator.scaling.from_spec import HPA
from vlm_operator.scaling.hpa import candidates_of, largest
from vlm_operator.scaling.policy import Behavior, Pool, Rules, Signal, Target
from vlm_operator.scaling.signals import Gauge, Phase, Quality, Replica, Signals
from vlm_operator.scaling.state import NEW, Seen


def asked(target: Target, seen: tuple[Replica, ...], *, size: int, **policy: Any) -> int | None:
    """What one target asks for."""
    known = {one.uid: Seen(sample=one.sample) for one in seen if one.sample is not None}
    (candidate,) = candidates_of(by_targets(target, **policy), Signals(size=size, replicas=seen), known, NOON)
    return candidate.replicas


PUBLISHED = [
    # In the documentation: a value of 200m with a target of 100m doubles the replicas, one of 50m halves them.
    ("twice the target doubles the size", 100, [200, 200], 4),
    ("half the target halves it", 100, [50, 50, 50, 50], 2),
    # Within a tenth of the target nothing is done:
    ("a tenth above the target is within tolerance", 100, [110, 110], 2),
    ("a tenth below it, too", 100, [90, 90, 90], 3),
    ("more than a tenth above is not", 100, [111, 111], 3),
    ("more than a tenth below is not", 100, [89] * 10, 9),
    ("the mean counts, not the sum", 100, [300, 0, 0], 3),
    ("nothing at all asks for none", 100, [0, 0, 0], 0),
]


@pytest.mark.parametrize(("what", "target", "values", "wanted"), PUBLISHED, ids=[row[0] for row in PUBLISHED])
def test_the_published_arithmetic(what: str, target: int, values: list[float], wanted: int) -> None:
    assert asked(queue(target), replicas(*values), size=len(values)) == wanted, what


SILENT = [
    # Up: 0 % of the target is assumed for those that say nothing. 3 * 300/100 would be 9; (600 + 0) / 4 = 150 -> 6.
    ("on the way up a silent one is idle", 100, [200, 200, 200, None], 0, 6),
    # Down: 100 % of the target. 3 at 20 would be 1; (60 + 100) / 4 = 40 -> 2.
    ("on the way down a silent one is at its target", 100, [20, 20, 20, None], 0, 2),
    ("where they would turn the direction, nothing changes", 100, [150, None, None], 0, 3),
    ("on the way up those that start are idle", 100, [200, 200], 2, 4),
    ("on the way down those that start do not count", 100, [40, 40, 40, 40], 2, 2),
    ("where those that start are enough, nothing changes", 100, [200], 1, 2),
]


@pytest.mark.parametrize(("what", "target", "values", "starts", "wanted"), SILENT, ids=[row[0] for row in SILENT])
def test_replicas_that_say_nothing(what: str, target: int, values: list[Any], starts: int, wanted: int) -> None:
    seen = (*replicas(*values), *starting(starts))
    assert asked(queue(target), seen, size=len(seen)) == wanted, what


def test_replicas_that_finish_or_stand_by_do_not_count() -> None:
    others = tuple(replace(one, phase=phase) for one, phase in zip(replicas(0, 0), list(Phase)[2:], strict=True))
    others = tuple(replace(one, uid=f"other-{one.uid}") for one in others)
    assert asked(queue(100), (*replicas(200, 200), *others), size=2) == 4


def test_a_metric_of_ones_own_is_divided_by_its_target() -> None:
    # As an external metric with averageValue: the tolerance is on total / (target * size).
    target, policy = Target(signal=Signal.CUSTOM, metric="jobs", value=30), by_targets(queue(1))
    policy = replace(policy, targets=(target,))
    for total, size, wanted in ((180, 4, 6), (130, 4, 4), (133, 4, 5), (0, 4, 0), (95, 3, 3)):
        signals = Signals(size=size, custom={"jobs": Gauge(time=NOON, value=total)})
        assert candidates_of(policy, signals, {}, NOON)[0].replicas == wanted, total


BAD_GAUGES = [
    (None, Quality.MISSING),
    (Gauge(time=NOON, value=None), Quality.MISSING),
    (Gauge(time=NOON - 100, value=5), Quality.STALE),
    (Gauge(time=NOON, value=float("nan")), Quality.NOT_A_NUMBER),
    (Gauge(time=NOON, value=float("inf")), Quality.NOT_A_NUMBER),
    (Gauge(time=NOON, value=-1), Quality.NEGATIVE),
    (Gauge(time=NOON + 1000, value=5), Quality.IMPOSSIBLE),
]


@pytest.mark.parametrize(("gauge", "quality"), BAD_GAUGES)
def test_a_metric_that_cannot_be_used_proposes_nothing_and_says_why(gauge: Gauge | None, quality: Quality) -> None:
    policy = by_targets(Target(signal=Signal.CUSTOM, metric="jobs", value=30))
    signals = Signals(size=4, custom={"jobs": gauge} if gauge else {})
    (candidate,) = candidates_of(policy, signals, {}, NOON)
    assert (candidate.replicas, candidate.value, candidate.quality) == (None, None, quality)
    decision, _ = decide(policy, NEW, signals, NOON)
    assert decision.replicas == 4


def test_the_largest_of_several_targets_wins_and_a_silent_one_forbids_to_scale_down() -> None:
    jobs = Target(signal=Signal.CUSTOM, metric="jobs", value=30)
    policy = by_targets(queue(100), jobs)
    for total, waiting, wanted in ((300.0, 100, 10), (30.0, 250, 10), (None, 250, 10), (None, 10, 4), (30.0, 10, 1)):
        seen = replicas(*[waiting] * 4)
        known = {one.uid: Seen(sample=one.sample) for one in seen if one.sample is not None}
        custom = {"jobs": Gauge(time=NOON, value=total)}
        found = largest(candidates_of(policy, Signals(size=4, replicas=seen, custom=custom), known, NOON), 4)
        assert found is not None
        assert found[0] == wanted, (total, waiting)


def test_tolerance_can_differ_by_direction() -> None:
    behavior = Behavior(up=Rules(tolerance=0.0), down=Rules(tolerance=0.5))
    assert asked(queue(100), replicas(101, 101), size=2, behavior=behavior) == 3
    assert asked(queue(100), replicas(51, 51), size=2, behavior=behavior) == 2
    assert asked(queue(100), replicas(49, 49), size=2, behavior=behavior) == 1


def test_shares_are_targets_in_percent() -> None:
    gpu = Target(signal=Signal.GPU_UTILIZATION, value=0.5)
    seen = tuple(replace(one, gpu=Gauge(time=NOON, value=1.0)) for one in replicas(0, 0))
    assert asked(gpu, seen, size=2) == 4
    seen = tuple(replace(one, gpu=Gauge(time=NOON, value=1.2)) for one in replicas(0, 0))
    assert asked(gpu, seen, size=2) is None
    kv = Target(signal=Signal.KV_CACHE_UTILIZATION, value=0.4)
    assert asked(kv, replicas(0, 0, kv_usage=0.8), size=2) == 4
    running = Target(signal=Signal.RUNNING_REQUESTS, value=2)
    assert asked(running, replicas(0, 0, running=6), size=2) == 6


def test_a_pool_in_rotation_comes_on_top_of_what_the_target_asks_for() -> None:
    # 200 waiting and a target of 100 need two; with three warm ones beside them each of the five sees 40.
    pool = Pool(size=3)
    assert asked(queue(100), replicas(40, 40, 40, 40, 40), size=2, pool=pool) == 2
    assert asked(queue(100), replicas(80, 80, 80, 80, 80), size=2, pool=pool) == 4
    assert asked(queue(100), replicas(100, 100), size=2, pool=replace(pool, standby=True)) == 2


def test_the_decision_names_the_target_and_its_numbers() -> None:
    decision, _ = decide(by_targets(queue(100)), NEW, Signals(size=2, replicas=replicas(200, 200)), NOON)
    assert (decision.replicas, decision.reason, decision.binding) == (4, Reason.TARGET, "queueDepth")
    assert decision.message == "4 replicas: queueDepth is 200 with a target of 100, which asks for 4"


@given(
    values=st.lists(st.integers(0, 1000), min_size=1, max_size=20),
    target=st.integers(1, 200),
    tolerance=st.sampled_from([0.0, 0.1, 0.3]),
)
def test_with_every_replica_read_it_is_the_ceiling_of_use_over_target(
    values: list[int], target: int, tolerance: float
) -> None:
    behavior = replace(HPA, up=replace(HPA.up, tolerance=tolerance), down=replace(HPA.down, tolerance=tolerance))
    found = asked(queue(target), replicas(*values), size=len(values), behavior=behavior)
    mean = sum(value * 1000 for value in values) // len(values)
    ratio = mean / (target * 1000)
    near = 1 - tolerance <= ratio <= 1 + tolerance
    assert found == (len(values) if near else -int(-ratio * len(values) // 1))


@given(values=st.lists(st.none() | st.integers(0, 400), min_size=1, max_size=12), starts=st.integers(0, 4))
def test_silent_replicas_only_damp_a_change(values: list[int | None], starts: int) -> None:
    """They never turn it, and never make it larger than it would be without them."""
    seen = (*replicas(*values), *starting(starts))
    size, said = len(values), [value for value in values if value is not None]
    found = asked(queue(100), seen, size=size)
    if not said:
        assert found is None
        return
    mean = sum(said) / len(said)
    assert found is not None
    if mean > 100:
        assert found >= size or found >= len(said)
    else:
        assert found <= size


def test_under_work_a_target_can_only_add_to_what_the_work_needs() -> None:
    policy = by_work(targets=(queue(100),))
    seen = replicas(200, 200)
    decision, state = decide(policy, NEW, Signals(size=2, replicas=seen), NOON)
    assert [one.replicas for one in decision.candidates] == [4]
    assert state.windows.wanted
