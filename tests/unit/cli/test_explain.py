"""What is said around an explanation: why the operator may see it otherwise."""

from dataclasses import replace
from typing import Any

import pytest

from unit.replicas.examples import NOW, facts, replica, stored
from vlm_operator.cli.explain import doubts, lines
from vlm_operator.replicas.facts import Facts
from vlm_operator.replicas.plan import plan
from vlm_operator.replicas.size import decide_size
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
