"""The Knative Pod Autoscaler on concurrency, counted at its own proxies.

Sources: knative/serving `pkg/autoscaler/scaling/autoscaler.go` and its test, `pkg/reconciler/autoscaling/resources/target.go`,
`config/core/configmaps/autoscaler.yaml`. Concurrency is taken once a second as it is then, where Knative takes the mean
of the second. The activator only buffers, as the simulator does anyway.
"""

from dataclasses import dataclass
from math import ceil, floor

from vlm_operator.simulator.peers.samples import Samples
from vlm_operator.simulator.peers.settings import require_at_least_zero, require_order, require_positive, require_share
from vlm_operator.simulator.view import View

_TICK_SLACK_SECONDS = 1e-6


@dataclass(frozen=True, kw_only=True, slots=True)
class KnativeSettings:
    """The config map config-autoscaler, and the annotation autoscaling.knative.dev/target."""

    target: float = 100.0
    """Requests side by side in one replica (container-concurrency-target-default)."""
    utilization: float = 0.7
    """Share of the target that is aimed at (container-concurrency-target-percentage)."""
    stable_seconds: float = 60.0
    panic_seconds: float = 6.0
    """A tenth of the stable window (panic-window-percentage)."""
    panic_threshold: float = 2.0
    """Of what the panic window asks for to what there is."""
    max_scale_up_rate: float = 1000.0
    max_scale_down_rate: float = 2.0
    scale_down_delay_seconds: float = 0.0
    """Time over which the largest answer counts; 0: only the newest."""
    sample_seconds: float = 1.0
    tick_seconds: float = 2.0

    def __post_init__(self) -> None:
        require_positive(self, "target", "stable_seconds", "panic_seconds", "panic_threshold")
        require_positive(self, "max_scale_up_rate", "max_scale_down_rate", "sample_seconds", "tick_seconds")
        require_share(self, "utilization")
        require_at_least_zero(self, "scale_down_delay_seconds")
        require_order(self, "panic_seconds", "stable_seconds")
        require_order(self, "sample_seconds", "tick_seconds")

    @property
    def aim(self) -> float:
        """Requests per replica that the size is computed with: at least 1."""
        return max(1.0, self.target * self.utilization)


class Panic:
    """The state in which a size only grows: it lasts until a whole stable window has passed without a cause for it."""

    def __init__(self, stable_seconds: float) -> None:
        self._stable_seconds = stable_seconds
        self._caused_at: float | None = None
        self._most = 0

    @property
    def on(self) -> bool:
        """Whether it lasts."""
        return self._caused_at is not None

    def begin(self, now: float, replicas: int) -> None:
        """With the size that there is."""
        self._caused_at, self._most = now, replicas

    def sized(self, now: float, *, stable: int, panic: int, over: bool) -> int:
        """The size from what both windows ask for, and whether the panic window asks for too much to stay calm."""
        if over:
            self._caused_at = now
        elif self._caused_at is not None and now - self._caused_at > self._stable_seconds:
            self._caused_at, self._most = None, 0
        if self._caused_at is None:
            return stable
        self._most = max(self._most, stable, panic)
        return self._most


class Knative:
    """The autoscaler of one revision."""

    def __init__(self, settings: KnativeSettings | None = None) -> None:
        self._settings = settings or KnativeSettings()
        self._panic = Panic(self._settings.stable_seconds)
        self._samples = Samples(self._settings.stable_seconds)
        self._answers = Samples(self._settings.scale_down_delay_seconds)
        self._answer: int | None = None
        self._ticked_at = float("-inf")

    @property
    def period_seconds(self) -> float:
        """Time between two samples; it decides at its ticks, and repeats itself in between."""
        return self._settings.sample_seconds

    @property
    def in_panic(self) -> bool:
        """Whether the size can only grow."""
        return self._panic.on

    def desired(self, view: View) -> int:
        """The size wanted now."""
        now, settings = view.now, self._settings
        self._samples.add(now, view.in_flight)
        if self._answer is None and view.ready > 1:
            self._panic.begin(now, view.ready)
        if self._answer is None or now - self._ticked_at >= settings.tick_seconds - _TICK_SLACK_SECONDS:
            self._ticked_at = now
            stable = self._samples.mean(now, settings.stable_seconds)
            panic = self._samples.mean(now, settings.panic_seconds)
            self._answer = max(1, self.scale(now, stable=stable, panic=panic, ready=view.ready))
        return self._answer

    def scale(self, now: float, *, stable: float, panic: float, ready: int) -> int:
        """The size for the concurrency of both windows; 0 where there is none."""
        settings, ready = self._settings, max(1, ready)
        most, least = ceil(settings.max_scale_up_rate * ready), floor(ready / settings.max_scale_down_rate)
        asked, asked_in_panic = ceil(stable / settings.aim), ceil(panic / settings.aim)
        size = self._panic.sized(
            now,
            stable=min(max(asked, least), most),
            panic=min(max(asked_in_panic, least), most),
            over=asked_in_panic / ready >= settings.panic_threshold,
        )
        if settings.scale_down_delay_seconds > 0:
            self._answers.add(now, size)
            size = int(max(self._answers.within(now, settings.scale_down_delay_seconds)))
        return size
