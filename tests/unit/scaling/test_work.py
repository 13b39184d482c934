"""What the work needs: by hand for simple loads, and what must hold for any."""

from dataclasses import replace
from math import ceil, exp, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.scaling.scenes import NOON, SCRAPE, TICK, Fleet, by_work, queue, run, sizes
from vlm_operator.scaling.bins import extended
from vlm_operator.scaling.capacity import able
from vlm_operator.scaling.decide import decide
from vlm_operator.scaling.decision import Reason, Stage
from vlm_operator.scaling.feedback import gains_of, late_shares, moved, randomness, unevenness
from vlm_operator.scaling.observe import observe
from vlm_operator.scaling.policy import Declared, Signal, Target
from vlm_operator.scaling.signals import Sample
from vlm_operator.scaling.state import NEW, History, Learned, Mix, Rate, Seen, State
from vlm_operator.scaling.tuning import STANDARD

POLICY = by_work()


def history(*rates: float, capacity: float = 4000.0) -> History:
    found = History()
    for rate in rates:
        found = extended(found, policy=POLICY, horizon_seconds=40.0, capacity=capacity, rate=rate, count=1)
    return found


def stages(fleet: Fleet, load: float = 8000.0, seconds: float = 1200) -> dict[Reason, Stage]:
    decisions, _ = run(POLICY, fleet, seconds=seconds, load=lambda _: load)
    return {stage.name: stage for stage in decisions[-1].stages}


def test_a_load_of_two_replicas_is_a_level_of_two() -> None:
    found = stages(Fleet(size=6))
    assert found[Reason.LANE].level == pytest.approx(2)
    assert found[Reason.LANE].drain == 0
    assert found[Reason.LANE].capacity == pytest.approx(4000)
    assert Reason.FRONT_END not in found, "no image was seen"


def test_need_is_level_and_headroom_and_queue() -> None:
    for fleet in (Fleet(size=6), Fleet(size=3, waiting=30)):
        lane = stages(fleet)[Reason.LANE]
        assert lane.need == pytest.approx(lane.level + lane.gain * (lane.envelope + lane.burst) + lane.drain)


def test_a_queue_is_to_be_worked_off_in_about_the_time_of_a_start() -> None:
    # 3 replicas with 30 waiting of 800 tokens each; at 4000 tokens/s; what 3 do in 2 s is no queue; within the 30 s of a start.
    lane = stages(Fleet(size=3, waiting=30))[Reason.LANE]
    assert lane.drain == pytest.approx((3 * 30 * 800 / lane.capacity - 2 * 3) / 30, rel=1e-6)


def test_images_make_the_front_end_a_stage_and_it_can_bind() -> None:
    fleet = Fleet(size=6, front_end=1, images_per_request=2.0)
    decisions, _ = run(POLICY, fleet, seconds=1200)
    found = {stage.name: stage for stage in decisions[-1].stages}
    # 10 requests/s with 2 images each by 6 replicas with one in the front end of each: 20 / 6 images/s per worker.
    assert found[Reason.FRONT_END].capacity == pytest.approx(20 / 6, rel=0.01)
    assert found[Reason.FRONT_END].level == pytest.approx(6, rel=0.01)
    assert decisions[-1].binding == Reason.FRONT_END
    assert "images to prepare need" in decisions[-1].message


def test_requests_that_wait_before_idle_engines_are_told() -> None:
    fleet = Fleet(size=6, front_end=1, images_per_request=2.0)
    _, state = run(POLICY, fleet, seconds=600)
    fleet.front_end = 8
    decisions, _ = run(POLICY, fleet, seconds=60, state=state, start=NOON + 600)
    assert decisions[-1].front_end_bound
    assert "more CPU per replica" in decisions[-1].message
    assert decisions[-1].replicas > 6


