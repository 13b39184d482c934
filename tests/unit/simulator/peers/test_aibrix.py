"""AIBrix reproduces its own tests, as documented and as coded.

Figures: vllm-project/aibrix `pkg/controller/podautoscaler/algorithm/{apa,kpa}_test.go` and `autoscaler_test.go`;
`docs/source/features/autoscaling/metric-based-autoscaling.rst`.
"""

from dataclasses import replace
from typing import Any

import pytest

from unit.simulator.peers.views import answers, fleet, fleet_of, look
from vlm_operator.simulator.peers.aibrix import Aibrix, AibrixSettings, Cooldown, Metric, Strategy
from vlm_operator.simulator.peers.settings import SettingsError

APA = [
    ("basic_scale_up", 2, 45, {}, 3),
    ("scale_up_upto_ceiling", 2, 35, {}, 3),
    ("scale_up_upto_max_scale_up", 2, 90, {}, 4),
    ("scale_up_upto_max_scale_up_ceiling", 2, 90, {"max_scale_up_rate": 2.5}, 5),
    ("basic_scale_down", 6, 20, {}, 4),
    ("scale_down_upto_ceiling", 6, 18, {}, 4),
    ("scale_down_upto_max_scale_down", 6, 10, {}, 3),
    ("scale_down_upto_max_scale_down_floor", 6, 5, {"max_scale_down_rate": 2.5}, 2),
    ("no_scaling_as_within_up_tolerance", 2, 33, {}, 2),
    ("no_scaling_as_within_down_tolerance", 2, 27, {}, 2),
]


@pytest.mark.parametrize(("source", "size", "use", "given", "wanted"), APA, ids=[row[0] for row in APA])
def test_vectors_of_apa(source: str, size: int, use: float, given: dict[str, Any], wanted: int) -> None:
    assert Aibrix(AibrixSettings(target=30, **given)).apa(use, size) == wanted, source


# (stable, panic) with a target of 10. Those in panic are as documented: the code remembers no panic.
KPA = [
    ("stable_mode_basic_scaling", True, 2, (20, 20), 2.0, 2),
    ("scale_to_zero", False, 1, (0, 0), 2.0, 0),
    ("max_scale_up_rate_limit", True, 2, (100, 100), 1.5, 3),
    ("max_scale_down_rate_limit", True, 4, (5, 5), 2.0, 2),
    ("panic_mode_scaling_up", False, 2, (30, 40), 2.0, 4),
]


@pytest.mark.parametrize(("source", "coded", "size", "values", "rate", "wanted"), KPA, ids=[row[0] for row in KPA])
def test_vectors_of_kpa(
    source: str, *, coded: bool, size: int, values: tuple[float, float], rate: float, wanted: int
) -> None:
    peer = Aibrix(AibrixSettings(strategy=Strategy.KPA, target=10, as_coded=coded, max_scale_up_rate=rate))
    assert peer.recommended(0.0, stable=values[0], panic=values[1], size=size, ready=size) == wanted, source


def test_documented_panic_does_not_scale_down() -> None:
    """panic_mode_no_scale_down: five replicas stay although two would do."""
    peer = Aibrix(AibrixSettings(strategy=Strategy.KPA, target=10))
    assert peer.recommended(0.0, stable=30, panic=60, size=3, ready=3) == 6
    assert peer.recommended(10.0, stable=20, panic=20, size=6, ready=6) == 6
    assert peer.recommended(200.0, stable=20, panic=20, size=6, ready=6) == 3


def test_coded_panic_is_forgotten_at_once() -> None:
    peer = Aibrix(AibrixSettings(strategy=Strategy.KPA, target=10, as_coded=True))
    assert peer.recommended(0.0, stable=30, panic=70, size=4, ready=4) == 7
    assert peer.recommended(10.0, stable=30, panic=60, size=7, ready=7) == 3
    # Three of four are ready: 3 * 70 / 4 / 10 = 5.25 of the panic window, which is the one that counts.
    assert peer.recommended(20.0, stable=30, panic=70, size=4, ready=3) == 6


PENDING = [
    ("kpa scale-up adjusted", Strategy.KPA, 250, 4, 2, 4),
    ("kpa scale-up dampened", Strategy.KPA, 350, 4, 3, 6),
    ("kpa scale-down adjusted", Strategy.KPA, 10, 10, 5, 6),
    ("apa scale-up adjusted", Strategy.APA, 90, 4, 2, 4),
    ("apa scale-down adjusted", Strategy.APA, 10, 4, 2, 3),
    ("TestComputeDesiredReplicasDoesNotHoldWhenNoReplicasPending", Strategy.APA, 90, 4, 4, 8),
    ("TestComputeDesiredReplicas, one metric: 70 of 50", Strategy.APA, 70, 1, 1, 2),
]


