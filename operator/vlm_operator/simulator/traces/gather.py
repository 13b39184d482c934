"""Columns that come in parts, put together into a trace."""

import numpy as np
from numpy.typing import NDArray

from vlm_operator.simulator.trace import Trace
from vlm_operator.simulator.traces.base import Loaded, Source
from vlm_operator.simulator.traces.table import Rows

LONGEST_DAYS = 366
"""A trace that is longer is more likely one whose times are in another unit."""

Column = NDArray[np.floating]


class Gathering:
    """The columns of a trace while it is read: float64 for times, float32 for all else.

    Requests out of order are put in order, with a notice: many gateways log a request when it ends.
    """

    def __init__(self, source: Source, *, time_column: str) -> None:
        self._source, self._time_column = source, time_column
        self._parts: list[list[Column]] = [[], [], [], [], []]
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
        self._parts[0].append(times.copy())
        for part, column in zip(self._parts[1:], others, strict=True):
            part.append(column.astype(np.float32))

    def loaded(self) -> Loaded:
        """The trace. Raises TraceError when it is too long."""
        times, *others = (_joined(part) for part in self._parts)
        if self._falls:
            order = np.argsort(times, kind="stable")
            times, others = times[order], [column[order] for column in others]
        return Loaded(trace=trace_of(self._source, self._time_column, times, *others), notices=self._notices())

    def _notices(self) -> tuple[str, ...]:
        if not self._falls:
            return ()
        line, seconds = self._first_fall
        such = f" (one of {self._falls} such lines)" if self._falls > 1 else ""
        notice = f"{self._source.name}, line {line}: is {seconds:g} s earlier than the line before{such}"
        return (f"{notice}; the requests are replayed in the order of their times",)


def trace_of(source: Source, time_column: str, times: Column, *others: Column) -> Trace:
    """Columns in the order of time as a trace, whose times count from its first request. Raises TraceError."""
    first, last = float(times[0]), float(times[-1])
    if last - first > LONGEST_DAYS * 86400:
        source.refuse(
            f"goes from {first:.15g} to {last:.15g} s, {(last - first) / 86400:.0f} days; a trace may have up to "
            f"{LONGEST_DAYS}; write times in seconds (of milliseconds: divide by 1000)",
            column=time_column,
        )
    prompt_tokens, output_tokens, images, vision_tokens = (column.astype(np.float32, copy=False) for column in others)
    return Trace(
        times=np.subtract(times, first, dtype=np.float64),
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        images=images,
        vision_tokens=vision_tokens,
    )


def _joined(parts: list[Column]) -> Column:
    """One column, whose parts are then given up."""
    whole: Column = np.concatenate(parts)
    parts.clear()
    return whole
