"""Durations and quantities: one spelling for each value, and every spelling keeps the value."""

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import durations, memory_sizes, quantities
from vlm_operator.api import patterns
from vlm_operator.api.scalars import (
    canonical_duration,
    canonical_memory,
    canonical_quantity,
    duration_seconds,
    quantity_bytes,
    quantity_value,
)

DURATIONS = [
    ("90m", "1h30m", 5400),
    ("1h30m", "1h30m", 5400),
    ("1.5h", "1h30m", 5400),
    ("30m1h", "1h30m", 5400),
    ("3600s", "1h", 3600),
    ("0s", "0s", 0),
    ("0h0m", "0s", 0),
    ("1500ms", "1s500ms", 1.5),
    ("0.001s", "1ms", 0.001),
    ("0.001m", "60ms", 0.06),
    ("24h", "24h", 86_400),
]

QUANTITIES = [
    ("4096Mi", "4Gi", 4 * 2**30),
    ("4Gi", "4Gi", 4 * 2**30),
    ("0.5Gi", "512Mi", 2**29),
    ("4294967296", "4Gi", 2**32),
    ("1k", "1000", 1000),
    ("48G", "46875000Ki", 48 * 10**9),
    ("1024Gi", "1Ti", 2**40),
    ("500m", "500m", Decimal("0.5")),
    ("0.5", "500m", Decimal("0.5")),
    ("2000m", "2", 2),
    ("1500m", "1500m", Decimal("1.5")),
    ("1.000", "1", 1),
    ("0", "0", 0),
    ("0m", "0", 0),
]


@pytest.mark.parametrize(("text", "canonical", "seconds"), DURATIONS)
def test_durations_have_one_spelling(text: str, canonical: str, seconds: float) -> None:
    assert canonical_duration(text) == canonical
    assert duration_seconds(text) == seconds


@pytest.mark.parametrize(("text", "canonical", "value"), QUANTITIES)
def test_quantities_have_one_spelling(text: str, canonical: str, value: Decimal | int) -> None:
    assert canonical_quantity(text) == canonical
    assert quantity_value(text) == value


@pytest.mark.parametrize("text", ["", "4 Gi", "GB", "4GB", "4Xi", "-1", "1e3", ".5", "5.", "1.2.3", "4i"])
def test_what_is_no_quantity_raises(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        quantity_value(text)


def test_memory_is_counted_in_whole_bytes() -> None:
    assert canonical_memory("0.3Ki") == "307"
    assert quantity_bytes("0.3Ki") == 307


def matching(pattern: patterns.Pattern) -> st.SearchStrategy[str]:
    return st.from_regex(pattern.regex, fullmatch=True).filter(lambda text: len(text) <= 24)


@given(durations() | matching(patterns.DURATION))
def test_canonical_durations_keep_the_value_and_are_canonical(text: str) -> None:
    canonical = canonical_duration(text)
    assert duration_seconds(canonical) == duration_seconds(text)
    assert canonical_duration(canonical) == canonical


@given(durations())
def test_a_canonical_duration_is_a_valid_duration(text: str) -> None:
    assert re.match(patterns.DURATION.regex, canonical_duration(text))


@given(quantities().map(str) | matching(patterns.QUANTITY))
def test_canonical_quantities_keep_the_value_and_are_valid(text: str) -> None:
    canonical = canonical_quantity(text)
    assert quantity_value(canonical) == quantity_value(text)
    assert canonical_quantity(canonical) == canonical
    assert re.match(patterns.QUANTITY.regex, canonical)
    assert len(canonical) <= 24


@given(memory_sizes() | matching(patterns.MEMORY))
def test_canonical_memory_keeps_whole_bytes_and_is_valid(text: str) -> None:
    canonical = canonical_memory(text)
    assert quantity_bytes(canonical) == quantity_bytes(text)
    assert canonical_memory(canonical) == canonical
    assert re.match(patterns.MEMORY.regex, canonical)
