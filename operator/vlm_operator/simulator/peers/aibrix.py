"""The PodAutoscaler of AIBrix with its own strategies, APA and KPA: as it is documented, and as it is coded.

Sources: vllm-project/aibrix `pkg/controller/podautoscaler/{algorithm/apa,algorithm/kpa,autoscaler,podautoscaler_controller,
context/context}.go` with their tests; `docs/source/features/autoscaling/metric-based-autoscaling.rst`; `samples/autoscaling`.

Code and documents differ in two points:
- The cooldown is documented as a stabilization window; the code takes the lowest recommendation of the window on the way
  down and the highest on the way up, which makes each step as large as it can be.
- KPA is documented as Knative's; the code divides the mean of the pods by the target of one pod and takes the result for a
  number of pods, so that it does not depend on how many there are. Its panic remembers nothing from one look to the next.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, floor

from vlm_operator.simulator.peers.knative import Panic
from vlm_operator.simulator.peers.samples import Samples
from vlm_operator.simulator.peers.settings import require_at_least_zero, require_order, require_positive
from vlm_operator.simulator.view import Seen, View


class Strategy(StrEnum):
    """scalingStrategy."""

    APA = "APA"
    KPA = "KPA"


class Metric(StrEnum):
    """targetMetric: a gauge of vLLM that is read of each pod."""

    KV_USAGE = "kv_cache_usage_perc"
    RUNNING = "num_requests_running"
    WAITING = "num_requests_waiting"


_FIGURE: dict[Metric, Callable[[Seen], float]] = {
    Metric.KV_USAGE: lambda one: one.kv_usage,
    Metric.RUNNING: lambda one: one.running,
    Metric.WAITING: lambda one: one.waiting,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class AibrixSettings:
    """A PodAutoscaler. The metric and its target are those of the samples for vLLM, the others the documented defaults."""

    strategy: Strategy = Strategy.APA
    metric: Metric = Metric.KV_USAGE
    target: float = 0.5
    """Per pod."""
    as_coded: bool = False
    """What the code does where it differs from its documents."""
    stable_seconds: float = 180.0
    """observeWindowSeconds."""
    panic_seconds: float = 60.0
    up_tolerance: float = 0.1
    down_tolerance: float = 0.1
    max_scale_up_rate: float = 2.0
    max_scale_down_rate: float = 2.0
    panic_threshold: float = 2.0
    up_cooldown_seconds: float = 0.0
    down_cooldown_seconds: float = 300.0
    period_seconds: float = 10.0

    def __post_init__(self) -> None:
        require_positive(self, "target", "stable_seconds", "panic_seconds", "period_seconds")
        require_positive(self, "max_scale_up_rate", "max_scale_down_rate", "panic_threshold")
        require_at_least_zero(self, "up_tolerance", "down_tolerance", "up_cooldown_seconds", "down_cooldown_seconds")
        require_order(self, "panic_seconds", "stable_seconds")


class Aibrix:
    """A PodAutoscaler with one metric of the pods."""

    def __init__(self, settings: AibrixSettings | None = None) -> None:
        self._settings = settings or AibrixSettings()
        self._samples = Samples(self._settings.stable_seconds)
        self._panic = Panic(self._settings.stable_seconds)
        self._cooldown = Cooldown(self._settings)

    @property
    def period_seconds(self) -> float:
        """Time between two decisions."""
        return self._settings.period_seconds

    def desired(self, view: View) -> int:
        """The size wanted now. It stays where no pod can be read."""
        values = [_FIGURE[self._settings.metric](one) for one in view.live]
        if not values:
            return max(1, view.size)
        self._samples.add(view.now, sum(values) if self._by_total else sum(values) / len(values))
        stable = self._samples.mean(view.now, self._settings.stable_seconds)
        panic = self._samples.mean(view.now, self._settings.panic_seconds)
        wanted = self.recommended(view.now, stable=stable, panic=panic, size=view.size, ready=view.ready)
        return max(1, self._cooldown.applied(view.now, wanted=wanted, size=view.size))

    @property
    def _by_total(self) -> bool:
        """Whether the windows hold the sum over the pods: only so a division by the target gives a number of pods."""
        return self._settings.strategy is Strategy.KPA and not self._settings.as_coded

    def recommended(self, now: float, *, stable: float, panic: float, size: int, ready: int) -> int:
        """The size for the values of both windows, before the cooldown."""
        if self._by_total:
            return self.kpa(now, stable=stable, panic=panic, size=size)
        if self._settings.strategy is Strategy.APA:
            return self.guarded(self.apa(stable, size), value=stable, size=size, ready=ready)
        panicking = self._panics(stable, panic)
        wanted = self.kpa_as_coded(stable=stable, panic=panic, size=size)
        return self.guarded(wanted, value=panic if panicking else stable, size=size, ready=ready)

    def apa(self, use: float, size: int) -> int:
        """The size times use over target, as far as tolerance and rates allow."""
        ratio = use / self._settings.target
        if ratio > 1 + self._settings.up_tolerance:
            return min(ceil(size * ratio), ceil(self._settings.max_scale_up_rate * size))
        if ratio < 1 - self._settings.down_tolerance:
            return max(ceil(size * ratio), floor(size / self._settings.max_scale_down_rate))
        return size

    def kpa(self, now: float, *, stable: float, panic: float, size: int) -> int:
        """Knative's answer for sums over the pods, with the tolerance that is documented for it."""
        over = ceil(panic / self._settings.target) / max(1, size) >= self._settings.panic_threshold
        return self._panic.sized(
            now, stable=self._pods(stable, size, count=size), panic=self._pods(panic, size, count=size), over=over
        )

    def kpa_as_coded(self, *, stable: float, panic: float, size: int) -> int:
        """The code's answer for means of the pods."""
        calm = self._pods(stable, size, count=1)
        return max(calm, self._pods(panic, size, count=1)) if self._panics(stable, panic) else calm

    def _panics(self, stable: float, panic: float) -> bool:
        return stable <= 0 or panic / stable > self._settings.panic_threshold

    def _pods(self, value: float, size: int, *, count: int) -> int:
        """Value over target within the rates; the size where that is near enough to the target of so many pods."""
        settings = self._settings
        ratio = value / (settings.target * max(1, count))
        if 1 - settings.down_tolerance <= ratio <= 1 + settings.up_tolerance:
            return size
        most = max(1, ceil(settings.max_scale_up_rate * size))
        return min(max(ceil(value / settings.target), floor(size / settings.max_scale_down_rate)), most)

    def guarded(self, wanted: int, *, value: float, size: int, ready: int) -> int:
        """Pods that are not ready damp a change: at nothing on the way up, at their target on the way down."""
        ready = min(ready, size)
        pending, target = size - ready, self._settings.target
        if pending <= 0 or wanted == size or size <= 0:
            return wanted
        use = value * ready + (target * pending if wanted < size else 0.0)
        by_mean = self._settings.strategy is Strategy.KPA and wanted > size
        pods = ceil(use / size / target) if by_mean else ceil(use / target)
        return min(max(pods, size), wanted) if wanted > size else max(min(pods, size), wanted)


class Cooldown:
    """What the recommendations of the last while leave of the newest one."""

    def __init__(self, settings: AibrixSettings) -> None:
        self._settings = settings
        kept = max(settings.up_cooldown_seconds, settings.down_cooldown_seconds, settings.period_seconds)
        self._recommended = Samples(kept)

    def applied(self, now: float, *, wanted: int, size: int) -> int:
        """The size."""
        settings = self._settings
        self._recommended.add(now, wanted)
        if wanted == size:
            return size
        up = wanted > size
        seconds = settings.up_cooldown_seconds if up else settings.down_cooldown_seconds
        within = [int(value) for value in self._recommended.within(now, seconds)] or [wanted]
        if settings.as_coded:
            return max(within) if up else min(within)
        return max(size, min(within)) if up else min(size, max(within))
