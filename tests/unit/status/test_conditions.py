"""Every condition with every reason: one row for each situation that a user can get into."""

import re
from dataclasses import replace
from typing import Any

from unit.replicas.examples import NOW, TROUBLE, facts, flapping, loading, of_length, pending, replica, spec, stored
from unit.replicas.tables import table
from unit.sizing.subjects import subject
from vlm_operator.api.findings import Finding
from vlm_operator.replicas.actions import Wait
from vlm_operator.replicas.facts import Claim, Facts, Replica, Trouble
from vlm_operator.replicas.plan import plan
from vlm_operator.replicas.size import decide_size
from vlm_operator.sizing.assess import assess
from vlm_operator.status.census import count
from vlm_operator.status.conditions import Verdict, judge

NEW, OLD = stored(), stored(of_length(1024))
SPEC = spec(replicas=2)


def new(slot: int, make: Any = replica, **changes: Any) -> Replica:
    made: Replica = make(slot, revision=NEW.revision, **changes)
    return made


def old(slot: int, make: Any = replica, **changes: Any) -> Replica:
    made: Replica = make(slot, revision=OLD.revision, **changes)
    return made


def judged(*replicas: Replica, waits: tuple[Wait, ...] = (), **known: Any) -> dict[str, Verdict]:
    given: Facts = facts(**({"of": SPEC, "replicas": replicas, "revisions": (NEW, OLD)} | known))
    decision = decide_size(given)
    made = replace(plan(given, decision, now=NOW), waits=waits)
    return {verdict.kind: verdict for verdict in judge(given, decision, count(given, decision), made)}


def wait(reason: str) -> tuple[Wait, ...]:
    return (Wait(reason=reason, message=f"because of {reason}"),)


ERROR = Finding(reason="Wrong", severity="Error", field="spec.a", message="is wrong", advice="mend it")
WARNING = Finding(reason="Odd", severity="Warning", field="spec.b", message="is odd")
REFUSED: dict[str, Any] = {
    "findings": (WARNING, ERROR),
    "status": {"desiredReplicas": 2, "updatedRevision": NEW.revision},
}

SITUATIONS: list[tuple[str, dict[str, Any], list[Replica], tuple[str, str, str]]] = [
    # sentence, what is known, replicas, (Progressing, Available, Ready) as status and reason
    ("all serve", {}, [new(0), new(1)], ("False/Complete", "True/Available", "True/Ready")),
    ("nothing is there yet", {}, [], ("True/Loading", "False/Loading", "False/Loading")),
    ("they load", {}, [new(0, loading), new(1, pending)], ("True/Loading", "False/Loading", "False/Loading")),
    ("one is missing", {}, [new(0)], ("True/Loading", "False/Loading", "False/Loading")),
    ("one flaps", {}, [new(0), new(1, flapping)], ("True/Loading", "False/Loading", "False/Loading")),
    ("one too many serves", {}, [new(0), new(1), new(2)], ("False/Complete", "True/Available", "True/Ready")),
    ("an image is missing", {}, [new(0), new(1, loading, trouble=TROUBLE)],
     ("True/ImagePullBackOff", "False/ImagePullBackOff", "False/ImagePullBackOff")),
    ("a ready one has a past", {}, [new(0), new(1, trouble=TROUBLE)], ("False/Complete", "True/Available", "True/Ready")),
    ("a rollout begins", {}, [old(0), old(1)], ("True/RollingOut", "True/Available", "False/RollingOut")),
    ("a rollout is half done", {}, [old(0), new(0)], ("True/RollingOut", "True/Available", "False/RollingOut")),
    ("a rollout is done but for the old", {}, [old(0), new(0), new(1)],
     ("True/RollingOut", "True/Available", "False/RollingOut")),
    ("a rollout fails", {}, [old(0), old(1), new(0, loading, trouble=TROUBLE)],
     ("True/ImagePullBackOff", "True/Available", "False/ImagePullBackOff")),
    ("a rollout after the old ones were lost", {}, [old(0), new(0, loading)],
     ("True/RollingOut", "False/RollingOut", "False/RollingOut")),
    ("the claim is missing", {"claim": Claim(name="c", exists=False)}, [new(0, loading)],
     ("True/ClaimNotFound", "False/ClaimNotFound", "False/ClaimNotFound")),
    ("the claim is missing, and the image too", {"claim": Claim(name="c", exists=False)},
     [new(0), new(1, loading, trouble=TROUBLE)],
     ("True/ImagePullBackOff", "False/ImagePullBackOff", "False/ImagePullBackOff")),
    ("the claim is deleted while all serve", {"claim": Claim(name="c", exists=False)}, [new(0), new(1)],
     ("False/Complete", "True/Available", "True/Ready")),
    ("turned off", {"of": spec(replicas=0)}, [], ("False/Complete", "True/ScaledToZero", "True/ScaledToZero")),
    ("a slot rests", {"waits": wait("BackingOff")}, [new(0)], ("True/BackingOff", "False/BackingOff", "False/BackingOff")),
    ("a permission is missing", {"waits": wait("PermissionMissing")}, [new(0)],
     ("False/PermissionMissing", "False/PermissionMissing", "False/PermissionMissing")),
    ("a quota is full", {"waits": wait("AdmissionRefused")}, [new(0)],
     ("False/AdmissionRefused", "False/AdmissionRefused", "False/AdmissionRefused")),
    ("the previous one leaves", {"waits": wait("PreviousIsLeaving")}, [],
     ("True/PreviousIsLeaving", "False/PreviousIsLeaving", "False/PreviousIsLeaving")),
    ("the Service is somebody's: serving replicas cannot be reached", {"waits": wait("ServiceNameTaken")}, [new(0), new(1)],
     ("False/ServiceNameTaken", "False/ServiceNameTaken", "False/ServiceNameTaken")),
    ("refused while all serve", REFUSED, [new(0), new(1)], ("False/Wrong", "True/Available", "False/Wrong")),
    ("refused while one is missing", REFUSED, [new(0)], ("False/Wrong", "False/Loading", "False/Wrong")),
    ("refused from the start", REFUSED | {"revisions": (), "status": {}}, [],
     ("False/Wrong", "False/NeverAccepted", "False/Wrong")),
    ("refused while turned off", REFUSED | {"status": {"desiredReplicas": 0}}, [],
     ("False/Wrong", "True/ScaledToZero", "False/Wrong")),
]  # fmt: skip


