"""Workloads as ServeGen describes them: per client the rate and the burstiness of each ten minutes, and what requests hold.

`chunk-N-trace.csv` of client N has no header; its fields are the start of a window in seconds, requests per second,
coefficient of variation, law of the times between requests (Gamma or Weibull; empty: none came), its shape and its scale.
`chunk-N-dataset.json` has, by the start of longer windows, the shares of numbers of tokens and images.

From that, requests are drawn: in each window as many as its rate says, whose distances follow its law, stretched to fill the
window. A client's requests are the same whether it is read alone or with others.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlm_operator.simulator.traces.base import Given, Loaded, Source, TraceError, cut
from vlm_operator.simulator.traces.gather import trace_of
from vlm_operator.simulator.traces.stream import blocks, lines
from vlm_operator.simulator.traces.table import MEND, number
from vlm_operator.simulator.traces.times import Times, Unit

WINDOW_SECONDS = 600.0
MOST_PER_SECOND = 10_000.0
"""Requests of one client."""
_LAWS = {
    "Gamma": lambda draw, shape, scale, count: draw.gamma(shape, scale, count),
    "Weibull": lambda draw, shape, scale, count: scale * draw.weibull(shape, count),
}
_TRACE = re.compile(r"chunk-(\d+)-trace\.csv(\.gz)?")
_FIELDS = ("window start", "requests per second", "coefficient of variation", "law", "shape", "scale")
TIMES = Times(column=_FIELDS[0], unit=Unit.SECONDS)
_MOST_VALUES = {"text_tokens": 1e7, "output_tokens": 1e7, "image_tokens": 1e7, "image_count": 1e4}
"""What requests hold, and the most there can be of it."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Window:
    start: float
    requests: int
    law: str
    shape: float
    scale: float


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Shares:
    """A law over some numbers."""

    values: Floats
    cumulated: Floats
    """Share of numbers up to each of them; the last is 1."""

    def draw(self, chance: np.random.Generator, count: int) -> Floats:
        at = np.searchsorted(self.cumulated, chance.random(count), side="right")
        return self.values[np.minimum(at, len(self.values) - 1)]


def read(given: Given, seed: int) -> Loaded:
    """Requests of the client whose `chunk-N-trace.csv` is given, or of all in a folder. Raises TraceError."""
    clients = _clients(given)
    drawn = [part for number, pair in sorted(clients.items()) for part in _client(*pair, seed=(seed, number))]
    if not drawn:
        raise TraceError(f"{given.name} has no window with requests; give clients whose rates are not all 0")
    times, *others = (np.concatenate(column) for column in zip(*drawn, strict=True))
    order = np.argsort(times, kind="stable")
    source = next(iter(clients.values()))[0]
    return Loaded(trace=trace_of(source, TIMES, times[order], *(column[order] for column in others)))


def _clients(given: Given) -> dict[int, tuple[Source, Source]]:
    """The two files of each client, by its number."""
    files = given.folder()
    names = sorted(files) if given.file is None else [given.file.name.rpartition("/")[2]]
    found = {int(match[1]): name for name in names if (match := _TRACE.fullmatch(name))}
    if not found:
        where = "is a folder without files" if given.file is None else "is not a file"
        raise TraceError(f"{given.name} {where} called chunk-N-trace.csv; give one, or a folder of them")
    traces = {number: given.file or files[name] for number, name in found.items()}
    return {number: (trace, _dataset_of(files, number, trace)) for number, trace in traces.items()}


def _dataset_of(files: Mapping[str, Source], number: int, trace: Source) -> Source:
    name = f"chunk-{number}-dataset.json"
    for called in (name, f"{name}.gz"):
        if called in files:
            return files[called]
    return trace.refuse(f"says when requests come; what they hold is missing: put {name} beside it")


def _client(trace: Source, dataset: Source, *, seed: tuple[int, int]) -> Iterator[tuple[Floats, ...]]:
    """Times, prompt tokens, output tokens, images and vision tokens of the requests of one client, in parts."""
    chance = np.random.default_rng(seed)
    windows = list(_windows(trace))
    holds = _datasets(dataset)
    starts = sorted(holds)
    chosen = np.maximum(np.searchsorted(starts, [window.start for window in windows], side="right") - 1, 0)
    for at, start in enumerate(starts):
        parts = [_times(chance, window) for window, its in zip(windows, chosen, strict=True) if its == at]
        if parts:
            times = np.concatenate(parts)
            yield times, *_contents(chance, holds[start], len(times))


