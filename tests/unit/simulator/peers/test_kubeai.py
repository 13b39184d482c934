"""KubeAI reproduces its own tests and its arithmetic.

Figures: substratusai/kubeai `internal/movingaverage/simple_test.go`, `test/integration/autoscaling_ha_test.go`,
`internal/config/system.go`, `docs/how-to/configure-autoscaling.md`.
"""

import pytest

from unit.simulator.peers.views import fleet, look
from vlm_operator.simulator.peers.kubeai import Kubeai, KubeaiSettings
from vlm_operator.simulator.peers.settings import SettingsError

AVERAGES = [
    ("1-2-3", 3, [1, 2, 3], 2),
    ("3-2-1", 3, [3, 2, 1], 2),
    ("3-2-1-1-1-1", 3, [3, 2, 1, 1, 1, 1], 1),
    ("2-3", 2, [2, 3], 2.5),
    ("2-2-2", 3, [2, 2, 2], 2),
    ("a window that is not full yet counts as empty before", 4, [8], 2),
]


@pytest.mark.parametrize(("source", "count", "values", "average"), AVERAGES, ids=[row[0] for row in AVERAGES])
def test_vectors_of_the_moving_average(source: str, count: int, values: list[float], average: float) -> None:
    peer = Kubeai(KubeaiSettings(interval_seconds=10, window_seconds=10.0 * count))
    assert [peer.average(value) for value in values][-1] == average, source


def test_replicas_follow_the_requests_of_all_proxies() -> None:
    """TestAutoscalingHA: 1 + 2 + 3 requests with a target of 1, over a window of four intervals."""
    peer = Kubeai(KubeaiSettings(target=1, interval_seconds=0.25, window_seconds=1, scale_down_delay_seconds=2))
    size, sizes = 1, []
    for step in range(40):
        load = 6 if step < 10 else 0
        size = peer.desired(look(fleet(size), now=0.25 * step, in_flight=load))
        sizes.append(size)
    assert sizes[:5] == [2, 3, 5, 6, 6]
    assert sizes[-1] == 1


def test_down_only_after_three_decisions_in_a_row() -> None:
    peer = Kubeai()
    # ceil(30 s / 10 s) = 3 decisions that are only counted.
    assert [peer.scaled(5, 100.0) for _ in range(4)] == [5, 5, 5, 1]
    # Nothing that asks for as many in between, and the next step down needs no new count.
    assert peer.scaled(4, 100.0) == 1
    assert peer.scaled(4, 400.0) == 4
    assert peer.scaled(4, 100.0) == 4


@pytest.mark.parametrize(("average", "wanted"), [(100.0, 1), (100.1, 2), (950.0, 10), (0.0, 1)])
def test_the_average_over_the_target_is_rounded_up(average: float, wanted: int) -> None:
    assert Kubeai().scaled(1, average) == wanted


def test_the_guide_needs_three_decisions_of_fifteen_seconds() -> None:
    peer = Kubeai(KubeaiSettings(target=250, interval_seconds=15, scale_down_delay_seconds=45))
    assert [peer.scaled(3, 250.0) for _ in range(4)] == [3, 3, 3, 1]


def test_without_a_replica_that_serves_nothing_is_looked_at() -> None:
    peer = Kubeai(KubeaiSettings(target=1))
    assert peer.desired(look(starting=2, in_flight=600)) == 2
    assert peer.desired(look(fleet(2), in_flight=600)) == 10


def test_a_window_is_a_number_above_zero() -> None:
    with pytest.raises(SettingsError, match=r"KubeaiSettings\.window_seconds is 0; it must be a number greater than 0"):
        KubeaiSettings(window_seconds=0)
