"""The Knative Pod Autoscaler reproduces its own tests.

Figures: knative/serving `pkg/autoscaler/scaling/autoscaler_test.go`: target 10, rates of 10 unless said otherwise, a
stable window of 60 s and a panic threshold of 2. `pkg/reconciler/autoscaling/resources/target.go` for the target.
"""

from typing import Any

import pytest

from unit.simulator.peers.views import fleet, look
from vlm_operator.simulator.peers.knative import Knative, KnativeSettings
from vlm_operator.simulator.peers.settings import SettingsError


def as_tested(target: float = 10.0, **given: Any) -> Knative:
    """As the tests of the project set it up: the target is what is aimed at."""
    return Knative(
        KnativeSettings(target=target, utilization=1.0, max_scale_up_rate=10.0, max_scale_down_rate=10.0, **given)
    )


TABLE = [
    ("AutoscalerNoDataAtZeroNoAutoscale", 10, 1, 0, 0, 0),
    ("AutoscalerStableModeUnlimitedTBC", 181, 1, 21, 26, 1),
    ("Autoscaler0TBC", 10, 1, 50, 49, 5),
    ("AutoscalerStableModeNoChangeAlreadyScaled", 10, 5, 50, 50, 5),
    ("AutoscalerPanicModeDoublePodCount", 10, 1, 50, 100, 10),
    ("TestAutoscalerRateLimitScaleUp", 10, 1, 1000, 1001, 10),
    ("TestAutoscalerRateLimitScaleUp, second step", 10, 10, 1000, 1001, 100),
    ("TestAutoscalerRateLimitScaleDown", 10, 100, 1, 1, 10),
    ("TestAutoscalerRateLimitScaleDown, second step", 10, 10, 1, 1, 1),
    ("TestAutoscalerUseOnePodAsMinimumIfEndpointsNotFound", 10, 0, 1000, 888, 10),
    ("TestAutoscalerStableModeDecrease", 10, 8, 100, 100, 10),
]


@pytest.mark.parametrize(
    ("source", "target", "ready", "stable", "panic", "wanted"), TABLE, ids=[row[0] for row in TABLE]
)
def test_vectors(source: str, *, target: float, ready: int, stable: float, panic: float, wanted: int) -> None:
    assert as_tested(target).scale(0.0, stable=stable, panic=panic, ready=ready) == wanted, source


def test_small_rates_still_allow_a_step() -> None:
    """AutoscalerStableModeIncreaseWithSmallScaleUpRate and ...DecreaseWithSmallScaleDownRate."""
    up = Knative(KnativeSettings(target=1.0, utilization=1.0, max_scale_up_rate=1.1, max_scale_down_rate=10.0))
    assert up.scale(0.0, stable=3, panic=3.1, ready=2) == 3
    down = Knative(KnativeSettings(target=10.0, utilization=1.0, max_scale_up_rate=10.0, max_scale_down_rate=1.1))
    assert down.scale(0.0, stable=1, panic=1, ready=100) == 90


def test_panic_grows_with_the_load_and_ends_with_a_stable_window() -> None:
    """TestAutoscalerPanicThenUnPanicScaleDown."""
    peer = as_tested()
    assert peer.scale(0.0, stable=100, panic=100, ready=1) == 10
    assert peer.scale(0.0, stable=100, panic=1000, ready=10) == 100
    assert peer.scale(30.0, stable=1, panic=1, ready=10) == 100
    assert peer.scale(61.0, stable=1, panic=1, ready=10) == 1


def test_panic_tracks_exponential_growth() -> None:
    """TestAutoscalerPanicModeExponentialTrackAndStabilize."""
    peer = as_tested(1.0)
    load = [(0.0, 6, 1), (1.0, 36, 6), (2.0, 216, 36), (2.0, 1296, 216), (3.0, 1296, 1296)]
    assert [peer.scale(now, stable=value, panic=value, ready=ready) for now, value, ready in load] == [
        6, 36, 216, 1296, 1296,
    ]  # fmt: skip