@pytest.mark.parametrize(
    ("source", "strategy", "value", "size", "ready", "wanted"), PENDING, ids=[r[0] for r in PENDING]
)
def test_vectors_of_pods_that_are_not_ready(
    source: str, *, strategy: Strategy, value: float, size: int, ready: int, wanted: int
) -> None:
    peer = Aibrix(AibrixSettings(strategy=strategy, target=50, as_coded=True, max_scale_up_rate=4))
    assert peer.recommended(0.0, stable=value, panic=value, size=size, ready=ready) == wanted, source


def test_windows_are_means_of_their_time() -> None:
    """TestComputeDesiredReplicasConfiguresMetricWindowsFromPodAutoscalerSpec: 10 then 70; 40 over 120 s, 70 over 30 s."""
    peer = Aibrix(
        AibrixSettings(
            strategy=Strategy.KPA, metric=Metric.RUNNING, target=50, stable_seconds=120, panic_seconds=30, as_coded=True
        )
    )
    peer.desired(look(fleet(1, running=10), now=0.0))
    # 40 in the stable window is one pod and calm: 70 is less than twice as much.
    assert peer.desired(look(fleet(1, running=70), now=60.0)) == 1
    # 130 in the panic window is more than twice (70 + 130) / 3.
    assert peer.desired(look(fleet(1, running=190), now=110.0)) == 2


def test_coded_kpa_takes_a_mean_for_a_number_of_pods() -> None:
    """Eight replicas at three times their target: the documents ask for 16, the code for 4 and then fewer."""
    live = fleet(8, running=30)
    assert Aibrix(AibrixSettings(strategy=Strategy.KPA, metric=Metric.RUNNING, target=10)).desired(look(live)) == 16
    coded = AibrixSettings(strategy=Strategy.KPA, metric=Metric.RUNNING, target=10, as_coded=True)
    assert Aibrix(coded).desired(look(live)) == 4


COOLDOWNS = [
    # Recommendations at 0, 100 and 200 s with a size of 6; then what is wanted now.
    ("documented, down: the highest of the window", False, [5, 3, 4], 2, 5),
    ("coded, down: the lowest of the window", True, [5, 3, 4], 4, 3),
    ("documented, down: a higher one does not turn the direction", False, [9, 3, 4], 2, 6),
    ("up: no window by default", False, [9, 3, 4], 8, 8),
    ("as many as there are", True, [5, 3, 4], 6, 6),
]


@pytest.mark.parametrize(("what", "coded", "before", "wanted", "size"), COOLDOWNS, ids=[row[0] for row in COOLDOWNS])
def test_cooldowns(what: str, coded: bool, before: list[int], wanted: int, size: int) -> None:
    cooldown = Cooldown(AibrixSettings(as_coded=coded))
    for step, recommended in enumerate(before):
        cooldown.applied(100.0 * step, wanted=recommended, size=6)
    assert cooldown.applied(250.0, wanted=wanted, size=6) == size, what


@pytest.mark.parametrize(("coded", "size"), [(False, 5), (True, 9)])
def test_a_cooldown_on_the_way_up(coded: bool, size: int) -> None:
    cooldown = Cooldown(AibrixSettings(as_coded=coded, up_cooldown_seconds=60))
    cooldown.applied(0.0, wanted=9, size=4)
    cooldown.applied(10.0, wanted=5, size=4)
    assert cooldown.applied(20.0, wanted=7, size=4) == size


def test_the_documented_cooldown_holds_for_five_minutes_and_the_coded_one_not_at_all() -> None:
    wanted = answers(Aibrix(), 4, seconds=310, kv_usage=0.5)
    assert set(wanted) == {4}
    for coded, expected in ((False, 4), (True, 2)):
        peer = Aibrix(AibrixSettings(as_coded=coded, stable_seconds=10, panic_seconds=10))
        peer.desired(look(fleet(4, kv_usage=0.5), now=0.0))
        assert peer.desired(look(fleet(4), now=100.0)) == expected


@pytest.mark.parametrize(
    ("metric", "name"), [(Metric.KV_USAGE, "kv_usage"), (Metric.RUNNING, "running"), (Metric.WAITING, "waiting")]
)
def test_each_metric_is_read_from_its_gauge(metric: Metric, name: str) -> None:
    assert Aibrix(AibrixSettings(metric=metric, target=0.5)).desired(look(fleet_of(name, [1, 0.5]))) == 3


def test_without_a_pod_to_read_the_size_stays() -> None:
    assert Aibrix().desired(look(starting=3)) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": -0.5}, "AibrixSettings.target is -0.5; it must be a number greater than 0"),
        ({"down_tolerance": -0.1}, "AibrixSettings.down_tolerance is -0.1; it must be a number at least 0"),
        ({"panic_seconds": 200.0}, "AibrixSettings.panic_seconds is 200; it must be at most stable_seconds (180)"),
    ],
)
def test_settings_that_cannot_be(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        replace(AibrixSettings(), **change)
    assert str(caught.value) == message
