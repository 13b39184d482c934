"""What stands around the replicas: the stored revision, the scripts, the Service. Created, repaired, never taken over.

A name that somebody else holds is reported and waited for; while it is, no replica is created, since nothing could reach it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vlm_operator.api.names import AVAILABLE_AT, DEPLOYMENT_LABEL, DRAINING, FAILED_REASON
from vlm_operator.engines.registry import engine
from vlm_operator.replicas.actions import Action, Create, Delete, Repair, Wait
from vlm_operator.replicas.children import budget_manifest, scripts_manifest, service_manifest
from vlm_operator.replicas.drift import first_difference, patch_to
from vlm_operator.replicas.facts import Facts
from vlm_operator.replicas.kept import own_annotations
from vlm_operator.replicas.ownership import Ownership, ownership
from vlm_operator.replicas.progress import is_available
from vlm_operator.replicas.revision import SETTINGS, revision_manifest, settings_annotation
from vlm_operator.replicas.settings import HISTORY_LIMIT, Settings
from vlm_operator.replicas.sizes import Sizes
from vlm_operator.replicas.target import Target, last_good
from vlm_operator.replicas.times import timestamp

LEAVING = "PreviousIsLeaving"
"""Objects of a deleted deployment of the same name are still being removed."""
TAKEN = {
    "Service": "ServiceNameTaken",
    "ConfigMap": "ConfigMapNameTaken",
    "ControllerRevision": "ControllerRevisionNameTaken",
    "PodDisruptionBudget": "PodDisruptionBudgetNameTaken",
}
"""Somebody else's object has a name that the deployment needs."""
LOOK_AGAIN = 10.0
"""Seconds after which a taken name is tried again: a foreign object is not watched."""


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Actions on the surroundings, and what they wait for."""

    actions: tuple[Action, ...] = ()
    waits: tuple[Wait, ...] = ()


def surroundings(
    facts: Facts, target: Target, settings: Settings | None, sizes: Sizes, *, verdict: str, now: float
) -> Surroundings:
    """Create what is missing, repair what was changed, remove old revisions. `verdict`: why the rollout is given up now."""
    actions: list[Action] = []
    waits: list[Wait] = []
    for manifest in _wanted(facts, target, settings, sizes, verdict=verdict, now=now):
        step = _tend(manifest, facts, now=now)
        if isinstance(step, Wait):
            waits.append(step)
        elif step is not None:
            actions.append(step)
    actions.extend(_unwanted_budget(facts, settings))
    actions.extend(_forgiven(facts, target))
    actions.extend(_old_revisions(facts, target, settings))
    return Surroundings(actions=tuple(actions), waits=tuple(waits))


def _wanted(
    facts: Facts, target: Target, settings: Settings | None, sizes: Sizes, *, verdict: str, now: float
) -> list[dict[str, Any]]:
    place: dict[str, Any] = {"deployment": facts.name, "namespace": facts.namespace, "uid": facts.uid}
    scripts = engine(target.resolved.inputs.engine.type).scripts()
    around = []
    if settings is not None:
        around.append(service_manifest(**place, service=settings.service))
        if settings.managed_budget:
            draining = (r.name for r in facts.replicas if r.live and r.role == DRAINING)
            around.append(budget_manifest(**place, serving=sizes.serving, draining=draining))
    revision = _revision(facts, target.asked, settings, place)
    annotations = revision["metadata"]["annotations"]
    if verdict:
        annotations[FAILED_REASON] = verdict
    if target.wanted is None and is_available(facts, target, sizes):
        annotations.setdefault(AVAILABLE_AT, timestamp(now))
    return [*around, revision, scripts_manifest(**place, scripts=scripts)]


def _revision(facts: Facts, asked: Target, settings: Settings | None, place: dict[str, Any]) -> dict[str, Any]:
    """The manifest of the revision that the spec asks for, numbered as the newest one."""
    newest = max((known.number for known in facts.revisions), default=0)
    stored = asked.stored
    number = stored.number if stored and stored.number == newest else newest + 1
    noted = (stored.live["metadata"].get("annotations") or {}) if stored else {}
    annotations = {key: noted[key] for key in (AVAILABLE_AT, FAILED_REASON) if key in noted}
    if settings is not None:
        annotations[SETTINGS] = settings_annotation(settings)
    manifest = revision_manifest(
        **place, revision=asked.revision, number=number, resolved=asked.resolved, annotations=annotations
    )
    if stored is not None:
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
            f"Remove what is left with: kubectl delete pods,services,configmaps,controllerrevisions,poddisruptionbudgets "
            f"-n {facts.namespace} -l {DEPLOYMENT_LABEL}={facts.name}"
        )
    else:
        without = "set spec.podDisruptionBudget to None, " if kind == "PodDisruptionBudget" else ""
        message = (
            f"{kind} {name} exists and does not belong to this VLMDeployment; it is not touched. To go on, {without}give the "
            f"VLMDeployment another name, or remove it with: kubectl delete {kind.lower()} {name} -n {facts.namespace}"
        )
    return Wait(reason=TAKEN[kind], message=message, until=now + LOOK_AGAIN)


def _unwanted_budget(facts: Facts, settings: Settings | None) -> list[Delete]:
    live = facts.objects.get(("PodDisruptionBudget", facts.name))
    if live is None or settings is None or settings.managed_budget or live["metadata"].get("deletionTimestamp"):
        return []
    if ownership(live, deployment=facts.name, uid=facts.uid) is not Ownership.OURS:
        return []
    why = "spec.podDisruptionBudget is None"
    return [_delete("PodDisruptionBudget", live, why=why)]


def _forgiven(facts: Facts, target: Target) -> list[Repair]:
    """A revision that failed may be tried again, once the spec has asked for another."""
    return [
        Repair(
            kind="ControllerRevision",
            patch={
                "metadata": {
                    key: known.live["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")
                }
                | {"annotations": {FAILED_REASON: None}}
            },
            sentence=f"ControllerRevision {known.name} may be tried again: another revision is wanted",
        )
        for known in facts.revisions
        if known.failed and known.revision != target.asked.revision
    ]


def _old_revisions(facts: Facts, target: Target, settings: Settings | None) -> list[Delete]:
    in_use = {replica.revision for replica in facts.replicas} | {target.revision, target.asked.revision}
    # The one to return to is in use until the new one has proved itself.
    good = last_good(facts, besides=target.asked.revision)
    if good is not None and facts.status.get("currentRevision") != target.asked.revision:
        in_use.add(good.revision)
    limit = settings.history_limit if settings is not None else HISTORY_LIMIT
    idle = [known for known in facts.revisions if known.revision not in in_use]
    idle.sort(key=lambda known: (known.number, known.name), reverse=True)
    why = f"{limit} newer ones are kept" if limit else "no old ones are kept"
    return [_delete("ControllerRevision", known.live, why=why) for known in idle[limit:]]


def _delete(kind: str, live: Mapping[str, Any], *, why: str) -> Delete:
    metadata = live["metadata"]
    return Delete(
        kind=kind,
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        sentence=f"remove {kind} {metadata['name']}: {why}",
    )
