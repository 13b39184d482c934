"""KEDA reproduces what its scaler returns, and the examples of the external metric that it generates.

Figures: kedacore/keda `pkg/scalers/prometheus_scaler_test.go`; kubernetes/kubernetes
`pkg/controller/podautoscaler/replica_calculator_test.go` (external metric per pod); vllm-project/production-stack
`docs/source/use_cases/autoscaling-keda.rst`.
"""

import pytest

from unit.simulator.peers.views import fleet, fleet_of, look
from vlm_operator.scaling.from_spec import HPA
from vlm_operator.simulator.peers.hpa import ExternalMetric
from vlm_operator.simulator.peers.keda import Keda, KedaSettings, Query
from vlm_operator.simulator.peers.settings import SettingsError

EXTERNAL = [
    ("TestReplicaCalcScaleUpPerPodCMExternal", 3, 8.600, 2.150, 4),
    ("TestReplicaCalcScaleDownPerPodCMExternal", 5, 8.600, 2.867, 3),
    ("TestReplicaCalcTolerancePerPodCMExternal", 3, 8.600, 2.900, 3),
    ("TestReplicaCalcScaleUpCMPerPodObject", 3, 20.0, 5.0, 4),
    ("TestReplicaCalcScaleDownPerPodCMObject", 5, 6.0, 2.0, 3),
    ("TestReplicaCalcTolerancePerPodCMObject", 4, 20.166, 5.0, 4),
    ("an error of the query changes nothing", 4, None, 5.0, None),
]


@pytest.mark.parametrize(("source", "size", "total", "target", "wanted"), EXTERNAL, ids=[row[0] for row in EXTERNAL])
def test_vectors_of_a_total(source: str, size: int, total: float | None, target: float, wanted: int | None) -> None:
    assert ExternalMetric(target, HPA).proposed(look(fleet(size)), total) == wanted, source


def test_an_empty_result_is_nothing_or_an_error() -> None:
    """The rows `no values` and `no values but shouldn't ignore`."""
    assert Keda().total(look(fleet(2), scraped=())) == 0
    assert Keda(KedaSettings(ignore_null_values=False)).total(look(fleet(2), scraped=())) is None


@pytest.mark.parametrize(("query", "total"), [(Query.WAITING, 6), (Query.RUNNING, 4), (Query.RUNNING_AND_WAITING, 10)])
def test_the_query_sums_up_over_the_replicas(query: Query, total: float) -> None:
    assert Keda(KedaSettings(query=query)).total(look(fleet(2, running=2, waiting=3))) == total


def test_the_production_stack_adds_one_for_each_five_that_wait() -> None:
    stack = KedaSettings(query=Query.WAITING, threshold=5)
    assert Keda(stack).desired(look(fleet(1, waiting=5))) == 1
    assert Keda(stack).desired(look(fleet(1, waiting=6))) == 2
    assert Keda(stack).desired(look(fleet_of("waiting", [8, 7]))) == 3


def test_replicas_that_start_are_counted_as_if_they_served() -> None:
    # 12 requests and a target of 2 need 6. Three of them start: the answer is no other.
    live = fleet(3, running=4)
    assert Keda().desired(look(live)) == 6
    assert Keda().desired(look(live, starting=3)) == 6


def test_an_outage_of_the_metrics_takes_it_to_one_replica_unless_it_is_an_error() -> None:
    def after_six_minutes(settings: KedaSettings) -> int:
        peer = Keda(settings)
        return [peer.desired(look(fleet(8), now=15.0 * step, scraped=())) for step in range(24)][-1]

    assert after_six_minutes(KedaSettings()) == 1
    assert after_six_minutes(KedaSettings(ignore_null_values=False)) == 8


def test_a_threshold_is_a_number_above_zero() -> None:
    with pytest.raises(SettingsError, match=r"KedaSettings\.threshold is nan; it must be a number greater than 0"):
        KedaSettings(threshold=float("nan"))
