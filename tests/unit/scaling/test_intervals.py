"""What is made of the samples of one replica: arrivals, capacities, and never a 0 for what is not known."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.scaling.scenes import NOON, SCRAPE, Fleet, by_work, run, ticks
from vlm_operator.scaling.capacity import able, assumptions
from vlm_operator.scaling.decide import decide
from vlm_operator.scaling.intervals import Ledger
from vlm_operator.scaling.policy import Declared, Policy, Source, Workers
from vlm_operator.scaling.reading import judged
from vlm_operator.scaling.signals import Phase, Quality, Replica, Sample, Signals
from vlm_operator.scaling.state import NEW, Learned, Mix, Rate, Seen

FULL = Sample(
    time=NOON,
    running=4,
    waiting=0,
    in_flight=4,
    kv_usage=0.1,
    prompt_tokens=100_000,
    first_tokens=100,
    finished=96,
    images=200,
)
OLD = Replica(uid="r", phase=Phase.READY, created_at=NOON - 4000, ready_at=NOON - 3900)


def ledger(learned: Learned | None = None, policy: Policy | None = None) -> Ledger:
    policy, learned = policy or by_work(), learned or Learned()
    return Ledger(policy, learned, able(policy, learned), Mix(), learning=True, count=1)


def taught(book: Ledger) -> Learned:
    return book.learned(Learned(), until=NOON)


def later(seconds: float = SCRAPE, **figures: Any) -> Sample:
    return replace(FULL, time=NOON + seconds, **figures)


BAD_FIGURES = [
    ("waiting", None, Quality.MISSING),
    ("waiting", float("nan"), Quality.NOT_A_NUMBER),
    ("running", float("inf"), Quality.NOT_A_NUMBER),
    ("running", -1, Quality.NEGATIVE),
    ("kv_usage", 1.2, Quality.IMPOSSIBLE),
    ("in_flight", 1e9, Quality.IMPOSSIBLE),
    ("prompt_tokens", -5, Quality.NEGATIVE),
    ("images", float("nan"), Quality.NOT_A_NUMBER),
]


@pytest.mark.parametrize(("name", "value", "quality"), BAD_FIGURES)
def test_a_bad_figure_is_named_and_left_out(name: str, value: Any, quality: Quality) -> None:
    sample, flaws = judged(replace(FULL, **{name: value}))
    assert flaws == ((name, quality),)
    assert getattr(sample, name) is None
    assert judged(FULL) == (FULL, ())


def test_arrivals_are_what_was_done_and_what_piles_up() -> None:
    book = ledger()
    seen = book.count(OLD, later(prompt_tokens=115_000, first_tokens=115, waiting=3), Seen(sample=FULL, front_end=0.0))
    # 15000 tokens by 15 requests, and 3 more of 1000 each that wait, in 15 s.
    assert seen.lane_rate == pytest.approx((15_000 + 3 * 1000) / SCRAPE)


def test_a_queue_that_shrinks_was_no_arrival() -> None:
    before = Seen(sample=replace(FULL, waiting=15), front_end=0.0)
    seen = ledger().count(OLD, later(prompt_tokens=115_000, first_tokens=115, waiting=0), before)
    assert seen.lane_rate == pytest.approx(0)


def test_images_that_wait_for_the_front_end_have_arrived() -> None:
    before = Seen(sample=FULL, front_end=0.0)
    now = later(prompt_tokens=115_000, first_tokens=115, finished=111, images=230, in_flight=9)
    seen = ledger().count(OLD, now, before)
    assert seen.front_end == 5
    assert seen.image_rate == pytest.approx((30 + 5 * 2) / SCRAPE)


def test_the_first_sample_of_an_old_replica_tells_nothing() -> None:
    seen = ledger().count(OLD, FULL, None)
    assert seen.lane_rate is None
    assert ("counters", Quality.FIRST_INTERVAL) in seen.flaws


def test_a_replica_that_has_just_got_ready_began_at_nothing() -> None:
    seen = ledger().count(replace(OLD, ready_at=NOON - 10), FULL, None)
    assert seen.flaws == ()
    assert seen.lane_rate == pytest.approx(100_000 / 10)


def test_after_a_reset_the_rate_stays_what_it_was() -> None:
    before = Seen(sample=FULL, front_end=0.0, lane_rate=777.0, image_rate=7.0)
    seen = ledger().count(OLD, later(prompt_tokens=50, first_tokens=1, images=0), before)
    assert (seen.lane_rate, seen.image_rate) == (777.0, 7.0)
    assert ("counters", Quality.RESET) in seen.flaws
    after = ledger().count(OLD, later(30, prompt_tokens=1550, first_tokens=2, images=1), seen)
    assert after.lane_rate == pytest.approx(100)


def test_a_counter_that_jumps_beyond_what_a_gpu_can_do_is_not_counted() -> None:
    before = Seen(sample=FULL, front_end=0.0, lane_rate=777.0)
    seen = ledger().count(OLD, later(prompt_tokens=1e12), before)
    assert seen.lane_rate == 777.0
    assert ("prompt_tokens", Quality.IMPOSSIBLE) in seen.flaws


def test_without_requests_in_flight_the_front_end_is_unknown_and_not_empty() -> None:
    seen = ledger().count(OLD, later(prompt_tokens=115_000, in_flight=None), Seen(sample=FULL, front_end=0.0))
    assert (seen.front_end, seen.image_rate) == (None, None)
    assert seen.lane_rate == pytest.approx(1000)


def test_the_lane_is_learned_from_times_in_which_requests_waited_for_it_alone() -> None:
    policy = by_work()
    before, busy = Seen(sample=replace(FULL, waiting=5), front_end=0.0), later(prompt_tokens=130_000, waiting=5)
    learning = ledger()
    for _ in range(200):
        learning.count(OLD, busy, before)
    assert able(policy, taught(learning)).lane == pytest.approx(2000, rel=0.15)
    idle = ledger()
    for changes in ({"waiting": 0}, {"running": 255}, {"kv_usage": 0.9}):
        idle.count(OLD, replace(busy, **changes), before)
    assert able(policy, taught(idle)).lane == 4000


def test_a_capacity_that_is_beaten_was_too_low() -> None:
    book, policy = ledger(), by_work()
    for _ in range(300):
        book = ledger(taught(book))
        book.count(OLD, later(prompt_tokens=100_000 + 8000 * SCRAPE), Seen(sample=FULL, front_end=0.0))
    assert able(policy, taught(book)).lane > 6000


def test_the_front_end_is_learned_while_few_are_in_it() -> None:
    book = ledger()
    now = later(prompt_tokens=115_000, first_tokens=115, finished=111, images=230, in_flight=5)
    for _ in range(100):
        book.count(OLD, now, Seen(sample=replace(FULL, in_flight=5), front_end=1.0))
    # One worker was busy for 15 s with 30 images.
    assert able(by_work(), taught(book)).images == pytest.approx(2)


def test_workers_are_those_declared_until_all_of_them_were_busy_for_a_minute() -> None:
    policy = by_work(declared=Declared(workers=Workers(count=2, source=Source.DERIVED)))
    single = Rate(work=100, seconds=50)
    assert able(policy, Learned(front_end=single)).workers == Workers(count=2, source=Source.DERIVED)
    busy = Rate(work=600, seconds=75)
    assert able(policy, Learned(front_end=single, front_end_busy=busy)).workers == Workers(
        count=4, source=Source.LEARNED
    )
    known = Learned(front_end=single)
    shown = {one.name: (one.value, one.source) for one in assumptions(policy, known, able(policy, known))}
    assert shown["front-end workers"] == (2, Source.DERIVED)
    assert shown["front-end images/s"] == (4, Source.LEARNED)


def test_the_start_time_is_learned_from_replicas_that_got_ready() -> None:
    policy = by_work(declared=Declared(start_seconds=100))
    learned = NEW.learned
    assert able(policy, learned).start_seconds == 100
    for number, took in enumerate((40, 42, 44, 46, 90)):
        now = NOON + number * 100
        book = ledger(learned, policy)
        book.count(Replica(uid="n", phase=Phase.READY, created_at=now - took, ready_at=now), later(), None)
        learned = taught(book)
    assert learned.starts == (40, 42, 44, 46, 90)
    assert able(policy, learned).start_seconds == 90
    book = ledger(Learned.from_json(learned.as_json()), policy)
    book.count(Replica(uid="n", phase=Phase.READY, created_at=NOON + 310, ready_at=NOON + 400), later(), None)
    assert taught(book).starts == learned.starts, "it is known from before the restart"
    now = NOON + 20_000
    book.count(Replica(uid="m", phase=Phase.READY, created_at=now - 18_000, ready_at=now), later(), None)
    assert taught(book).starts == learned.starts, "it waited for a GPU"


def test_the_start_times_of_a_growing_fleet_are_all_learned() -> None:
    """Also while the others are read all the time."""
    policy, state, fleet = by_work(), NEW, Fleet(size=3)
    for tick in range(120):
        now = NOON + tick * 5
        signals = fleet.seen(now, 8000)
        grown = tuple(
            Replica(
                uid=f"new-{number}",
                phase=Phase.READY if now > NOON + 100 * number else Phase.STARTING,
                created_at=NOON + 100 * number - 50 - number,
                ready_at=NOON + 100 * number if now > NOON + 100 * number else None,
                sample=replace(FULL, time=now) if now > NOON + 100 * number + 10 else None,
            )
            for number in range(1, 5)
        )
        _, state = decide(policy, state, replace(signals, replicas=(*signals.replicas, *grown)), now)
    assert state.learned.starts == (30, 51, 52, 53, 54)


def test_a_sample_that_is_lost_makes_the_interval_longer() -> None:
    policy, state, fleet = by_work(), NEW, Fleet(size=2)
    for tick in range(60):
        now = NOON + tick * 5
        signals = fleet.seen(now, 8000)
        if 20 <= tick < 26:
            lost = tuple(replace(one, sample=None) for one in signals.replicas)
            signals = replace(signals, replicas=lost)
        _, state = decide(policy, state, signals, now)
    assert state.windows.lane.rates[-10:] == pytest.approx([8000] * 10)


def test_a_sample_that_comes_twice_or_late_changes_nothing() -> None:
    policy, fleet = by_work(), Fleet(size=2)
    _, state = run(policy, fleet, seconds=300)
    now = NOON + 300
    signals = fleet.seen(now, 8000)
    _, state = decide(policy, state, signals, now)
    older = tuple(
        replace(one, sample=replace(one.sample, time=now - 60, prompt_tokens=5.0))
        for one in signals.replicas
        if one.sample is not None
    )
    _, after = decide(policy, state, replace(signals, replicas=older), now + 1)
    assert after.windows.seen == state.windows.seen


figures = st.none() | st.floats(allow_nan=True, allow_infinity=True)
samples = st.builds(
    Sample,
    time=st.floats(NOON - 500, NOON + 50) | st.floats(allow_nan=True),
    **dict.fromkeys(("running", "waiting", "in_flight", "kv_usage", "prompt_tokens", "images"), figures),
)


@given(st.lists(st.lists(st.none() | samples, min_size=3, max_size=3), min_size=1, max_size=6))
def test_whatever_is_read_there_is_a_decision_within_bounds(reads: list[list[Sample | None]]) -> None:
    policy, state = by_work(min_replicas=2, max_replicas=7), NEW
    for step, read in enumerate(reads):
        seen = tuple(replace(OLD, uid=f"r{number}", sample=sample) for number, sample in enumerate(read))
        decision, state = decide(policy, state, Signals(size=3, replicas=seen), NOON + step * SCRAPE)
        assert 3 <= decision.replicas <= 7, "on such signals nothing scales down"
        assert decision.message


def test_the_same_replicas_once_more_are_decided_on_as_if_they_had_been_read_anew() -> None:
    """Also when the samples get too old, and when one of them was taken a moment ahead of the clock."""
    policy = by_work()
    fleet, again, anew = Fleet(size=5, waiting=1, front_end=2, images_per_request=1.5), NEW, NEW
    signals = fleet.seen(NOON, 8000.0)
    for now in ticks(NOON, 900):
        if now % SCRAPE == 0 and not 300 <= now - NOON < 500:
            signals = fleet.seen(now, 8000.0)
        first, again = decide(policy, again, signals, now)
        copies = replace(signals, replicas=tuple(replace(replica) for replica in signals.replicas))
        second, anew = decide(policy, anew, copies, now)
        assert first == second


def test_what_a_promoted_replica_does_is_known_from_its_first_sample_on() -> None:
    """On standby its counters stood still; they are no mystery when it serves."""
    policy, state = by_work(), NEW
    idle = replace(FULL, running=0, in_flight=0, prompt_tokens=500, first_tokens=1, finished=1, images=1)
    warm = Replica(uid="w", phase=Phase.STANDBY, created_at=NOON - 900, ready_at=NOON - 800, sample=idle)
    _, state = decide(policy, state, Signals(size=1, replicas=(warm,)), NOON)
    busy = replace(idle, time=NOON + SCRAPE, running=1, in_flight=1, prompt_tokens=30_500, first_tokens=40, finished=40)
    promoted = replace(warm, phase=Phase.READY, sample=busy)
    decision, state = decide(policy, state, Signals(size=1, replicas=(promoted,)), NOON + SCRAPE)
    assert state.windows.seen["w"].lane_rate == pytest.approx(2000)
    assert not decision.flaws
