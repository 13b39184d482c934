"""Tables of numbers with a header, separated by commas.

numpy parses each block as a whole. Only where it fails, or where a number breaks a rule, the lines are looked at one by one
for the place to name.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf

import numpy as np
from numpy.typing import NDArray

from vlm_operator.simulator.traces.base import LARGEST, MOST, Source, cut
from vlm_operator.simulator.traces.stream import Block, blocks

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
LONGEST_LIST = 200
"""Characters of what a message lists."""
MEND = "mend the line, or leave it out"


def number(text: str) -> float:
    """A number as numpy reads it. Raises ValueError."""
    if not _NUMBER.fullmatch(text.strip()):
        raise ValueError("is not a number")
    return float(text)


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A column of numbers from 0."""

    name: str
    most: float = MOST
    read: Callable[[str], float] = number
    """What a field means. Raises ValueError that says what it is not."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Rows:
    """Some rows of a table that follow each other."""

    source: Source
    columns: Sequence[Column]
    block: Block
    order: tuple[int, ...]
    """Where each of the columns is in the file."""
    values: NDArray[np.float64]
    """(rows, columns), the columns in the order in which they were asked for."""

    def line_of(self, row: int) -> int:
        """The number of a row's line in the file."""
        return self._line(row)[0]

    def refuse(self, row: int, column: int, message: str) -> None:
        """Raise TraceError about a field, whose text comes before the message."""
        line, text = self._line(row)
        field = cut(_fields(text)[self.order[column]].strip())
        self.source.refuse(f"{field} {message}; {MEND}", line=line, column=self.columns[column].name)

    def _line(self, row: int) -> tuple[int, str]:
        return next(islice(_numbered(self.block), row, None))


def rows(source: Source, columns: Sequence[Column]) -> Iterator[Rows]:
    """The rows of a file in blocks. Its columns may come in any order. Raises TraceError for anything else than such a table."""
    order: tuple[int, ...] | None = None
    some = False
    for block in blocks(source):
        rest = block
        if order is None:
            header, _, text = block.text.partition("\n")
            order = _order(source, header, columns)
            rest = Block(2, text)
        if rest.text.strip("\r\n"):
            some = True
            yield _parsed(source, columns, rest, order)
    if order is None:
        source.refuse(f"is empty; it must begin with the line {_header(columns)}")
    if not some:
        source.refuse("has a header and no requests; add a line for each request")


def _header(columns: Sequence[Column]) -> str:
    return ",".join(column.name for column in columns)


def _order(source: Source, header: str, columns: Sequence[Column]) -> tuple[int, ...]:
    """Where each column is."""
    names = [name.strip() for name in _fields(header)]
    wanted = [column.name for column in columns]
    for separator, plural in _SEPARATORS.items():
        if len(names) == 1 and separator in header:
            source.refuse(f"its fields are separated by {plural}; separate them by commas", line=1)
    if "\r" in header.strip("\r"):
        source.refuse("its lines end with carriage returns alone; end them with line feeds", line=1)
    missing = [name for name in wanted if name not in names]
    unknown = [name for name in names if name not in wanted]
    rule = f"the first line must be {_header(columns)}"
    told = f"{cut(', '.join(map(repr, unknown)), LONGEST_LIST)} {'is' if len(unknown) == 1 else 'are'} not known"
    if missing:
        are = f"column {missing[0]} is" if len(missing) == 1 else f"columns {', '.join(missing)} are"
        source.refuse(f"{are} missing{f', and {told}' if unknown else ''}; {rule}", line=1)
    if unknown:
        source.refuse(f"{told}; remove {'it' if len(unknown) == 1 else 'them'}: {rule}", line=1)
    if len(names) > len(wanted):
        twice = next(name for name in names if names.count(name) > 1)
        source.refuse(f"is there twice; {rule}", line=1, column=twice)
    return tuple(names.index(name) for name in wanted)


def _parsed(source: Source, columns: Sequence[Column], block: Block, order: tuple[int, ...]) -> Rows:
    converters: dict[int | str, Callable[[str], float]] = {
        at: column.read for column, at in zip(columns, order, strict=True) if column.read is not number
    }
    try:
        values = np.loadtxt(
            io.StringIO(block.text), delimiter=",", comments=None, quotechar='"', ndmin=2, converters=converters
        )
    except ValueError as error:
        _refuse_the_first_wrong(source, columns, block, order)
        source.refuse(f"cannot be read as a table: {error}", line=block.first_line)
    if values.shape[1] != len(columns) or ('"' in block.text and len(values) != sum(1 for _ in _numbered(block))):
        _refuse_the_first_wrong(source, columns, block, order)
    found = Rows(source=source, columns=columns, block=block, order=order, values=values[:, order])
    _check(found)
    return found


def _refuse_the_first_wrong(source: Source, columns: Sequence[Column], block: Block, order: tuple[int, ...]) -> None:
    """Raise TraceError about the first field that cannot be read."""
    for line, text in _numbered(block):
        fields = _fields(text)
        if len(fields) < len(columns):
            missing = columns[order.index(len(fields))].name
            source.refuse(
                f"is missing: the line has {len(fields)} of {len(columns)} fields; {MEND}", line=line, column=missing
            )
        if len(fields) > len(columns):
            source.refuse(f"has {len(fields)} fields for {len(columns)} columns; {MEND}", line=line)
        for column, at in zip(columns, order, strict=True):
            try:
                column.read(fields[at])
            except ValueError as error:
                told = repr(cut(fields[at].strip())) if fields[at].strip() else "an empty field"
                source.refuse(f"{told} {error}; {MEND}", line=line, column=column.name)


def _check(found: Rows) -> None:
    """Refuse the first number that is not finite, negative or larger than it can be."""
    least = np.zeros(len(found.columns))
    most = np.array([min(column.most, LARGEST) for column in found.columns])
    wrong = ~((found.values >= least) & (found.values <= most))  # a comparison with NaN is false
    if wrong.any():
        row, at = np.argwhere(wrong)[0]
        column = found.columns[at]
        rule = "a number from 0" + (f" to {column.most:g}" if column.most < inf else "")
        found.refuse(int(row), int(at), f"is not {rule}")


def _numbered(block: Block) -> Iterator[tuple[int, str]]:
    """The lines that hold a row, which are those that are not empty, with their numbers."""
    for line, text in enumerate(block.text.split("\n"), block.first_line):
        if text.strip("\r"):
            yield line, text.strip("\r")


def _fields(text: str) -> list[str]:
    try:
        return next(csv.reader([text.strip("\r")]), [""])
    except csv.Error:
        return text.split(",")
