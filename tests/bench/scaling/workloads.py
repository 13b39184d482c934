"""What is replayed: traces that were found, cut into hours to train on and hours to test on, and workloads made to be hard.

Traces differ in what a replica can do for them: `Workload.encode` and `front_end` are seconds per image on GPU and CPU.
"""

import gzip
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vlm_operator.cli.trace_files import read_trace
from vlm_operator.simulator.replay import NO_TROUBLE
from vlm_operator.simulator.scraping import Trouble
from vlm_operator.simulator.trace import Trace

Columns = tuple[NDArray[np.float64], ...]
"""Times, prompt tokens, output tokens, images, vision tokens."""
HOUR = 3600.0
VISION_TOKENS = 650.0
"""Of an image of ordinary size."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A trace by name, made when it is needed: jobs in other processes get the name alone."""

    name: str
    train: bool
    """For tuning; the others are only for the results."""
    make: Callable[[], Trace]
    encode: float = 0.05
    """Seconds of the GPU for each image."""
    front_end: float = 0.35
    """Seconds of a CPU for each image; 0: text alone."""
    trouble: Trouble = NO_TROUBLE


def trace_of(columns: Columns) -> Trace:
    """The trace of columns in any order of time."""
    times, prompts, outputs, images, vision = columns
    order = np.argsort(times, kind="stable")
    return Trace(
        times=times[order] - times[order[0]],
        prompt_tokens=prompts[order].astype(np.float32),
        output_tokens=outputs[order].astype(np.float32),
        images=images[order].astype(np.float32),
        vision_tokens=vision[order].astype(np.float32),
    )


def columns_of(trace: Trace) -> Columns:
    """The columns of a trace."""
    others = (trace.prompt_tokens, trace.output_tokens, trace.images, trace.vision_tokens)
    return (trace.times, *(column.astype(np.float64) for column in others))


def cut(trace: Trace, start: float, end: float) -> Trace:
    """The requests from one time to another, in seconds."""
    inside = (trace.times >= start) & (trace.times < end)
    return trace_of(tuple(column[inside] for column in columns_of(trace)))


def superposed(trace: Trace, copies: int) -> Trace:
    """Copies of a trace on top of each other, each shifted by its share of the time, around the end."""
    span, columns = trace.seconds, columns_of(trace)
    parts = [((columns[0] + span * copy / copies) % span, *columns[1:]) for copy in range(copies)]
    return trace_of(tuple(np.concatenate(column) for column in zip(*parts, strict=True)))


def repeated(trace: Trace, shares: tuple[float, ...], *, seed: int) -> Trace:
    """A trace several times in a row, each time with a share of its requests, drawn at random."""
    noise, columns, span, parts = np.random.default_rng(seed), columns_of(trace), trace.seconds, []
    for turn, share in enumerate(shares):
        kept = noise.random(len(trace)) < share
        parts.append((columns[0][kept] + turn * span, *(column[kept] for column in columns[1:])))
    return trace_of(tuple(np.concatenate(column) for column in zip(*parts, strict=True)))


# -- made workloads ----------------------------------------------------------------------------------------------------
def _arrivals(
    noise: np.random.Generator, start: float, seconds: float, rate: Callable[[Columns], object]
) -> NDArray[np.float64]:
    """Requests at random at a rate that depends on the time since `start`, thinned from the highest rate."""
    grid = np.linspace(0.0, seconds, 2001)
    most = float(np.max(rate(grid)))  # type: ignore[arg-type] # a column, too
    drawn = np.sort(noise.random(noise.poisson(most * seconds))) * seconds
    kept = noise.random(len(drawn)) * most < rate(drawn)  # type: ignore[arg-type,operator] # a column, too
    return start + drawn[kept]


def _asked(
    noise: np.random.Generator, times: NDArray[np.float64], images: NDArray[np.float64], tokens: float
) -> Columns:
    """Requests with that many images, of that many tokens each."""
    count = len(times)
    vision = images * tokens
    prompts = noise.lognormal(6.0, 0.8, count).astype(int) + vision
    outputs = np.maximum(1, noise.lognormal(4.6, 0.9, count).astype(int))
    return times, prompts, outputs, images, vision


