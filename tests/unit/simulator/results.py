"""Replays as they might come out."""

from collections.abc import Sequence

import numpy as np

from vlm_operator.simulator.result import Change, Result, Series
from vlm_operator.simulator.trace import Trace


def result(
    arrivals: Sequence[float],
    waits: Sequence[float],
    *,
    changes: Sequence[tuple[float, int, int]] = (),
    replica_seconds: float = 3600.0,
    gpus: int = 1,
) -> Result:
    times = np.arange(0.0, arrivals[-1] + 1, 5.0)
    counts = np.ones(len(times), dtype=np.int32)
    return Result(
        arrivals=np.array(arrivals, dtype=np.float64),
        waits=np.array(waits, dtype=np.float32),
        replica_seconds=replica_seconds,
        gpus_per_replica=gpus,
        changes=tuple(Change(time=time, before=before, after=after) for time, before, after in changes),
        series=Series(
            times=times,
            wanted=counts,
            serving=counts,
            starting=counts * 0,
            standby=counts * 0,
            draining=counts * 0,
            in_flight=counts,
        ),
    )


def trace(times: Sequence[float]) -> Trace:
    each = np.ones(len(times), dtype=np.float32)
    return Trace(
        times=np.array(times, dtype=np.float64),
        prompt_tokens=each * 1000,
        output_tokens=each * 100,
        images=each,
        vision_tokens=each * 750,
    )
