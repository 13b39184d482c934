"""KubeAI: a moving average of the requests that its proxy has open, divided by a target.

Sources: substratusai/kubeai `internal/modelautoscaler/autoscaler.go`, `internal/modelclient/scale.go`,
`internal/movingaverage/simple_test.go`, `internal/config/system.go`, `test/integration/autoscaling_ha_test.go`;
`docs/how-to/configure-autoscaling.md`. The average begins as if there had been no request for the whole of its window.
"""

from collections import deque
from dataclasses import dataclass
from math import ceil

from vlm_operator.simulator.peers.settings import require_at_least_zero, require_positive
from vlm_operator.simulator.view import View


@dataclass(frozen=True, kw_only=True, slots=True)
class KubeaiSettings:
    """The system's modelAutoscaling, and what a Model sets. The defaults are those of the code."""

    target: float = 100.0
    """Open requests per replica (targetRequests)."""
    interval_seconds: float = 10.0
    window_seconds: float = 600.0
    scale_down_delay_seconds: float = 30.0
    """Turned into decisions in a row that ask for less."""

    def __post_init__(self) -> None:
        require_positive(self, "target", "interval_seconds", "window_seconds")
        require_at_least_zero(self, "scale_down_delay_seconds")


class Kubeai:
    """The autoscaler of one Model."""

    def __init__(self, settings: KubeaiSettings | None = None) -> None:
        self._settings = settings or KubeaiSettings()
        count = ceil(self._settings.window_seconds / self._settings.interval_seconds)
        self._open: deque[float] = deque([0.0] * count, maxlen=count)
        self._needed_in_row = ceil(self._settings.scale_down_delay_seconds / self._settings.interval_seconds)
        self._in_row = 0

    @property
    def period_seconds(self) -> float:
        """Time between two decisions."""
        return self._settings.interval_seconds

    def desired(self, view: View) -> int:
        """The size wanted now. Without a replica that serves nothing is looked at."""
        if view.ready == 0:
            return max(1, view.size)
        return self.scaled(view.size, self.average(view.in_flight))

    def average(self, in_flight: float) -> float:
        """Open requests over the window, with the newest count."""
        self._open.append(in_flight)
        return sum(self._open) / len(self._open)

    def scaled(self, size: int, average: float) -> int:
        """The size for an average. Down only after enough in a row that ask for less; the count survives a step down."""
        wanted = max(1, ceil(average / self._settings.target))
        if wanted >= size:
            self._in_row = 0
        elif self._in_row < self._needed_in_row:
            self._in_row += 1
            return size
        return wanted
