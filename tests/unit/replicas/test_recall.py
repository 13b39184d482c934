"""An operator that has just started remembers the failures that its predecessor wrote into the status."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.replicas.examples import NOW, facts
from vlm_operator.replicas.actions import Plan
from vlm_operator.replicas.facts import Memory, SlotFailure
from vlm_operator.replicas.recall import recall
from vlm_operator.replicas.size import decide_size
from vlm_operator.status.summary import FAILURES_SHOWN, summarise

failures = st.lists(
    st.builds(
        SlotFailure,
        slot=st.integers(0, 999),
        reason=st.sampled_from(["Evicted", "AdmissionRefused"]),
        message=st.text(max_size=20),
        count=st.integers(1, 99),
        next_retry=st.integers(0, int(NOW)).map(float),
    ),
    unique_by=lambda failure: failure.slot,
    max_size=FAILURES_SHOWN,
)


@settings(max_examples=40)
@given(failures)
def test_what_is_published_comes_back(known: list[SlotFailure]) -> None:
    memory = Memory(revision="any", failures=tuple(known))
    status = summarise(facts(), decide_size(facts()), Plan(memory=memory), now=NOW)
    found = recall(status)
    assert set(found.failures) == set(known)
    assert found.revision == ("any" if known else status["updatedRevision"])
    assert replace(found, failures=(), revision="") == Memory(recalled=True)


@pytest.mark.parametrize("status", [{}, {"failures": []}, {"failures": None}])
def test_an_empty_status_is_an_empty_memory(status: dict[str, object]) -> None:
    assert recall(status) == Memory(recalled=True)


def test_a_failure_without_details_is_due() -> None:
    found = recall({"failures": [{"slot": 1, "reason": "Evicted", "count": 2}], "updatedRevision": "r"})
    assert found.failures == (SlotFailure(slot=1, reason="Evicted", message="", count=2, next_retry=0.0),)
