"""Each change is told once, in the words of the status, and a normal start is no warning."""

from typing import Any

import pytest

from unit.replicas.examples import NAME, NAMESPACE, NOW, UID, resolved
from unit.replicas.tables import table
from vlm_operator.api.findings import Finding
from vlm_operator.engines.base import PodIdentity
from vlm_operator.replicas.actions import Action, Create, CreatePod, Delete, Outcome, Repair
from vlm_operator.replicas.budgets import BUDGETS_OVERLAP
from vlm_operator.replicas.facts import Memory, SlotFailure
from vlm_operator.replicas.refusal import ADMISSION_REFUSED, Refusal
from vlm_operator.status.events import NOTE_BYTES, Event, deeds, turns, warnings


def status(**conditions: str) -> dict[str, Any]:
    """A status from `Kind="Status/Reason"`; the message says the same."""
    parts = [(kind, *text.split("/")) for kind, text in conditions.items()]
    return {"conditions": [{"type": k, "status": s, "reason": r, "message": f"{k} is {s}"} for k, s, r in parts]}


def told(*outcomes: Outcome, known: Memory | None = None, memory: Memory | None = None) -> list[tuple[str, str, str]]:
    return _words(deeds(outcomes, known=known or Memory(), memory=memory or Memory()))


def turned(*, before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str, str]]:
    return _words(turns(before=before, after=after))


def _words(events: tuple[Event, ...]) -> list[tuple[str, str, str]]:
    return [(event.type, event.reason, event.message) for event in events]


def pod(slot: int) -> CreatePod:
    identity = PodIdentity(deployment=NAME, namespace=NAMESPACE, uid=UID, revision="new", slot=slot, role="serving")
    return CreatePod(identity=identity, resolved=resolved(), sentence=f"create replica {identity.name}")


def delete(kind: str) -> Delete:
    return Delete(kind=kind, name="x", uid="u", resource_version="1", sentence=f"remove {kind} x: none are wanted")


DEEDS: list[tuple[str, list[Action], list[tuple[str, str, str]]]] = [
    ("nothing", [], []),
    ("replicas are created: one event", [pod(0), pod(1)], [("Normal", "ReplicaCreated", "created m-new-0, m-new-1")]),
    ("a replica is removed", [delete("Pod")], [("Normal", "ReplicaRemoved", "remove Pod x: none are wanted")]),
    ("an old revision is removed: nobody asked", [delete("ControllerRevision")], []),
    (
        "an edit is put back",
        [Repair(kind="Service", patch={}, sentence="repair a")],
        [("Normal", "Repaired", "repair a")],
    ),
    (
        "what is noted at a revision is put right: nobody asked",
        [Repair(kind="ControllerRevision", patch={}, sentence="repair a")],
        [],
    ),
    ("the surroundings are created: nobody asked", [Create(manifest={}, sentence="create Service m")], []),
]


@table("actions, events", DEEDS)
def test_deeds(actions: list[Action], events: list[tuple[str, str, str]]) -> None:
    assert told(*(Outcome(action=action) for action in actions)) == events
    refusal = Refusal(code=409, message="exists")
    assert told(*(Outcome(action=action, refusal=refusal) for action in actions)) == []


