"""What readers of all formats share: what they are given, what they give, and how they say no."""

import io
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from vlm_operator.simulator.trace import Trace

LARGEST = sys.float_info.max
"""Of all finite numbers."""
MOST = 1e9
"""Of tokens or images in one request: more is a mistake, and far from where float32 ends."""

LONGEST_SHOWN = 80
"""Characters of a text in a message."""


def cut(text: str, most: int = LONGEST_SHOWN) -> str:
    """What a message shows of a text: not all of it where it is long."""
    return text if len(text) <= most else f"{text[:most]}..."


class TraceError(ValueError):
    """Why a trace cannot be used: a sentence that begins with the name of the file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A file that is opened when it is read."""

    name: str
    """As people know it, for messages."""
    open: Callable[[], io.BufferedReader]

    def refuse(self, message: str, *, line: int = 0, column: str = "") -> NoReturn:
        """Raise TraceError about a place in the file; lines count from 1, 0 is the whole file."""
        if not line and not column:
            raise TraceError(f"{self.name} {message}")
        places = (f"line {line}" if line else "", f"column {column}" if column else "")
        raise TraceError(f"{', '.join((self.name, *filter(None, places)))}: {message}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """What somebody names as a trace: a file, or a folder."""

    name: str
    file: Source | None
    """None: it is a folder."""
    folder: Callable[[], Mapping[str, Source]]
    """The files of the folder, or of the one that the file is in, by their names in it."""

    def one_file(self, suffix: str) -> Source:
        """The file, or the only one of the folder whose name ends so, packed or not. Raises TraceError."""
        if self.file is not None:
            return self.file
        found = {name: file for name, file in self.folder().items() if name.removesuffix(".gz").endswith(suffix)}
        if len(found) != 1:
            there = f"holds {len(found)} files" if found else "is a folder without a file"
            way_out = f"name one of them, for example {min(found)}" if found else "name the file"
            raise TraceError(f"{self.name} {there} whose name ends with {suffix}; {way_out}")
        return next(iter(found.values()))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Loaded:
    """A trace, and what its owner should know of how it was read, in sentences."""

    trace: Trace
    notices: tuple[str, ...] = ()
