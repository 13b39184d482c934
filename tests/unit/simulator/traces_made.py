"""Traces to test with."""

import numpy as np

from vlm_operator.simulator.trace import Trace


def trace_of(
    times: list[float],
    *,
    prompt_tokens: float | list[float] = 400.0,
    output_tokens: float | list[float] = 50.0,
    images: float | list[float] = 0.0,
) -> Trace:
    """Requests at given times, all alike unless lists are given."""

    def column(given: float | list[float]) -> np.ndarray:
        return np.broadcast_to(np.asarray(given, dtype=np.float32), len(times)).copy()

    return Trace(
        times=np.asarray(times, dtype=np.float64),
        prompt_tokens=column(prompt_tokens),
        output_tokens=column(output_tokens),
        images=column(images),
        vision_tokens=column(0.0),
    )


def at_random(rates: list[tuple[float, float]], *, seed: int = 1, **columns: float) -> Trace:
    """Requests that come at random: for so many seconds at so many a second, one span after the other."""
    noise, start, times = np.random.default_rng(seed), 0.0, []
    for seconds, rate in rates:
        times.append(start + np.sort(noise.random(round(seconds * rate))) * seconds)
        start += seconds
    whole = np.concatenate(times)
    return trace_of((whole - whole[0]).tolist(), **columns)
