"""Opens what `--trace` names."""

import io
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import cast

from vlm_operator.runtime.files import UnusableInputError, files_of
from vlm_operator.simulator.traces.base import Given, Loaded, Source, TraceError
from vlm_operator.simulator.traces.registry import FORMATS


def read_trace(path: str, form: str, *, seed: int) -> Loaded:
    """The trace in a file, a folder or standard input (`-`). Raises UnusableInputError."""
    try:
        return FORMATS[form](_given(path), seed)
    except TraceError as error:
        raise UnusableInputError(str(error)) from error
    except MemoryError as error:
        raise UnusableInputError(f"{path} does not fit into the memory that is free; give a part of it") from error


def _given(path: str) -> Given:
    if path == "-":
        name = "standard input"
        return Given(name=name, file=Source(name=name, open=_standard_input), folder=dict)
    where = Path(path)
    try:
        is_folder = where.is_dir()
    except OSError as error:
        raise UnusableInputError(f"{path} cannot be read: {str(error.strerror).lower()}") from error
    folder = where if is_folder else where.parent
    return Given(name=path, file=None if is_folder else _source(where), folder=partial(_files, folder))


def _files(folder: Path) -> Mapping[str, Source]:
    return {path.name: _source(path) for path in files_of(folder)}


def _source(path: Path) -> Source:
    return Source(name=str(path), open=lambda: path.open("rb"))


def _standard_input() -> io.BufferedReader:
    if sys.stdin is None:
        raise UnusableInputError("standard input is closed; give it a trace, or name a file")
    return cast("io.BufferedReader", sys.stdin.buffer)