TURNS: list[tuple[str, dict[str, str], dict[str, str], list[tuple[str, str]]]] = [
    # sentence, conditions before, conditions after, events
    ("a normal start", {}, {"Accepted": "True/Accepted", "Available": "False/Loading", "Ready": "False/Loading"}, []),
    ("it serves", {"Available": "False/Loading", "Ready": "False/Loading"},
     {"Available": "True/Available", "Ready": "True/Ready"}, [("Normal", "Ready")]),
    ("it serves with too few", {"Available": "False/Loading", "Ready": "False/Loading"},
     {"Available": "True/Available", "Ready": "False/Loading"}, [("Normal", "Available")]),
    ("nothing changed", {"Available": "True/Available"}, {"Available": "True/Available"}, []),
    ("it is not served any more", {"Available": "True/Available", "Ready": "True/Ready"},
     {"Available": "False/Loading", "Ready": "False/Loading"}, [("Warning", "Loading")]),
    ("an image is missing", {"Available": "False/Loading"}, {"Available": "False/ImagePullBackOff"},
     [("Warning", "ImagePullBackOff")]),
    ("the reason changes", {"Available": "False/Unschedulable"}, {"Available": "False/ImagePullBackOff"},
     [("Warning", "ImagePullBackOff")]),
    ("back to loading", {"Available": "False/Unschedulable"}, {"Available": "False/Loading"}, []),
    ("a rollout", {"Available": "True/Available", "Ready": "True/Ready"},
     {"Available": "True/Available", "Ready": "False/RollingOut"}, []),
    ("a rollout has ended", {"Available": "True/Available", "Ready": "False/RollingOut"},
     {"Available": "True/Available", "Ready": "True/Ready"}, [("Normal", "Ready")]),
    ("the spec is refused: told once, not by Ready again", {"Accepted": "True/Accepted", "Ready": "True/Ready"},
     {"Accepted": "False/InvalidField", "Ready": "False/InvalidField"}, [("Warning", "InvalidField")]),
    ("a new spec is refused: told once, not by Available again", {},
     {"Accepted": "False/InvalidField", "Progressing": "False/InvalidField", "Available": "False/NeverAccepted",
      "Ready": "False/InvalidField"}, [("Warning", "InvalidField")]),
    ("the revisions are lost while the spec is refused", {"Available": "True/Available"},
     {"Available": "False/NeverAccepted"}, [("Warning", "NeverAccepted")]),
    ("the spec is mended", {"Accepted": "False/InvalidField", "Ready": "False/InvalidField"},
     {"Accepted": "True/Accepted", "Ready": "True/Ready"}, [("Normal", "Ready")]),
    ("the claim is missing", {}, {"WeightsReady": "False/ClaimNotFound"}, [("Warning", "ClaimNotFound")]),
    ("the claim is missing, and so are replicas", {},
     {"WeightsReady": "False/ClaimNotFound", "Available": "False/ClaimNotFound"}, [("Warning", "ClaimNotFound")]),
    ("the claim cannot be read", {}, {"WeightsReady": "Unknown/ClaimUnreadable"}, [("Warning", "ClaimUnreadable")]),
    ("the claim is bound", {"WeightsReady": "False/ClaimNotFound"}, {"WeightsReady": "True/ClaimBound"}, []),
    ("progress is told by what it does", {}, {"Progressing": "True/Loading"}, []),
    ("turned off", {"Available": "True/Available", "Ready": "True/Ready"},
     {"Available": "True/ScaledToZero", "Ready": "True/ScaledToZero"}, []),
]  # fmt: skip


@table("before, after, events", TURNS)
def test_turns_of_conditions(before: dict[str, str], after: dict[str, str], events: list[tuple[str, str]]) -> None:
    found = turned(before=status(**before), after=status(**after))
    assert [(kind, reason) for kind, reason, _ in found] == events
    assert turned(before=status(**after), after=status(**after)) == []


def test_a_turn_is_told_in_the_words_of_the_condition() -> None:
    after = status(Available="False/Unschedulable")
    assert turned(before={}, after=after) == [("Warning", "Unschedulable", "Available is False")]


def memory(*failures: SlotFailure, revision: str = "new") -> Memory:
    return Memory(revision=revision, failures=failures)


def failure(count: int, *, slot: int = 0, reason: str = "Evicted", at: float = NOW) -> SlotFailure:
    return SlotFailure(slot=slot, reason=reason, message="low on memory", count=count, next_retry=at + count)


