"""The size is what the spec says; while the spec is refused it stays what it was, and unknown is not zero."""

from typing import Any

import pytest

from unit.replicas.examples import facts, replica, spec, terminating
from unit.replicas.tables import table
from vlm_operator.api.findings import Finding
from vlm_operator.replicas.size import AS_SPECIFIED, FROZEN, decide_size

ERROR = Finding(reason="Wrong", severity="Error", field="spec", message="wrong")
REFUSED: dict[str, Any] = {"findings": (ERROR,)}


@pytest.mark.parametrize("replicas", [0, 1, 1000])
def test_an_accepted_spec_decides(replicas: int) -> None:
    found = decide_size(facts(spec(replicas=replicas), status={"desiredReplicas": 7}))
    assert (found.replicas, found.reason) == (replicas, AS_SPECIFIED)
    assert found.message == f"spec.replicas is {replicas}"


FROZEN_AT: list[tuple[str, dict[str, Any], int]] = [
    ("the size in force stays", {"status": {"desiredReplicas": 3}}, 3),
    ("off stays off", {"status": {"desiredReplicas": 0}, "replicas": (replica(0),)}, 0),
    ("without a status, as many as there are", {"replicas": (replica(0), replica(1), terminating(2))}, 2),
    ("nothing was ever there", {}, 0),
]


@table("known, size", FROZEN_AT)
@pytest.mark.parametrize("unreadable", [False, True])
def test_a_refused_spec_freezes_the_size(known: dict[str, Any], size: int, unreadable: bool) -> None:
    gone = {"spec": None, "inputs": None} if unreadable else {}
    found = decide_size(facts(spec(replicas=9), **REFUSED, **known, **gone))
    assert (found.replicas, found.reason) == (size, FROZEN)
    assert str(size) in found.message


BOUNDS = {"minReplicas": 2, "maxReplicas": 4}
STARTED: list[tuple[str, int, dict[str, Any], int]] = [
    # sentence, spec.replicas, status.scaling, size
    ("it starts with spec.replicas", 3, {}, 3),
    ("not below the bounds", 1, {}, 2),
    ("not above the bounds", 9, {}, 4),
    ("later edits do not count", 4, {"startingReplicas": 3}, 3),
    ("but for 0, which turns everything off", 0, {"startingReplicas": 3}, 0),
]


@table("asked, scaling, size", STARTED)
def test_while_scaling_decides_the_size_lies_within_its_bounds(asked: int, scaling: dict[str, Any], size: int) -> None:
    found = decide_size(facts(spec(replicas=asked, scaling=BOUNDS), status={"scaling": scaling}))
    assert found.replicas == size


def test_a_pool_in_rotation_is_headroom_within_the_least_size() -> None:
    sections = {"scaling": BOUNDS, "warmPool": {"size": 1}}
    assert decide_size(facts(spec(replicas=1, **sections))).replicas == 3
    standby = {"scaling": BOUNDS, "warmPool": {"size": 1, "mode": "Standby"}}
    assert decide_size(facts(spec(replicas=1, **standby))).replicas == 2


def test_advice_does_not_decide() -> None:
    advised = facts(
        spec(replicas=9, scaling=BOUNDS | {"mode": "Advisory"}), status={"scaling": {"startingReplicas": 3}}
    )
    assert decide_size(advised).replicas == 9
