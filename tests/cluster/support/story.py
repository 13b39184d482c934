"""The life of a deployment in four phases, and what it has left in the cluster at the end of each."""

import difflib
import json
import threading
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from itertools import count
from typing import Any

import yaml

from cluster.support.operator import GROUP, Deployments, Object, manifest
from controlplane import Api, ApiError, ControlPlane, WaitTimeoutError, wait_until
from installation import operator_kubeconfig
from vlm_operator.api.names import AVAILABLE_AT, REVISION_LABEL, SLOT_LABEL

NAME = "qwen"
KINDS = {
    "pods": "/api/v1",
    "services": "/api/v1",
    "configmaps": "/api/v1",
    "controllerrevisions": "/apis/apps/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
}

PHASES: Mapping[str, Callable[[Deployments], Any]] = {
    "create": lambda deployments: deployments.create(NAME, replicas=2),
    "scale": lambda deployments: deployments.patch(NAME, replicas=3),
    "edit": lambda deployments: deployments.patch(NAME, engine={"maxNumSeqs": 64}, service={"port": 9000}),
    "delete": lambda deployments: deployments.delete(NAME),
}
"""What the user does in each phase, in order."""
PODS_AT_MOST = {"create": 2, "scale": 3, "edit": 4, "delete": 4}
"""Pods that are not being deleted, at any moment of the phase. Replacing a revision takes one more than wanted."""

_OF_ONE_RUN = {
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "generation",
    "lastTransitionTime",
    AVAILABLE_AT,
}
_BY_OTHERS = {"nodeName", "clusterIP", "clusterIPs", "nextRetry"}


def picture(deployments: Deployments, *, without: Collection[str] = (), slots: bool = True) -> Object | None:
    """The deployment's status and all its objects, without what differs from run to run; None while something leaves.

    `without`: further fields that are left out. `slots=False`: it does not matter which replica has which place.
    """
    objects = {
        f"{kind}/{name}": obj
        for kind, group in KINDS.items()
        for name, obj in deployments.children(kind, NAME, group=group).items()
    }
    if any("deletionTimestamp" in obj["metadata"] for obj in objects.values()):
        return None
    try:
        resource = deployments.get(NAME)
    except ApiError as error:
        if error.status != 404:
            raise
    else:
        objects["vlmdeployments"] = {"metadata": resource["metadata"], "status": resource.get("status")}
    theirs = _OF_ONE_RUN | _BY_OTHERS | set(without)
    # What nodes and controllers say of these is theirs; the operator's view of it is in its own status.
    pure = {
        place: _pure(obj, theirs | ({"status"} if place.startswith(("pods/", "poddisruptionbudgets/")) else set()))
        for place, obj in objects.items()
    }
    text = json.dumps(pure).replace(deployments.namespace, "NAMESPACE")
    # The namespace may be part of the spec, and then of the hash.
    for revision in (obj for place, obj in objects.items() if place.startswith("controllerrevisions/")):
        text = text.replace(revision["metadata"]["labels"][REVISION_LABEL], f"REVISION-{revision['revision']}")
    found: Object = json.loads(text)
    return found if slots else _without_slots(found)


def _without_slots(found: Object) -> Object:
    """The same with pods by what they are, without their names."""
    pods, others = [], {}
    for place, obj in found.items():
        if place.startswith("pods/"):
            del obj["metadata"]["labels"][SLOT_LABEL]
            pods.append(json.dumps(obj, sort_keys=True).replace(obj["metadata"]["name"], "POD"))
        else:
            others[place] = obj
    return others | {f"pods/{number}": json.loads(pod) for number, pod in enumerate(sorted(pods))}


def new_namespace(plane: ControlPlane, name: str) -> Deployments:
    """The deployments of a namespace that is made for them, with a claim `models` that is Bound."""
    plane.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    plane.bound_claim(name, "models")
    return Deployments(control_plane=plane, namespace=name)


class GarbageCollector:
    """Whether the one of a control plane follows VLMDeployments; asked at most once."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._asking = threading.Lock()

    def wait(self) -> None:
        """Return when it does."""
        with self._asking:
            assert self._follows

    @cached_property
    def _follows(self) -> bool:
        until_garbage_is_collected(self._api, "default")
        return True


class Teller:
    """Tells stories on one control plane, any number at a time; each has an operator, a proxy and a namespace of its own."""

    def __init__(self, plane: ControlPlane, *, seed: int, patience_seconds: float) -> None:
        """`patience_seconds`: for each step of a story."""
        self._plane = plane
        self._kubeconfig = operator_kubeconfig(plane)
        self._seed = seed
        self._patience = patience_seconds
        self._serial = count(1)
        self._collector = GarbageCollector(plane.api)


def until_garbage_is_collected(api: Api, namespace: str) -> None:
    """Return when the garbage collector follows VLMDeployments: it looks for new kinds every 30 s, and misses deletions before.

    Leaves nothing behind.
    """
    collection = f"/api/v1/namespaces/{namespace}/configmaps"
    for number in range(30):
        owner = api.post(f"{GROUP}/namespaces/{namespace}/vlmdeployments", manifest(f"probe-{number}", replicas=0))
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
        reference |= {field: owner["metadata"][field] for field in ("name", "uid")}
        child = {"name": f"probe-{number}", "ownerReferences": [reference]}
        api.post(collection, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": child})
        api.delete(f"{GROUP}/namespaces/{namespace}/vlmdeployments/probe-{number}")
        try:
            wait_until(lambda: not api.answers(f"{collection}/probe-{number}"), "it is collected", timeout_seconds=5)  # noqa: B023 # ends in the loop
        except WaitTimeoutError:
            api.delete(f"{collection}/probe-{number}")
        else:
            return
    raise AssertionError("the garbage collector does not follow VLMDeployments")


def _pure(part: Any, left_out: set[str]) -> Any:
    if isinstance(part, list):
        return [_pure(item, left_out) for item in part]
    if not isinstance(part, dict):
        return part
    return {key: _pure(value, left_out) for key, value in part.items() if key not in left_out}


def is_finished(deployments: Deployments, phase: str) -> bool:
    """Whether the phase has come to its end, as the status says."""
    if phase == "delete":
        return picture(deployments) == {}
    conditions = {kind: deployments.condition(kind, NAME).get("status") for kind in ("Ready", "Progressing")}
    return conditions == {"Ready": "True", "Progressing": "False"}


def until_finished(deployments: Deployments, phase: str, *, timeout_seconds: float) -> Object:
    """Wait for the end of a phase; returns the picture that it leaves."""

    def look() -> tuple[Object] | None:
        seen = picture(deployments) if is_finished(deployments, phase) else None
        return (seen,) if seen is not None else None

    return wait_until(look, f"{phase} is over", timeout_seconds=timeout_seconds, every_seconds=0.25)[0]  # type: ignore[index]


def until_alike(
    deployments: Deployments, expected: Object, *, what: str, timeout_seconds: float, **compared: Any
) -> None:
    """Wait until the picture is the expected one; the error shows where it is not. `compared`: as for `picture`."""

    def look() -> bool:
        return picture(deployments, **compared) == expected

    try:
        wait_until(look, what, timeout_seconds=timeout_seconds, every_seconds=0.25)
    except WaitTimeoutError:
        seen = picture(deployments, **compared)
        lines = [yaml.safe_dump(one, width=120).splitlines() for one in (expected, seen)]
        difference = "\n".join(difflib.unified_diff(*lines, "expected", "seen", n=1, lineterm=""))
        raise AssertionError(f"{what}: not within {timeout_seconds:.0f} s\n{difference[:4000]}") from None