@table("known, there, expected", SITUATIONS)
def test_conditions(known: dict[str, Any], there: list[Replica], expected: tuple[str, str, str]) -> None:
    found = judged(*there, **known)
    assert tuple(f"{found[k].status}/{found[k].reason}" for k in ("Progressing", "Available", "Ready")) == expected


def test_a_revision_that_was_lost_is_told_apart_from_one_that_never_was() -> None:
    lost = judged(new(0), new(1), **REFUSED | {"revisions": ()})["Available"]
    assert "is not stored any more" in lost.message
    never = judged(**REFUSED | {"revisions": (), "status": {}})["Available"]
    assert "no spec was accepted yet" in never.message


def test_an_accepted_spec_shows_its_warnings() -> None:
    found = judged(findings=(WARNING,))["Accepted"]
    assert (found.status, found.reason) == ("True", "Accepted")
    assert found.message == "the spec is accepted | spec.b: is odd"


def test_a_refused_spec_says_what_is_wrong_and_what_to_do() -> None:
    found = judged(new(0), new(1), **REFUSED)
    assert found["Accepted"] == Verdict(
        kind="Accepted", status="False", reason="Wrong", message="spec.a: is wrong; mend it"
    )
    assert found["Progressing"].message == f"the spec is refused; revision {NEW.revision} is kept"
    assert found["Ready"].message == found["Accepted"].message


CLAIMS: list[tuple[str, Claim, str, str]] = [
    ("bound", Claim(name="c", exists=True, phase="Bound"), "True/ClaimBound", "claim c is bound"),
    ("missing", Claim(name="c", exists=False), "False/ClaimNotFound", "spec.weights.persistentVolumeClaim.claimName"),
    ("waiting for the first replica", Claim(name="c", exists=True, phase="Pending", waits_for_consumer=True),
     "True/WaitsForFirstConsumer", "when the first replica is scheduled"),
    ("pending", Claim(name="c", exists=True, phase="Pending"), "False/ClaimPending", "kubectl describe pvc c"),
    ("new", Claim(name="c", exists=True), "False/ClaimPending", "not Bound"),
    ("of a class that must not be read",
     Claim(name="c", exists=True, phase="Pending", class_refused="storageclasses is forbidden"),
     "Unknown/StorageClassUnreadable", "could not be read: storageclasses is forbidden"),
    ("lost", Claim(name="c", exists=True, phase="Lost"), "False/ClaimLost", "claim c is Lost"),
    ("not to be read: unknown, not missing", Claim(name="c", exists=False, refused="forbidden"),
     "Unknown/ClaimUnreadable", "forbidden"),
]  # fmt: skip


