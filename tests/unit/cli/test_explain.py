"""What is said around an explanation: why the operator may see it otherwise."""

from dataclasses import replace
from typing import Any

import pytest

from unit.replicas.examples import NOW, facts, replica, stored
from vlm_operator.cli.explain import _as_data, _name, doubts, lines
from vlm_operator.replicas.facts import Facts
from vlm_operator.replicas.plan import plan
from vlm_operator.replicas.size import decide_size
from vlm_operator.runtime.files import UnusableInputError
from vlm_operator.runtime.survey import Survey
from vlm_operator.status.explanation import explain


def found(known: Facts) -> Survey:
    decision = decide_size(known)
    return Survey(facts=known, decision=decision, plan=plan(known, decision, now=NOW), unread=())


def doubted(known: Facts) -> list[str]:
    seen = found(known)
    assert seen.decision is not None
    assert seen.plan is not None
    return list(doubts(seen, explain(known, seen.decision, seen.plan)))


def condition(kind: str, status: str, message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": "Any", "message": message}


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        ({}, "the operator has not looked at it yet"),
        ({"observedGeneration": 0}, "has seen generation 0 of it, not 1"),
        ({"observedGeneration": 1, "conditions": [condition("Accepted", "False")]}, "give the same to this command"),
        (
            {"observedGeneration": 1, "conditions": [condition("Ready", "Unknown", "give this permission")]},
            "the operator cannot look at it, and does nothing: give this permission",
        ),
    ],
)
def test_why_the_operator_may_see_it_otherwise(status: dict[str, Any], sentence: str) -> None:
    (told,) = doubted(replace(facts(), status=status))
    assert sentence in told


def test_where_it_agrees_nothing_is_doubted() -> None:
    assert (
        doubted(replace(facts(), status={"observedGeneration": 1, "conditions": [condition("Accepted", "True")]})) == []
    )


def test_a_choice_by_requests_that_are_not_known_is_told() -> None:
    revision = stored().revision
    known = facts(
        replicas=tuple(replica(slot, revision=revision) for slot in range(3)),
        revisions=(stored(),),
        status={"observedGeneration": 1},
    )
    assert any("requests in flight, which are not known" in told for told in doubted(known))


def test_a_table_of_nothing_says_so() -> None:
    seen = found(facts())
    assert seen.decision is not None
    assert seen.plan is not None
    data = explain(facts(), seen.decision, seen.plan) | {"unread": ["nodes cannot be read"], "doubts": []}
    text = "\n".join(lines(data, now=NOW))
    assert "no replicas" in text
    assert "What could not be read:\n  nodes cannot be read" in text
    assert "But" not in text


@pytest.mark.parametrize("given", ["m", "vlmd/m", "vlmdeployment/m", "VLMDeployments/m", "vlmdeployments.vlm.dev/m"])
def test_the_name_may_stand_behind_the_kind(given: str) -> None:
    assert _name(given) == "m"


def test_the_name_of_another_kind_is_refused() -> None:
    with pytest.raises(UnusableInputError, match=r"pod/m is not the name of a VLMDeployment; give NAME, or vlmd/NAME"):
        _name("pod/m")


def test_what_stands_already_is_not_told_twice() -> None:
    seen = found(facts(replicas=(replica(0, revision=stored().revision, ready=False, scheduled=False),)))
    assert seen.decision is not None
    assert seen.plan is not None
    data = explain(facts(), seen.decision, seen.plan)
    data |= {"unread": [], "doubts": [], "waitsFor": [{"reason": "Any", "message": data["conditions"][-1]["message"]}]}
    kind = data["conditions"][-1]["type"]
    text = list(lines(data, now=NOW))
    assert "  what " in text[-1]
    assert text[-1].endswith(" says")
    assert kind in {condition["type"] for condition in data["conditions"]}


def test_of_one_that_is_being_deleted_the_rest_is_told() -> None:
    gone = Survey(facts=None, decision=None, plan=None, unread=(), left=("m-0", "m-1"))
    data = _as_data(gone, ("models", "m"))
    assert list(lines(data, now=NOW)) == [
        "m in namespace models is being deleted",
        "The operator does nothing any more, its objects go with it",
        "What is left: m-0, m-1",
    ]
