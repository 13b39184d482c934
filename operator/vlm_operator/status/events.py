"""What happened, as events: once per change."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vlm_operator.api.findings import Finding
from vlm_operator.api.names import DRAINING, SERVING, WARM
from vlm_operator.replicas.actions import Action, CreatePod, Delete, Outcome, Repair, SetRole
from vlm_operator.replicas.budgets import BUDGETS_OVERLAP
from vlm_operator.replicas.evaluate import REPLICAS_IGNORED
from vlm_operator.replicas.facts import Memory
from vlm_operator.replicas.load_time import PROGRESS_DEADLINE_SHORT
from vlm_operator.replicas.progress import ROLLING_OUT
from vlm_operator.replicas.refusal import REFUSED
from vlm_operator.status.conditions import AVAILABLE, LOADING, NO_REVISION, NO_SIGNALS, READY, STUCK, WARM_POOL_READY

QUIET_REASONS = frozenset({LOADING, ROLLING_OUT, NO_REVISION, NO_SIGNALS})
"""Reasons for not being available that are no news at first: a normal start, and a refusal that Accepted tells."""
ROLE_EVENTS = {SERVING: "ReplicaPromoted", WARM: "ReplicaWarm", DRAINING: "ReplicaDraining"}
EVENTFUL = frozenset({BUDGETS_OVERLAP, PROGRESS_DEADLINE_SHORT, REPLICAS_IGNORED})
"""Warnings that come of what happens in the cluster. The others are about the spec, and known to whoever applied it."""
NOTE_BYTES = 1024
"""Longest text of an event. The API server counts bytes here, while it counts characters in a status."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event on the VLMDeployment."""

    type: str
    """Normal or Warning."""
    reason: str
    message: str


def deeds(outcomes: Iterable[Outcome], *, known: Memory, memory: Memory) -> tuple[Event, ...]:
    """Events for what was done, and for replicas that failed. Only the look that did or noticed it can tell."""
    done = [outcome.action for outcome in outcomes if outcome.refusal is None]
    return (*_done(done), *_failures(known, memory))


def turns(*, before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Event, ...]:
    """Events for conditions that differ between two statuses. One that is Ready now is also Available, which needs no words."""
    events = tuple(_turns(before, after))
    ready = any(event.reason == READY for event in events)
    return tuple(event for event in events if not (ready and event.reason == AVAILABLE))


def warnings(findings: Iterable[Finding], *, before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Event, ...]:
    """Events for the warnings that the condition Accepted has now and had not before."""
    old, new = _accepted(before), _accepted(after)
    told = [f for f in findings if f.reason in EVENTFUL and f.sentence() in new and f.sentence() not in old]
    return tuple(_event("Warning", finding.reason, finding.sentence()) for finding in told)


def _accepted(status: Mapping[str, Any]) -> str:
    """The message of the condition."""
    conditions = status.get("conditions") or ()
    return next((condition["message"] for condition in conditions if condition["type"] == "Accepted"), "")


def _done(actions: list[Action]) -> Iterator[Event]:
    created = [action.identity.name for action in actions if isinstance(action, CreatePod)]
    if created:
        yield _event("Normal", "ReplicaCreated", f"created {', '.join(created)}")
    for action in actions:
        if isinstance(action, Delete) and action.kind == "Pod":
            yield _event("Normal", "ReplicaRemoved", action.sentence)
        elif isinstance(action, SetRole):
            yield _event("Normal", ROLE_EVENTS[action.role], action.sentence)
        elif isinstance(action, Repair) and action.kind != "ControllerRevision":
            yield _event("Normal", "Repaired", action.sentence)


def _failures(known: Memory, memory: Memory) -> Iterator[Event]:
    # By their times, since failures pass from one slot to another.
    told = {(f.count, f.next_retry) for f in known.failures} if known.revision == memory.revision else set()
    for failure in memory.failures:
        news = (failure.count, failure.next_retry) not in told
        if news and (failure.count == 1 or failure.reason not in REFUSED):
            message = f"slot {failure.slot}: {failure.message} (failure {failure.count} in a row)"
            yield _event("Warning", failure.reason, message)


def _turns(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Event]:
    old = {condition["type"]: condition for condition in before.get("conditions") or ()}
    told: set[str] = set()
    for condition in after.get("conditions") or ():
        previous = old.get(condition["type"], {})
        changed = (previous.get("status"), previous.get("reason")) != (condition["status"], condition["reason"])
        if not changed or (condition["type"] == "Progressing" and condition["reason"] not in STUCK):
            continue
        event = _turn(condition, was_true=previous.get("status") == "True")
        # Conditions share causes; the first that has one tells it.
        if event is not None and event.reason not in told:
            told.add(event.reason)
            yield event


def _turn(condition: Mapping[str, Any], *, was_true: bool) -> Event | None:
    kind, reason, message = condition["type"], condition["reason"], condition["message"]
    if condition["status"] == "True":
        if was_true or kind in {"Accepted", "WeightsReady"}:
            return None
        return _event("Normal", kind if kind in {READY, WARM_POOL_READY} else reason, message)
    if kind == READY or (reason in QUIET_REASONS and (not was_true or kind == WARM_POOL_READY)):
        # What makes it not Ready is told by the other conditions; a pool is there to be used.
        return None
    return _event("Warning", reason, message)


def _event(kind: str, reason: str, message: str) -> Event:
    text = message.encode()
    if len(text) > NOTE_BYTES:
        message = text[: NOTE_BYTES - len("…".encode())].decode(errors="ignore") + "…"
    return Event(type=kind, reason=reason, message=message)
