"""Histories of one deployment, as events in the world: what users, nodes and other controllers do, one after the other."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from random import Random

import edits

Object = edits.Object


class Kind(StrEnum):
    """What happens."""

    CREATE = "it is created"
    EDIT = "it is edited"
    HOLD = "new pods do not become ready"
    RELEASE = "they become ready"
    CRASH = "an engine crashes"
    FLAP = "a pod is not ready any more"
    RECOVER = "it is ready again"
    DELETE = "somebody deletes a pod"
    DELETE_SLOWLY = "somebody deletes a pod that takes long to leave"
    EVICT = "a pod is evicted"
    RESTART = "the operator is killed and started anew"


OF_A_POD = frozenset({Kind.CRASH, Kind.FLAP, Kind.DELETE, Kind.DELETE_SLOWLY, Kind.EVICT})
"""They happen to one of the ready pods."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event."""

    kind: Kind
    resource: Object | None = None
    """The resource from then on, where it is created or edited."""
    choice: int = 0
    """Which pod it happens to, counted round."""

    def __str__(self) -> str:
        return str(self.kind)


def history(random: Random, *, first: Object, events: int) -> tuple[Event, ...]:
    """About so many events after the creation."""
    return tuple(_history(random, first=first, events=events))


def _history(random: Random, *, first: Object, events: int) -> Iterator[Event]:
    resource = edits.edited(first, random)
    yield Event(kind=Kind.CREATE, resource=resource)
    losses, held = 0, 0
    for _ in range(events):
        kind = random.choice([Kind.EDIT, Kind.EDIT, Kind.EDIT, Kind.RESTART, Kind.HOLD, *OF_A_POD_IN_ORDER])
        if held:
            held -= 1
            if not held:
                yield Event(kind=Kind.RELEASE)
            kind = Kind.EDIT if kind is Kind.HOLD else kind
        if kind in {Kind.DELETE, Kind.DELETE_SLOWLY, Kind.EVICT}:
            losses += 1
            if losses > MOST_LOSSES:
                kind = Kind.EDIT
        if kind is Kind.EDIT:
            resource = edits.edited(resource, random)
            yield Event(kind=kind, resource=resource)
            continue
        yield Event(kind=kind, choice=random.randrange(8))
        if kind in {Kind.FLAP, Kind.CRASH}:
            yield Event(kind=Kind.RECOVER)
        if kind is Kind.HOLD:
            held = 3
    if held:
        yield Event(kind=Kind.RELEASE)


OF_A_POD_IN_ORDER = sorted(OF_A_POD)
MOST_LOSSES = 3
"""In a history: a slot that failed once more rests twice as long, in real time."""
