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
    spec,
    stored,
    terminating,
)
from unit.replicas.tables import table
from vlm_operator.replicas.actions import CreatePod, Delete, Repair, SetRole
from vlm_operator.replicas.facts import Decision, Memory, Replica, SlotFailure, Trouble
from vlm_operator.replicas.ownership import Ownership
from vlm_operator.replicas.refusal import ADMISSION_REFUSED
from vlm_operator.replicas.rollout import Rules
from vlm_operator.replicas.settings import Settings
from vlm_operator.replicas.sizes import sizes_of
from vlm_operator.replicas.steer import IDLE_GRACE, NEVER_SERVED_GRACE, Steering, steer
from vlm_operator.replicas.target import Target
from vlm_operator.replicas.times import timestamp

TARGET = Target(revision="new", resolved=resolved(), stored=None)


def old(slot: int = 0, **changes: Any) -> Replica:
    """A replica of an outdated revision that serves."""
    return replica(slot, revision="old", **changes)


def drained(slot: int = 0, **changes: Any) -> Replica:
    """A replica whose drain is over: it began long ago."""
    return replica(slot, **({"role": "draining", "drain_started_at": NOW - 3600} | changes))


def draining(slot: int = 0, **changes: Any) -> Replica:
    """A replica that finishes its requests."""
    return drained(slot, **({"drain_started_at": NOW - 10, "routed": False, "in_flight": 2, "read_at": NOW} | changes))


def warm(slot: int = 0, **changes: Any) -> Replica:
    """A replica on standby."""
    return replica(slot, **({"role": "warm"} | changes))


def steered(
    *replicas: Replica, wanted: int, held: bool = False, now: float = NOW, sections: Any = None, **known: Any
) -> Steering:
    settings = Settings.of(spec(**(sections or {})))
    sizes = sizes_of(Decision(replicas=wanted, reason="", message=""), settings)
    rules = Rules.of(TARGET, settings)
    return steer(facts(replicas=replicas, **known), TARGET, sizes, rules, held=held, now=now)


def removed(found: Steering) -> list[str]:
    return [action.name for action in found.actions if isinstance(action, Delete)]


def created(found: Steering) -> list[int]:
    return [action.identity.slot for action in found.actions if isinstance(action, CreatePod)]


def roles(found: Steering) -> dict[str, str]:
    return {action.name: action.role for action in found.actions if isinstance(action, SetRole)}


