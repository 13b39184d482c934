"""A deployment and its replicas to test with: ordinary ones, of which a test changes what it is about."""

from functools import cache
from typing import Any

from vlm_operator.api.names import SERVING, pod_labels, revision_name
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.engines.base import PodInputs, Resolved
from vlm_operator.engines.registry import engine
from vlm_operator.replicas.facts import Facts, Replica, StoredRevision, Trouble
from vlm_operator.replicas.ownership import Ownership
from vlm_operator.replicas.revision import SETTINGS, revision_manifest, revision_of, settings_annotation
from vlm_operator.replicas.settings import Settings

NOW = 1_800_000_000.0
"""The present. Everything is created an hour before it."""
NAME, NAMESPACE, UID = "m", "models", "uid-of-m"
PLACE: dict[str, Any] = {"deployment": NAME, "namespace": NAMESPACE, "uid": UID}
OURS: dict[str, Any] = {
    "apiVersion": "vlm.dev/v1alpha1",
    "kind": "VLMDeployment",
    "name": NAME,
    "uid": UID,
    "controller": True,
}
OLDER = OURS | {"uid": "uid-of-an-older-m"}
"""The controller reference to a deleted deployment of the same name."""
TROUBLE = Trouble(reason="ImagePullBackOff", message="back-off pulling the image")


def raw_spec(**sections: Any) -> dict[str, Any]:
    """A small spec as a user writes it, with the given sections beside or instead of its own."""
    return {"model": {"name": "org/model"}, "weights": {"persistentVolumeClaim": {"claimName": "models"}}} | sections


def spec(**sections: Any) -> VLMDeploymentSpec:
    return VLMDeploymentSpec.model_validate(raw_spec(**sections))


def inputs(**sections: Any) -> PodInputs:
    return PodInputs.of(spec(**sections))


@cache
def of_length(tokens: int) -> PodInputs:
    """Inputs that differ from those of other lengths, and so does their revision."""
    return inputs(model={"name": "org/model", "maxModelLen": tokens})


def resolved(of: PodInputs | None = None) -> Resolved:
    return engine("vLLM").resolve(of or inputs())


def stored(of: PodInputs | None = None, *, number: int = 1, **metadata: Any) -> StoredRevision:
    """A revision of ours as it was read."""
    revision = revision_of(of or inputs())
    settings = Settings.of(spec())
    live = revision_manifest(
        **PLACE,
        revision=revision,
        number=number,
        resolved=resolved(of),
        annotations={SETTINGS: settings_annotation(settings)},
    )
    live["metadata"] |= {"uid": f"uid-of-revision-{revision}", "resourceVersion": "5"} | metadata
    name = revision_name(NAME, revision)
    return StoredRevision(
        name=name, revision=revision, number=number, resolved=resolved(of), settings=settings, live=live
    )


def facts(of: VLMDeploymentSpec | None = None, **changes: Any) -> Facts:
    """The facts about a deployment whose spec is fine and that has nothing yet."""
    wanted = of or spec()
    known: dict[str, Any] = {
        "name": NAME,
        "namespace": NAMESPACE,
        "uid": UID,
        "generation": 1,
        "spec": wanted,
        "inputs": PodInputs.of(wanted),
        "findings": (),
    }
    return Facts(**(known | changes))


def replica(slot: int = 0, *, revision: str = "new", **changes: Any) -> Replica:
    """A replica that is ready since long, one second older than that of the next slot."""
    name = f"{NAME}-{revision}-{slot}"
    known: dict[str, Any] = {
        "name": name,
        "uid": f"uid-of-{name}",
        "resource_version": "7",
        "slot": slot,
        "revision": revision,
        "role": SERVING,
        "ownership": Ownership.OURS,
        "created_at": NOW - 3600 + slot,
        "scheduled": True,
        "started": True,
        "ready": True,
        "ready_since": NOW - 3000,
        "terminating": False,
        "ended": False,
        "labels": pod_labels(NAME, role=SERVING, revision=revision, slot=slot),
        "image": resolved().image,
        "trouble": None,
    }
    return Replica(**(known | changes))


def loading(slot: int = 0, **changes: Any) -> Replica:
    """A replica that has a GPU and has not answered yet."""
    return replica(slot, **({"started": False, "ready": False, "ready_since": None} | changes))


def pending(slot: int = 0, **changes: Any) -> Replica:
    """A replica that has no node yet."""
    return loading(slot, **({"scheduled": False} | changes))


def flapping(slot: int = 0, **changes: Any) -> Replica:
    """A replica that was verified once and is not ready now."""
    return replica(slot, **({"ready": False, "ready_since": None} | changes))


def terminating(slot: int = 0, **changes: Any) -> Replica:
    return replica(slot, **({"terminating": True} | changes))


def ended(slot: int = 0, **changes: Any) -> Replica:
    """A replica that was evicted."""
    trouble = Trouble(reason="Evicted", message="the node was low on memory")
    return flapping(slot, **({"ended": True, "trouble": trouble} | changes))
