"""An object is ours by its controller reference and by nothing else."""

from typing import Any

from unit.replicas.examples import NAME, OLDER, OURS, UID
from unit.replicas.tables import table
from vlm_operator.replicas.ownership import Ownership, ownership

WITHOUT_CONTROLLER = {key: value for key, value in OURS.items() if key != "controller"}

REFERENCES: list[tuple[str, list[dict[str, Any]] | None, Ownership]] = [
    ("its controller is this deployment", [OURS], Ownership.OURS),
    ("its controller is an older deployment of this name", [OLDER], Ownership.LEAVING),
    ("another version of the API names the older one", [OLDER | {"apiVersion": "vlm.dev/v1"}], Ownership.LEAVING),
    ("nothing controls it", [], Ownership.FOREIGN),
    ("it has no references at all", None, Ownership.FOREIGN),
    ("we own it without controlling it", [WITHOUT_CONTROLLER], Ownership.FOREIGN),
    ("we own it and say that we do not control it", [OURS | {"controller": False}], Ownership.FOREIGN),
    ("an older deployment owns it without controlling it", [OLDER | {"controller": False}], Ownership.FOREIGN),
    ("a deployment of another name controls it", [OLDER | {"name": "other"}], Ownership.FOREIGN),
    ("another kind of this name controls it", [OLDER | {"kind": "Deployment"}], Ownership.FOREIGN),
    ("this kind of another group controls it", [OLDER | {"apiVersion": "example.com/v1"}], Ownership.FOREIGN),
    ("others own it beside us", [WITHOUT_CONTROLLER | {"uid": "x"}, OURS], Ownership.OURS),
    ("we own it beside an older controller", [WITHOUT_CONTROLLER, OLDER], Ownership.LEAVING),
]


@table("references, whose", REFERENCES)
def test_whose_an_object_is(references: list[dict[str, Any]] | None, whose: Ownership) -> None:
    metadata: dict[str, Any] = {"name": "x", "labels": {"vlm.dev/deployment": NAME}}
    if references is not None:
        metadata["ownerReferences"] = references
    assert ownership({"metadata": metadata}, deployment=NAME, uid=UID) is whose