STEPS: list[tuple[str, int, list[Replica], dict[str, str], list[str], list[int]]] = [
    # sentence, wanted, there, new roles, removed, slots created
    ("from nothing: all at once", 3, [], {}, [], [0, 1, 2]),
    ("all are there", 2, [replica(0), replica(1)], {}, [], []),
    ("loading ones count", 2, [loading(0), pending(1)], {}, [], []),
    ("scaled up", 3, [replica(0)], {}, [], [1, 2]),
    ("scaled up: the lowest free slots", 3, [replica(1)], {}, [], [0, 2]),
    ("scaled down: the youngest drains", 1, [replica(0), replica(1)], {"m-new-1": "draining"}, [], []),
    ("scaled down: the idlest drains", 1, [replica(0, in_flight=1), replica(1, in_flight=4)], {"m-new-0": "draining"}, [], []),
    ("scaled down: the one that loads goes", 1, [loading(0), replica(1)], {}, ["m-new-0"], []),
    ("scaled down: two at once", 1, [replica(0), replica(1), replica(2)],
     {"m-new-2": "draining", "m-new-1": "draining"}, [], []),
    ("scaled down: none drains while too few are ready", 2, [replica(0), flapping(1), replica(2)],
     {"m-new-1": "draining"}, [], []),
    ("scaled to zero: all drain", 0, [replica(0), loading(1), old(2)],
     {"m-new-0": "draining", "m-old-2": "draining"}, ["m-new-1"], []),
    ("zero is reached", 0, [], {}, [], []),
    # draining
    ("one that works on requests is waited for", 1, [replica(0), draining(1)], {}, [], []),
    ("one that has none for a while goes", 1, [replica(0), draining(1, in_flight=0)], {}, ["m-new-1"], []),
    ("one whose time is over goes", 1, [replica(0), drained(1)], {}, ["m-new-1"], []),
    ("one to which clients are still sent is waited for", 1, [replica(0), draining(1, routed=True, in_flight=0)], {}, [], []),
    ("scaled up: one that drains is called back", 2, [replica(0), draining(1)], {"m-new-1": "serving"}, [], []),
    ("called back even if it is done", 2, [replica(0), drained(1)], {"m-new-1": "serving"}, [], []),
    ("an outdated one is called back where the promise needs it", 2, [replica(0), old(1, role="draining", drain_started_at=NOW)],
     {"m-old-1": "serving"}, [], [1]),
    ("a drain that begins in the future begins now", 1, [replica(0), draining(1, drain_started_at=NOW + 3600)],
     {"m-new-1": "draining"}, [], []),
    # who holds a slot
    ("one that leaves holds its slot", 1, [terminating(0)], {}, [], [1]),
    ("one that leaves does not count", 2, [terminating(0), replica(1)], {}, [], [2]),
    ("one that leaves is not removed again", 0, [terminating(0)], {}, [], []),
    ("one that has ended is removed and replaced", 1, [ended(0)], {}, ["m-new-0"], [0]),
    ("one that has ended and leaves holds its slot", 1, [ended(0, terminating=True)], {}, [], [1]),
    ("a stranger holds the name", 1, [replica(0, ownership=Ownership.FOREIGN)], {}, [], [1]),
    ("a stranger that has ended holds the name", 1, [ended(0, ownership=Ownership.FOREIGN)], {}, [], [1]),
    ("one of the previous deployment holds the name", 1, [replica(0, ownership=Ownership.LEAVING)], {}, [], [1]),
    # rollout
    ("a rollout starts with one more", 2, [old(0), old(1)], {}, [], [0]),
    ("a rollout waits while one loads", 2, [old(0), old(1), loading(0)], {}, [], []),
    ("a rollout goes on when it is ready", 2, [old(0), old(1), replica(0)], {"m-old-1": "draining"}, [], []),
    ("the next one comes when there is room", 2, [old(0), replica(0)], {}, [], [1]),
    ("not before the old one has given up its GPU", 2, [old(0), terminating(1, revision="old", gone_by=NOW), replica(0)],
     {}, [], []),
    ("a lost one is not waited for", 2, [old(0), terminating(1, revision="old", gone_by=NOW - 100), replica(0)], {}, [], [1]),
    ("a rollout ends", 2, [old(0), replica(0), replica(1)], {"m-old-0": "draining"}, [], []),
    ("a rollout of one", 1, [old(0)], {}, [], [0]),
    ("a rollout of one ends", 1, [old(0), replica(0)], {"m-old-0": "draining"}, [], []),
    ("what never served stands in nobody's way", 2, [old(0), loading(1, revision="old")], {}, ["m-old-1"], [0]),
    ("nothing served yet: all at once, but for GPUs that are still held", 2,
     [loading(0, revision="old"), pending(1, revision="old")], {}, ["m-old-0", "m-old-1"], [0, 1]),
    ("an outdated one that flaps stays while there is room", 2, [old(0), flapping(1, revision="old")], {}, [], [0]),
    ("two old revisions: the youngest goes first", 2, [old(0), replica(1, revision="older"), replica(0)],
     {"m-older-1": "draining"}, [], []),
    # sizes that change during a rollout
    ("scaled up during a rollout: what is missing comes at once", 4, [old(0), old(1), loading(0)], {}, [], [1, 2]),
    ("scaled down during a rollout: outdated ones go", 1, [old(0), old(1), loading(0)], {"m-old-1": "draining"}, [], []),
    ("scaled down below what is new: the new one stays", 1, [old(0), old(1), replica(0)],
     {"m-old-0": "draining", "m-old-1": "draining"}, [], []),
]  # fmt: skip


@table("wanted, there, places, gone, slots", STEPS)
def test_the_next_step(
    wanted: int, there: list[Replica], places: dict[str, str], gone: list[str], slots: list[int]
) -> None:
    idle = {r.uid: NOW - 5 for r in there if r.in_flight == 0 and r.routed is False}
    found = steered(*there, wanted=wanted, memory=Memory(revision="new", idle_since=idle))
    assert (roles(found), sorted(removed(found)), created(found)) == (places, sorted(gone), slots)


