"""Columns that come in parts, put together into a trace."""

import numpy as np
from numpy.typing import NDArray

from vlm_operator.simulator.trace import Trace
from vlm_operator.simulator.traces.base import Loaded, Source
from vlm_operator.simulator.traces.table import Rows
from vlm_operator.simulator.traces.times import Times

Column = NDArray[np.floating]


class Gathering:
    """The columns of a trace while it is read: float64 for times, float32 for all else.

    Requests out of order are put in order, with a notice: many gateways log a request when it ends.
    """

    def __init__(self, source: Source, written: Times) -> None:
        self._source, self._written = source, written
        self._times = _Growing(np.dtype(np.float64))
        self._others = [_Growing(np.dtype(np.float32)) for _ in range(4)]
        self._last = 0.0
        self._falls = 0
        self._first_fall = (0, 0.0)

    def add(self, rows: Rows, times: NDArray[np.float64], *others: NDArray[np.float64]) -> None:
        """Add rows: times in seconds, then prompt tokens, output tokens, images and vision tokens."""
        back = np.diff(times, prepend=self._last) < 0
        if back.any():
            row = int(np.argmax(back))
            if not self._falls:
                before = times[row - 1] if row else self._last
                self._first_fall = rows.line_of(row), float(before - times[row])
            self._falls += int(back.sum())
        self._last = float(times[-1])
        self._times.extend(times)
        for column, values in zip(self._others, others, strict=True):
            column.extend(values)

    def loaded(self) -> Loaded:
        """The trace. Raises TraceError when its times cannot be right."""
        times, others = self._times.whole(), [column.whole() for column in self._others]
        if self._falls:
            order = np.argsort(times, kind="stable")
            times, others = times[order], [column[order] for column in others]
        return Loaded(trace=trace_of(self._source, self._written, times, *others), notices=self._notices())

    def _notices(self) -> tuple[str, ...]:
        if not self._falls:
            return ()
        line, seconds = self._first_fall
        such = f" (one of {self._falls} such lines)" if self._falls > 1 else ""
        notice = f"{self._source.name}, line {line}: is {seconds:g} s earlier than the line before{such}"
        return (f"{notice}; the requests are replayed in the order of their times",)


def trace_of(source: Source, written: Times, times: Column, *others: Column) -> Trace:
    """Columns in the order of time as a trace, whose times count from its first request. Raises TraceError.

    Columns that have the right type already are taken over as they are, and the times are changed in place.
    """
    first = float(times[0])
    written.check(source, first, float(times[-1]))
    prompt_tokens, output_tokens, images, vision_tokens = (column.astype(np.float32, copy=False) for column in others)
    return Trace(
        times=np.subtract(times, first, out=times, dtype=np.float64),
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        images=images,
        vision_tokens=vision_tokens,
    )


class _Growing:
    """A column that grows in place: long ones would not fit twice into memory."""

    def __init__(self, dtype: np.dtype[np.floating]) -> None:
        self._room: Column = np.empty(0, dtype)
        self._used = 0

    def extend(self, values: Column) -> None:
        end = self._used + len(values)
        if end > len(self._room):
            self._room.resize(end + end // 8, refcheck=False)
        self._room[self._used : end] = values
        self._used = end

    def whole(self) -> Column:
        self._room.resize(self._used, refcheck=False)
        return self._room
