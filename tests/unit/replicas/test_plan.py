"""A plan and what becomes of it when it is carried out. Whole stories stand in `test_stories`."""

from dataclasses import replace

import pytest

from unit.replicas.examples import NAME, NAMESPACE, NOW, UID, facts, inputs, loading, replica, resolved, spec, stored
from unit.replicas.tables import table
from vlm_operator.api.findings import Finding
from vlm_operator.engines.base import PodIdentity
from vlm_operator.engines.vllm import versions
from vlm_operator.replicas.actions import Action, Create, CreatePod, Delete, Outcome, Plan, Repair, Wait
from vlm_operator.replicas.facts import Decision, Facts, Memory
from vlm_operator.replicas.plan import carried_out, plan
from vlm_operator.replicas.refusal import Refusal
from vlm_operator.replicas.revision import revision_of
from vlm_operator.replicas.size import decide_size

ERROR = Finding(reason="Wrong", severity="Error", field="spec", message="wrong")
KNOWN = stored()


def planned(known: Facts) -> Plan:
    return plan(known, decide_size(known), now=NOW)


def test_nothing_is_planned_before_a_spec_was_accepted() -> None:
    memory = Memory(revision="old")
    assert planned(facts(findings=(ERROR,), memory=memory)) == Plan(memory=memory)


def test_a_refused_spec_still_replaces_what_failed() -> None:
    known = facts(findings=(ERROR,), revisions=(KNOWN,), status={"desiredReplicas": 2})
    slots = [action.identity.slot for action in planned(known).actions if isinstance(action, CreatePod)]
    assert slots == [0, 1]


def test_no_replica_is_created_while_the_surroundings_are_waited_for() -> None:
    service = {"metadata": {"name": NAME, "uid": "x", "resourceVersion": "1"}}
    found = planned(facts(spec(replicas=2), objects={("Service", NAME): service}))
    assert not any(isinstance(action, CreatePod) for action in found.actions)
    assert [wait.reason for wait in found.waits] == ["ServiceNameTaken"]


def test_a_replica_that_was_to_go_and_stayed_is_watched_for_again() -> None:
    """Its deletion was refused, and then the user wanted it after all."""
    there = (replica(0, revision=KNOWN.revision), loading(1, revision=KNOWN.revision))
    known = facts(spec(replicas=1), replicas=there, revisions=(KNOWN,))
    first = planned(known)
    assert first.memory.retired == {there[1].uid}
    second = planned(replace(known, spec=spec(replicas=2), memory=first.memory))
    assert second.memory.retired == frozenset()
    third = planned(replace(known, spec=spec(replicas=2), replicas=there[:1], memory=second.memory))
    assert [failure.slot for failure in third.memory.failures] == [1]


IDENTITY = PodIdentity(deployment=NAME, namespace=NAMESPACE, uid=UID, revision="new", slot=2, role="serving")
POD = CreatePod(identity=IDENTITY, resolved=resolved(), sentence="create replica m-new-2")
SERVICE = Create(manifest={}, sentence="create Service m")
REPAIR = Repair(kind="Service", patch={}, sentence="repair spec.ports of Service m")
DELETE = Delete(kind="Pod", name="x", uid="u", resource_version="1", sentence="remove replica x")
QUOTA = Refusal(code=403, message="exceeded quota")
NO_RIGHT = Refusal(code=403, message='User "operator" cannot create resource "pods"')
ENDING = Refusal(code=403, message="unable to create: because it is being terminated")

REFUSED: list[tuple[str, Action, Refusal | None, list[tuple[str, str, float | None]]]] = [
    ("everything went well", POD, None, []),
    ("a replica is not admitted", POD, QUOTA, [
        ("AdmissionRefused",
         "slot 2 failed once (AdmissionRefused: exceeded quota) and rests before the next try", NOW + 5)]),
    ("what it needs is not admitted", SERVICE, QUOTA, [
        ("AdmissionRefused", "create Service m: exceeded quota", NOW + 60)]),
    ("a change is not admitted", REPAIR, Refusal(code=422, message="bad port"), [
        ("AdmissionRefused", "repair spec.ports of Service m: bad port", NOW + 60)]),
    ("a deletion is not allowed", DELETE, Refusal(code=403, message="forbidden"), [
        ("AdmissionRefused", "remove replica x: forbidden", NOW + 60)]),
    ("the operator has no right to", POD, NO_RIGHT, [
        ("PermissionMissing",
         f"slot 2 failed once (PermissionMissing: {NO_RIGHT.sentence}) and rests before the next try", NOW + 5)]),
    ("the operator has no right to what it needs", SERVICE, NO_RIGHT, [
        ("PermissionMissing", f"create Service m: {NO_RIGHT.sentence}", NOW + 60)]),
    ("the view was stale", REPAIR, Refusal(code=409, message="changed"), []),
    ("the API server is overloaded", POD, Refusal(code=429, message="slow"), []),
    ("the API server does not answer", SERVICE, Refusal(code=0, message="gone"), []),
    ("the namespace ends, and the deployment with it", POD, ENDING, []),
]  # fmt: skip


@table("action, refusal, waits", REFUSED)
def test_what_a_refusal_becomes(
    action: Action, refusal: Refusal | None, waits: list[tuple[str, str, float | None]]
) -> None:
    done = carried_out(Plan(actions=(action,)), [Outcome(action=action, refusal=refusal)], now=NOW)
    assert [(wait.reason, wait.message, wait.until) for wait in done.waits] == waits


def test_waits_of_the_plan_stay() -> None:
    wait = Wait(reason="BackingOff", message="", until=NOW + 3)
    done = carried_out(Plan(waits=(wait,)), [Outcome(action=SERVICE, refusal=QUOTA)], now=NOW)
    assert done.waits[0] == wait
    assert done.next_look == NOW + 3


@pytest.mark.parametrize(
    ("times", "look"), [([], None), ([None], None), ([9.0], 9.0), ([9.0, None, 4.0], 4.0)], ids=str
)
def test_the_next_look_is_when_the_first_wait_ends(times: list[float | None], look: float | None) -> None:
    assert Plan(waits=tuple(Wait(reason="", message="", until=time) for time in times)).next_look == look


def test_a_plan_for_none_creates_nothing_but_the_surroundings() -> None:
    known = facts(spec(replicas=0))
    found = plan(known, Decision(replicas=0, reason="", message=""), now=NOW)
    assert {type(action) for action in found.actions} == {Create}


def test_a_pool_that_nobody_knows_of_any_more_is_kept() -> None:
    """The spec is refused, and somebody has edited what was noted of the one before."""
    forgotten = replace(KNOWN, settings=None)
    there = (replica(0, revision=KNOWN.revision), replica(1, revision=KNOWN.revision, role="warm"))
    known = facts(replicas=there, revisions=(forgotten,), findings=(ERROR,), status={"desiredReplicas": 1})
    assert not any(isinstance(action, Delete) for action in planned(known).actions)


def test_an_operator_with_other_defaults_restarts_nothing_and_creates_what_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known, running = stored(), replica(0, revision=KNOWN.revision)
    monkeypatch.setattr(versions, "DEFAULT_VERSION", "0.99")
    assert resolved().engine_version == "0.99"
    assert resolved().image != known.resolved.image
    assert revision_of(inputs()) == known.revision
    found = planned(facts(spec(replicas=2), replicas=(running,), revisions=(known,)))
    pods = [action for action in found.actions if not isinstance(action, Create)]
    (created,) = [action for action in pods if isinstance(action, CreatePod)]
    assert pods == [created], "nothing that runs is touched"
    assert (created.identity.revision, created.resolved) == (known.revision, known.resolved)
