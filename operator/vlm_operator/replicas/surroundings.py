"""What stands around the replicas: the stored revision, the scripts, the Service. Created, repaired, never taken over.

A name that somebody else holds is reported and waited for; while it is, no replica is created, since nothing could reach it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vlm_operator.api.names import DEPLOYMENT_LABEL
from vlm_operator.api.spec import Service
from vlm_operator.engines.registry import engine
from vlm_operator.replicas.actions import Action, Create, Delete, Repair, Wait
from vlm_operator.replicas.children import scripts_manifest, service_manifest
from vlm_operator.replicas.drift import first_difference, patch_to
from vlm_operator.replicas.facts import Facts, StoredRevision
from vlm_operator.replicas.kept import own_annotations
from vlm_operator.replicas.ownership import Ownership, ownership
from vlm_operator.replicas.revision import HISTORY_LIMIT, revision_manifest
from vlm_operator.replicas.target import Target

LEAVING = "PreviousIsLeaving"
"""Objects of a deleted deployment of the same name are still being removed."""
TAKEN = {
    "Service": "ServiceNameTaken",
    "ConfigMap": "ConfigMapNameTaken",
    "ControllerRevision": "ControllerRevisionNameTaken",
}
"""Somebody else's object has a name that the deployment needs."""
LOOK_AGAIN = 10.0
"""Seconds after which a taken name is tried again: a foreign object is not watched."""


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Actions on the surroundings, and what they wait for."""

    actions: tuple[Action, ...] = ()
    waits: tuple[Wait, ...] = ()


def surroundings(facts: Facts, target: Target, *, now: float) -> Surroundings:
    """Create what is missing, repair what was changed, remove old revisions."""
    actions: list[Action] = []
    waits: list[Wait] = []
    for manifest in _wanted(facts, target):
        step = _tend(manifest, facts, now=now)
        if isinstance(step, Wait):
            waits.append(step)
        elif step is not None:
            actions.append(step)
    actions.extend(_old_revisions(facts, target))
    return Surroundings(actions=tuple(actions), waits=tuple(waits))


def _wanted(facts: Facts, target: Target) -> list[dict[str, Any]]:
    place: dict[str, Any] = {"deployment": facts.name, "namespace": facts.namespace, "uid": facts.uid}
    scripts = engine(target.resolved.inputs.engine.type).scripts()
    settings = _service_settings(facts, target)
    service = [service_manifest(**place, service=settings)] if settings is not None else []
    return [*service, _revision(facts, target, settings, place), scripts_manifest(**place, scripts=scripts)]


def _service_settings(facts: Facts, target: Target) -> Service | None:
    """How the Service is wanted: as the spec says, or while that is refused as it was accepted before."""
    if facts.accepted and facts.spec is not None:
        return facts.spec.service
    return target.stored.service if target.stored is not None else None


def _revision(facts: Facts, target: Target, service: Service | None, place: dict[str, Any]) -> dict[str, Any]:
    """The manifest of the wanted revision, numbered as the newest one."""
    newest = max((known.number for known in facts.revisions), default=0)
    number = target.stored.number if target.stored and target.stored.number == newest else newest + 1
    manifest = revision_manifest(
        **place, revision=target.revision, number=number, resolved=target.resolved, service=service
    )
    if target.stored is not None:
        # The data of a ControllerRevision can never change.
        del manifest["data"]
    return manifest


def _tend(manifest: dict[str, Any], facts: Facts, *, now: float) -> Action | Wait | None:
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    live = facts.objects.get((kind, name))
    if live is None:
        return Create(manifest=manifest, sentence=f"create {kind} {name}")
    match ownership(live, deployment=facts.name, uid=facts.uid):
        case Ownership.LEAVING:
            return _leaving(kind, name)
        case Ownership.FOREIGN:
            return _taken(live, facts, kind=kind, name=name, now=now)
    if live["metadata"].get("deletionTimestamp"):
        return _leaving(kind, name)
    return _repair(manifest, live, kind=kind, name=name)


def _repair(manifest: dict[str, Any], live: Mapping[str, Any], *, kind: str, name: str) -> Repair | None:
    wanted = {key: part for key, part in manifest.items() if key not in {"apiVersion", "kind"}}
    # Without our owner reference the object would be a stranger's; others may have added theirs.
    wanted["metadata"] = {key: part for key, part in wanted["metadata"].items() if key != "ownerReferences"}
    abandoned = own_annotations(live["metadata"]) - wanted["metadata"].get("annotations", {}).keys()
    different = first_difference(wanted, live) or ("metadata.annotations" if abandoned else None)
    if different is None:
        return None
    patch = patch_to(wanted, live)
    patch["metadata"] |= {key: live["metadata"][key] for key in ("uid", "resourceVersion")}
    if abandoned:
        patch["metadata"]["annotations"] = patch["metadata"].get("annotations", {}) | dict.fromkeys(abandoned)
    return Repair(kind=kind, patch=patch, sentence=f"repair {different} of {kind} {name}")


def _leaving(kind: str, name: str) -> Wait:
    message = (
        f"{kind} {name} is being deleted, or of the previous deployment of this name and about to be; "
        f"if it stays, look at its finalizers with: kubectl get {kind.lower()} {name} -o yaml"
    )
    return Wait(reason=LEAVING, message=message)


def _taken(live: Mapping[str, Any], facts: Facts, *, kind: str, name: str, now: float) -> Wait:
    orphan = (live["metadata"].get("labels") or {}).get(DEPLOYMENT_LABEL) == facts.name
    # By label the command would take our own replicas, too: only where there are none is it the way out.
    orphan = orphan and not any(replica.live for replica in facts.replicas)
    if orphan:
        message = (
            f"{kind} {name} is left over from a deployment that was deleted with --cascade=orphan; it is not touched. "
            f"Remove what is left with: kubectl delete pods,services,configmaps,controllerrevisions "
            f"-n {facts.namespace} -l {DEPLOYMENT_LABEL}={facts.name}"
        )
    else:
        message = (
            f"{kind} {name} exists and does not belong to this VLMDeployment; it is not touched. Give the VLMDeployment "
            f"another name, or remove it with: kubectl delete {kind.lower()} {name} -n {facts.namespace}"
        )
    return Wait(reason=TAKEN[kind], message=message, until=now + LOOK_AGAIN)


def _old_revisions(facts: Facts, target: Target) -> list[Delete]:
    in_use = {replica.revision for replica in facts.replicas} | {target.revision}
    idle = [known for known in facts.revisions if known.revision not in in_use]
    idle.sort(key=lambda known: (known.number, known.name), reverse=True)
    return [_delete_revision(known) for known in idle[HISTORY_LIMIT:]]


def _delete_revision(known: StoredRevision) -> Delete:
    metadata = known.live["metadata"]
    return Delete(
        kind="ControllerRevision",
        name=known.name,
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        sentence=f"remove ControllerRevision {known.name}: {HISTORY_LIMIT} newer ones are kept",
    )
