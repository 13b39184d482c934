"""KEDA with a Prometheus trigger: the HorizontalPodAutoscaler that it generates for one replica and more.

Sources: kedacore/keda `pkg/scalers/prometheus_scaler.go` and its test, `apis/keda/v1alpha1`; vllm-project/production-stack
`docs/source/use_cases/autoscaling-keda.rst` (waiting requests, threshold 5); KServe, "Autoscale InferenceService with LLM
metrics" (running requests, threshold 2). The metric is of type AverageValue, KEDA's default. Its own part, between no
replica and one, never acts here, and the metric is fetched at each sync of the generated autoscaler.
"""

from dataclasses import dataclass
from enum import StrEnum

from vlm_operator.scaling.from_spec import HPA
from vlm_operator.scaling.policy import Behavior
from vlm_operator.simulator.peers.hpa import Actuation, ExternalMetric
from vlm_operator.simulator.peers.settings import require_positive
from vlm_operator.simulator.view import View


class Query(StrEnum):
    """What the query sums up over the replicas."""

    WAITING = "sum(vllm:num_requests_waiting)"
    RUNNING = "sum(vllm:num_requests_running)"
    RUNNING_AND_WAITING = "sum(vllm:num_requests_running) + sum(vllm:num_requests_waiting)"


@dataclass(frozen=True, kw_only=True, slots=True)
class KedaSettings:
    """A trigger. The threshold is KServe's; the query counts the waiting as well, or it would stop at full slots."""

    query: Query = Query.RUNNING_AND_WAITING
    threshold: float = 2.0
    """Requests per replica."""
    ignore_null_values: bool = True
    """An empty result of the query counts as 0; else as an error, which changes nothing."""
    behavior: Behavior = HPA
    period_seconds: float = 15.0
    """Of the generated autoscaler."""

    def __post_init__(self) -> None:
        require_positive(self, "threshold", "period_seconds")


class Keda:
    """A ScaledObject with at least one replica."""

    def __init__(self, settings: KedaSettings | None = None) -> None:
        self._settings = settings or KedaSettings()
        self._metric = ExternalMetric(self._settings.threshold, self._settings.behavior)
        self._actuation = Actuation(self._settings.behavior)

    @property
    def period_seconds(self) -> float:
        """Time between two decisions."""
        return self._settings.period_seconds

    def desired(self, view: View) -> int:
        """The size wanted now."""
        return self._actuation.size(view, self._metric.proposed(view, self.total(view)))

    def total(self, view: View) -> float | None:
        """The result of the query at the last scrape; None: an error."""
        if not view.scraped:
            return 0.0 if self._settings.ignore_null_values else None
        running = sum(one.running for one in view.scraped)
        waiting = sum(one.waiting for one in view.scraped)
        totals = {Query.WAITING: waiting, Query.RUNNING: running, Query.RUNNING_AND_WAITING: running + waiting}
        return float(totals[self._settings.query])