STANDBY = {"warmPool": {"size": 1, "mode": "Standby"}}
IN_ROTATION = {"warmPool": {"size": 1, "mode": "InRotation"}}
UNAVAILABLE = {"rollout": {"maxSurge": 0, "maxUnavailable": 1}}
SURGE_AND_UNAVAILABLE = {"rollout": {"maxSurge": 1, "maxUnavailable": 1}}
NO_NODE = Trouble(reason="Unschedulable", message="0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
UNPLACED = pending(1, trouble=NO_NODE, created_at=NOW - 20)
RECREATE = {"rollout": {"type": "Recreate"}}
WITH_SETTINGS: list[tuple[str, dict[str, Any], int, list[Replica], dict[str, str], list[str], list[int]]] = [
    # sentence, settings, wanted, there, new roles, removed, slots created
    ("a pool beside the serving ones", STANDBY, 2, [], {}, [], [0, 1, 2]),
    ("a pool that is full", STANDBY, 1, [replica(0), warm(1)], {}, [], []),
    ("one that is lost: the warm one serves, the pool is filled", STANDBY, 1, [ended(0), warm(1)],
     {"m-new-1": "serving"}, ["m-new-0"], [0]),
    ("one that was deleted: the warm one serves, the pool is filled", STANDBY, 1, [terminating(0), warm(1)],
     {"m-new-1": "serving"}, [], [2]),
    ("one that flaps: the warm one serves, nothing is created", STANDBY, 1, [flapping(0, not_ready_since=NOW - 5), warm(1)],
     {"m-new-1": "serving"}, [], []),
    ("one that crashed: the warm one serves", STANDBY, 1, [loading(0), warm(1)],
     {"m-new-1": "serving", "m-new-0": "warm"}, [], []),
    ("one that is back too late joins the pool", STANDBY, 1, [replica(0, ready_since=NOW - 5), replica(1)],
     {"m-new-0": "draining"}, [], []),
    ("for a while one that flaps may come back", STANDBY, 1, [flapping(0, not_ready_since=NOW - 30), replica(1)], {}, [], []),
    ("one that does not come back is given up", STANDBY, 1, [flapping(0, not_ready_since=NOW - 90), replica(1)],
     {"m-new-0": "draining"}, [], []),
    ("while most are not ready, none is given up", STANDBY, 2,
     [flapping(0, not_ready_since=NOW - 90), flapping(1, not_ready_since=NOW - 90), warm(2)], {"m-new-2": "serving"}, [], []),
    ("one that drained joins the pool", STANDBY, 1, [replica(0), drained(1)], {"m-new-1": "warm"}, [], []),
    ("scaled up: the warm one serves", STANDBY, 2, [replica(0), warm(1)], {"m-new-1": "serving"}, [], [2]),
    ("scaled down: a serving one goes, the pool stays", STANDBY, 1, [replica(0), replica(1), warm(2)],
     {"m-new-1": "draining"}, [], []),
    ("scaled to zero: the pool goes too", STANDBY, 0, [replica(0), warm(1)], {"m-new-0": "draining"}, ["m-new-1"], []),
    ("no pool any more: it goes", {}, 1, [replica(0), warm(1)], {}, ["m-new-1"], []),
    ("a role that means nothing: it drains before it joins the pool", STANDBY, 1, [replica(0), warm(1, role="mine")],
     {"m-new-1": "draining"}, [], []),
    ("a rollout begins with the pool", STANDBY, 1, [old(0), warm(1, revision="old")], {}, ["m-old-1"], []),
    ("its GPU is for a new one", STANDBY, 1, [old(0)], {}, [], [0]),
    ("which serves once it is ready", STANDBY, 1, [old(0), warm(0)], {"m-new-0": "serving"}, [], []),
    ("and an old one goes once it serves", STANDBY, 1, [old(0), replica(0)], {"m-old-0": "draining"}, [], []),
    ("a cordoned node is emptied through the pool", STANDBY, 1, [replica(0, cordoned=True), warm(1)],
     {"m-new-1": "serving"}, [], []),
    ("without a pool nothing is done about it", {}, 1, [replica(0, cordoned=True)], {}, [], []),
    ("in rotation: all serve", IN_ROTATION, 2, [replica(0), replica(1)], {}, [], [2]),
    ("in rotation: as many as the pool may be out", IN_ROTATION, 2, [old(0), old(1), old(2)], {"m-old-2": "draining"}, [], []),
    ("in rotation: not one more", IN_ROTATION, 2, [old(0), old(1), old(2, role="draining", drain_started_at=NOW)], {}, [], []),
    ("an old one makes room", UNAVAILABLE, 2, [old(0), old(1)], {"m-old-1": "draining"}, [], []),
    ("for a new one, once it has gone", UNAVAILABLE, 2, [old(0)], {}, [], [0]),
    ("a further one loads: the old one stays until it is ready", SURGE_AND_UNAVAILABLE, 2, [old(1), replica(0), loading(1)],
     {}, [], []),
    ("no node takes it: the old one makes room", SURGE_AND_UNAVAILABLE, 2, [old(1), replica(0), UNPLACED],
     {"m-old-1": "draining"}, [], []),
    ("but never below what is promised", {}, 2, [old(1), replica(0), UNPLACED], {}, [], []),
    ("all old ones go first", RECREATE, 2, [old(0), old(1)], {"m-old-0": "draining", "m-old-1": "draining"}, [], []),
    ("and none comes until they have gone", RECREATE, 2, [terminating(0, revision="old", gone_by=NOW)], {}, [], []),
    ("then all come", RECREATE, 2, [], {}, [], [0, 1]),
]  # fmt: skip


@pytest.mark.parametrize("row", [row[1:] for row in WITH_SETTINGS], ids=[row[0] for row in WITH_SETTINGS])
def test_the_next_step_with_a_pool_or_other_rules(row: Any) -> None:
    sections, wanted, there, *expected = row
    found = steered(*there, wanted=wanted, sections=sections)
    assert [roles(found), removed(found), created(found)] == expected


def test_new_replicas_serve_before_they_are_warm() -> None:
    made = [a.identity.role for a in steered(wanted=2, sections=STANDBY).actions if isinstance(a, CreatePod)]
    assert made == ["serving", "serving", "warm"]


def test_while_held_replicas_go_but_none_come() -> None:
    found = steered(replica(0), replica(1), ended(2), wanted=1, held=True)
    assert (removed(found), roles(found)) == (["m-new-2"], {"m-new-1": "draining"})
    assert created(steered(wanted=3, held=True)) == []


def test_a_new_replica_has_all_that_it_is_rendered_from() -> None:
    (action,) = steered(wanted=1).actions
    assert isinstance(action, CreatePod)
    assert action.resolved == resolved()
    assert action.sentence == "create replica m-new-0"
    assert (action.identity.namespace, action.identity.uid, action.identity.role) == (NAMESPACE, UID, "serving")


GRACES = [
    (drained(0), IDLE_GRACE),
    (warm(0), IDLE_GRACE),
    (loading(0), NEVER_SERVED_GRACE),
    (pending(0), NEVER_SERVED_GRACE),
]


@pytest.mark.parametrize(("there", "grace"), GRACES, ids=["drained", "warm", "loads", "pending"])
def test_how_long_a_replica_has_to_end(there: Replica, grace: int) -> None:
    (action,) = steered(there, wanted=0).actions
    assert isinstance(action, Delete)
    assert (action.kind, action.name, action.uid, action.resource_version) == ("Pod", there.name, there.uid, "7")
    assert action.sentence.startswith("remove replica m-new-0: none are wanted")
    assert action.grace_seconds == grace


def test_what_a_drain_left_when_its_time_was_over_is_told() -> None:
    (action,) = steered(drained(0, routed=False, in_flight=3), wanted=0).actions
    assert action.sentence == "remove replica m-new-0: none are wanted; its drain timed out: 3 requests in flight"


WAITS = [
    (draining(0, in_flight=2), "replica m-new-0: it has requests in flight"),
    (draining(0, in_flight=0), "replica m-new-0: it has had no request in flight for a moment"),
    (draining(0, in_flight=None), "replica m-new-0: its requests in flight cannot be read"),
    (draining(0, routed=True), "replica m-new-0: clients are still sent to it"),
    (draining(0, routed=None), "replica m-new-0: whether clients are still sent to it is not known"),
]


@pytest.mark.parametrize(("there", "words"), WAITS)
def test_what_a_drain_waits_for_is_told(there: Replica, words: str) -> None:
    (wait,) = steered(there, wanted=0).waits
    assert (wait.reason, wait.message, wait.until) == ("Draining", words, NOW + 2)


def test_a_drain_begins_with_its_time() -> None:
    (action,) = steered(replica(0), wanted=0).actions
    assert isinstance(action, SetRole)
    assert action.sentence == "drain replica m-new-0: none are wanted"
    assert action.patch["metadata"]["labels"] == {"vlm.dev/role": "draining"}
    assert action.patch["metadata"]["annotations"] == {"vlm.dev/drain-started-at": timestamp(NOW)}
    assert action.patch["metadata"]["resourceVersion"] == "7"


def test_how_busy_replicas_are_matters_where_one_of_several_is_taken_out() -> None:
    assert {r.name for r in steered(replica(0), replica(1), wanted=1).undecided} == {"m-new-0", "m-new-1"}
    read = [replica(slot, in_flight=slot) for slot in range(2)]
    assert steered(*read, wanted=1).undecided == ()
    assert steered(replica(0), wanted=0).undecided == ()


def test_why_a_replica_that_ended_is_removed() -> None:
    assert [a.sentence for a in steered(ended(0), ended(1, trouble=None), wanted=0).actions] == [
        "remove replica m-new-0: it has ended (the node was low on memory)",
        "remove replica m-new-1: it has ended",
    ]


def test_what_the_operator_removes_is_remembered() -> None:
    found = steered(replica(0), drained(1), ended(2), wanted=1)
    assert found.retired == {replica(1).uid, ended(2).uid}


LABELS = replica(0).labels


@pytest.mark.parametrize("edit", [{"vlm.dev/slot": "9"}, {"app.kubernetes.io/name": ""}])
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
    role=st.sampled_from(["serving", "warm", "draining"]),
    created_at=st.integers(0, 3),
).map(lambda r: replace(r, started=r.started or r.ready, scheduled=r.scheduled or r.started or r.ready))
crowds = st.lists(any_replica, unique_by=lambda r: r.name, max_size=8)
any_sections = st.sampled_from([{}, STANDBY, IN_ROTATION, UNAVAILABLE, RECREATE])