def test_slots_and_kv_cache_are_stages_of_their_own() -> None:
    policy = by_work(declared=Declared(start_seconds=20, slots=4))
    decisions, _ = run(policy, Fleet(size=6), seconds=600)
    assert decisions[-1].binding == Reason.SLOTS
    found = stages(Fleet(size=6, spoilt={"kv_usage": 0.95}))
    assert found[Reason.KV_CACHE].level == pytest.approx(6 * 0.95 / 0.85)


def test_the_envelope_is_the_capacity_that_would_have_kept_waits_short() -> None:
    """A step from 1 to 3 replicas: over windows of 1, 2 and 3 scrapes 3 * 15i / (15i + 2) at most, less the level."""
    found = history(*[4000.0] * 4, *[12000.0] * 3)
    last = found.increments[-1]
    assert last.level == 4000
    assert last.rise == pytest.approx(12000 * 45 / 47 - 4000)


def test_the_growth_to_be_expected_is_a_high_quantile_and_assumed_at_first() -> None:
    assert history(4000.0).growth == pytest.approx(0.7 * sqrt(40 / 90))
    calm = history(*[4000.0] * 200)
    assert calm.growth == pytest.approx(0)
    assert history(*[4000.0, 4000.0, 12000.0, 12000.0] * 50).growth > 1


def test_a_load_without_steps_has_no_dispersion_and_steps_have_their_size() -> None:
    assert history(*[4000.0] * 20).dispersion == 0
    found = history(*[4000.0, 8000.0] * 10)
    assert found.dispersion == pytest.approx(SCRAPE * 19 * 4000**2 / 2 / (10 * 12000))


def test_bins_in_which_nothing_was_read_are_filled() -> None:
    found = extended(history(1.0), policy=POLICY, horizon_seconds=40.0, capacity=1.0, rate=5.0, count=3)
    assert found.rates == (1.0, 5.0, 5.0, 5.0)
    full = extended(found, policy=POLICY, horizon_seconds=40.0, capacity=1.0, rate=7.0, count=10_000)
    assert set(full.rates) == {7.0}
    assert len(full.rates) == 240


RANDOM, SHORTEST = Rate(work=1.2, seconds=1.0), Rate(work=0.3, seconds=1.0)
"""Unevenness under random routing, and where each request goes to the shortest queue."""


def late(*waiting: float, front: float = 0.0, unevenness: Rate = RANDOM) -> tuple[float, float]:
    seen = tuple(Seen(sample=Sample(time=NOON, waiting=count), front_end=front) for count in waiting)
    mix = Mix(tokens=800_000, begun=1000, unevenness=unevenness)
    found = late_shares(POLICY, able(POLICY, Learned()), history(*[8000.0] * 5), mix, seen)
    assert found is not None
    return found


def test_the_share_of_late_requests_grows_with_the_queue() -> None:
    assert late(0, 0) == (0, 0)
    # Behind 10 others of 0.2 s each: exp(-2 / 2).
    assert late(10)[0] == pytest.approx(0.3679, abs=1e-3)
    assert late(10, 0)[0] == pytest.approx(0.3679 / 2, abs=1e-3)
    # 6 in the front end and one worker: 5 wait, and 10 come each second: half a second on average, and a little more.
    assert late(0, front=6, unevenness=SHORTEST)[1] == pytest.approx(0.0183, abs=1e-4)
    assert late(0, front=6)[1] == pytest.approx(exp(-2 / 0.51), abs=1e-4)


def test_who_chooses_the_shortest_queue_finds_one_fewer_than_are_seen() -> None:
    assert late(10, unevenness=SHORTEST)[0] == pytest.approx(exp(-2 / 1.8), abs=1e-3)
    between = late(10, unevenness=Rate(work=0.75, seconds=1.0))[0]
    assert late(10, unevenness=SHORTEST)[0] < between < late(10)[0]


