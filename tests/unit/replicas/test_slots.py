"""A slot rests longer with each failure of its replicas, and is told apart from one that was given up on purpose."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.replicas.examples import (
    NAME,
    NAMESPACE,
    NOW,
    UID,
    ended,
    facts,
    loading,
    replica,
    resolved,
    terminating,
)
from unit.replicas.tables import table
from vlm_operator.engines.base import PodIdentity
from vlm_operator.engines.failures import Waiting
from vlm_operator.replicas.actions import Create, CreatePod, Outcome
from vlm_operator.replicas.facts import Memory, Replica, Seen, SlotFailure, Trouble
from vlm_operator.replicas.refusal import ADMISSION_REFUSED, Refusal
from vlm_operator.replicas.slots import (
    HEALTHY_AFTER,
    POD_VANISHED,
    failed,
    failed_with,
    fails_for_good,
    free_slots,
    remember,
    rests,
    settle,
)


@settings(max_examples=50)
@given(st.sets(st.integers(0, 12)), st.integers(0, 6))
def test_free_slots_are_the_lowest_that_nobody_has(taken: set[int], count: int) -> None:
    free = free_slots(taken, count=count)
    assert len(free) == count
    assert not set(free) & taken
    assert all(slot in taken or slot in free for slot in range(max(free, default=0)))
    assert list(free) == sorted(free)


REST_TABLE = [
    ("EngineExited", [0, 10, 20, 40, 80, 160, 300, 300]),
    (POD_VANISHED, [0, 10, 20, 40, 80, 160, 300, 300]),
    (ADMISSION_REFUSED, [5, 10, 20, 40, 60, 60, 60, 60]),
]


@pytest.mark.parametrize(("reason", "expected"), REST_TABLE, ids=[row[0] for row in REST_TABLE])
def test_the_rest_grows_with_each_failure_up_to_a_ceiling(reason: str, expected: list[float]) -> None:
    failure: SlotFailure | None = None
    found = []
    for _ in expected:
        failure = failed(failure, slot=3, reason=reason, message="x", now=NOW)
        found.append(failure.next_retry - NOW)
    assert found == expected
    assert failure == SlotFailure(
        slot=3, reason=reason, message="x", count=len(expected), next_retry=NOW + expected[-1]
    )


@pytest.mark.parametrize(
    ("left", "rested"), [(0.0, False), (0.1, True), (300.0, True), (300.1, False), (3600.0, False)]
)
def test_a_rest_that_is_longer_than_any_was_begun_before_the_clock_was_set_back(left: float, rested: bool) -> None:
    failure = SlotFailure(slot=0, reason="EngineExited", message="x", count=9, next_retry=NOW + left)
    assert rests(failure, now=NOW) is rested


def test_many_failures_do_not_overflow() -> None:
    many = SlotFailure(slot=0, reason="x", message="", count=10**6, next_retry=0)
    assert failed(many, slot=0, reason="EngineExited", message="", now=NOW).next_retry == NOW + 300


def seen(*replicas: Replica) -> tuple[Seen, ...]:
    return tuple(Seen(name=r.name, uid=r.uid, slot=r.slot, created_at=r.created_at) for r in replicas)


def looked(*replicas: Replica, before: tuple[Replica, ...], now: float = NOW, **memory: Any) -> Memory:
    """The memory after a look at `replicas`, when the look before showed `before`."""
    known = Memory(**({"revision": "new", "seen": seen(*before)} | memory))
    return remember(facts(replicas=replicas, memory=known), revision="new", now=now)


def failure(slot: int = 0, count: int = 1, reason: str = "Evicted") -> SlotFailure:
    return SlotFailure(slot=slot, reason=reason, message="x", count=count, next_retry=NOW - 1)


YOUNG = loading(0, created_at=NOW - 60)
VANISHED = "the pod was deleted, not by the operator"
AFTERWARDS: list[tuple[str, tuple[Replica, ...], tuple[str, str] | None]] = [
    ("it is still there", (YOUNG,), None),
    ("it became ready", (replica(0, created_at=YOUNG.created_at, ready_since=NOW - 5),), None),
    ("it was evicted", (ended(0),), ("Evicted", "the node was low on memory")),
    ("it ended without a word", (ended(0, trouble=None),), (POD_VANISHED, VANISHED)),
    ("it is gone", (), (POD_VANISHED, VANISHED)),
    ("somebody deletes it", (terminating(0),), (POD_VANISHED, VANISHED)),
    ("another pod has its name", (loading(0, uid="other"),), (POD_VANISHED, VANISHED)),
]


@table("now_there, words", AFTERWARDS)
def test_what_became_of_a_replica(now_there: tuple[Replica, ...], words: tuple[str, str] | None) -> None:
    memory = looked(*now_there, before=(YOUNG,))
    expected = [] if words is None else [(0, *words, 1, NOW)]
    assert [(f.slot, f.reason, f.message, f.count, f.next_retry) for f in memory.failures] == expected


def test_a_replica_that_the_operator_removed_did_not_fail() -> None:
    for there in ((), (terminating(0),), (ended(0),)):
        assert looked(*there, before=(YOUNG,), retired=frozenset({YOUNG.uid})).failures == ()


def test_failures_of_a_slot_add_up() -> None:
    (found,) = looked(before=(YOUNG,), failures=(failure(count=2),)).failures
    assert (found.count, found.next_retry) == (3, NOW + 20)


def test_a_failure_is_counted_once() -> None:
    once = looked(ended(0), before=(YOUNG,))
    removed = replace(once, retired=frozenset({ended(0).uid}))
    again = remember(facts(replicas=(ended(0),), memory=removed), revision="new", now=NOW + 5)
    assert again.failures == once.failures


def test_a_replica_that_ended_before_it_was_ever_seen_failed_too() -> None:
    assert [f.reason for f in looked(ended(0), before=()).failures] == ["Evicted"]
    assert looked(ended(0, revision="old"), before=()).failures == ()
    assert looked(ended(0, terminating=True), before=()).failures == ()


def test_a_replica_that_lived_long_starts_a_new_count() -> None:
    old = loading(0, created_at=NOW - HEALTHY_AFTER)
    (found,) = looked(before=(old,), failures=(failure(count=5),)).failures
    assert (found.count, found.next_retry) == (1, NOW)


@pytest.mark.parametrize(("ready_for", "left"), [(0, 1), (HEALTHY_AFTER - 1, 1), (HEALTHY_AFTER, 0)])
def test_a_replica_that_was_ready_for_long_clears_its_slot(ready_for: float, left: int) -> None:
    healthy = replica(0, ready_since=NOW - ready_for)
    memory = looked(healthy, before=(healthy,), failures=(failure(0, count=4), failure(1, count=4)))
    assert [f.slot for f in memory.failures] == [0, 1][2 - left - 1 :] if left else [1]


def test_an_outdated_replica_clears_nothing() -> None:
    healthy = replica(0, revision="old", ready_since=NOW - 2 * HEALTHY_AFTER)
    assert len(looked(healthy, before=(), failures=(failure(0, count=4),)).failures) == 1


def test_a_new_revision_starts_without_failures() -> None:
    known = Memory(revision="old", seen=seen(replica(0, revision="old")), failures=(failure(count=9),))
    memory = remember(facts(replicas=(YOUNG,), memory=known), revision="new", now=NOW)
    assert memory == Memory(revision="new", seen=seen(YOUNG))


def test_only_live_replicas_of_the_wanted_revision_are_watched_for() -> None:
    there = (replica(0), terminating(1), ended(2), replica(3, revision="old"))
    assert looked(*there, before=()).seen == seen(replica(0))


def created(slot: int, refusal: Refusal | None = None) -> Outcome:
    identity = PodIdentity(deployment=NAME, namespace=NAMESPACE, uid=UID, revision="new", slot=slot, role="serving")
    return Outcome(action=CreatePod(identity=identity, resolved=resolved(), sentence=""), refusal=refusal)


QUOTA = Refusal(code=403, message="exceeded quota")
REFUSED = SlotFailure(slot=0, reason=ADMISSION_REFUSED, message="exceeded quota", count=2, next_retry=NOW)

SETTLED: list[tuple[str, tuple[SlotFailure, ...], Outcome, list[tuple[str, int]]]] = [
    ("admitted", (), created(0), []),
    ("refused", (), created(0, QUOTA), [(ADMISSION_REFUSED, 1)]),
    ("refused again", (REFUSED,), created(0, QUOTA), [(ADMISSION_REFUSED, 3)]),
    ("admitted after refusals", (REFUSED,), created(0), []),
    ("admitted after a crash: whether it lives is still to be seen", (failure(count=4),), created(0), [("Evicted", 4)]),
    ("refused after crashes: another cause, another count", (failure(count=4),), created(0, QUOTA), [(ADMISSION_REFUSED, 1)]),
    ("the name is taken: the view was stale", (), created(0, Refusal(code=409, message="exists")), []),
    ("the API server is overloaded", (), created(0, Refusal(code=429, message="slow")), []),
    ("the API server does not answer", (REFUSED,), created(0, Refusal(code=0, message="gone")), [(ADMISSION_REFUSED, 2)]),
    ("not about a replica", (), Outcome(action=Create(manifest={}, sentence=""), refusal=QUOTA), []),
]  # fmt: skip


@table("before, outcome, after", SETTLED)
def test_what_is_remembered_of_an_outcome(
    before: tuple[SlotFailure, ...], outcome: Outcome, after: list[tuple[str, int]]
) -> None:
    memory = settle(Memory(failures=before), [outcome], now=NOW)
    assert [(f.reason, f.count) for f in memory.failures] == after


def test_every_slot_is_settled_by_itself() -> None:
    other = replace(REFUSED, slot=1)
    memory = settle(Memory(failures=(REFUSED, other)), [created(1), created(0, QUOTA), created(2, QUOTA)], now=NOW)
    assert [(f.slot, f.count) for f in memory.failures] == [(0, 3), (2, 1)]


def test_memory_that_the_pod_before_may_still_hold_is_tried_for_again_at_once_and_only_once() -> None:
    full = Trouble(reason="CudaOutOfMemory", message="out of memory", waiting=Waiting.HELPS_ONCE)
    first = failed_with(full, None, slot=0, now=NOW)
    assert (first.permanent, rests(first, now=NOW)) == (False, False)
    assert not failed_with(full, replace(first, reason="Evicted"), slot=0, now=NOW).permanent
    second = failed_with(full, first, slot=0, now=NOW)
    assert (second.permanent, rests(second, now=NOW)) == (True, True)
    restarted = (loading(trouble=full, restarts=restarts) for restarts in (1, 2))
    seen = (Seen(name="m-new-0", uid="uid-of-m-new-0", slot=0, created_at=NOW),)
    assert [fails_for_good(replica, Memory(seen=seen)) for replica in restarted] == [False, True]
