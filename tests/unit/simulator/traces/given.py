"""Traces as a command would open them."""

import io
from functools import partial

import pytest

from vlm_operator.simulator.traces.base import Given, Loaded, Source, TraceError
from vlm_operator.simulator.traces.registry import FORMATS


def source(data: str | bytes, name: str = "t.csv") -> Source:
    content = data.encode() if isinstance(data, str) else data
    return Source(name=name, open=lambda: io.BufferedReader(io.BytesIO(content)))  # type: ignore[arg-type] # it reads as a raw stream does


def file(data: str | bytes, name: str = "t.csv", *, beside: dict[str, str] | None = None) -> Given:
    one = source(data, name)
    return Given(name=name, file=one, folder=partial(dict, {name: one} | _sources(beside or {})))


def folder(files: dict[str, str], name: str = "traces") -> Given:
    return Given(name=name, file=None, folder=partial(_sources, files))


def _sources(files: dict[str, str]) -> dict[str, Source]:
    return {name: source(data, name) for name, data in files.items()}


def read(form: str, given: Given, seed: int = 1) -> Loaded:
    return FORMATS[form](given, seed)


def refusal(form: str, given: Given) -> str:
    with pytest.raises(TraceError) as refused:
        read(form, given)
    return str(refused.value)