@pytest.mark.parametrize(("in_flight", "found"), [((4, 4, 4, 4), 0.0), ((0, 8, 2, 6), 1.0)])
def test_how_requests_are_routed_shows_in_how_they_lie(in_flight: tuple[float, ...], found: float) -> None:
    seen = tuple(Seen(sample=Sample(time=NOON, in_flight=count)) for count in in_flight)
    rate = Mix().unevenness
    for _ in range(200):
        rate = unevenness(POLICY, rate, seen)
    assert randomness(Mix(unevenness=rate)) == pytest.approx(found)


def test_one_replica_tells_nothing_of_the_routing() -> None:
    alone = (Seen(sample=Sample(time=NOON, in_flight=9)), Seen(sample=Sample(time=NOON)))
    assert unevenness(POLICY, SHORTEST, alone) == SHORTEST


def test_the_factor_settles_where_the_share_of_late_requests_is_as_wanted() -> None:
    lane = history(*[8000.0] * 5)
    assert gains_of(POLICY, Learned()) == (3, 3)
    assert moved(POLICY, (2, 2), (STANDARD.late_share, 0), lane) == (pytest.approx(2), pytest.approx(1.988, abs=1e-3))
    assert moved(POLICY, (2, 2), (1, 1), lane)[0] > 2.4
    for gain, share in ((STANDARD.gain_most, 1.0), (STANDARD.gain_least, 0.0)):
        assert moved(POLICY, (gain, gain), (share, share), lane) == (gain, gain)


def test_bins_with_more_work_move_it_more() -> None:
    calm, busy = history(*[8000.0] * 9, 800.0), history(*[8000.0] * 9, 80_000.0)
    assert moved(POLICY, (2, 2), (1, 1), busy)[0] > moved(POLICY, (2, 2), (1, 1), calm)[0]


def test_the_headroom_goes_down_while_nothing_waits() -> None:
    decisions, state = run(POLICY, Fleet(size=12), seconds=7200)
    assert max(gains_of(POLICY, state.learned)) < 1
    assert decisions[-1].wanted < decisions[60].wanted


def test_a_fleet_that_follows_its_decisions_settles_and_stays() -> None:
    decisions, _ = run(POLICY, Fleet(size=12), seconds=7200, follow=True)
    last = sizes(decisions)[-240:]
    assert 2 <= min(last) <= max(last) <= 4
    assert len(set(last)) <= 2


def test_up_is_at_once_and_down_only_after_the_hold() -> None:
    _, state = run(POLICY, Fleet(size=6), seconds=1800)
    fleet = Fleet(size=6, read_at=NOON + 1800 - SCRAPE)
    up, state = run(POLICY, fleet, seconds=60, load=lambda _: 80_000, state=state, start=NOON + 1800)
    assert max(sizes(up)) >= 20
    fleet.size = 25
    down, _ = run(POLICY, fleet, seconds=1200, load=lambda _: 8000, state=state, start=NOON + 1860)
    assert min(sizes(down[: int(840 / TICK)])) >= 20
    assert down[20].reason in (Reason.HELD, Reason.PACE)
    assert min(sizes(down)) < 25


def test_a_load_that_fell_keeps_a_fifth_to_spare_for_an_hour() -> None:
    _, state = run(POLICY, Fleet(size=25), seconds=1800, load=lambda _: 60_000)
    fleet = Fleet(size=25, read_at=NOON + 1800 - SCRAPE)
    down, _ = run(POLICY, fleet, seconds=5400, load=lambda _: 24_000, state=state, start=NOON + 1800, follow=True)
    early, late_on = down[int(2000 / TICK)], down[-1]
    assert (
        early.wanted
        < early.replicas
        <= ceil(1.2 * max(one.wanted for one in down[int(1000 / TICK) : int(2000 / TICK)]))
    )
    assert late_on.replicas < early.replicas


# -- what GPUs say -----------------------------------------------------------------------------------------------------

GPU_TARGET = Target(signal=Signal.GPU_UTILIZATION, value=0.5)


