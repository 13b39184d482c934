"""The Horizontal Pod Autoscaler reproduces its own tests.

Figures: kubernetes/kubernetes `pkg/controller/podautoscaler/replica_calculator_test.go` and `horizontal_test.go`.
"""

from dataclasses import replace
from typing import Any

import pytest

from unit.simulator.peers.views import fleet, fleet_of, look, seen
from vlm_operator.scaling.from_spec import HPA
from vlm_operator.scaling.policy import Behavior, Rules, Signal
from vlm_operator.simulator.peers.hpa import Actuation, Hpa, HpaSettings
from vlm_operator.simulator.peers.settings import SettingsError

POD_METRICS = [
    ("TestReplicaCalcScaleUpCM", [20, 10, 30], 0, 15, 4),
    (
        "TestReplicaCalcScaleUpCMUnreadyHotCpuNoLessScale: readiness does not count where there is a metric",
        [50, 10, 30],
        0,
        15,
        6,
    ),
    ("TestReplicaCalcScaleUpCMUnreadyHotCpuScaleWouldScaleDown", [50, 15, 30], 0, 15, 7),
    ("TestReplicaCalcScaleDownCM", [12, 12, 12, 12, 12], 0, 20, 3),
    ("TestReplicaCalcToleranceCM", [20, 21, 21], 0, 20, 3),
    ("TestReplicaCalcMissingMetricsNoChangeGt", [19], 1, 10, 2),
    ("TestReplicaCalcMissingMetricsNoChangeLt", [6], 1, 10, 2),
    ("TestReplicaCalcMissingMetricsUnreadyScaleUp: 2000 of 500, and two that are silent", [20], 2, 5, 4),
    ("TestReplicaCalcEmptyMetrics: an error, and no change", [], 4, 10, None),
]


@pytest.mark.parametrize(
    ("source", "values", "silent", "target", "wanted"), POD_METRICS, ids=[r[0] for r in POD_METRICS]
)
def test_vectors_of_pod_metrics(
    source: str, values: list[float], silent: int, target: float, wanted: int | None
) -> None:
    peer = Hpa(HpaSettings(target=target))
    assert peer.proposed(look(fleet_of("waiting", values), starting=silent)) == wanted, source


def test_those_that_start_hold_back_a_step_down() -> None:
    # They are silent: at their target. (4 * 4 + 2 * 10) / 6 = 6 -> 4; four ones without the two would be 2.
    peer = Hpa(HpaSettings(target=10))
    assert peer.proposed(look(fleet(4, waiting=4), starting=2)) == 4
    assert peer.proposed(look(fleet(4, waiting=4))) == 2


def test_replicas_that_left_since_the_scrape_do_not_count() -> None:
    live = fleet(2, waiting=10)
    scraped = (*live, seen(2, waiting=200))
    assert Hpa(HpaSettings(target=5)).proposed(look(live, scraped=scraped)) == 4


SIGNALS = [
    (Signal.QUEUE_DEPTH, 5, {"waiting": 10, "running": 1}, 4),
    (Signal.RUNNING_REQUESTS, 5, {"waiting": 0, "running": 10}, 4),
    (Signal.KV_CACHE_UTILIZATION, 0.4, {"kv_usage": 0.8}, 4),
]


@pytest.mark.parametrize(("signal", "target", "figures", "wanted"), SIGNALS)
def test_each_signal_is_read_from_its_gauge(
    signal: Signal, target: float, figures: dict[str, Any], wanted: int
) -> None:
    assert Hpa(HpaSettings(signal=signal, target=target)).proposed(look(fleet(2, **figures))) == wanted


def test_the_busy_share_of_a_gpu_is_taken_between_two_scrapes() -> None:
    peer = Hpa(HpaSettings(signal=Signal.GPU_UTILIZATION, target=0.5))
    assert peer.proposed(look(fleet(2, busy_seconds=100.0), now=15.0)) is None
    # 15 s of 15 s: twice the target. Then 7.5 s of 15 s: at the target. Nothing new is read in between.
    assert peer.proposed(look(fleet(2, busy_seconds=115.0), now=30.0)) == 4
    assert peer.proposed(look(fleet(2, busy_seconds=115.0), now=36.0, scraped_at=30.0)) == 4
    assert peer.proposed(look(fleet(2, busy_seconds=122.5), now=45.0)) == 2
    # One that came since has no share yet: at the target on the way down, and idle on the way up.
    live = (*fleet(2, busy_seconds=137.5), seen(2, busy_seconds=3.0))
    assert peer.proposed(look(live, now=60.0)) == 4


