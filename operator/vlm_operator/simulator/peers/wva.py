"""The Workload Variant Autoscaler of llm-d: both of its saturation analysers, and the autoscaler that carries them out.

Sources: llm-d/llm-d-workload-variant-autoscaler `docs/saturation-analyzer.md`, `internal/saturation/analyzer.go`,
`internal/engines/analyzers/saturation_v2/analyzer.go`, `internal/engines/pipeline/cost_aware_optimizer.go` and their tests,
`docs/integrations/hpa-integration.md`. There is one variant here, so its costs play no part. Once a minute an analyser says
how many replicas it wants; a HorizontalPodAutoscaler follows that as an external metric with an averageValue of 1.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from statistics import median
from typing import NamedTuple, Protocol

from vlm_operator.scaling.from_spec import HPA
from vlm_operator.scaling.policy import Behavior, Pace, Rules
from vlm_operator.simulator.peers.hpa import Actuation, ExternalMetric
from vlm_operator.simulator.peers.samples import PromptLengths
from vlm_operator.simulator.peers.settings import Engine, require_order, require_positive, require_share
from vlm_operator.simulator.view import View

_CHART_RULES = Rules(window_seconds=240.0, paces=(Pace(percent=False, value=10, period_seconds=150),))
CHART = Behavior(up=_CHART_RULES, down=_CHART_RULES)
"""The chart's default for production, with the tolerance that every autoscaler has unless told otherwise."""
KIND = Behavior(up=replace(HPA.up, tolerance=0.0), down=replace(HPA.down, tolerance=0.0))
"""The defaults of autoscaling/v2: up at once, down after five minutes, the end of the range that the guide advises.

Without a tolerance, since with the usual one a step of one is never carried out from ten replicas on.
"""

PEAK_SECONDS = 60.0
"""Metrics of a replica are their largest values of the last minute."""
_SLACK_SECONDS = 1e-6


class Load(NamedTuple):
    """Peaks of one replica."""

    kv_usage: float
    waiting: int
    kv_tokens: float


class Deployed(NamedTuple):
    """Everything that an analyser sees."""

    loads: Sequence[Load]
    """Of the replicas that were scraped."""
    ready: int
    pending: int
    held: int = 0
    """Requests that wait at the gateway."""
    prompt_tokens: float = 0.0
    """Mean of a request; 0: not known."""
    output_tokens: float = 0.0

    @property
    def size(self) -> int:
        """Replicas asked for."""
        return self.ready + self.pending


