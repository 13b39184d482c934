"""Sequences of edits on a real API server, and whether the end of each is that of a new resource."""

import difflib
import json
import threading
from collections.abc import Callable
from random import Random
from typing import Any

import yaml

import edits
from cluster.support.operator import GROUP, Deployments, Object
from controlplane import ControlPlane, WaitTimeoutError, wait_until
from vlm_operator.api.names import SLOT_LABEL, revision_name

KINDS = {
    "pods": "/api/v1",
    "services": "/api/v1",
    "configmaps": "/api/v1",
    "controllerrevisions": "/apis/apps/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
}
_BY_OTHERS = frozenset({"status", "nodeName", "clusterIP", "clusterIPs"})
LONGEST_MOMENT = 4.0
"""Seconds after which an edit comes that does not wait for the end of the one before."""


def namespaces_of(seed: int) -> tuple[str, str]:
    """Where a sequence takes place, and where the new resource is made that it is compared with."""
    return f"edits-{seed}", f"edits-{seed}-anew"


def carry_out(plane: ControlPlane, seed: int, *, patience_seconds: float) -> str:
    """Carry out a sequence; raises AssertionError where it does not end like a new resource. Returns what is to be reported."""
    edited, anew = (_namespace(plane, name) for name in namespaces_of(seed))
    first, *others = edits.sequence(Random(seed))
    _create(edited, first.resource)
    before = first.resource
    for edit in others:
        if edit.moment == 1.0:
            _wait(lambda: _is_at_rest(edited), "it has come to rest", patience_seconds)
        else:
            threading.Event().wait(edit.moment * LONGEST_MOMENT)  # a moment by chance, and none that is waited for
        edited.merge(edits.NAME, edits.difference(before, edit.resource))
        before = edit.resource
    _wait(lambda: edited.condition("Ready").get("status") == "True", "it is ready", patience_seconds)
    begun = (edited.status().get("scaling") or {}).get("startingReplicas")
    _create(anew, edits.fresh(before, starting_replicas=begun))
    try:
        _wait(
            lambda: _is_at_rest(edited) and _is_at_rest(anew) and picture(edited) == picture(anew),
            "it is like a new one",
            patience_seconds,
        )
    except WaitTimeoutError:
        expected, seen = (yaml.safe_dump(picture(one), width=120).splitlines() for one in (anew, edited))
        shown = "\n".join(difflib.unified_diff(expected, seen, "a new one", "the edited one", n=1, lineterm=""))
        raise AssertionError(f"seed {seed}: the edited one is not like a new one\n{shown[:4000]}") from None
    for one in (edited, anew):
        one.delete()
        plane.api.delete(one.core("pods"), {"gracePeriodSeconds": 0})
        plane.api.delete(f"/api/v1/namespaces/{one.namespace}")
    return f"sequence {seed}: {len(others)} edits, {sum(not edit.accepted for edit in others)} of them refused"


def _wait(look: Callable[[], bool], what: str, patience_seconds: float) -> None:
    """Wait, and leave the machine to the others: many sequences are carried out at once."""
    wait_until(look, what, timeout_seconds=patience_seconds, every_seconds=0.3)


def picture(deployments: Deployments) -> Object:
    """The children and conditions without their history and without what others decide."""
    status = deployments.status()
    wanted = revision_name(edits.NAME, status["updatedRevision"])
    found: dict[str, list[Any]] = {"conditions": [(c["type"], c["status"], c["reason"]) for c in status["conditions"]]}
    for kind, group in KINDS.items():
        children = deployments.children(kind, group=group)
        if kind == "controllerrevisions":
            children = {wanted: children[wanted]}
        pure = (json.dumps(_pure(child)).replace(name, "NAME") for name, child in children.items())
        found[kind] = sorted(text.replace(deployments.namespace, "NAMESPACE") for text in pure)
    return found


def _pure(obj: Object) -> Any:
    metadata = obj["metadata"]
    labels = {key: value for key, value in metadata["labels"].items() if key != SLOT_LABEL}
    return _without_others(edits.without_history(obj | {"metadata": metadata | {"labels": labels}}))


def _without_others(part: Any) -> Any:
    if isinstance(part, list):
        return [_without_others(item) for item in part]
    if not isinstance(part, dict):
        return part
    return {key: _without_others(value) for key, value in part.items() if key not in _BY_OTHERS}


def _is_at_rest(deployments: Deployments) -> bool:
    """Whether the last edit has been carried out as far as it will be, and nothing leaves any more."""
    pods = deployments.children("pods").values()
    progressing = deployments.condition("Progressing").get("status")
    return progressing == "False" and not any("deletionTimestamp" in pod["metadata"] for pod in pods)


def _namespace(plane: ControlPlane, name: str) -> Deployments:
    plane.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    plane.bound_claim(name, "models")
    return Deployments(control_plane=plane, namespace=name)


def _create(deployments: Deployments, resource: Object) -> None:
    head = {"apiVersion": "vlm.dev/v1alpha1", "kind": "VLMDeployment"}
    deployments.api.post(f"{GROUP}/namespaces/{deployments.namespace}/vlmdeployments", head | resource)
