"""Replicas are counted by what they are, and GPUs by who still holds them."""

from typing import Any

from unit.replicas.examples import (
    ended,
    facts,
    flapping,
    inputs,
    loading,
    of_length,
    pending,
    replica,
    stored,
    terminating,
)
from vlm_operator.replicas.facts import Decision, Replica
from vlm_operator.replicas.ownership import Ownership
from vlm_operator.status.census import Census, count

NEW, OLD = stored(), stored(of_length(1024))


def counted(*replicas: Replica, **known: Any) -> Census:
    known = {"revisions": (NEW, OLD)} | known
    return count(facts(replicas=replicas, **known), Decision(replicas=3, reason="", message=""))


def current(make: Any, slot: int, **changes: Any) -> Replica:
    return make(slot, **({"revision": NEW.revision} | changes))


def test_every_replica_is_counted_where_it_belongs() -> None:
    serving, flaps, loads = current(replica, 0), current(flapping, 1), current(loading, 2)
    outdated, leaves = current(replica, 3, revision=OLD.revision), current(terminating, 4)
    elsewhere = current(replica, 5, role="mine")
    others = (
        current(ended, 6),
        current(replica, 7, ownership=Ownership.FOREIGN),
        current(replica, 8, ownership=Ownership.LEAVING),
    )
    found = counted(serving, flaps, loads, outdated, leaves, elsewhere, *others)
    assert (found.target, found.wanted) == (NEW.revision, 3)
    assert found.live == (serving, flaps, loads, outdated, elsewhere)
    assert found.current == (serving, flaps, loads, elsewhere)
    assert found.outdated == (outdated,)
    assert found.current_ready == (serving, elsewhere)
    assert found.serving == (serving, outdated)
    assert found.draining == (leaves,)


def test_gpus_are_held_from_scheduling_until_the_pod_is_gone() -> None:
    four = stored(inputs(parallelism={"tensor": 2, "pipeline": 2}))
    found = counted(
        replica(0, revision=four.revision),
        terminating(1, revision=four.revision),
        pending(2, revision=four.revision),
        ended(3, revision=four.revision),
        replica(4, revision=OLD.revision),
        replica(5, revision=four.revision, ownership=Ownership.FOREIGN),
        revisions=(four, OLD),
    )
    assert found.gpus == 4 + 4 + 1


def test_without_a_wanted_revision_everything_is_outdated() -> None:
    found = counted(replica(0, revision="gone"), spec=None, inputs=None, revisions=())
    assert (found.target, len(found.outdated), found.gpus) == (None, 1, 0)
