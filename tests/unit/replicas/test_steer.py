"""From the replicas that are to the replicas that are wanted: one row for every situation that has a rule."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.replicas.examples import (
    NAMESPACE,
    NOW,
    TROUBLE,
    UID,
    ended,
    facts,
    flapping,
    loading,
    of_length,
    pending,
    replica,
    resolved,
    stored,
    terminating,
)
from unit.replicas.tables import table
from vlm_operator.replicas.actions import CreatePod, Delete, Repair
from vlm_operator.replicas.facts import Decision, Memory, Replica, SlotFailure
from vlm_operator.replicas.ownership import Ownership
from vlm_operator.replicas.refusal import ADMISSION_REFUSED
from vlm_operator.replicas.rollout import SURGE, retire
from vlm_operator.replicas.steer import NEVER_SERVED_GRACE, Steering, steer
from vlm_operator.replicas.target import Target

TARGET = Target(revision="new", resolved=resolved(), stored=None)


def old(slot: int = 0, **changes: Any) -> Replica:
    """A replica of an outdated revision that serves."""
    return replica(slot, revision="old", **changes)


def steered(*replicas: Replica, wanted: int, held: bool = False, now: float = NOW, **known: Any) -> Steering:
    decision = Decision(replicas=wanted, reason="", message="")
    return steer(facts(replicas=replicas, **known), TARGET, decision, held=held, now=now)


def removed(found: Steering) -> list[str]:
    return [action.name for action in found.actions if isinstance(action, Delete)]


def created(found: Steering) -> list[int]:
    return [action.identity.slot for action in found.actions if isinstance(action, CreatePod)]


STEPS: list[tuple[str, int, list[Replica], list[str], list[int]]] = [
    # sentence, wanted, there, removed, slots created
    ("from nothing: all at once", 3, [], [], [0, 1, 2]),
    ("all are there", 2, [replica(0), replica(1)], [], []),
    ("loading ones count", 2, [loading(0), pending(1)], [], []),
    ("scaled up", 3, [replica(0)], [], [1, 2]),
    ("scaled up: the lowest free slots", 3, [replica(1)], [], [0, 2]),
    ("scaled down: the youngest goes", 1, [replica(0), replica(1)], ["m-new-1"], []),
    ("scaled down: the one that loads goes", 1, [loading(0), replica(1)], ["m-new-0"], []),
    ("scaled down: two at once", 1, [replica(0), replica(1), replica(2)], ["m-new-2", "m-new-1"], []),
    ("scaled to zero", 0, [replica(0), loading(1), old(2)], ["m-new-0", "m-new-1", "m-old-2"], []),
    ("zero is reached", 0, [], [], []),
    # who holds a slot
    ("one that leaves holds its slot", 1, [terminating(0)], [], [1]),
    ("one that leaves does not count", 2, [terminating(0), replica(1)], [], [2]),
    ("one that leaves is not removed again", 0, [terminating(0)], [], []),
    ("one that has ended is removed and replaced", 1, [ended(0)], ["m-new-0"], [0]),
    ("one that has ended and leaves holds its slot", 1, [ended(0, terminating=True)], [], [1]),
    ("a stranger holds the name", 1, [replica(0, ownership=Ownership.FOREIGN)], [], [1]),
    ("a stranger that has ended holds the name", 1, [ended(0, ownership=Ownership.FOREIGN)], [], [1]),
    ("one of the previous deployment holds the name", 1, [replica(0, ownership=Ownership.LEAVING)], [], [1]),
    ("one of another revision does not", 1, [terminating(0, revision="old")], [], [0]),
    # rollout
    ("a rollout starts with one more", 2, [old(0), old(1)], [], [0]),
    ("a rollout waits while one loads", 2, [old(0), old(1), loading(0)], [], []),
    ("one that was lost meanwhile is not made up for by a second that loads", 3, [old(0), old(1), loading(0)], [], []),
    ("a rollout goes on when it is ready", 2, [old(0), old(1), replica(0)], ["m-old-1"], [1]),
    ("a rollout ends", 2, [old(0), replica(0), replica(1)], ["m-old-0"], []),
    ("a rollout of one", 1, [old(0)], [], [0]),
    ("a rollout of one ends", 1, [old(0), replica(0)], ["m-old-0"], []),
    ("what never served stands in nobody's way", 2, [old(0), loading(1, revision="old")], ["m-old-1"], [0]),
    ("nothing served yet: all at once", 2, [loading(0, revision="old"), pending(1, revision="old")],
     ["m-old-0", "m-old-1"], [0, 1]),
    ("an outdated one that flaps stays while there is room", 2, [old(0), flapping(1, revision="old")], [], [0]),
    ("an outdated one that flaps goes before a ready one", 2, [old(0), flapping(1, revision="old"), replica(0)],
     ["m-old-1"], [1]),
    ("outdated ones that are missing are not made again", 3, [old(0), old(1)], [], [0]),
    ("two old revisions: the youngest goes first", 2, [old(0), replica(1, revision="older"), replica(0)],
     ["m-older-1"], [1]),
    # sizes that change during a rollout
    ("scaled up during a rollout: what is missing comes at once", 4, [old(0), old(1), loading(0)], [], [1]),
    ("scaled down during a rollout: outdated ones go", 1, [old(0), old(1), loading(0)], ["m-old-1"], []),
    ("scaled down below what is new: the new one stays", 1, [old(0), old(1), replica(0)], ["m-old-0", "m-old-1"], []),
    ("scaled down with new ones to spare", 1, [replica(0), replica(1), old(0)], ["m-new-1", "m-old-0"], []),
]  # fmt: skip


@table("wanted, there, gone, slots", STEPS)
def test_the_next_step(wanted: int, there: list[Replica], gone: list[str], slots: list[int]) -> None:
    found = steered(*there, wanted=wanted)
    assert (sorted(removed(found)), created(found)) == (sorted(gone), slots)


def test_while_held_replicas_go_but_none_come() -> None:
    found = steered(replica(0), replica(1), ended(2), wanted=1, held=True)
    assert sorted(removed(found)) == ["m-new-1", "m-new-2"]
    assert created(steered(wanted=3, held=True)) == []


def test_a_new_replica_has_all_that_it_is_rendered_from() -> None:
    (action,) = steered(wanted=1).actions
    assert isinstance(action, CreatePod)
    assert action.resolved == resolved()
    assert action.sentence == "create replica m-new-0"
    assert (action.identity.namespace, action.identity.uid, action.identity.role) == (NAMESPACE, UID, "serving")


GRACES = [(replica(0), None), (flapping(0), None), (loading(0), NEVER_SERVED_GRACE), (pending(0), NEVER_SERVED_GRACE)]


@pytest.mark.parametrize(("there", "grace"), GRACES, ids=["serves", "served", "loads", "pending"])
def test_only_what_never_served_leaves_at_once(there: Replica, grace: int | None) -> None:
    (action,) = steered(there, wanted=0).actions
    assert action == Delete(
        kind="Pod",
        name=there.name,
        uid=there.uid,
        resource_version="7",
        sentence="remove replica m-new-0: none are wanted",
        grace_seconds=grace,
    )


def test_why_a_replica_that_ended_is_removed() -> None:
    assert [a.sentence for a in steered(ended(0), ended(1, trouble=None), wanted=0).actions] == [
        "remove replica m-new-0: it has ended (the node was low on memory)",
        "remove replica m-new-1: it has ended",
    ]


def test_what_the_operator_removes_is_remembered() -> None:
    found = steered(replica(0), replica(1), ended(2), wanted=1)
    assert found.retired == {replica(1).uid, ended(2).uid}


LABELS = replica(0).labels


@pytest.mark.parametrize("edit", [{"vlm.dev/role": "mine"}, {"vlm.dev/slot": "9"}, {"app.kubernetes.io/name": ""}])
def test_an_edited_label_is_put_back(edit: dict[str, str]) -> None:
    (action,) = steered(replica(0, labels={**LABELS, **edit, "team": "vision"}), wanted=1).actions
    assert isinstance(action, Repair)
    assert action.kind == "Pod"
    assert action.sentence == "repair labels of replica m-new-0"
    assert action.patch == {
        "metadata": {
            "name": "m-new-0",
            "namespace": NAMESPACE,
            "uid": replica(0).uid,
            "resourceVersion": "7",
            "labels": LABELS,
        }
    }


def test_an_edited_image_is_put_back_to_that_of_its_own_revision() -> None:
    known = stored(of_length(1))
    edited = replica(0, revision=known.revision, image="evil")
    (action,) = [a for a in steered(edited, wanted=1, revisions=(known,)).actions if isinstance(a, Repair)]
    assert action.sentence == f"repair image of replica {edited.name}"
    assert action.patch["spec"] == {"containers": [{"name": "engine", "image": resolved().image}]}


@pytest.mark.parametrize(
    "there",
    [terminating(0, labels={}), replica(0, labels={}, ownership=Ownership.FOREIGN), ended(0, labels={})],
    ids=["terminating", "foreign", "ended"],
)
def test_nothing_but_a_live_replica_of_ours_is_repaired(there: Replica) -> None:
    assert not any(isinstance(action, Repair) for action in steered(there, wanted=1).actions)


def failure(slot: int, *, reason: str = "Evicted", count: int = 2, rests: float = 8.0) -> SlotFailure:
    return SlotFailure(slot=slot, reason=reason, message="x", count=count, next_retry=NOW + rests)


def with_failures(*failures: SlotFailure) -> dict[str, Any]:
    return {"memory": Memory(revision="new", failures=failures)}


def test_a_slot_that_rests_is_waited_for_and_the_others_are_filled() -> None:
    found = steered(wanted=3, **with_failures(failure(1)))
    assert created(found) == [0, 2]
    (wait,) = found.waits
    assert (wait.reason, wait.until) == ("BackingOff", NOW + 8)
    assert wait.message == "slot 1 failed 2 times in a row (Evicted: x) and rests before the next try"


def test_a_slot_that_has_rested_is_tried_again() -> None:
    found = steered(wanted=1, **with_failures(failure(0, rests=0.0)))
    assert (created(found), found.waits) == ([0], ())


def refused(slot: int, rests: float = -1.0) -> SlotFailure:
    return failure(slot, reason=ADMISSION_REFUSED, count=1, rests=rests)


ONE_AT_A_TIME: list[tuple[str, list[SlotFailure], list[int]]] = [
    ("all are due: one is tried", [refused(0), refused(1), refused(2)], [0]),
    ("one rests: nothing else is tried", [refused(0, 5), refused(1), refused(2)], []),
    ("all rest", [refused(0, 5), refused(1, 5), refused(2, 5)], []),
    ("one was refused: it is tried before the others", [refused(1)], [1]),
    ("one was refused and rests: the others wait with it", [refused(1, 5)], []),
    ("another failed for a reason of its own", [refused(0), failure(1, rests=-1)], [0]),
]


@table("failures, slots", ONE_AT_A_TIME)
def test_while_replicas_are_refused_one_at_a_time_asks_again(failures: list[SlotFailure], slots: list[int]) -> None:
    found = steered(wanted=3, **with_failures(*failures))
    assert created(found) == slots
    assert slots or min(w.until for w in found.waits if w.until is not None) == NOW + 5


def test_a_refusal_is_told_as_such() -> None:
    (wait,) = steered(wanted=1, **with_failures(refused(0, 5))).waits
    assert wait.reason == "AdmissionRefused"
    assert wait.message == "slot 0 failed once (AdmissionRefused: x) and rests before the next try"


PASSED_ON: list[tuple[str, int, list[Replica], list[tuple[int, int]]]] = [
    # sentence, wanted, there, (slot, count) of the failures afterwards: before, slot 1 failed once and slot 2 twice
    ("slots to fill keep theirs", 4, [], [(1, 1), (2, 2)]),
    ("used slots keep theirs", 2, [replica(1), replica(2)], [(1, 1), (2, 2)]),
    ("slots that are not wanted lose theirs", 1, [replica(0)], []),
    ("none when none are wanted", 0, [], []),
    ("of one that leaves to the one in its place", 1, [terminating(2), replica(1), terminating(0)], [(1, 1)]),
    ("the worst first", 1, [terminating(1), terminating(2)], [(0, 2)]),
    ("of two that leave to the two in their places", 2, [terminating(1), terminating(2)], [(0, 2), (3, 1)]),
]


@table("wanted, there, after", PASSED_ON)
def test_who_inherits_the_failures_of_a_slot(wanted: int, there: list[Replica], after: list[tuple[int, int]]) -> None:
    found = steered(*there, wanted=wanted, **with_failures(failure(1, count=1), failure(2, count=2)))
    assert [(f.slot, f.count) for f in found.failures] == after


def test_the_one_in_its_place_rests_too() -> None:
    found = steered(terminating(0), wanted=1, **with_failures(failure(0, rests=8.0)))
    assert created(found) == []
    assert [wait.until for wait in found.waits] == [NOW + 8]


# -- what must always hold ---------------------------------------------------------------------------------------------
any_replica = st.builds(
    replica,
    st.integers(0, 5),
    revision=st.sampled_from(["new", "old", "older"]),
    scheduled=st.booleans(),
    started=st.booleans(),
    ready=st.booleans(),
    created_at=st.integers(0, 3),
).map(lambda r: replace(r, started=r.started or r.ready, scheduled=r.scheduled or r.started or r.ready))
crowds = st.lists(any_replica, unique_by=lambda r: r.name, max_size=8)


@settings(max_examples=150)
@given(crowds, st.integers(0, 5))
def test_a_ready_replica_goes_only_when_enough_others_are_ready(there: list[Replica], wanted: int) -> None:
    gone = {retirement.replica.uid for retirement in retire(there, wanted=wanted, revision="new")}
    if any(r.ready for r in there if r.uid in gone):
        assert sum(r.ready for r in there if r.uid not in gone) >= wanted


@settings(max_examples=150)
@given(crowds, st.integers(0, 5))
def test_there_is_never_more_than_the_surge_above_what_is_wanted(there: list[Replica], wanted: int) -> None:
    found = steered(*there, wanted=wanted)
    assert len(there) - len(removed(found)) + len(created(found)) <= wanted + (SURGE if wanted else 0)


@settings(max_examples=50)
@given(crowds, st.integers(0, 5), st.randoms(use_true_random=False))
def test_the_step_does_not_depend_on_the_order_of_the_facts(there: list[Replica], wanted: int, random: Any) -> None:
    one, two = steered(*there, wanted=wanted), steered(*random.sample(there, len(there)), wanted=wanted)
    assert sorted(removed(one)) == sorted(removed(two))
    assert created(one) == created(two)


troubled = st.lists(st.booleans(), min_size=1, max_size=8)


@settings(max_examples=40)
@given(troubled, st.integers(1, 5))
def test_of_those_that_load_the_ones_in_trouble_go_first(in_trouble: list[bool], wanted: int) -> None:
    there = [loading(slot, trouble=TROUBLE if bad else None) for slot, bad in enumerate(in_trouble)]
    gone = [retirement.replica for retirement in retire(there, wanted=wanted, revision="new")]
    assert sum(r.trouble is not None for r in gone) == min(sum(in_trouble), len(gone))