def test_busy_gpus_count_only_with_engines_that_are_half_full() -> None:
    policy = by_work(targets=(GPU_TARGET,))
    decisions, _ = run(policy, Fleet(size=10, gpu=1.0), seconds=60, load=lambda _: 8000)
    assert decisions[-1].candidates[0].replicas == 0
    assert "busy GPUs alone" in decisions[-1].candidates[0].note
    decisions, _ = run(policy, Fleet(size=10, gpu=1.0), seconds=60, load=lambda _: 30_000)
    assert decisions[-1].candidates[0].replicas == 20
    assert decisions[-1].replicas >= 20


def test_idle_gpus_veto_what_engines_without_running_requests_seem_to_need() -> None:
    for gpu, running, vetoed in ((0.0, 0, True), (0.9, 0, False), (0.0, 3, False), (None, 0, False)):
        fleet = Fleet(size=4, waiting=400, gpu=gpu, spoilt={"running": running})
        decisions, _ = run(POLICY, fleet, seconds=120, load=lambda _: 8000)
        assert (decisions[-1].wanted == 0) is vetoed, (gpu, running)
        assert decisions[-1].replicas >= 4


def test_targets_are_further_candidates() -> None:
    fleet = Fleet(size=4, waiting=30)
    plain, _ = run(POLICY, fleet, seconds=60)
    fleet = Fleet(size=4, waiting=30)
    decisions, _ = run(by_work(targets=(queue(1),)), fleet, seconds=60)
    assert decisions[-1].binding == "queueDepth"
    assert decisions[-1].replicas == 40
    assert plain[-1].replicas < 40


# -- what holds for any load -------------------------------------------------------------------------------------------

loads = st.lists(st.floats(0, 100_000), min_size=1, max_size=12)


@given(loads=loads, size=st.integers(1, 12), waiting=st.integers(0, 50))
def test_a_decision_is_pure_and_does_not_depend_on_the_order_of_the_replicas(
    loads: list[float], size: int, waiting: int
) -> None:
    fleet, state = Fleet(size=size, waiting=waiting), NEW
    for step, load in enumerate(loads):
        now = NOON + step * SCRAPE
        signals = fleet.seen(now, load)
        turned = replace(signals, replicas=signals.replicas[::-1])
        before = repr(state)
        first, after = decide(POLICY, state, signals, now)
        again, _ = decide(POLICY, state, signals, now)
        other, _ = decide(POLICY, state, turned, now)
        assert repr(state) == before
        assert first == again
        assert first.replicas == other.replicas
        assert 1 <= first.replicas <= 40
        state = after


@given(loads=loads, more=st.integers(1, 200))
def test_a_longer_queue_never_needs_fewer(loads: list[float], more: int) -> None:
    fleet, state = Fleet(size=4), NEW
    now = NOON
    for step, load in enumerate(loads):
        now = NOON + step * SCRAPE
        _, state = decide(POLICY, state, fleet.seen(now, load), now)
    short = decide(POLICY, state, replace(fleet.seen(now + 1, 0), held=0.0), now + 1)[0]
    long = decide(POLICY, state, replace(fleet.seen(now + 1, 0), held=float(more)), now + 1)[0]
    assert long.wanted >= short.wanted


@given(rates=st.lists(st.floats(0, 1e6), min_size=1, max_size=60), capacity=st.floats(1, 1e5))
def test_what_is_expected_is_never_negative(rates: list[float], capacity: float) -> None:
    found = history(*rates, capacity=capacity)
    assert found.growth >= 0
    assert found.dispersion >= 0


def test_observing_leaves_the_state_before_it_as_it_was() -> None:
    fleet = Fleet(size=3)
    _, state = run(POLICY, fleet, seconds=120)
    text = repr(state)
    observe(POLICY, state, fleet.seen(NOON + 120, 8000), NOON + 120)
    assert repr(state) == text
    assert State() == NEW