@table("claim, expected, words", CLAIMS)
def test_the_weights(claim: Claim, expected: str, words: str) -> None:
    found = judged(claim=claim)["WeightsReady"]
    assert f"{found.status}/{found.reason}" == expected
    assert words in found.message


def test_without_a_claim_there_is_nothing_to_say_about_weights() -> None:
    assert list(judged()) == ["Accepted", "Progressing", "Available", "Ready"]


def test_the_trouble_of_most_replicas_is_told_with_an_example() -> None:
    rare = Trouble(reason="Unschedulable", message="no node fits")
    found = judged(
        new(3, pending, trouble=rare),
        new(2, loading, trouble=TROUBLE),
        new(1, loading, trouble=TROUBLE),
        of=spec(replicas=4),
    )
    told = f"0 of 4 replicas serve: {TROUBLE.message} (m-{NEW.revision}-1 and 1 more)"
    assert (found["Available"].message, found["Ready"].message) == (told, told)
    assert found["Progressing"].message == "2 of 4 replicas are held up; condition Ready has the cause"


def test_what_the_scheduler_says_is_told_with_advice() -> None:
    full = Trouble(reason="Unschedulable", message="0/3 nodes are available: 3 Insufficient x/gpu", advice="add nodes")
    found = judged(new(0, pending, trouble=full), of=spec(replicas=1))
    assert found["Ready"].message == (
        f"0 of 1 replicas serve: 0/3 nodes are available: 3 Insufficient x/gpu (m-{NEW.revision}-0); add nodes"
    )


def test_a_rollout_that_fails_has_its_cause_in_ready() -> None:
    found = judged(old(0), old(1), new(0, loading, trouble=TROUBLE))
    assert found["Available"].message == "2 of 2 replicas serve"
    assert found["Ready"].message == f"{TROUBLE.message} (m-{NEW.revision}-0)"
    assert found["Progressing"].message == "1 of 2 replicas are held up; condition Ready has the cause"


def test_of_equally_many_the_answer_does_not_depend_on_the_order() -> None:
    there = [new(0, pending, trouble=Trouble(reason="A", message="a")), new(1, pending, trouble=TROUBLE)]
    assert judged(*there) == judged(*reversed(there))


def test_a_rollout_is_counted() -> None:
    found = judged(old(0), new(0))["Progressing"]
    assert found.message == (
        f"1 of 2 replicas run revision {NEW.revision} and are ready; 1 of an older revision still run"
    )


def test_what_the_user_must_mend_comes_before_what_takes_time() -> None:
    found = judged(old(0), old(1), new(0, loading, trouble=TROUBLE), waits=wait("AdmissionRefused"))
    assert found["Progressing"].reason == "AdmissionRefused"


def test_turned_off_says_by_what() -> None:
    assert judged(of=spec(replicas=0))["Available"].message == "spec.replicas is 0: everything is turned off"
    off = judged(**(REFUSED | {"status": {"desiredReplicas": 0}}))["Available"].message
    assert off == "the spec is refused; the size stays 0: everything is turned off"


def test_a_replica_that_is_not_routed_to_does_not_serve() -> None:
    found = judged(new(0), new(1, role="mine"))
    assert found["Available"] == Verdict(
        kind="Available", status="False", reason="Loading", message="1 of 2 replicas serve"
    )


def test_advice_about_a_failure_has_the_number_of_the_sizing() -> None:
    trouble = Trouble(reason="KVCacheTooSmall", message="too small", advice="lower it")
    of = subject(
        model={"name": "Qwen/Qwen2.5-VL-7B-Instruct", "maxModelLen": 128000},
        gpu={"products": ["NVIDIA-L4"]},
        checks="Warn",
    )
    found = judged(new(0, loading, trouble=trouble), assessment=assess(of), spec=of.spec)["Ready"]
    assert found.reason == "KVCacheTooSmall"
    assert re.search(r"too small \(m-\w+-0\); lower it; by the sizing \d+ tokens fit$", found.message)