def test_panic_is_not_prolonged_by_a_slow_increase() -> None:
    """TestAutoscalerUnpanicAfterSlowIncrease, and TestAutoscalerExtendPanicWindow for a second surge."""
    peer = as_tested(1.0)
    assert peer.scale(0.0, stable=11, panic=25, ready=10) == 25
    assert peer.scale(30.0, stable=30, panic=41, ready=40) == 41
    assert peer.scale(62.0, stable=50, panic=56, ready=55) == 50
    assert not peer.in_panic
    peer = as_tested(1.0)
    peer.scale(0.0, stable=11, panic=25, ready=10)
    assert peer.scale(30.0, stable=30, panic=80, ready=40) == 80
    assert peer.scale(62.0, stable=50, panic=56, ready=80) == 80
    assert peer.in_panic


@pytest.mark.parametrize(("stable", "panic", "wanted"), [(50, 30, 50), (20, 30, 30)])
def test_in_panic_the_larger_window_counts(stable: float, panic: float, wanted: int) -> None:
    """AutoscalerPanicStableLargerThanPanic and AutoscalerPanicStableLessThanPanic."""
    peer = as_tested(1.0)
    peer.scale(0.0, stable=5, panic=5, ready=1)
    assert peer.in_panic
    assert peer.scale(5.0, stable=stable, panic=panic, ready=5) == wanted


def test_a_delay_keeps_the_largest_answer() -> None:
    """TestAutoscalerScaleDownDelay, both stories."""
    peer = as_tested(panic_threshold=100.0, scale_down_delay_seconds=300.0)
    told = [(2, 40), (300, 0), (302, 0), (540, 40), (600, 30), (660, 0), (840, 0), (900, 0)]
    wanted = [peer.scale(now, stable=value, panic=value, ready=1) for now, value in told]
    assert wanted == [4, 4, 0, 4, 4, 4, 3, 0]


def test_it_starts_in_panic_with_more_than_one_replica() -> None:
    """TestStartInPanicMode: a new autoscaler keeps what there is until it has seen a stable window."""
    for ready in (0, 1):
        peer = as_tested(100.0, panic_threshold=220.0)
        peer.desired(look(fleet(ready)))
        assert not peer.in_panic
    two = as_tested(100.0, panic_threshold=220.0)
    two.desired(look(fleet(2)))
    assert two.in_panic
    peer = as_tested(100.0, panic_threshold=220.0)
    assert [peer.desired(look(fleet(3), now=float(now))) for now in range(64)] == [3] * 62 + [1] * 2


@pytest.mark.parametrize(("target", "utilization", "aim"), [(100, 0.7, 70), (10, 0.7, 7), (1, 0.7, 1)])
def test_the_target_is_aimed_at_in_part_and_is_at_least_one(target: float, utilization: float, aim: float) -> None:
    assert KnativeSettings(target=target, utilization=utilization).aim == pytest.approx(aim)


def test_it_decides_at_its_ticks_on_samples_of_each_second() -> None:
    peer = Knative(KnativeSettings(target=1.0))
    # Means of the seconds so far: 1, 1, 11/3 at the third one; the second one repeats the first.
    load = [1, 1, 9, 9]
    assert [peer.desired(look(fleet(1), now=float(now), in_flight=count)) for now, count in enumerate(load)] == [
        1,
        1,
        4,
        4,
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"utilization": 70.0}, "KnativeSettings.utilization is 70; it must be a number greater than 0 and at most 1"),
        ({"panic_seconds": 90.0}, "KnativeSettings.panic_seconds is 90; it must be at most stable_seconds (60)"),
        (
            {"scale_down_delay_seconds": -1.0},
            "KnativeSettings.scale_down_delay_seconds is -1; it must be a number at least 0",
        ),
    ],
)
def test_settings_that_cannot_be(given: dict[str, float], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        KnativeSettings(**given)
    assert str(caught.value) == message
