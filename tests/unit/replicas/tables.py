"""Tables as tests: each row starts with the sentence that it is known by."""

from collections.abc import Sequence
from typing import Any

import pytest


def table(names: str, rows: Sequence[tuple[Any, ...]]) -> pytest.MarkDecorator:
    """Run a test once for each row, with the values after the sentence under `names` (separated by commas)."""
    arguments = [name.strip() for name in names.split(",")]
    return pytest.mark.parametrize(arguments, [row[1:] for row in rows], ids=[row[0] for row in rows])
