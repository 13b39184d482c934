"""Which figures of a sample can be relied on. A sample comes out with None for those that cannot, and with the reasons."""

from dataclasses import fields, replace
from math import isfinite
from typing import Any

from vlm_operator.scaling.signals import Gauge, Quality, Sample

Flaws = tuple[tuple[str, Quality], ...]
"""Names of figures that cannot be used, and why."""

MOST_REQUESTS = 1e6
MOST_COUNTED = 1e15
"""More cannot be: a replica holds thousands of requests, and a counter of doubles is exact up to there."""
_MOST = {"running": MOST_REQUESTS, "waiting": MOST_REQUESTS, "in_flight": MOST_REQUESTS, "kv_usage": 1.0}
_FIGURES = tuple(figure.name for figure in fields(Sample) if figure.name != "time")
WHOLE, HELD = "sample", "held"
"""Names of the flaws of a sample as a whole, and of the requests that wait before the replicas."""


def quality_of(value: float | None, most: float) -> Quality:
    """What one figure is worth."""
    if value is None:
        return Quality.MISSING
    if not isfinite(value):
        return Quality.NOT_A_NUMBER
    if value < 0:
        return Quality.NEGATIVE
    return Quality.IMPOSSIBLE if value > most else Quality.FINE


def judged(sample: Sample) -> tuple[Sample, Flaws]:
    """A sample with the figures that can be relied on, and what is wrong with the others."""
    try:
        fine = (
            0 <= sample.running <= MOST_REQUESTS  # type: ignore[operator]  # None raises, which is the slow way
            and 0 <= sample.waiting <= MOST_REQUESTS  # type: ignore[operator]
            and 0 <= sample.in_flight <= MOST_REQUESTS  # type: ignore[operator]
            and 0 <= sample.kv_usage <= 1  # type: ignore[operator]
            and 0 <= sample.prompt_tokens <= MOST_COUNTED  # type: ignore[operator]
            and 0 <= sample.first_tokens <= MOST_COUNTED  # type: ignore[operator]
            and 0 <= sample.finished <= MOST_COUNTED  # type: ignore[operator]
            and 0 <= sample.images <= MOST_COUNTED  # type: ignore[operator]
        )
    except TypeError:
        fine = False
    if fine:
        return sample, ()
    found = ((name, quality_of(getattr(sample, name), _MOST.get(name, MOST_COUNTED))) for name in _FIGURES)
    flaws = tuple((name, quality) for name, quality in found if quality is not Quality.FINE)
    unusable: dict[str, Any] = dict.fromkeys(name for name, _ in flaws)
    return replace(sample, **unusable), flaws


def gauge_quality(gauge: Gauge | None, *, now: float, stale_after: float, most: float = MOST_COUNTED) -> Quality:
    """What a figure from elsewhere is worth."""
    if gauge is None:
        return Quality.MISSING
    if not isfinite(gauge.time) or gauge.time > now + stale_after:
        return Quality.IMPOSSIBLE
    if now - gauge.time > stale_after:
        return Quality.STALE
    return quality_of(gauge.value, most)