@settings(max_examples=150)
@given(crowds, st.integers(0, 5), any_sections)
def test_a_ready_replica_is_taken_out_only_while_enough_others_serve(
    there: list[Replica], wanted: int, sections: dict[str, Any]
) -> None:
    found = steered(*there, wanted=wanted, sections=sections)
    out = {name for name, role in roles(found).items() if role != "serving"} | set(removed(found))
    serving = [r for r in there if r.ready and r.role == "serving"]
    if any(r.name in out for r in serving):
        least = 0 if sections == RECREATE else wanted - Settings.of(spec(**sections)).max_unavailable
        assert sum(r.name not in out for r in serving) >= least


@settings(max_examples=150)
@given(crowds, st.integers(0, 5), any_sections)
def test_none_is_created_beyond_the_ceiling(there: list[Replica], wanted: int, sections: dict[str, Any]) -> None:
    found = steered(*there, wanted=wanted, sections=sections)
    chosen = Settings.of(spec(**sections))
    if created(found):
        assert len(there) + len(created(found)) <= wanted + chosen.pool_size + chosen.max_surge + len(removed(found))


@settings(max_examples=50)
@given(crowds, st.integers(0, 5), any_sections, st.randoms(use_true_random=False))
def test_the_step_does_not_depend_on_the_order_of_the_facts(
    there: list[Replica], wanted: int, sections: dict[str, Any], random: Any
) -> None:
    one = steered(*there, wanted=wanted, sections=sections)
    two = steered(*random.sample(there, len(there)), wanted=wanted, sections=sections)
    assert (sorted(removed(one)), roles(one)) == (sorted(removed(two)), roles(two))
    assert created(one) == created(two)


