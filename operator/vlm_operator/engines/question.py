"""The smallest question by which a replica shows that it can still answer clients, and what came of it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Question:
    """A request to the port of an engine."""

    path: str
    body: str
    """JSON, to be sent by POST."""
    wrong: Callable[[str], bool]
    """Whether an answer with status 200 shows that it cannot serve."""
    health_path: str
    """What is asked instead where the question needs an API key."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What a replica is found to be."""

    alive: bool | None
    """None: it could not be asked, which says nothing of it."""
    message: str
    """What it did, as the end of a sentence whose subject is the replica."""
