"""What a replay is judged by."""

import json
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.simulator.results import result
from vlm_operator.simulator.measures import FEWEST_IN_WINDOW, Measures, measure

KEYS = ["attainment", "gpuHours", "p50Wait", "p95Wait", "p99Wait", "scaleEvents", "flaps", "requests", "worst10min"]


def every(seconds: float, *, until: float) -> list[float]:
    return [number * seconds for number in range(int(until / seconds))]


def test_the_data_has_these_names_and_plain_numbers() -> None:
    data = measure(result([0, 1], [0.1, 3])).as_data()
    assert list(data) == KEYS
    assert data == {
        "attainment": 0.5,
        "gpuHours": 1.0,
        "p50Wait": 0.1,
        "p95Wait": 3.0,
        "p99Wait": 3.0,
        "scaleEvents": 0,
        "flaps": 0,
        "requests": 2,
        "worst10min": 0.5,
    }
    assert {type(value) for value in data.values()} == {int, float}


def test_a_wait_without_end_is_none_in_the_data_because_json_has_no_infinity() -> None:
    found = measure(result(range(10), [1.0] * 6 + [float("inf")] * 4))
    assert (found.p50_wait, found.p95_wait, found.attainment) == (1, float("inf"), 0.6)
    data = found.as_data()
    assert (data["p50Wait"], data["p95Wait"], data["p99Wait"]) == (1, None, None)
    json.dumps(data, allow_nan=False)


def test_a_wait_as_long_as_the_objective_is_in_time() -> None:
    found = result([0, 1, 2, 3], [0, 2.0, 2.001, 9])
    assert measure(found).attainment == 0.5
    assert measure(found, slo_seconds=9).attainment == 1
    assert measure(found, slo_seconds=0).attainment == 0.25


def test_gpu_hours_count_each_gpu_of_each_replica() -> None:
    assert measure(result([0], [0], replica_seconds=5400, gpus=4)).gpu_hours == 6


def test_a_quantile_is_a_wait_that_that_share_of_requests_did_not_exceed() -> None:
    found = measure(result(range(100), range(100)))
    assert (found.p50_wait, found.p95_wait, found.p99_wait) == (49, 94, 98)


FLAPS = [
    ("none without changes", [], 0),
    ("up alone", [(0, 1, 2), (60, 2, 5)], 0),
    ("down alone", [(0, 3, 2), (60, 2, 1)], 0),
    ("up and then down", [(0, 1, 2), (60, 2, 1)], 0),
    ("down and then up", [(0, 2, 1), (60, 1, 2)], 1),
    ("ten minutes after", [(0, 2, 1), (600, 1, 2)], 1),
    ("later", [(0, 2, 1), (600.1, 1, 2)], 0),
    ("up in two steps", [(0, 4, 1), (60, 1, 2), (90, 2, 3)], 2),
    ("the last change down counts", [(0, 4, 3), (600, 3, 2), (1190, 2, 3)], 1),
]


@pytest.mark.parametrize(("_", "changes", "flaps"), FLAPS, ids=[row[0] for row in FLAPS])
def test_flaps(_: str, changes: list[tuple[float, int, int]], flaps: int) -> None:
    found = measure(result([0, 2000], [0, 0], changes=changes))
    assert (found.flaps, found.scale_events) == (flaps, len(changes))


def test_the_worst_ten_minutes_are_found_wherever_they_begin() -> None:
    arrivals = every(1, until=3600)
    late = [5.0 if 1000 <= time < 1300 else 0.0 for time in arrivals]
    found = measure(result(arrivals, late))
    assert found.attainment == pytest.approx(3300 / 3600)
    assert found.worst_10_minutes == 0.5
    across = [5.0 if 540 <= time < 660 else 0.0 for time in arrivals]
    assert measure(result(arrivals, across)).worst_10_minutes == pytest.approx(480 / 600)


def test_the_end_of_the_trace_is_in_a_window() -> None:
    arrivals = every(1, until=1231)
    late = [5.0 if time >= 1200 else 0.0 for time in arrivals]
    found = measure(result(arrivals, late))
    assert found.worst_10_minutes == pytest.approx(1 - 31 / 571)


def test_windows_with_few_requests_do_not_count() -> None:
    busy = every(1, until=600)
    quiet = [3600.0 + 10 * number for number in range(FEWEST_IN_WINDOW - 1)]
    waits = [0.0] * 600 + [9.0] * len(quiet)
    assert measure(result(busy + quiet, waits)).worst_10_minutes == 1
    one_more = [*quiet, quiet[-1]]
    assert measure(result(busy + one_more, [*waits, 9.0])).worst_10_minutes == 0


def test_where_all_windows_have_few_requests_the_whole_trace_is_the_window() -> None:
    found = measure(result([0, 40_000, 80_000, 90_000], [0, 9, 0, 0]))
    assert found.worst_10_minutes == found.attainment == 0.75


requests = st.lists(st.tuples(st.floats(0, 20_000), st.floats(0, 100, width=32)), min_size=1, max_size=300)


def judged(rows: list[tuple[float, float]], slo: float = 2.0) -> Measures:
    rows = sorted(rows, key=lambda row: row[0])
    return measure(result([time for time, _ in rows], [wait for _, wait in rows]), slo_seconds=slo)


@given(requests, st.floats(0, 100))
def test_shares_are_shares_and_quantiles_are_in_order(rows: list[tuple[float, float]], slo: float) -> None:
    found = judged(rows, slo)
    assert 0 <= found.attainment <= 1
    assert 0 <= found.worst_10_minutes <= 1
    assert 0 <= found.p50_wait <= found.p95_wait <= found.p99_wait <= 100


@given(requests, st.randoms(use_true_random=False))
def test_who_waited_does_not_matter_to_shares_and_quantiles(
    rows: list[tuple[float, float]], chance: random.Random
) -> None:
    waits = [wait for _, wait in rows]
    chance.shuffle(waits)
    one, other = judged(rows), judged([(time, wait) for (time, _), wait in zip(rows, waits, strict=True)])
    for name in ("attainment", "p50_wait", "p95_wait", "p99_wait", "requests"):
        assert getattr(one, name) == getattr(other, name)


@given(requests, st.lists(st.floats(0, 100), min_size=2, max_size=5))
def test_a_longer_objective_never_makes_it_worse(rows: list[tuple[float, float]], objectives: list[float]) -> None:
    found = [judged(rows, slo) for slo in sorted(objectives)]
    assert all(a.attainment <= b.attainment and a.worst_10_minutes <= b.worst_10_minutes for a, b in pairwise(found))


@given(st.lists(st.floats(0, 3000), min_size=FEWEST_IN_WINDOW, max_size=400), st.data())
def test_the_worst_window_is_that_of_a_plain_search(times: list[float], data: st.DataObject) -> None:
    times.sort()
    late = data.draw(st.lists(st.booleans(), min_size=len(times), max_size=len(times)))
    found = measure(result(times, [9.0 if one else 0.0 for one in late])).worst_10_minutes
    shares, start = [], 0.0
    while True:
        inside = [one for time, one in zip(times, late, strict=True) if start <= time < start + 600]
        if len(inside) >= FEWEST_IN_WINDOW:
            shares.append(1 - sum(inside) / len(inside))
        if times[-1] < start + 600:
            break
        start += 60
    assert found == pytest.approx(min(shares, default=1 - sum(late) / len(late)))
