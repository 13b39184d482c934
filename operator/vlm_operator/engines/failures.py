"""From what an engine wrote last to why it ended: the first rule of a table whose words stand in one of its lines."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import product


class Waiting(StrEnum):
    """Whether a replica may come to serve though nobody changes anything."""

    MAY_HELP = "may help"
    """What is missing may come by itself."""
    HELPS_ONCE = "once"
    """It may have been passing: one more try tells."""
    IS_VAIN = "is vain"
    """Every replica like it will fail as well."""


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One way to fail, as the reference page tells it."""

    reason: str
    """In one word, for conditions, events and metrics."""
    meaning: str
    seen_in: str
    """Where it is noticed."""
    advice: str
    """What to change."""
    waiting: Waiting
    while_serving: bool = False
    """It also ends an engine that serves. Whatever else a serving engine writes is about a request."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why an engine ended."""

    cause: Cause
    evidence: str
    """The engine's own words."""
    advice: str
    vague: bool = False
    """Something else is behind it, which may stand elsewhere."""

    @property
    def reason(self) -> str:
        """The reason in one word."""
        return self.cause.reason


@dataclass(frozen=True)
class Rule:
    """Words by which a cause is known."""

    words: tuple[str, ...]
    """Regular expressions, of which one is to be found within a line."""
    cause: Cause
    way_out: Callable[[re.Match[str]], str] | None = None
    """Advice with a value from the words; empty where they do not have it."""
    vague: bool = False


LONGEST_LEAD = 100
"""Characters before the words with which evidence may begin: what is further on would be cut off."""
LONGEST_LINE = 4096
"""Characters of a line that are looked at. What decides stands in front, and engines also dump whole configurations."""


def first_failure(rules: Iterable[Rule], lines: Iterable[str]) -> Failure | None:
    """The failure by the first rule whose words stand in one of the lines; None when no rule knows any.

    The evidence is that line, up to where pydantic begins to tell its input.
    """
    lines = tuple(line[:LONGEST_LINE] for line in lines)
    for rule in rules:
        for words, line in product(rule.words, lines):
            found = re.search(words, line)
            if found:
                advice = rule.way_out(found) if rule.way_out else ""
                cause = rule.cause
                return Failure(
                    cause=cause, evidence=_evidence(line, found), advice=advice or cause.advice, vague=rule.vague
                )
    return None


def _evidence(line: str, found: re.Match[str]) -> str:
    text = line if found.start() <= LONGEST_LEAD else line[found.start() :]
    return re.sub(r"\s*\[type=.*", "", text).strip().removeprefix("Value error, ")