def shapes(seed: int) -> Trace:
    """Steps up and down by three, a square wave of four minutes, a ramp, flash crowds, and images that grow or multiply."""
    noise, parts = np.random.default_rng(seed), []
    few, many, start = (1, 1, 1, 1, 2, 3), (2, 4, 6, 8), 0.0
    spans: list[tuple[float, Callable[[object], object], tuple[int, ...], float]] = [
        (1200, lambda x: 4 + 0 * x, few, 650),
        (1200, lambda x: 12 + 0 * x, few, 650),
        (900, lambda x: 4 + 0 * x, few, 650),
        (1800, lambda x: np.where(x // 120 % 2, 9.0, 3.0), few, 650),
        (1200, lambda x: 3 + 9 * x / 1200, few, 650),
        (1800, lambda x: 4 + 10 * np.exp(-(((x % 600) - 300) ** 2) / 2 / 25**2), few, 650),
        (1800, lambda x: 5 + 0 * x, few, 650),
        (1800, lambda x: 5 + 0 * x, few, 1900),
        (1200, lambda x: 5 + 0 * x, many, 650),
    ]
    for seconds, rate, counts, tokens in spans:
        times = _arrivals(noise, start, seconds, rate)
        parts.append(_asked(noise, times, noise.choice(counts, len(times)).astype(float), tokens))
        start += seconds
    return trace_of(tuple(np.concatenate(column) for column in zip(*parts, strict=True)))


IMAGE_COUNTS = ((0.66, 1), (0.71, 4), (0.86, 9), (0.90, 25), (0.95, 170), (0.99, 520), (1.0, 600))
"""Shares of requests with at most so many images, as published for a week of a large multimodal service."""


def heavy_tail(seed: int, hours: float = 10.0) -> Trace:
    """Half text, half images, at a rate that hardly changes, while how many images there are changes by the hour."""
    noise, parts, start = np.random.default_rng(seed), [], 0.0
    heavy, until = 0.5, HOUR
    shares, counts = (np.array(column, dtype=float) for column in zip(*IMAGE_COUNTS, strict=True))
    while start < hours * HOUR:
        if start >= until:
            heavy, until = float(noise.choice((0.3, 0.5, 0.7, 0.85, 1.0))), start + noise.uniform(1800, 7200)
        rate = 12 * (1 + 0.35 * np.sin(2 * np.pi * start / 28_800)) * noise.gamma(16, 1 / 16)
        times = start + np.sort(noise.random(noise.poisson(rate * 60))) * 60
        text = noise.random(len(times)) < 0.5
        drawn = noise.random(len(times))
        drawn = np.where(drawn > 0.66, 0.66 + (drawn - 0.66) * heavy, drawn)
        images = np.where(text, 0.0, np.maximum(1, np.round(np.exp(np.interp(drawn, shares, np.log(counts))))))
        prompts = np.where(text, noise.lognormal(6.5, 1.0, len(times)), noise.lognormal(6.0, 0.8, len(times)))
        outputs = np.maximum(
            1, np.where(text, noise.lognormal(4.6, 1.0, len(times)), noise.lognormal(4.3, 1.0, len(times)))
        )
        parts.append((times, prompts.astype(int) + 45 * images, outputs.astype(int), images, 45 * images))
        start += 60
    return trace_of(tuple(np.concatenate(column) for column in zip(*parts, strict=True)))


def _spans(
    seed: int, *spans: tuple[float, Callable[[object], object]], counts: tuple[int, ...] = (1, 1, 1, 1, 2, 3)
) -> Trace:
    noise, parts, start = np.random.default_rng(seed), [], 0.0
    for seconds, rate in spans:
        times = _arrivals(noise, start, seconds, rate)
        parts.append(_asked(noise, times, noise.choice(counts, len(times)).astype(float), VISION_TOKENS))
        start += seconds
    return trace_of(tuple(np.concatenate(column) for column in zip(*parts, strict=True)))


def growing_images(seed: int) -> Trace:
    """Requests at a constant rate whose images become three times as large for an hour."""
    noise, parts = np.random.default_rng(seed), []
    for start, tokens in ((0.0, 650.0), (3600.0, 1950.0), (7200.0, 650.0)):
        times = _arrivals(noise, start, 3600.0, lambda x: 8 + 0 * x)
        parts.append(_asked(noise, times, np.ones(len(times)), tokens))
    return trace_of(tuple(np.concatenate(column) for column in zip(*parts, strict=True)))


def adversarial(cold_start: float) -> Iterator[Workload]:
    """One kind of trouble each."""
    calm = ((7200.0, lambda x: 8 + 0 * x),)
    step = ((2400.0, lambda x: 4 + 0 * x), (2400.0, lambda x: 12 + 0 * x), (2400.0, lambda x: 4 + 0 * x))
    wave = ((7200.0, lambda x: np.where(x // max(10.0, cold_start) % 2, 12.0, 4.0)),)
    ramp = ((3600.0, lambda x: 2 + 14 * x / 3600), (3600.0, lambda x: 16 - 14 * x / 3600))
    yield Workload(name="step", train=False, make=lambda: _spans(11, *step))
    yield Workload(name="ramp", train=False, make=lambda: _spans(12, *ramp))
    yield Workload(name="square wave of the start time", train=False, make=lambda: _spans(13, *wave))
    yield Workload(name="images grow at a constant rate", train=False, make=lambda: growing_images(14))
    blind = Trouble(outages=((2700.0, 3300.0),))
    yield Workload(
        name="outage of ten minutes within the step", train=False, make=lambda: _spans(11, *step), trouble=blind
    )
    crash = Trouble(crashes=(1800.0, 3600.0, 5400.0))
    yield Workload(name="three crashes", train=False, make=lambda: _spans(15, *calm), trouble=crash)
    lossy = Trouble(lost_share=0.1)
    yield Workload(name="a tenth of the scrapes lost", train=False, make=lambda: _spans(16, *ramp), trouble=lossy)


# -- what there is to replay -------------------------------------------------------------------------------------------
MOST_WINDOW_HOURS = 9.0
"""Of a long trace, for training and for the results each."""
LONG_HOURS = 4.0
"""Traces that are at least that long are cut in two; of shorter ones each is for one purpose as a whole."""


def workloads(folder: Path | None, *, hours: float) -> tuple[Workload, ...]:
    """What is made, and the traces in a folder, each cut to so many hours."""
    return (*_made(hours), *(_found(folder, hours) if folder is not None else ()))


def _made(hours: float) -> Iterator[Workload]:
    for train in (True, False):
        seed, which = (5, "training") if train else (105, "test")
        yield Workload(name=f"shapes, {which}", train=train, make=partial(shapes, seed))
        yield Workload(
            name=f"heavy tail, {which}",
            train=train,
            make=partial(heavy_tail, seed, min(hours, 10.0)),
            encode=0.006,
            front_end=0.09,
        )


def _found(folder: Path, hours: float) -> Iterator[Workload]:
    """Every file and folder that is a trace, by its content. Short ones take turns to be for training and for the results."""
    turn = 0
    for path in sorted(folder.iterdir()):
        for found, form in _traces_in(path):
            whole = partial(_read, str(found), form)
            trace = whole()
            images = float(trace.images.sum()) > 0
            shared = {"encode": 0.05 if images else 0.0, "front_end": 0.35 if images else 0.0}
            if trace.seconds >= LONG_HOURS * HOUR:
                span = min(hours, trace.seconds / HOUR / 2)
                for train, start in ((True, 0.0), (False, trace.seconds / 2)):
                    which = "training hours" if train else "test hours"
                    make = partial(_window, str(found), form, start, start + span * HOUR)
                    yield Workload(name=f"{path.name}, {which}", train=train, make=make, **shared)
                continue
            make = partial(_lively, str(found), form)
            yield Workload(name=path.name, train=turn % 2 == 0, make=make, **shared)
            turn += 1


def _traces_in(path: Path) -> Iterator[tuple[Path, str]]:
    """A folder of clients is one trace; in any other each file is one."""
    if path.is_dir():
        files = sorted(path.iterdir())
        if any(re.fullmatch(r"chunk-\d+-trace\.csv", file.name) for file in files):
            yield path, "servegen"
            return
        for file in files:
            if file.is_file():
                yield from _traces_in(file)
        return
    head = _head(path)
    if head.startswith("TIMESTAMP,"):
        yield path, "azure"
    elif head.startswith("time_s,"):
        yield path, "csv"
    elif head.startswith("{") and "input_length" in head:
        yield path, "mooncake"


def _head(path: Path) -> str:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(path) if packed else path.open("rb") as file:
        return str(file.read(4096).decode(errors="replace"))


@cache
def _read(path: str, form: str) -> Trace:
    return read_trace(path, form, seed=1).trace


def _window(path: str, form: str, start: float, end: float) -> Trace:
    return cut(_read(path, form), start, end)


def _lively(path: str, form: str) -> Trace:
    """A short trace several times: on top of itself where it is light, one after the other where it is not."""
    trace = _read(path, form)
    tokens_per_second = float(trace.prompt_tokens.sum()) / max(trace.seconds, 1.0)
    if tokens_per_second < LIGHT_TOKENS_PER_SECOND:
        return superposed(trace, 3)
    return repeated(trace, (0.6, 1.0, 0.8, 1.0), seed=3) if trace.seconds < HOUR else trace


LIGHT_TOKENS_PER_SECOND = 8000.0
