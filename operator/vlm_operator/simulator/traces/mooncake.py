"""Requests as Mooncake publishes them: JSON lines with `timestamp` (ms), `input_length`, `output_length` and `hash_ids`.

Each hash stands for a block of 512 tokens of the prompt and all before it. Of a prompt, what is replayed is what a prefix
cache of the whole fleet that forgets nothing would leave to compute: the tokens behind its leading blocks that came before,
at least 32. There are no images.
"""

import json
from collections.abc import Iterator
from math import inf
from typing import Any, NamedTuple

import numpy as np

from vlm_operator.simulator.traces.base import LARGEST, MOST, Given, Loaded, Source, cut
from vlm_operator.simulator.traces.gather import trace_of
from vlm_operator.simulator.traces.stream import lines
from vlm_operator.simulator.traces.table import MEND
from vlm_operator.simulator.traces.times import Times, Unit

TIMES = Times(column="timestamp", unit=Unit.MILLISECONDS)
BLOCK_TOKENS = 512
LEAST_TOKENS = 32
"""Of a prompt, computed whatever the cache holds."""


class _Request(NamedTuple):
    milliseconds: float
    prompt_tokens: float
    output_tokens: float


def read(given: Given, _seed: int) -> Loaded:
    """The trace in a file, or in the only jsonl file of a folder. Raises TraceError."""
    source = given.one_file(".jsonl")
    columns = np.fromiter(_requests(source), dtype=np.dtype((np.float64, 3)))
    if not len(columns):
        source.refuse("holds no requests; give a line of JSON for each request")
    milliseconds, prompt_tokens, output_tokens = columns.T
    none = np.zeros(len(columns))
    trace = trace_of(source, TIMES, milliseconds / 1000, prompt_tokens, output_tokens, none, none)
    return Loaded(trace=trace)


def _requests(source: Source) -> Iterator[_Request]:
    seen: set[int] = set()
    last = 0.0
    for line, text in lines(source):
        given = _object(source, line, text)
        milliseconds = _number(source, line, given, TIMES.column, most=inf)
        if milliseconds < last:
            source.refuse(
                f"{milliseconds:.15g} is earlier than {last:.15g} before it; what is in the cache depends on the order, "
                "so sort the lines by timestamp",
                line=line,
                column=TIMES.column,
            )
        last = milliseconds
        blocks = _blocks(source, line, given)
        known = next((number for number, block in enumerate(blocks) if block not in seen), len(blocks))
        seen.update(blocks)
        prompt_tokens = _number(source, line, given, "input_length") - BLOCK_TOKENS * known
        output_tokens = _number(source, line, given, "output_length")
        yield _Request(milliseconds, max(float(LEAST_TOKENS), prompt_tokens), output_tokens)


def _object(source: Source, line: int, text: str) -> dict[str, Any]:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        source.refuse(f"is not JSON; {MEND}", line=line)
    if not isinstance(given, dict):
        source.refuse(f"is not a JSON object; {MEND}", line=line)
    return given


def _number(source: Source, line: int, given: dict[str, Any], field: str, *, most: float = MOST) -> float:
    value = given.get(field)
    if value is None:
        source.refuse(f"is missing; {MEND}", line=line, column=field)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= min(most, LARGEST):
        rule = "a number from 0" + (f" to {most:g}" if most < inf else "")
        source.refuse(f"{cut(json.dumps(value))} is not {rule}; {MEND}", line=line, column=field)
    return float(value)


def _blocks(source: Source, line: int, given: dict[str, Any]) -> list[int]:
    value = given.get("hash_ids")
    if not isinstance(value, list) or not all(isinstance(block, int) for block in value):
        told = "is missing" if value is None else f"{cut(json.dumps(value))} is not a list of whole numbers"
        source.refuse(f"{told}; {MEND}", line=line, column="hash_ids")
    return value
