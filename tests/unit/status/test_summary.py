"""The status is always one that the schema takes, and the same for the same facts, whatever the time."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.replicas.examples import NOW, facts, loading, of_length, replica, spec, stored, terminating
from unit.replicas.tables import table
from vlm_operator.api.findings import Finding
from vlm_operator.api.status import VLMDeploymentStatus
from vlm_operator.engines.base import PodInputs
from vlm_operator.engines.registry import engine
from vlm_operator.replicas.actions import Plan, Wait
from vlm_operator.replicas.facts import Claim, Facts, Memory, Replica, SlotFailure
from vlm_operator.replicas.ownership import Ownership
from vlm_operator.replicas.plan import plan
from vlm_operator.replicas.size import decide_size
from vlm_operator.replicas.trouble import trouble_of
from vlm_operator.sizing.assess import assess
from vlm_operator.sizing.catalogue.loading import builtin
from vlm_operator.sizing.subject import Subject
from vlm_operator.status.summary import CONDITION_TEXT, FAILURES_SHOWN, TEXT, shortened, summarise, timestamp

NEW, OLD = stored(), stored(of_length(1024))
EARLIER = "2020-01-01T00:00:00Z"


def summary(known: Facts, made: Plan | None = None, *, now: float = NOW) -> dict[str, Any]:
    decision = decide_size(known)
    return summarise(known, decision, made or replace(Plan(), sizes=plan(known, decision, now=now).sizes), now=now)


def deployment(*replicas: Replica, **known: Any) -> Facts:
    return facts(**({"of": spec(replicas=2), "replicas": replicas, "revisions": (NEW, OLD)} | known))


def test_the_status_of_a_deployment_that_serves() -> None:
    there = (replica(0, revision=NEW.revision), replica(1, revision=NEW.revision))
    found = summary(deployment(*there, claim=Claim(name="models", exists=True, phase="Bound"), generation=4))
    conditions = found.pop("conditions")
    assert found == {
        "observedGeneration": 4,
        "selector": "vlm.dev/deployment=m,vlm.dev/role=serving",
        "replicas": 2,
        "readyReplicas": 2,
        "servingReplicas": 2,
        "drainingReplicas": 0,
        "desiredReplicas": 2,
        "gpus": 2,
        "currentRevision": NEW.revision,
        "updatedRevision": NEW.revision,
        "weights": {"claimName": "models", "phase": "Bound"},
    }
    assert [c["type"] for c in conditions] == ["Accepted", "WeightsReady", "Progressing", "Available", "Ready"]
    assert {c["observedGeneration"] for c in conditions} == {4}
    assert {c["lastTransitionTime"] for c in conditions} == {timestamp(NOW)}


def assessed(**gpu: Any) -> Any:
    model = {"name": "Qwen/Qwen2.5-VL-7B-Instruct", "size": "7B", "maxModelLen": 8192}
    limits = {"limitsPerPrompt": {"image": 1, "video": 0}, "maxPixels": 1003520}
    of = spec(model=model, gpu=gpu, multimodal=limits)
    return assess(Subject(of, builtin(), engine("vLLM").sizing(PodInputs.of(of))))


def test_the_arithmetic_is_shown_as_far_as_it_is_known() -> None:
    known = summary(deployment(assessment=assessed(products=["NVIDIA-L40S"])))["sizing"]
    assert known.keys() == {"weightsGiB", "kvCacheGiB", "kvCacheTokens"}
    assert float(known["weightsGiB"]) == pytest.approx(15.5, rel=0.03)
    assert known["kvCacheTokens"] > 100_000
    assert summary(deployment(assessment=assessed()))["sizing"].keys() == {"weightsGiB"}
    assert "sizing" not in summary(deployment())


def test_a_refused_spec_leaves_the_arithmetic_of_what_runs() -> None:
    error = Finding(reason="Wrong", severity="Error", field="spec.a", message="is wrong")
    before = {"sizing": {"weightsGiB": "1.00"}}
    found = summary(deployment(findings=(error,), status=before, assessment=assessed(products=["NVIDIA-L40S"])))
    assert found["sizing"] == before["sizing"]


def test_replicas_are_those_that_the_selector_selects() -> None:
    """A Horizontal Pod Autoscaler divides by it."""
    there = (replica(0, revision=NEW.revision), replica(1, revision=NEW.revision, role="mine"), terminating(2))
    found = summary(deployment(*there))
    assert (found["replicas"], found["readyReplicas"], found["servingReplicas"], found["drainingReplicas"]) == (
        1,
        2,
        1,
        1,
    )


def test_zeros_are_written_and_nothings_are_not() -> None:
    found = summary(facts(spec(replicas=0)))
    assert (found["replicas"], found["desiredReplicas"], found["gpus"]) == (0, 0, 0)
    assert not {"failures", "weights", "rollout", "scaling"} & found.keys()


@pytest.mark.parametrize(
    ("claim", "phase"),
    [
        (Claim(name="c", exists=False), "NotFound"),
        (Claim(name="c", exists=False, refused="forbidden"), "Unknown"),
        (Claim(name="c", exists=True, phase="Lost"), "Lost"),
    ],
    ids=["missing", "not to be read", "lost"],
)
def test_the_phase_of_the_claim(claim: Claim, phase: str) -> None:
    assert summary(facts(claim=claim))["weights"] == {"claimName": "c", "phase": phase}


REVISIONS: list[tuple[str, list[Replica], str | None]] = [
    ("complete", [replica(0, revision=NEW.revision), replica(1, revision=NEW.revision)], NEW.revision),
    ("rolling out", [replica(0, revision=NEW.revision), replica(1, revision=OLD.revision)], "before"),
    ("loading", [loading(0, revision=NEW.revision)], "before"),
]


@table("there, current", REVISIONS)
def test_the_current_revision_is_the_last_that_was_complete(there: list[Replica], current: str) -> None:
    found = summary(deployment(*there, status={"currentRevision": "before"}))
    assert (found["currentRevision"], found["updatedRevision"]) == (current, NEW.revision)


def test_a_condition_keeps_its_time_until_its_status_turns() -> None:
    conditions = [
        {"type": "Available", "status": "False", "reason": "Loading", "lastTransitionTime": EARLIER},
        {"type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": EARLIER},
    ]
    refused = {
        "spec": None,
        "inputs": None,
        "findings": (Finding(reason="W", severity="Error", field="f", message=""),),
    }
    found = summary(deployment(status={"conditions": conditions, "desiredReplicas": 2}, **refused))
    times = {c["type"]: (c["status"], c["lastTransitionTime"]) for c in found["conditions"]}
    assert times["Available"] == ("False", EARLIER)
    assert times["Ready"] == ("False", timestamp(NOW))


def test_the_worst_failures_are_shown() -> None:
    failures = tuple(
        SlotFailure(slot=slot, reason="Evicted", message="x", count=slot % 5 + 1, next_retry=NOW) for slot in range(20)
    )
    found = summary(facts(), Plan(memory=Memory(failures=failures)))["failures"]
    assert [(f["count"], f["slot"]) for f in found] == [
        (5, 4),
        (5, 9),
        (5, 14),
        (5, 19),
        (4, 3),
        (4, 8),
        (4, 13),
        (4, 18),
    ]
    assert len(found) == FAILURES_SHOWN
    assert found[0]["nextRetry"] == timestamp(NOW)


@pytest.mark.parametrize(("text", "cut"), [("abc", "abc"), ("abcd", "abcd"), ("abcde", "abc…"), ("", "")])
def test_shortened(text: str, cut: str) -> None:
    assert shortened(text, 4) == cut


def test_times_are_whole_seconds_in_utc() -> None:
    assert timestamp(1_800_000_000.99) == "2027-01-15T08:00:00Z"


# -- what must always hold ---------------------------------------------------------------------------------------------
texts = st.text(max_size=30) | st.just("x" * 5000) | st.just("é" * 5000)
troubles = st.builds(
    lambda reason, message: trouble_of(
        {
            "status": {
                "containerStatuses": [{"name": "engine", "state": {"waiting": {"reason": reason, "message": message}}}]
            }
        }
    ),
    texts,
    texts,
)
replicas = st.builds(
    replica,
    st.integers(0, 5),
    revision=st.sampled_from([NEW.revision, OLD.revision, "gone"]),
    role=st.sampled_from(["serving", "", "x" * 63]),
    ownership=st.sampled_from(Ownership),
    scheduled=st.booleans(),
    started=st.booleans(),
    ready=st.booleans(),
    ready_since=st.none() | st.floats(0, NOW),
    terminating=st.booleans(),
    ended=st.booleans(),
    trouble=st.none() | troubles,
)
findings = st.builds(
    Finding,
    reason=st.sampled_from(["Wrong", "Odd"]),
    severity=st.sampled_from(["Error", "Warning"]),
    field=texts,
    message=texts,
    advice=texts,
)
claims = st.builds(
    Claim,
    name=st.from_regex(r"[a-z]{1,253}", fullmatch=True),
    exists=st.booleans(),
    phase=st.sampled_from(["", "Bound", "Pending", "Lost"]),
    waits_for_consumer=st.booleans(),
    refused=texts,
)
slot_failures = st.builds(
    SlotFailure,
    slot=st.integers(0, 999),
    reason=st.sampled_from(["Evicted", "AdmissionRefused", "x" * 128]),
    message=texts,
    count=st.integers(1, 10_000),
    next_retry=st.floats(0, NOW * 2),
)


@st.composite
def deployments(draw: st.DrawFn) -> Facts:
    broken = {"spec": None, "inputs": None} if draw(st.booleans()) else {}
    return deployment(
        *draw(st.lists(replicas, unique_by=lambda r: r.name, max_size=6)),
        of=spec(replicas=draw(st.integers(0, 1000))),
        findings=tuple(draw(st.lists(findings, max_size=3))),
        revisions=draw(st.sampled_from([(NEW, OLD), (OLD,), ()])),
        claim=draw(st.none() | claims),
        generation=draw(st.integers(0, 2**53)),
        memory=Memory(failures=tuple(draw(st.lists(slot_failures, max_size=12, unique_by=lambda f: f.slot)))),
        **broken,
    )


waits = st.lists(
    st.builds(Wait, reason=st.sampled_from(["BackingOff", "AdmissionRefused", "ServiceNameTaken"]), message=texts),
    max_size=2,
)


@settings(max_examples=40)
@given(deployments(), waits)
def test_every_status_is_one_that_the_api_server_takes(known: Facts, more: list[Wait]) -> None:
    made = plan(known, decide_size(known), now=NOW)
    status = summary(known, Plan(waits=(*made.waits, *more), memory=known.memory))
    assert VLMDeploymentStatus.model_validate(status).model_dump(by_alias=True, exclude_unset=True) == status
    assert json.loads(json.dumps(status)) == status
    assert all(len(c["message"]) <= CONDITION_TEXT for c in status["conditions"])
    assert all(len(f["message"]) <= TEXT for f in status.get("failures", ()))


@settings(max_examples=40)
@given(deployments(), st.floats(1, 1e6), st.randoms(use_true_random=False))
def test_equal_facts_give_an_equal_status_whatever_the_time(known: Facts, seconds: float, random: Any) -> None:
    first = summary(known)
    mixed = {**vars(known), "status": first, "replicas": tuple(random.sample(known.replicas, len(known.replicas)))}
    again = summary(Facts(**mixed), now=NOW + seconds)
    assert again == first
