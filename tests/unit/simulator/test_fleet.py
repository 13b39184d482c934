"""Requests through simulated replicas, against what queueing says of them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.simulator.traces_made import at_random, trace_of
from vlm_operator.simulator.fleet import Fleet
from vlm_operator.simulator.physics import Physics
from vlm_operator.simulator.routing import Routing
from vlm_operator.simulator.trace import Trace
from vlm_operator.simulator.view import Life

ROOMY = Physics(slots=100_000, kv_tokens=1e12)
requests = st.lists(
    st.tuples(st.floats(0, 2), st.integers(1, 9000), st.integers(0, 6), st.integers(1, 300)), min_size=1, max_size=60
)


def drawn(rows: list[tuple[float, int, int, int]]) -> Trace:
    gaps, prompts, images, outputs = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    times = np.cumsum(gaps)
    return trace_of(
        (times - times[0]).tolist(),
        prompt_tokens=prompts.tolist(),
        images=images.tolist(),
        output_tokens=outputs.tolist(),
    )


def fleet_of(trace: Trace, physics: Physics, *, replicas: int = 1, routing: Routing = Routing.RANDOM) -> Fleet:
    fleet = Fleet(trace, physics, routing=routing, seed=1)
    for _ in range(replicas):
        fleet.start(loaded=True)
    fleet.advance(0.0)
    return fleet


def queued(arrivals: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """When a single server that takes one after the other begins with each."""
    starts, free = [], 0.0
    for arrival, lasts in zip(arrivals, seconds, strict=True):
        starts.append(max(arrival, free))
        free = starts[-1] + lasts
    return np.array(starts)


@given(requests)
def test_one_lane_takes_requests_one_after_the_other(rows: list[tuple[float, int, int, int]]) -> None:
    trace = drawn(rows)
    fleet = fleet_of(trace, ROOMY)
    fleet.advance(math.inf)
    lane = ROOMY.lane_seconds(prompt_tokens=trace.prompt_tokens, images=trace.images)
    assert fleet.waits == pytest.approx(queued(trace.times, lane) - trace.times, abs=1e-3)
    assert fleet.in_flight == 0


@given(requests)
def test_images_are_prepared_before_the_lane_by_one_worker(rows: list[tuple[float, int, int, int]]) -> None:
    physics = Physics(slots=100_000, kv_tokens=1e12, front_end_seconds_per_image=0.2)
    trace = drawn(rows)
    fleet = fleet_of(trace, physics)
    fleet.advance(math.inf)
    door = np.asarray(physics.front_end_seconds(images=trace.images))
    prepared = queued(trace.times, door) + door
    lane = np.asarray(physics.lane_seconds(prompt_tokens=trace.prompt_tokens, images=trace.images))
    assert fleet.waits == pytest.approx(queued(prepared, lane) - trace.times - door, abs=1e-3)


def test_the_mean_wait_is_that_of_random_arrivals_and_equal_work() -> None:
    """Pollaczek and Khinchine: half the load over what is free, in services."""
    trace = at_random([(40_000.0, 7.0)], prompt_tokens=400.0, output_tokens=1.0)
    fleet = fleet_of(trace, ROOMY)
    fleet.advance(math.inf)
    service = float(ROOMY.lane_seconds(prompt_tokens=400.0, images=0.0))
    load = 7.0 * service
    assert fleet.waits.mean() == pytest.approx(service * load / 2 / (1 - load), rel=0.05)


@given(requests, st.integers(1, 4), st.sampled_from(list(Routing)))
def test_slots_and_kv_cache_are_never_overfilled(
    rows: list[tuple[float, int, int, int]], slots: int, routing: Routing
) -> None:
    physics = Physics(slots=slots, kv_tokens=12_000.0)
    trace = drawn(rows)
    fleet = fleet_of(trace, physics, replicas=2, routing=routing)
    for now in np.arange(0.0, trace.seconds + 1, 0.25):
        fleet.advance(float(now))
        for seen in fleet.seen():
            assert seen.running <= slots
            assert seen.kv_tokens <= 12_000.0 or seen.running == 1
            assert seen.in_flight >= seen.running + seen.waiting
    fleet.advance(math.inf)
    seen = fleet.seen()
    assert sum(one.finished for one in seen) == len(trace)
    assert sum(one.prompt_tokens for one in seen) == pytest.approx(float(trace.prompt_tokens.sum()))
    assert [one.kv_tokens for one in seen] == [0.0, 0.0]


def test_a_request_goes_where_the_fewest_are() -> None:
    trace = trace_of([0.0, 0.1, 0.2], output_tokens=1000.0)
    fleet = fleet_of(trace, ROOMY, replicas=3, routing=Routing.LEAST_OUTSTANDING)
    fleet.advance(0.3)
    assert [seen.in_flight for seen in fleet.seen()] == [1, 1, 1]


def test_a_request_goes_where_the_fewest_wait_for_their_first_token() -> None:
    """The first replica has two that decode, the second has one whose prompt is long."""
    trace = trace_of(
        [0.0, 1.0, 1.1, 2.0],
        prompt_tokens=[400.0, 40_000.0, 400.0, 400.0],
        output_tokens=[4000.0, 10.0, 4000.0, 10.0],
    )
    fleet = fleet_of(trace, ROOMY, replicas=2, routing=Routing.FEWEST_UNSTARTED)
    fleet.advance(2.05)
    assert [seen.in_flight for seen in fleet.seen()] == [3, 1]


def test_random_routing_spreads_evenly() -> None:
    fleet = fleet_of(at_random([(1000.0, 40.0)], output_tokens=1.0), ROOMY, replicas=4)
    fleet.advance(math.inf)
    assert [seen.finished for seen in fleet.seen()] == pytest.approx([10_000] * 4, rel=0.04)


def test_requests_are_held_until_a_replica_serves() -> None:
    fleet = Fleet(trace_of([0.0, 1.0]), Physics(cold_start_seconds=60.0), routing=Routing.RANDOM, seed=1)
    fleet.start()
    fleet.advance(10.0)
    assert (fleet.held, fleet.counts()[Life.STARTING]) == (2, 1)
    fleet.advance(math.inf)
    assert fleet.held == 0
    assert 60 * 0.8 <= fleet.waits[0] <= 60 * 1.2


def test_one_on_standby_gets_no_request_before_it_is_promoted() -> None:
    fleet = Fleet(trace_of([5.0, 6.0]), Physics(), routing=Routing.RANDOM, seed=1)
    warm = fleet.start(standby=True, loaded=True)
    fleet.advance(8.0)
    assert (fleet.counts()[Life.STANDBY], fleet.held) == (1, 2)
    fleet.serve(warm)
    fleet.advance(math.inf)
    assert fleet.waits == pytest.approx([3.0, 2.115], abs=1e-3)


def test_one_that_drains_finishes_what_it_has_and_gets_no_more() -> None:
    fleet = fleet_of(trace_of([0.0, 1.0, 50.0], output_tokens=1000.0), Physics())
    fleet.advance(2.0)
    fleet.drain(0, then_end=True)
    other = fleet.start(loaded=True)
    fleet.advance(math.inf)
    assert [seen.number for seen in fleet.seen()] == [other]
    assert fleet.seen()[0].finished == 1
    assert fleet.in_flight == 0


def test_what_a_crash_cut_comes_once_more() -> None:
    """One decodes, one has its prompt worked on, one waits, one is prepared, one waits for that."""
    physics = Physics(front_end_seconds_per_image=1.0)
    trace = trace_of(
        [0.0, 3.0, 3.1, 4.0, 4.1],
        prompt_tokens=[400.0, 40_000.0, 400.0, 400.0, 400.0],
        images=[1.0, 0.0, 0.0, 1.0, 1.0],
        output_tokens=5000.0,
    )
    fleet = fleet_of(trace, physics)
    fleet.advance(4.5)
    before = fleet.seen()[0]
    assert (before.in_flight, before.running, before.waiting) == (5, 2, 1)
    fleet.end(0)
    other = fleet.start(loaded=True)
    fleet.advance(math.inf)
    assert [(seen.number, seen.finished) for seen in fleet.seen()] == [(other, 5)]
    assert fleet.in_flight == 0


def test_the_same_seed_gives_the_same_waits_and_another_one_others() -> None:
    def waits(seed: int) -> list[float]:
        fleet = Fleet(at_random([(200.0, 20.0)]), Physics(), routing=Routing.RANDOM, seed=seed)
        for _ in range(3):
            fleet.start(loaded=True)
        fleet.advance(math.inf)
        return fleet.waits.tolist()

    assert waits(1) == waits(1)
    assert waits(1) != waits(2)


def test_time_of_replicas_counts_from_creation_until_the_end_of_the_trace() -> None:
    fleet = fleet_of(trace_of([0.0, 100.0]), Physics(), replicas=2)
    fleet.advance(40.0)
    fleet.end(1)
    fleet.start()
    fleet.advance(math.inf)
    assert fleet.replica_seconds() == pytest.approx(100 + 40 + 60)
