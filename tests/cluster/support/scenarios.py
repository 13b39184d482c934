"""Ten turns in a deployment's life, each with what stands before it, what somebody does, and what is promised meanwhile."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cluster.support.invariants import Bounds
from cluster.support.observer import Observer
from cluster.support.operator import Deployments, Object
from cluster.support.story import NAME, is_finished, picture
from controlplane import ControlPlane, GpuNode, Timing, l4, wait_until

POOL = {"size": 1, "mode": "Standby"}
SHORTER = {"maxModelLen": 4096}
BROKEN = "broken"
"""Key of the taint and label of a node whose engines end with a bad argument."""
OWN = "own"
"""The same for nodes of one namespace."""
READY_SOON = {"sim.vlm.dev/ready-after": "300ms"}
SHARED_NODES, OWN_NODES = 4, 4
TIMING = Timing(node_monitor_grace_seconds=10, node_eviction_seconds=5)
"""A lost node is noticed and given up soon."""
PATIENCE = 120.0
"""Seconds for one step of what somebody does."""

Act = Callable[[Deployments, Observer], None]


def shared_nodes() -> tuple[GpuNode, ...]:
    """The nodes that all scenarios share."""
    return (*(l4(f"gpu-{number}", gpus=8, labels=READY_SOON) for number in range(SHARED_NODES)), broken_node())


def own_nodes(namespace: str) -> tuple[GpuNode, ...]:
    """The nodes of a namespace."""
    labels = {**READY_SOON, OWN: namespace}
    return tuple(
        _set_apart(f"{namespace}-{number}", OWN, namespace, gpus=1, labels=labels) for number in range(OWN_NODES)
    )


def only_on(key: str, value: str) -> Object:
    """A pod template that leads to nodes that are set apart."""
    toleration = {"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}
    requests = {"cpu": "100m", "memory": "1Gi"}
    return {"nodeSelector": {key: value}, "tolerations": [toleration], "resources": {"requests": requests}}


def has_settled(deployments: Deployments) -> bool:
    """Whether all is as it was asked for, the pool included."""
    pool = deployments.condition("WarmPoolReady", NAME).get("status", "True")
    return pool == "True" and is_finished(deployments, "")


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A deployment that has settled, and what then happens to it."""

    name: str
    before: Mapping[str, Any] | None
    """Its spec; None: there is none yet."""
    act: Act
    bounds: Bounds
    is_over: Callable[[Deployments], bool] = has_settled
    own_nodes: bool = False
    """It runs on nodes of its own, of one GPU each."""
    deletes: bool = False
    """The cluster collects what is left."""

    def __str__(self) -> str:
        return self.name


def broken_node() -> GpuNode:
    """The node of engines that end."""
    labels = {**READY_SOON, BROKEN: "yes", "sim.vlm.dev/fault": "exit", "sim.vlm.dev/exit-code": "2"}
    return _set_apart("gpu-broken", BROKEN, "yes", gpus=8, labels=labels)


def _has_rolled_back(deployments: Deployments) -> bool:
    ready, status = deployments.condition("Ready", NAME), deployments.status(NAME)
    return ready.get("reason") == "RolledBack" and (status["servingReplicas"], status.get("drainingReplicas", 0)) == (
        2,
        0,
    )


def _is_gone(deployments: Deployments) -> bool:
    return picture(deployments) == {}


def _create(deployments: Deployments, _: Observer) -> None:
    deployments.create(NAME, replicas=2)


def _patch(**spec: Any) -> Act:
    def act(deployments: Deployments, _: Observer) -> None:
        deployments.patch(NAME, **spec)

    return act


def _take_one(deployments: Deployments, observer: Observer) -> None:
    name = _serving(deployments)
    observer.excuse(name)
    deployments.api.delete(deployments.core("pods", name), {"gracePeriodSeconds": 0})


