"""From what an engine said last to why it ended: the first rule of a table whose words it used."""

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why an engine ended."""

    reason: str
    """In one word, for conditions, events and metrics."""
    evidence: str
    """The engine's own words."""
    advice: str
    """Which field to change."""


@dataclass(frozen=True)
class Rule:
    """Words by which a failure is known, as a regular expression within one line."""

    words: str
    reason: str
    advice: str


def first_failure(rules: Iterable[Rule], text: str) -> Failure | None:
    """The failure by the first rule whose words stand in `text`; None when no rule knows it.

    The evidence begins with the rule's words and ends with their line, or where pydantic begins to tell its input.
    """
    for rule in rules:
        found = re.search(rf"(?:{rule.words})[^\n]*?(?=\s*\[type=|\s*$)", text, re.MULTILINE)
        if found:
            return Failure(reason=rule.reason, evidence=found[0], advice=rule.advice)
    return None
