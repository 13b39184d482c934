"""Ray Serve: ongoing requests per replica, acted on once they have asked for the same direction for long enough.

Sources: ray-project/ray `python/ray/serve/autoscaling_policy.py` and `config.py`, `python/ray/serve/tests/unit/
test_autoscaling_policy.py`; docs.ray.io, "Advanced Ray Serve Autoscaling". Delays are by the clock, as in the newer code;
the older one counted rounds of its loop.
"""

from dataclasses import dataclass
from math import ceil

from vlm_operator.simulator.peers.samples import Samples
from vlm_operator.simulator.peers.settings import require_at_least_zero, require_positive
from vlm_operator.simulator.view import View

_SLACK_SECONDS = 1e-6


@dataclass(frozen=True, kw_only=True, slots=True)
class RaySettings:
    """AutoscalingConfig. The defaults are those of the code."""

    target: float = 2.0
    """Ongoing requests per replica (target_ongoing_requests)."""
    upscale_delay_seconds: float = 30.0
    downscale_delay_seconds: float = 600.0
    upscaling_factor: float = 1.0
    downscaling_factor: float = 1.0
    look_back_seconds: float = 30.0
    """Time over which requests are averaged."""
    push_seconds: float = 10.0
    """Between two reports of that average (metrics_interval_s)."""
    period_seconds: float = 1.0
    """Between two looks. The loop of Ray turns ten times as fast, which at these delays makes no difference."""

    def __post_init__(self) -> None:
        require_positive(self, "target", "upscaling_factor", "downscaling_factor")
        require_positive(self, "look_back_seconds", "push_seconds", "period_seconds")
        require_at_least_zero(self, "upscale_delay_seconds", "downscale_delay_seconds")


class Ray:
    """The autoscaler of one deployment."""

    def __init__(self, settings: RaySettings | None = None) -> None:
        self._settings = settings or RaySettings()
        self._samples = Samples(self._settings.look_back_seconds)
        self._pushed_at = float("-inf")
        self._requests = 0.0
        self._direction, self._since = 0, 0.0

    @property
    def period_seconds(self) -> float:
        """Time between two decisions."""
        return self._settings.period_seconds

    def desired(self, view: View) -> int:
        """The size wanted now."""
        now = view.now
        self._samples.add(now, view.in_flight)
        if now - self._pushed_at >= self._settings.push_seconds - _SLACK_SECONDS:
            self._requests = self._samples.mean(now, self._settings.look_back_seconds)
            self._pushed_at = now
        return self.decide(now, requests=self._requests, running=view.ready, size=view.size)

    def decide(self, now: float, *, requests: float, running: int, size: int) -> int:
        """The size for ongoing requests, with so many replicas running of those wanted before."""
        settings = self._settings
        if running == 0:
            return max(1, size, ceil(settings.upscaling_factor) if requests > 0 else 0)
        wanted = max(1, self._scaled(requests / settings.target, running))
        direction = (wanted > size) - (wanted < size)
        if direction != self._direction:
            self._direction, self._since = direction, now
        if direction == 0:
            return max(1, size)
        delay = settings.upscale_delay_seconds if direction > 0 else settings.downscale_delay_seconds
        if now - self._since + _SLACK_SECONDS < delay:
            return max(1, size)
        self._direction = 0
        return wanted

    def _scaled(self, wanted: float, running: int) -> int:
        """As far from what runs to what is wanted as the factor of the direction says; on the way down by one at least."""
        factor = self._settings.upscaling_factor if wanted > running else self._settings.downscaling_factor
        scaled = ceil(running + factor * (wanted - running))
        return scaled - 1 if ceil(wanted) < running and scaled == running else scaled
