"""What happened, as events: once per change."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vlm_operator.replicas.actions import Action, CreatePod, Delete, Outcome, Repair
from vlm_operator.replicas.facts import Memory
from vlm_operator.replicas.slots import ADMISSION_REFUSED
from vlm_operator.status.summary import TEXT, shortened

QUIET_REASONS = frozenset({"Loading", "RollingOut"})
"""Reasons for not being available that are part of a normal start."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event on the VLMDeployment."""

    type: str
    """Normal or Warning."""
    reason: str
    message: str


def narrate(
    outcomes: Iterable[Outcome], *, before: Mapping[str, Any], after: Mapping[str, Any], known: Memory, memory: Memory
) -> tuple[Event, ...]:
    """Events for what was done, for replicas that failed, and for conditions that changed."""
    done = [outcome.action for outcome in outcomes if outcome.refusal is None]
    return (*_deeds(done), *_failures(known, memory), *_turns(before, after))


def _deeds(actions: list[Action]) -> Iterator[Event]:
    created = [action.identity.name for action in actions if isinstance(action, CreatePod)]
    if created:
        yield _normal("ReplicaCreated", f"created {', '.join(created)}")
    for action in actions:
        if isinstance(action, Delete) and action.kind == "Pod":
            yield _normal("ReplicaRemoved", action.sentence)
        elif isinstance(action, Repair):
            yield _normal("Repaired", action.sentence)


def _failures(known: Memory, memory: Memory) -> Iterator[Event]:
    # By their times, since failures pass from one slot to another.
    told = {(f.count, f.next_retry) for f in known.failures} if known.revision == memory.revision else set()
    for failure in memory.failures:
        news = (failure.count, failure.next_retry) not in told
        if news and (failure.count == 1 or failure.reason != ADMISSION_REFUSED):
            message = f"slot {failure.slot}: {failure.message} (failure {failure.count} in a row)"
            yield Event(type="Warning", reason=failure.reason, message=shortened(message, TEXT))


def _turns(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Event]:
    old = {condition["type"]: condition for condition in before.get("conditions") or ()}
    for condition in after.get("conditions") or ():
        previous = old.get(condition["type"], {})
        changed = (previous.get("status"), previous.get("reason")) != (condition["status"], condition["reason"])
        if not changed or condition["type"] == "Progressing":
            continue
        event = _turn(condition, was_true=previous.get("status") == "True")
        if event is not None:
            yield event


def _turn(condition: Mapping[str, Any], *, was_true: bool) -> Event | None:
    kind, reason, message = condition["type"], condition["reason"], shortened(condition["message"], TEXT)
    if condition["status"] == "True":
        return (
            None
            if was_true or kind in {"Accepted", "WeightsReady"}
            else _normal(f"{kind}" if kind == "Ready" else reason, message)
        )
    if kind == "Ready" or (reason in QUIET_REASONS and not was_true):
        # What makes it not Ready is told by the other conditions.
        return None
    return Event(type="Warning", reason=reason, message=message)


def _normal(reason: str, message: str) -> Event:
    return Event(type="Normal", reason=reason, message=shortened(message, TEXT))