troubled = st.lists(st.booleans(), min_size=1, max_size=8)


@settings(max_examples=40)
@given(troubled, st.integers(1, 5))
def test_of_those_that_load_the_ones_in_trouble_go_first(in_trouble: list[bool], wanted: int) -> None:
    there = [loading(slot, trouble=TROUBLE if bad else None) for slot, bad in enumerate(in_trouble)]
    names = removed(steered(*there, wanted=wanted))
    gone = [r for r in there if r.name in names]
    assert sum(r.trouble is not None for r in gone) == min(sum(in_trouble), len(gone))


@pytest.mark.parametrize(
    ("waited", "node_is_added", "withdrawn"),
    [
        (299, False, False),
        (300, False, True),
        (899, True, False),
        (900, True, True),
        (899, None, False),
        (900, None, True),
    ],
)
def test_a_surplus_replica_waits_longer_for_a_gpu_where_a_node_is_added(
    waited: float, node_is_added: bool | None, withdrawn: bool
) -> None:
    waiting = pending(0, created_at=NOW - waited, node_is_added=node_is_added, trouble=TROUBLE)
    found = steered(old(0), waiting, wanted=1)
    assert removed(found) == (["m-new-0"] if withdrawn else [])
    assert withdrawn or min(found.timers) == waiting.created_at + (300 if node_is_added is False else 900)