class Analyser(Protocol):
    """Says how many replicas it wants."""

    def wanted(self, deployed: Deployed) -> int:
        """For what is seen."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SaturationSettings:
    """V1: spare shares of KV cache and queue."""

    kv_threshold: float = 0.8
    """Use of the KV cache from which on a replica is saturated."""
    queue_threshold: float = 5.0
    """Waiting requests from which on it is."""
    kv_spare: float = 0.1
    """Least mean spare of those that are not saturated: with less, one more."""
    queue_spare: float = 3.0

    def __post_init__(self) -> None:
        require_share(self, "kv_threshold")
        require_positive(self, "queue_threshold", "kv_spare", "queue_spare")
        require_order(self, "kv_spare", "kv_threshold")
        require_order(self, "queue_spare", "queue_threshold")


class Saturation:
    """V1: one more or one fewer, and neither while replicas start.

    Newer code also waits until its last answer has been carried out. That is left out, as kind: an answer beyond the
    ceiling of the fleet would stop it for good.
    """

    def __init__(self, settings: SaturationSettings | None = None) -> None:
        self._settings = settings or SaturationSettings()

    def wanted(self, deployed: Deployed) -> int:
        """The size."""
        size = deployed.size
        if not deployed.loads or deployed.pending:
            return size
        spare = self.spare(deployed.loads)
        if self.too_little(*spare):
            return size + 1
        return size - 1 if self.one_fewer_is_safe(*spare, self.calm(deployed.loads)) else size

    def calm(self, loads: Sequence[Load]) -> int:
        """How many are not saturated."""
        return sum(not self._saturated(load) for load in loads)

    def spare(self, loads: Sequence[Load]) -> tuple[float, float]:
        """Mean spare of KV cache and queue of those that are not saturated; 0 without any."""
        calm = [load for load in loads if not self._saturated(load)]
        if not calm:
            return 0.0, 0.0
        kv = sum(self._settings.kv_threshold - load.kv_usage for load in calm) / len(calm)
        queue = sum(self._settings.queue_threshold - load.waiting for load in calm) / len(calm)
        return kv, queue

    def too_little(self, kv: float, queue: float) -> bool:
        """Whether the spare calls for one more."""
        return kv < self._settings.kv_spare or queue < self._settings.queue_spare

    def one_fewer_is_safe(self, kv: float, queue: float, calm: int) -> bool:
        """Whether the load, spread over one fewer, leaves enough spare."""
        if calm < 2:
            return False
        settings, more = self._settings, calm / (calm - 1)
        kv_left = settings.kv_threshold - (settings.kv_threshold - kv) * more
        queue_left = settings.queue_threshold - (settings.queue_threshold - queue) * more
        return kv_left >= settings.kv_spare and queue_left >= settings.queue_spare

    def _saturated(self, load: Load) -> bool:
        return load.kv_usage >= self._settings.kv_threshold or load.waiting >= self._settings.queue_threshold


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenSettings:
    """V2: tokens in use and waiting, over tokens that the replicas can hold."""

    scale_up: float = 0.85
    """Most use of all replicas, those that start included."""
    scale_down: float = 0.7
    """Least use of those that serve."""
    kv_threshold: float = 0.8
    queue_threshold: float = 5.0
    """Waiting requests from which on the tokens in use are taken for all that a replica can do."""
    max_batched_tokens: float = 8192.0
    """Of one step of the engine."""
    history: int = 10
    """Observations of what a replica can do that are averaged."""

    def __post_init__(self) -> None:
        require_positive(self, "scale_up", "scale_down", "queue_threshold", "max_batched_tokens", "history")
        require_share(self, "kv_threshold")
        require_order(self, "scale_down", "scale_up")


class Tokens:
    """V2: as many as the tokens need."""

    def __init__(self, engine: Engine, settings: TokenSettings | None = None) -> None:
        self._engine, self._settings = engine, settings or TokenSettings()
        self._observed: dict[int, deque[float]] = {}
        self._capacity = 0.0

    def wanted(self, deployed: Deployed) -> int:
        """The size."""
        capacity = self.capacity(deployed)
        if capacity <= 0:
            return deployed.size
        demand = self.demand(deployed)
        required = demand / self._settings.scale_up - deployed.size * capacity
        if required > 0:
            return deployed.size + ceil(required / capacity)
        spare = deployed.ready * capacity - demand / self._settings.scale_down
        return max(1, deployed.size - floor(spare / capacity)) if spare > 0 else deployed.size

    def demand(self, deployed: Deployed) -> float:
        """Tokens in use, of the waiting, and of the held with what they will generate."""
        waiting = sum(int(load.kv_tokens) + load.waiting * int(deployed.prompt_tokens) for load in deployed.loads)
        return waiting + deployed.held * (deployed.prompt_tokens + deployed.output_tokens)

    def capacity(self, deployed: Deployed) -> float:
        """Tokens that one replica can hold: the median of those seen, or else what was last known; 0: not known."""
        found = [self._of_one(load, deployed) for load in deployed.loads]
        if found:
            self._capacity = float(int(median(found)))
        return self._capacity

    def derived(self, prompt_tokens: float, output_tokens: float) -> int:
        """Tokens of the requests that the arguments of the engine let run side by side; 0: not known."""
        if output_tokens <= 0:
            return 0
        steady = self._settings.max_batched_tokens * output_tokens / (prompt_tokens + output_tokens)
        return int(min(steady, self._engine.slots) * (prompt_tokens + output_tokens / 2))

    def _of_one(self, load: Load, deployed: Deployed) -> int:
        by_memory = int(self._engine.kv_tokens * self._settings.kv_threshold)
        return min(by_memory, self._by_compute(load, deployed) or by_memory)

    def _by_compute(self, load: Load, deployed: Deployed) -> int:
        """Seen where the queue is long, else as it was seen with outputs of such a length, else by the arguments."""
        length = _length_class(deployed.output_tokens)
        if load.waiting >= int(self._settings.queue_threshold) and load.kv_tokens > 0:
            self._observed.setdefault(length, deque(maxlen=self._settings.history)).append(int(load.kv_tokens))
            return int(load.kv_tokens)
        if observed := self._observed.get(length):
            return int(sum(observed) / len(observed))
        return self.derived(deployed.prompt_tokens, deployed.output_tokens)


def _length_class(output_tokens: float) -> int:
    """Short, medium or long."""
    return (output_tokens >= 100) + (output_tokens >= 500)


@dataclass(frozen=True, kw_only=True, slots=True)
class WvaSettings:
    """How often it looks, and how it is followed."""

    interval_seconds: float = 60.0
    behavior: Behavior = KIND
    period_seconds: float = 15.0
    """Of the autoscaler that follows."""

    def __post_init__(self) -> None:
        require_positive(self, "interval_seconds", "period_seconds")
        require_order(self, "period_seconds", "interval_seconds")


class Wva:
    """An analyser, and the autoscaler that follows it."""

    def __init__(self, engine: Engine, analyser: Analyser, settings: WvaSettings | None = None) -> None:
        self._engine, self._analyser, self._settings = engine, analyser, settings or WvaSettings()
        self._metric = ExternalMetric(1.0, self._settings.behavior)
        self._actuation = Actuation(self._settings.behavior)
        self._prompts = PromptLengths(engine.prompt_tokens)
        self._scrapes: deque[tuple[float, dict[int, Load]]] = deque()
        self._looked_at = float("-inf")
        self._emitted: int | None = None

    @property
    def period_seconds(self) -> float:
        """Time between two decisions."""
        return self._settings.period_seconds

    def desired(self, view: View) -> int:
        """The size wanted now."""
        self._scrape(view)
        if view.now - self._looked_at >= self._settings.interval_seconds - _SLACK_SECONDS:
            self._looked_at = view.now
            self._emitted = max(1, self._analyser.wanted(self._deployed(view)))
        return self._actuation.size(view, self._metric.proposed(view, self._emitted))

    def _scrape(self, view: View) -> None:
        if view.scraped and (not self._scrapes or view.scraped_at > self._scrapes[-1][0]):
            seen = {one.number: Load(one.kv_usage, one.waiting, one.kv_tokens) for one in view.scraped}
            self._scrapes.append((view.scraped_at, seen))
            self._prompts.see(view.scraped_at, view.scraped)
        while len(self._scrapes) > 1 and self._scrapes[0][0] <= view.now - PEAK_SECONDS:
            self._scrapes.popleft()

    def _deployed(self, view: View) -> Deployed:
        newest = self._scrapes[-1][1] if self._scrapes and view.scraped else {}
        return Deployed(
            loads=[self._peak(number) for number in newest],
            ready=view.ready,
            pending=view.starting,
            held=view.held,
            prompt_tokens=self._prompts.mean,
            output_tokens=self._engine.output_tokens,
        )

    def _peak(self, number: int) -> Load:
        loads = [seen[number] for _, seen in self._scrapes if number in seen]
        return Load(*(max(figures) for figures in zip(*loads, strict=True)))
