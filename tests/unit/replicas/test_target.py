"""The wanted revision is that of an accepted spec; a refused one changes nothing."""

from dataclasses import replace

import pytest

from unit.replicas.examples import facts, inputs, of_length, resolved, stored
from vlm_operator.api.findings import Finding
from vlm_operator.replicas.facts import StoredRevision
from vlm_operator.replicas.revision import revision_of
from vlm_operator.replicas.target import Target, target_of

REFUSED = {"findings": (Finding(reason="Wrong", severity="Error", field="spec", message="wrong"),)}
UNREADABLE = {"spec": None, "inputs": None} | REFUSED
WARNED = {"findings": (Finding(reason="Odd", severity="Warning", field="spec", message="odd"),)}
OLD, OLDER = stored(of_length(2048), number=8), stored(of_length(1024), number=7)


def test_a_new_spec_is_resolved() -> None:
    assert target_of(facts()) == Target(revision=revision_of(inputs()), resolved=resolved(), stored=None)


def test_a_known_revision_is_what_was_stored_not_what_would_be_chosen_today() -> None:
    known = stored()
    other = resolved().model_copy(update={"image": "vllm/vllm-openai:of-an-earlier-operator"})
    kept = replace(known, resolved=other)
    assert target_of(facts(revisions=(OLD, kept))) == Target(revision=kept.revision, resolved=other, stored=kept)


def test_a_warning_refuses_nothing() -> None:
    found = target_of(facts(revisions=(OLD,), **WARNED))
    assert found is not None
    assert found.revision == revision_of(inputs())


@pytest.mark.parametrize("change", [REFUSED, UNREADABLE], ids=["refused", "unreadable"])
@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        ({"updatedRevision": OLD.revision}, OLD),
        ({"updatedRevision": OLDER.revision}, OLDER),
        ({"updatedRevision": "gone"}, OLD),
        ({}, OLD),
    ],
    ids=["the newest", "an older one", "one that is gone: the newest", "nobody knows: the newest"],
)
def test_a_refused_spec_keeps_what_was_wanted_before(
    change: dict[str, object], status: dict[str, object], wanted: StoredRevision
) -> None:
    found = target_of(facts(revisions=(OLDER, OLD), status=status, **change))
    assert found == Target(revision=wanted.revision, resolved=wanted.resolved, stored=wanted)


@pytest.mark.parametrize("change", [REFUSED, UNREADABLE], ids=["refused", "unreadable"])
def test_nothing_is_wanted_before_a_spec_was_accepted(change: dict[str, object]) -> None:
    assert target_of(facts(**change)) is None