def _edit_during_a_rollout(deployments: Deployments, _: Observer) -> None:
    before = set(deployments.pods(NAME))
    deployments.patch(NAME, model=SHORTER)
    _until_new(deployments, before)
    deployments.patch(NAME, model={"maxModelLen": 8192})


def _delete_while_growing(deployments: Deployments, observer: Observer) -> None:
    before = set(deployments.pods(NAME))
    deployments.patch(NAME, replicas=4)
    _until_new(deployments, before)
    observer.excuse(NAME)
    deployments.delete(NAME)


def _lose_a_node(deployments: Deployments, observer: Observer) -> None:
    """Let a node be silent until the cluster has given up its pods, then return."""
    name = _serving(deployments)
    node = deployments.pods(NAME)[name]["spec"]["nodeName"]
    observer.excuse(node)
    deployments.control_plane.lose_node(node)
    wait_until(lambda: name not in deployments.pods(NAME), "the cluster gives it up", timeout_seconds=PATIENCE)
    deployments.control_plane.return_node(node)


def _serving(deployments: Deployments) -> str:
    pods = deployments.pods(NAME).items()
    return min(name for name, pod in pods if pod["metadata"]["labels"]["vlm.dev/role"] == "serving")


def _until_new(deployments: Deployments, before: set[str]) -> None:
    wait_until(lambda: deployments.pods(NAME).keys() - before, "there is a new one", timeout_seconds=PATIENCE)


def settle_on(plane: ControlPlane, scenario: Scenario, namespace: str) -> Mapping[str, Any]:
    """Make what the scenario needs; returns the spec that stands before it."""
    spec = dict(scenario.before or {})
    if scenario.own_nodes:
        plane.add_gpu_nodes(*own_nodes(namespace))
        spec["podTemplate"] = only_on(OWN, namespace)
    return spec


SCENARIOS = (
    Scenario(name="create", before=None, act=_create, bounds=Bounds(serving=0, live=2)),
    Scenario(name="scale up", before={"replicas": 1}, act=_patch(replicas=3), bounds=Bounds(serving=1, live=3)),
    Scenario(name="scale down", before={"replicas": 3}, act=_patch(replicas=1), bounds=Bounds(serving=1, live=3)),
    Scenario(name="promote", before={"replicas": 2, "warmPool": POOL}, act=_take_one, bounds=Bounds(serving=1, live=3)),
    Scenario(
        name="rollout through the pool",
        before={"replicas": 2, "warmPool": POOL},
        act=_patch(model=SHORTER),
        bounds=Bounds(serving=2, live=3),
    ),
    Scenario(
        name="rollout without a pool",
        before={"replicas": 2},
        act=_patch(model=SHORTER),
        bounds=Bounds(serving=2, live=3),
    ),
    Scenario(
        name="rollback",
        before={"replicas": 2},
        act=_patch(engine={"args": ["--seed=1"]}, podTemplate=only_on(BROKEN, "yes")),
        bounds=Bounds(serving=2, live=3),
        is_over=_has_rolled_back,
    ),
    Scenario(
        name="delete",
        before={"replicas": 2},
        act=_delete_while_growing,
        bounds=Bounds(serving=0, live=4),
        is_over=_is_gone,
        deletes=True,
    ),
    Scenario(
        name="edit during a rollout",
        before={"replicas": 2},
        act=_edit_during_a_rollout,
        bounds=Bounds(serving=2, live=3),
    ),
    Scenario(
        name="node loss",
        before={"replicas": 2, "warmPool": POOL},
        act=_lose_a_node,
        bounds=Bounds(serving=1, live=3),
        own_nodes=True,
    ),
)


def _set_apart(name: str, key: str, value: str, *, gpus: int, labels: Mapping[str, str]) -> GpuNode:
    taint = {"key": key, "value": value, "effect": "NoSchedule"}
    return replace(l4(name, gpus=gpus, labels=labels), taints=(taint,))