FAILURES: list[tuple[str, Memory, Memory, list[tuple[str, str, str]]]] = [
    ("the first", memory(), memory(failure(1)), [("Warning", "Evicted", "slot 0: low on memory (failure 1 in a row)")]),
    ("the next", memory(failure(1)), memory(failure(2)),
     [("Warning", "Evicted", "slot 0: low on memory (failure 2 in a row)")]),
    ("known already", memory(failure(2)), memory(failure(2)), []),
    ("known, and passed on to another slot", memory(failure(2)), memory(failure(2, slot=3)), []),
    ("mended", memory(failure(2)), memory(), []),
    ("a new first after a healthy time", memory(failure(5)), memory(failure(1, at=NOW + 900)),
     [("Warning", "Evicted", "slot 0: low on memory (failure 1 in a row)")]),
    ("of another revision", memory(failure(1), revision="old"), memory(failure(1)),
     [("Warning", "Evicted", "slot 0: low on memory (failure 1 in a row)")]),
    ("refused for the first time", memory(), memory(failure(1, reason=ADMISSION_REFUSED)),
     [("Warning", "AdmissionRefused", "slot 0: low on memory (failure 1 in a row)")]),
    ("refused again: the condition says so", memory(failure(1, reason=ADMISSION_REFUSED)),
     memory(failure(2, reason=ADMISSION_REFUSED)), []),
]  # fmt: skip


@table("known, now, events", FAILURES)
def test_failures(known: Memory, now: Memory, events: list[tuple[str, str, str]]) -> None:
    assert told(known=known, memory=now) == events


@pytest.mark.parametrize("letter", ["x", "é", "…", "👋"])
@pytest.mark.parametrize("length", [200, 1023, 1024, 1025, 5000])
def test_no_event_is_longer_than_the_api_server_takes(letter: str, length: int) -> None:
    """It counts the bytes of an event's note."""
    repair = Repair(kind="Service", patch={}, sentence=letter * length)
    (event,) = deeds([Outcome(action=repair)], known=Memory(), memory=Memory())
    assert len(event.message.encode()) <= NOTE_BYTES == 1024
    fits = len((letter * length).encode()) <= NOTE_BYTES
    assert event == Event(type="Normal", reason="Repaired", message=event.message)
    assert event.message == letter * length if fits else event.message.endswith(f"{letter}…")
    assert fits or len(event.message.encode()) > NOTE_BYTES - 8


def accepted(*sentences: str) -> dict[str, Any]:
    """A status whose spec is accepted with these warnings."""
    message = " | ".join(("the spec is accepted", *sentences))
    return {"conditions": [{"type": "Accepted", "status": "True", "reason": "Accepted", "message": message}]}


def finding(message: str, *, reason: str = BUDGETS_OVERLAP) -> Finding:
    return Finding(reason=reason, severity="Warning", field="spec.x", message=message)


TOLD = ("Warning", BUDGETS_OVERLAP, "spec.x: two")
WARNINGS: list[tuple[str, list[Finding], Any, Any, list[tuple[str, str, str]]]] = [
    ("at first", [finding("two")], {}, accepted("spec.x: two"), [TOLD]),
    ("later", [finding("two")], accepted(), accepted("spec.x: two"), [TOLD]),
    ("as before", [finding("two")], accepted("spec.x: two"), accepted("spec.x: two"), []),
    ("no more", [], accepted("spec.x: two"), accepted(), []),
    (
        "one more",
        [finding("one"), finding("two")],
        accepted("spec.x: one"),
        accepted("spec.x: one", "spec.x: two"),
        [TOLD],
    ),
    ("one for which the condition had no room", [finding("two")], accepted(), accepted(), []),
    ("about the spec alone", [finding("two", reason="GpuShared")], {}, accepted("spec.x: two"), []),
]


@table("findings, before, after, expected", WARNINGS)
def test_warnings_that_come_of_the_cluster_are_told_once(
    findings: list[Finding], before: Any, after: Any, expected: list[tuple[str, str, str]]
) -> None:
    assert _words(warnings(findings, before=before, after=after)) == expected
