"""Descriptions come from the source, folded into one line."""

from vlm_operator.api.base import ApiModel
from vlm_operator.api.docstrings import field_docs, fold


class Documented(ApiModel):
    """A type."""

    first: int = 1
    """The first
    field."""
    second: int = 2
    third: int = 3
    """The third field."""


def test_each_field_has_the_docstring_below_it() -> None:
    assert field_docs(Documented) == {"first": "The first field.", "third": "The third field."}


def test_white_space_is_folded() -> None:
    assert fold("  a\n   b  c\n") == "a b c"