def test_a_gpu_is_busy_all_of_the_time_at_most() -> None:
    peer = Hpa(HpaSettings(signal=Signal.GPU_UTILIZATION, target=0.1))
    assert peer.proposed(look(fleet(2, busy_seconds=100.0), now=15.0)) is None
    assert peer.proposed(look(fleet(2, busy_seconds=160.0), now=30.0)) == 20


# Windows in minutes before now, and what is recommended now.
STABILIZED = [
    ("simple scale down stabilization", [(2, 4), (1, 5)], 100, 3, 0, 180, 5),
    ("simple scale up stabilization", [(2, 4), (1, 5)], 1, 7, 300, 0, 4),
    ("no scale down stabilization", [(2, 1), (1, 2)], 100, 3, 300, 0, 3),
    ("no scale up stabilization", [(2, 4), (1, 5)], 1, 3, 0, 300, 3),
    (
        "scale up stabilization, reuse one of obsolete recommendation element",
        [(3, 9), (2, 5), (1, 6)],
        1,
        100,
        300,
        0,
        5,
    ),
    ("do not scale up when prenormalized rec goes down", [(100, 2), (3, 3)], 2, 1, 300, 300, 2),
    ("do not scale down when prenormalized rec goes up", [(100, 2), (3, 1)], 2, 3, 300, 300, 2),
]


@pytest.mark.parametrize(
    ("source", "before", "size", "wanted", "up", "down", "steady"), STABILIZED, ids=[row[0] for row in STABILIZED]
)
def test_vectors_of_stabilization(
    source: str, *, before: list[tuple[int, int]], size: int, wanted: int, up: float, down: float, steady: int
) -> None:
    """TestNormalizeDesiredReplicasWithBehavior: without limits on the pace."""
    actuation = Actuation(Behavior(up=Rules(window_seconds=up), down=Rules(window_seconds=down)))
    now = 10_000.0
    # A look long ago, so that none of those that count is the first one.
    actuation.size(look(fleet(size), now=0.0), size)
    for minutes, recommended in before:
        actuation.size(look(fleet(size), now=now - 60 * minutes), recommended)
    assert actuation.size(look(fleet(size), now=now), wanted) == steady, source


def test_up_by_four_pods_or_twice_the_size_in_fifteen_seconds() -> None:
    actuation = Actuation(HPA)
    assert actuation.size(look(fleet(1), now=0.0), 100) == 5
    assert actuation.size(look(fleet(5), now=10.0), 100) == 5
    assert actuation.size(look(fleet(5), now=15.0), 100) == 10
    assert actuation.size(look(fleet(10), now=30.0), 100) == 20


def test_the_size_at_the_first_look_is_a_recommendation_for_five_minutes() -> None:
    peer = Hpa()
    wanted = [peer.desired(look(fleet(6), now=15.0 * step)) for step in range(22)]
    assert wanted == [6] * 20 + [1] * 2


def test_without_any_metric_the_size_stays() -> None:
    peer = Hpa()
    assert [peer.desired(look(fleet(3), now=15.0 * step, scraped=())) for step in range(30)] == [3] * 30


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": 0.0}, "HpaSettings.target is 0; it must be a number greater than 0"),
        ({"period_seconds": -1.0}, "HpaSettings.period_seconds is -1; it must be a number greater than 0"),
        (
            {"signal": Signal.GPU_UTILIZATION, "target": 80.0},
            "HpaSettings.target is 80; it must be a number greater than 0 and at most 1",
        ),
        ({"signal": Signal.CUSTOM}, "HpaSettings.signal is custom; it must be a figure of the replicas"),
    ],
)
def test_settings_that_cannot_be(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        replace(HpaSettings(), **change)
    assert message in str(caught.value)
