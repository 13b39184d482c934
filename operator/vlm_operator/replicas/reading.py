"""From Kubernetes objects, as plain dicts, to facts. Reads leniently: what is missing or odd becomes the careful value."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from vlm_operator.api.names import (
    AVAILABLE_AT,
    DRAIN_STARTED_AT,
    DRAINING,
    FAILED_REASON,
    GPU_PRODUCT_LABEL,
    REVISION_LABEL,
    ROLE_LABEL,
    SLOT_LABEL,
)
from vlm_operator.engines.base import CONTAINER, Engine, Resolved
from vlm_operator.replicas.evidence import Evidence, in_creation
from vlm_operator.replicas.facts import GpuNode, Replica, StoredRevision
from vlm_operator.replicas.ownership import Ownership, ownership
from vlm_operator.replicas.revision import SETTINGS
from vlm_operator.replicas.settings import Settings
from vlm_operator.replicas.times import epoch
from vlm_operator.replicas.trouble import NOTHING, trouble_of

ENDED_PHASES = frozenset({"Failed", "Succeeded"})


def is_live(pod: Mapping[str, Any]) -> bool:
    """Whether a pod neither goes nor has ended."""
    return "deletionTimestamp" not in pod["metadata"] and (pod.get("status") or {}).get("phase") not in ENDED_PHASES


def read_replica(
    pod: Mapping[str, Any],
    *,
    deployment: str,
    uid: str,
    engines: Mapping[str, Engine] | None = None,
    read: Mapping[str, Evidence] | None = None,
) -> Replica | None:
    """The facts about a pod, ours or not; None for one that has no slot, neither by its name nor by its labels.

    `engines`: what pods run, by their revisions. `read`: what was read besides the pods, by their uids.
    """
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    whose = ownership(pod, deployment=deployment, uid=uid)
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    revision, slot = _identity(metadata["name"], labels, deployment=deployment)
    if slot is None:
        return None
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    ready, placed = conditions.get("Ready", {}), conditions.get("PodScheduled", {})
    known = (read or {}).get(metadata["uid"], NOTHING)
    running = _named(status.get("containerStatuses"), CONTAINER)
    container = _named(spec.get("containers"), CONTAINER)
    return Replica(
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata.get("resourceVersion", ""),
        slot=slot,
        revision=revision,
        role=labels.get(ROLE_LABEL, ""),
        ownership=whose,
        created_at=epoch(metadata.get("creationTimestamp")) or 0.0,
        scheduled=bool(spec.get("nodeName")),
        started=bool(running.get("started")),
        ready=ready.get("status") == "True",
        ready_since=epoch(ready.get("lastTransitionTime")) if ready.get("status") == "True" else None,
        terminating="deletionTimestamp" in metadata,
        ended=status.get("phase") in ENDED_PHASES,
        labels=labels,
        image=str(container.get("image", "")),
        trouble=trouble_of(pod, (engines or {}).get(revision), known),
        node_is_added=known.node_is_added,
        in_creation=in_creation(pod),
        restarts=int(running.get("restartCount") or 0),
        scheduled_at=_moment(placed.get("lastTransitionTime")) if placed.get("status") == "True" else None,
        not_ready_since=_moment(ready.get("lastTransitionTime")) if ready.get("status") == "False" else None,
        drain_started_at=_moment(annotations.get(DRAIN_STARTED_AT)) if labels.get(ROLE_LABEL) == DRAINING else None,
        gone_by=_moment(metadata.get("deletionTimestamp")),
        node=spec.get("nodeName") or "",
        address=status.get("podIP") or "",
    )


def revision_of(pod: Mapping[str, Any], *, deployment: str) -> str:
    """The revision that a pod runs; empty where it does not tell."""
    metadata = pod["metadata"]
    return _identity(metadata["name"], metadata.get("labels") or {}, deployment=deployment)[0]


def _moment(timestamp: str | None) -> float | None:
    """A time that somebody else may have written: nonsense is no time."""
    try:
        return epoch(timestamp)
    except (ValueError, TypeError):
        return None


def _identity(name: str, labels: Mapping[str, str], *, deployment: str) -> tuple[str, int | None]:
    """Revision and slot: by name, which nobody can edit, else by label."""
    revision, _, slot = name.removeprefix(f"{deployment}-").rpartition("-")
    if name.startswith(f"{deployment}-") and revision and slot.isdecimal():
        return revision, int(slot)
    if labels.get(SLOT_LABEL, "").isdecimal():
        return labels.get(REVISION_LABEL, ""), int(labels[SLOT_LABEL])
    return "", None


def read_node(node: Mapping[str, Any]) -> GpuNode | None:
    """The extended resources of a node; None for one without any."""
    labels = node["metadata"].get("labels") or {}
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    counts = {name: int(count) for name, count in allocatable.items() if "/" in name and str(count).isdigit()}
    counts = {name: count for name, count in counts.items() if count > 0}
    return GpuNode(product=labels.get(GPU_PRODUCT_LABEL, ""), resources=counts) if counts else None


def _named(items: Iterable[Mapping[str, Any]] | None, name: str) -> Mapping[str, Any]:
    return next((item for item in items or () if item.get("name") == name), {})


def read_revision(obj: Mapping[str, Any], *, deployment: str, uid: str) -> StoredRevision | None:
    """A ControllerRevision of ours; None for any other, and for one that this version cannot read."""
    if ownership(obj, deployment=deployment, uid=uid) is not Ownership.OURS:
        return None
    try:
        resolved = Resolved.model_validate((obj.get("data") or {}).get("resolved"))
    except ValidationError:
        return None
    name, annotations = obj["metadata"]["name"], obj["metadata"].get("annotations") or {}
    return StoredRevision(
        name=name,
        revision=name.removeprefix(f"{deployment}-"),
        number=int(obj.get("revision") or 0),
        resolved=resolved,
        settings=_settings(annotations.get(SETTINGS, "")),
        live=obj,
        available=AVAILABLE_AT in annotations,
        failed=annotations.get(FAILED_REASON, ""),
    )


def _settings(text: str) -> Settings | None:
    try:
        return Settings.model_validate_json(text)
    except ValidationError:
        return None
