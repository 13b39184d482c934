"""What a replay is judged by: how many requests were in time, what that cost, and how restless the size was."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from vlm_operator.simulator.result import Change, Result

WINDOW_SECONDS = 600.0
"""Of the worst ten minutes, and of a flap."""
STEP_SECONDS = 60.0
"""Between two windows that are compared."""
FEWEST_IN_WINDOW = 50
"""Requests of a window that counts: in a smaller one a single late request would weigh more than 2 %."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measures:
    """Shares go from 0 to 1."""

    attainment: float
    """Share of requests whose wait was within the objective."""
    gpu_hours: float
    """Of all replicas, whatever they did, until the last request came."""
    p50_wait: float
    """Seconds that half of the requests did not exceed, infinite where fewer were begun; likewise the next two."""
    p95_wait: float
    p99_wait: float
    scale_events: int
    """Changes of the size."""
    flaps: int
    """Changes up that came within ten minutes after a change down."""
    requests: int
    worst_10_minutes: float
    """The lowest attainment of any ten minutes.

    Windows begin with the trace and every minute after that; the last one is the first that holds the last request. Those
    with fewer than `FEWEST_IN_WINDOW` requests do not count; where none counts it is the attainment of all requests.
    """

    def as_data(self) -> dict[str, float | int | None]:
        """By the names of the JSON output; shares and seconds to the sixth digit, and None for a wait without end."""
        p50, p95, p99 = (
            round(wait, 6) if isfinite(wait) else None for wait in (self.p50_wait, self.p95_wait, self.p99_wait)
        )
        return {
            "attainment": round(self.attainment, 6),
            "gpuHours": round(self.gpu_hours, 6),
            "p50Wait": p50,
            "p95Wait": p95,
            "p99Wait": p99,
            "scaleEvents": self.scale_events,
            "flaps": self.flaps,
            "requests": self.requests,
            "worst10min": round(self.worst_10_minutes, 6),
        }


def measure(result: Result, *, slo_seconds: float = 2.0) -> Measures:
    """Judge a replay by an objective: the longest time that a request should queue."""
    in_time = result.waits <= slo_seconds
    attainment = float(in_time.mean())
    p50, p95, p99 = np.quantile(result.waits, (0.5, 0.95, 0.99), method="inverted_cdf").tolist()
    return Measures(
        attainment=attainment,
        gpu_hours=result.replica_seconds * result.gpus_per_replica / 3600,
        p50_wait=p50,
        p95_wait=p95,
        p99_wait=p99,
        scale_events=len(result.changes),
        flaps=sum(_flaps(result.changes)),
        requests=len(result.waits),
        worst_10_minutes=min(_windows(result.arrivals, in_time), default=attainment),
    )


def _windows(arrivals: NDArray[np.float64], in_time: NDArray[np.bool_]) -> list[float]:
    """Attainment of each window with enough requests."""
    beyond = arrivals[-1] - WINDOW_SECONDS
    starts = STEP_SECONDS * np.arange(1 if beyond < 0 else int(beyond // STEP_SECONDS) + 2)
    first = np.searchsorted(arrivals, starts)
    end = np.searchsorted(arrivals, starts + WINDOW_SECONDS)
    so_far = np.concatenate(([0], np.cumsum(in_time)))
    counts = end - first
    enough = counts >= FEWEST_IN_WINDOW
    shares: list[float] = ((so_far[end] - so_far[first])[enough] / counts[enough]).tolist()
    return shares


def _flaps(changes: tuple[Change, ...]) -> Iterator[bool]:
    """For each change, whether it is a flap."""
    fell_at = -np.inf
    for change in changes:
        up = change.after > change.before
        yield up and change.time - fell_at <= WINDOW_SECONDS
        if not up:
            fell_at = change.time
