"""What came out of a replay."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A change of the size that a policy made."""

    time: float
    """Seconds since the beginning of the trace."""
    before: int
    after: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Series:
    """What there was over time: one entry for each decision."""

    times: NDArray[np.float64]
    wanted: NDArray[np.int32]
    """The size decided on."""
    serving: NDArray[np.int32]
    starting: NDArray[np.int32]
    standby: NDArray[np.int32]
    draining: NDArray[np.int32]
    in_flight: NDArray[np.int32]
    """Requests that came and had not ended."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Result:
    """One replay of a trace."""

    arrivals: NDArray[np.float64]
    """When each request came, in seconds since the first one."""
    waits: NDArray[np.float32]
    """Seconds that each request queued: in front end and engine, without the time in which it was itself worked on."""
    replica_seconds: float
    """Of all replicas of any role, from their creation to their end, until the last request came."""
    gpus_per_replica: int
    changes: tuple[Change, ...]
    """Of the size, in the order of time. The size to start with is none."""
    series: Series
