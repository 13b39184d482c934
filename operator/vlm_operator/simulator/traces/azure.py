"""Requests to language models in Azure as published (2023, 2024): `TIMESTAMP,ContextTokens,GeneratedTokens`, no images.

Times without a zone are UTC. Digits beyond microseconds are cut.
"""

from datetime import UTC, datetime
from math import inf

import numpy as np

from vlm_operator.simulator.traces.base import Given, Loaded
from vlm_operator.simulator.traces.gather import Gathering
from vlm_operator.simulator.traces.table import Column, rows
from vlm_operator.simulator.traces.times import Times


def _moment(text: str) -> float:
    """Seconds since 1970. Raises ValueError."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError("is not a time such as 2023-11-16 18:17:03.97") from None
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if seconds < 0:
        raise ValueError("is before 1970")
    return seconds


TIMES = Times(column="TIMESTAMP", unit=None)
COLUMNS = (
    Column(name=TIMES.column, most=inf, read=_moment),
    Column(name="ContextTokens"),
    Column(name="GeneratedTokens"),
)


def read(given: Given, _seed: int) -> Loaded:
    """The trace in a file, or in the only csv file of a folder. Raises TraceError."""
    source = given.one_file(".csv")
    gathering = Gathering(source, TIMES)
    for found in rows(source, COLUMNS):
        times, prompt_tokens, output_tokens = found.values.T
        none = np.zeros(len(times))
        gathering.add(found, times, prompt_tokens, output_tokens, none, none)
    return gathering.loaded()