def _times(chance: np.random.Generator, window: _Window) -> Floats:
    """When the requests of a window come: one distance more than there are requests fills it."""
    with np.errstate(over="ignore", divide="ignore"):
        gaps: Floats = _LAWS[window.law](chance, window.shape, window.scale, window.requests + 1)
        stretch = WINDOW_SECONDS / gaps.sum()
    if not 0 < stretch < inf:  # a law so uneven that all distances but one vanish, or end: all come at once
        gaps, stretch = np.zeros(window.requests + 1), 0.0
    times: Floats = window.start + np.cumsum(gaps[:-1]) * stretch
    return times


def _contents(chance: np.random.Generator, holds: Mapping[str, _Shares], count: int) -> tuple[Floats, ...]:
    images = np.floor(holds["image_count"].draw(chance, count))
    each = holds["image_tokens"].draw(chance, int(images.sum()))
    request = np.repeat(np.arange(count), images.astype(np.int64))
    vision_tokens = np.bincount(request, weights=each, minlength=count).astype(np.float64)
    prompt_tokens = holds["text_tokens"].draw(chance, count) + vision_tokens
    return prompt_tokens, holds["output_tokens"].draw(chance, count), images, vision_tokens


def _windows(source: Source) -> Iterator[_Window]:
    """The windows in which requests come."""
    for line, text in lines(source):
        fields = text.split(",")
        if len(fields) != len(_FIELDS):
            rule = f"it must have {len(_FIELDS)}: {', '.join(_FIELDS)}"
            source.refuse(f"has {len(fields)} fields; {rule}", line=line)
        law = fields[3].strip()
        if not law:
            continue
        if law not in _LAWS:
            source.refuse(f"{cut(law)!r} must be {' or '.join(_LAWS)}; {MEND}", line=line, column=_FIELDS[3])
        start = _number(source, line, fields, 0)
        requests = round(_number(source, line, fields, 1, most=MOST_PER_SECOND) * WINDOW_SECONDS)
        shape, scale = (_number(source, line, fields, at, positive=True) for at in (4, 5))
        if requests:
            yield _Window(start=start, requests=requests, law=law, shape=shape, scale=scale)


def _number(
    source: Source, line: int, fields: list[str], at: int, *, most: float = inf, positive: bool = False
) -> float:
    try:
        value = number(fields[at])
    except ValueError as error:
        source.refuse(f"{cut(fields[at].strip())!r} {error}; {MEND}", line=line, column=_FIELDS[at])
    if not isfinite(value) or not 0 <= value <= most or (positive and not value):
        rule = "greater than 0" if positive else "from 0" + (f" to {most:g}" if most < inf else "")
        source.refuse(f"{cut(fields[at].strip())} is not a number {rule}; {MEND}", line=line, column=_FIELDS[at])
    return value


def _datasets(source: Source) -> dict[float, dict[str, _Shares]]:
    """What requests hold, by the start of the window from which on it is so."""
    try:
        given = json.loads("".join(block.text for block in blocks(source)))
    except (ValueError, RecursionError):
        source.refuse("is not JSON; get it once more")
    if not isinstance(given, dict) or not given or not all(isinstance(window, dict) for window in given.values()):
        source.refuse("must be a JSON object with an object for each window")
    found, begin = {}, "name each window by the second at which it begins"
    for start, window in given.items():
        try:
            seconds = number(start)
        except ValueError as error:
            source.refuse(f"{cut(start)!r} {error}; {begin}", column="window")
        if not 0 <= seconds < inf:
            source.refuse(f"{cut(start)!r} is not a number from 0; {begin}", column="window")
        found[seconds] = {field: _shares(source, f"{cut(start)}.{field}", window, field) for field in _MOST_VALUES}
    return found


def _shares(source: Source, place: str, window: Mapping[str, Any], field: str) -> _Shares:
    text = window.get(field)
    if text is None:
        source.refuse("is missing", column=place)
    try:
        given = ast.literal_eval(text)
        pairs = sorted((float(value), float(share)) for value, share in given.items())
    except (ValueError, OverflowError, TypeError, SyntaxError, AttributeError, RecursionError, MemoryError):
        pairs = []
    values, shares = np.array(pairs).reshape(-1, 2).T
    most = _MOST_VALUES[field]
    usable = bool(((values >= 0) & (values <= most) & (shares >= 0)).all())
    with np.errstate(over="ignore"):
        whole = shares.sum()
    if not usable or not 0 < whole < inf:
        source.refuse(
            f'{cut(str(text))!r} is not a text with a share for each number from 0 to {most:g}, such as "{{1: 0.7, 2: 0.3}}"',
            column=place,
        )
    return _Shares(values=values, cumulated=np.cumsum(shares) / whole)
