"""Random edits of one VLMDeployment, as its user makes them one after the other: for the cluster in memory and for a real one.

What each edit leaves is accepted, but for a few that the operator refuses. What the last one leaves is accepted and not paused.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from vlm_operator.api.names import AVAILABLE_AT, RESTARTED_AT
from vlm_operator.replicas.evaluate import evaluate, findings_that_count
from vlm_operator.sizing.catalogue.loading import builtin

Object = dict[str, Any]
NAME = "qwen"
FIRST: Object = {
    "metadata": {"name": NAME, "annotations": {}},
    "spec": {
        "model": {"name": "Qwen/Qwen2.5-VL-7B-Instruct", "quantization": "AWQ"},
        "weights": {"persistentVolumeClaim": {"claimName": "models"}},
        "multimodal": {"maxPixels": 1003520},
        "podTemplate": {"resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}},
        "replicas": 2,
    },
}


@dataclass(frozen=True, kw_only=True)
class Edit:
    """The resource as it is after an edit."""

    resource: Object
    moment: float
    """When it comes: between 0, before the operator has seen the edit before it, and 1, when that is carried out."""

    @property
    def accepted(self) -> bool:
        """Whether the operator accepts it."""
        return _is_accepted(self.resource)


def _spec(**fields: Any) -> Object:
    return {"spec": fields}


_LARGE: tuple[Callable[[Random], Object], ...] = (
    lambda r: _spec(model={"maxModelLen": r.choice([4096, 8192, 16384, None])}),
    lambda r: _spec(warmPool={"size": r.randint(1, 2), "mode": r.choice(["Standby", "InRotation"])}),
    lambda r: _spec(rollout={"paused": r.choice([True, True, False, None])}),
    lambda r: _spec(
        scaling={
            "mode": r.choice(["Active", "Advisory"]),
            "minReplicas": r.randint(1, 2),
            "maxReplicas": r.randint(2, 4),
        }
    ),
)
_EDITS: tuple[Callable[[Random], Object], ...] = (
    lambda r: _spec(replicas=r.randint(0, 3)),
    lambda r: _spec(engine={"args": r.choice([["--seed=1"], ["--seed=2"], None])}),
    lambda r: _spec(warmPool=r.choice([None, {"size": 0}])),
    lambda r: _spec(rollout={"type": r.choice(["RollingUpdate", "Recreate", None])}),
    lambda r: _spec(rollout={"maxSurge": r.choice([0, 1, 2, None]), "maxUnavailable": r.choice([0, 1, 2, None])}),
    lambda r: _spec(service={"port": r.choice([8000, 9000]), "type": r.choice(["ClusterIP", None])}),
    lambda r: _spec(service={"annotations": {f"example.com/{r.choice('ab')}": r.choice(["1", "2", None])}}),
    lambda r: _spec(podDisruptionBudget=r.choice(["Managed", "None", None])),
    lambda _: _spec(scaling=None),
    lambda r: _spec(
        podTemplate={"metadata": {r.choice(["labels", "annotations"]): {"team": r.choice(["a", "b", None])}}}
    ),
    lambda r: _spec(drain={"timeout": r.choice(["0s", "5s", "1m"])}),
    lambda r: {"metadata": {"annotations": {RESTARTED_AT: f"2026-11-30T1{r.randint(0, 2)}:00:00Z"}}},
)
_REFUSED: tuple[Object, ...] = (
    _spec(scaling={"maxReplicas": 9, "policy": "Targets"}, replicas=3),
    _spec(engine={"args": ["--tensor-parallel-size", "2"]}, service={"port": 9443}),
    _spec(model={"maxModelLen": 131072}, gpu={"products": ["NVIDIA-L4"]}, parallelism={"tensor": 3}),
)


def sequence(random: Random) -> tuple[Edit, ...]:
    """A new resource and three to eight edits of it."""
    kept = [FIRST]
    edits = [Edit(resource=FIRST, moment=1.0)]
    for _ in range(random.randint(3, 8)):
        moment = random.choice([0.0, random.random(), random.random(), 1.0])
        if random.random() < 0.1:
            resource = merged(kept[-1], random.choice(_REFUSED))
        else:
            resource = random.choice(kept) if random.random() < 0.15 else edited(kept[-1], random)
            kept.append(resource)
        edits.append(Edit(resource=resource, moment=moment))
    last = merged(kept[-1], _spec(rollout={"paused": None}))
    if last != edits[-1].resource:
        edits.append(Edit(resource=last, moment=random.random()))
    return tuple(edits)


def edited(resource: Object, random: Random) -> Object:
    """The resource after an edit; every other one is of what changes most: revision, pool, rollout or scaling."""
    while True:
        after: Object = merged(resource, random.choice(random.choice([_EDITS, _LARGE]))(random))
        if _is_accepted(after):
            return after


def _is_accepted(resource: Mapping[str, Any]) -> bool:
    return not any(f.severity == "Error" for f in findings_that_count(evaluate(resource, catalogue=builtin())))


def fresh(last: Object, *, starting_replicas: int | None) -> Object:
    """What a new resource must say to become what the last one is: scaling that is active goes on from where it began."""
    scaling = last["spec"].get("scaling") or {}
    if scaling.get("mode", "Advisory") == "Active" and last["spec"]["replicas"] and starting_replicas:
        changed: Object = merged(last, _spec(replicas=starting_replicas))
        return changed
    return last


_OF_ONE_RUN = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "revision", AVAILABLE_AT}
)
"""Times, versions, the place of a revision in the history, and whether it was available while there were replicas."""


def without_history(part: Any) -> Any:
    """An object without what tells of the time before. What is empty may be missing: that is no other revision."""
    if isinstance(part, list):
        return [without_history(item) for item in part]
    if not isinstance(part, dict):
        return part
    kept = {key: without_history(value) for key, value in part.items() if key not in _OF_ONE_RUN}
    return {key: value for key, value in kept.items() if value not in ({}, [])}


def merged(live: Any, patch: Any) -> Any:
    """A JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    kept = dict(live) if isinstance(live, dict) else {}
    changed = {key: merged(kept.get(key), part) for key, part in patch.items() if part is not None}
    return {key: part for key, part in kept.items() if patch.get(key, part) is not None} | changed


def difference(old: Any, new: Any) -> Any:
    """The merge patch that makes `new` of `old`."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return new
    gone = {key: None for key in old if key not in new}
    return gone | {key: difference(old.get(key), part) for key, part in new.items() if old.get(key) != part}
