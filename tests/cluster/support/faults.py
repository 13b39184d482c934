"""What may go wrong between the operator and the API server, and in which phase of a story."""

import random
from dataclasses import dataclass
from typing import Any

from cluster.support.story import PHASES
from faultproxy import (
    WRITES,
    Answer,
    CutWatch,
    DelayEvents,
    Drop,
    Expire,
    KeepEvents,
    LoseAnswer,
    LoseEvents,
    RepeatEvents,
    Rule,
)

WRITING = ("create", "scale", "edit")
"""Phases in which the operator writes. When a deployment is deleted, the cluster does what is to be done."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Something that goes wrong."""

    name: str
    rules: tuple[Rule, ...] = ()
    away: bool = False
    """The API server cannot be reached any more in the middle of the phase."""
    stopped: bool = False
    """It ends in the middle of the phase, for everybody, and is started again."""
    seconds: float = 0.0
    """It lasts that long; 0: until the phase has come to its end in spite of it."""
    resync_seconds: int = 3
    """Between full lists of the operator; few, so that what only they can mend need not last long."""
    phases: tuple[str, ...] = tuple(PHASES)


NOTHING = Fault(name="nothing")
STOPPED = Fault(name="API server stopped", stopped=True, seconds=20.0)
"""Not in the matrix: it strikes all stories of a control plane."""


def faults(*, real_time: bool) -> tuple[Fault, ...]:
    """All faults; those that take long are shortened unless in `real_time`."""
    silence, resync, away, late = (120.0, 300, 20.0, 10.0) if real_time else (0.0, 3, 5.0, 2.0)
    throttled, unavailable = Answer(429, "TooManyRequests", retry_after=2), Answer(503, "Overload", retry_after=1)
    silent = [
        Rule(LoseAnswer(silent=True), verbs=WRITES, resources={"pods"}, times=1),
        Rule(LoseAnswer(silent=True), verbs=WRITES, resources={"vlmdeployments"}, times=1),
    ]
    return (
        Fault(name="409", rules=(_once(Answer(409, "Conflict"), verbs=WRITES),), phases=WRITING),
        Fault(name="422", rules=(_once(Answer(422, "Invalid"), verbs=WRITES),), phases=WRITING),
        Fault(name="429", rules=(_once(throttled),)),
        Fault(name="500", rules=(_once(Answer(500, "InternalError")),)),
        Fault(name="503", rules=(_once(unavailable),)),
        Fault(name="somebody else's page", rules=(_once(Answer(200, body="<html>"), verbs=WRITES),), phases=WRITING),
        Fault(name="connection closed", rules=(_once(Drop()),)),
        Fault(name="answer lost", rules=(_once(LoseAnswer(), verbs=WRITES),), phases=WRITING),
        Fault(name="timeout though written", rules=tuple(silent), phases=WRITING),
        Fault(name="watch cut", rules=(_events(CutWatch(half_a_line=True), probability=0.3),)),
        Fault(name="watch ends early", rules=(_events(CutWatch(half_a_line=True, properly=True), times=1),)),
        Fault(name="410", rules=(_events(Expire(), probability=0.3),)),
        Fault(name="watch silent", rules=(_events(KeepEvents()),), seconds=silence, resync_seconds=resync),
        Fault(name="events late", rules=(_events(DelayEvents(late)),)),
        Fault(name="deployments late", rules=(_events(DelayEvents(late), resources={"vlmdeployments"}),)),
        Fault(name="events twice", rules=(_events(RepeatEvents()),)),
        Fault(name="events lost", rules=(_events(LoseEvents(), probability=0.5),)),
        Fault(name="API server away", away=True, seconds=away),
    )


def _once(fault: Answer | Drop | LoseAnswer, **whom: Any) -> Rule:
    """Each call of those meets the fault the first time."""
    return Rule(fault, times=1, each=True, **whom)


def _events(fault: Any, **whom: Any) -> Rule:
    return Rule(fault, verbs={"watch"}, **whom)


@dataclass(frozen=True)
class Cell:
    """One fault in one phase."""

    fault: Fault
    phase: str

    def __str__(self) -> str:
        return f"{self.fault.name} during {self.phase}"


def matrix(*, real_time: bool) -> list[Cell]:
    """Every fault in every phase."""
    return [Cell(fault, phase) for fault in faults(real_time=real_time) for phase in fault.phases]


def sample(size: int, *, seed: int) -> list[Cell]:
    """Some cells, no fault twice and each phase as often as the others."""
    dice = random.Random(seed)
    cells = matrix(real_time=False)
    dice.shuffle(cells)
    chosen: list[Cell] = []
    for phase in [phase for _ in range(size) for phase in PHASES][:size]:
        told = {cell.fault.name for cell in chosen}
        chosen.append(next(cell for cell in cells if cell.phase == phase and cell.fault.name not in told))
    return chosen
