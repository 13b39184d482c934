"""The patterns mean the same to the API server (RE2), pydantic (Rust) and CEL, and each has its words."""

import re

import pytest

from vlm_operator.api.patterns import BY_REGEX, Pattern

PATTERNS = list(BY_REGEX.values())


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.regex)
def test_a_pattern_is_portable(pattern: Pattern) -> None:
    assert pattern.regex.startswith("^")
    assert pattern.regex.endswith("$")
    assert pattern.regex.isascii()
    assert "'" not in pattern.regex, "it stands in single quotes in CEL"
    assert not re.search(r"\(\?|\\[a-zA-Z0-9]", pattern.regex), "no groups with options, no classes, no references"
    # A pattern that allows nothing but "inner" alternatives must be in brackets, else ^ and $ bind to one of them only.
    assert "|" not in re.sub(r"\(.*\)|\[[^]]*\]", "", pattern.regex)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.regex)
def test_a_meaning_completes_a_sentence(pattern: Pattern) -> None:
    assert pattern.meaning.startswith("must be ")
    assert not pattern.meaning.endswith(".")
    assert "'" not in pattern.meaning


def test_a_trailing_newline_is_refused() -> None:
    # Python's $ would let it through; the types use Rust's and the server Go's, which do not.
    from vlm_operator.api.resource import read_spec

    for raw in ({"model": {"name": "llava\n"}}, {"model": {"name": "llava"}, "drain": {"timeout": "5m\n"}}):
        spec, _ = read_spec({"weights": {"persistentVolumeClaim": {"claimName": "models"}}} | raw)
        assert spec is None
