"""The imitation of nodes and pods: names of the notes that steer it, and its stages written out for kwok.

The files under stages/ are in a short form that reads as policy. This module turns them into kwok's Stage objects and
knows nothing of what they mean.
"""

import json
from pathlib import Path
from typing import Any

import yaml

PREFIX = "sim.vlm.dev/"
"""Annotations of pods and labels of nodes that start with this steer the imitation; see the README."""

GONE = f"{PREFIX}gone"
"""A node with this label has lost its kubelet: no heartbeat, no change to any pod on it."""

NODE_LABELS = (
    "back-off",
    "complete-after",
    "container",
    "end-after",
    "exit-code",
    "fault",
    "fault-after",
    "init-after",
    "message",
    "ready-after",
    "reason",
    "restarts",
    "start-after",
)
"""What a node may decide for its pods: all that an annotation of a pod may say."""

_FOLDER = Path(__file__).parent / "stages"


def render_stages(kubelet_version: str) -> str:
    """Return kwok's configuration: all stages, as a stream of documents."""
    policy = (_FOLDER / "pods.jq").read_text()
    pieces = (_FOLDER / "pods.tpl").read_text()
    pods = [
        _stage("Pod", name, step, selector=f"{policy}\nnext", value=name, prelude=policy, pieces=pieces)
        for name, step in yaml.safe_load((_FOLDER / "pods.yaml").read_text()).items()
    ]
    unready = 'any(.status.conditions[]?; .type == "Ready" and .status == "True") | not'
    nodes_file = (_FOLDER / "nodes.yaml").read_text().replace("@KUBELET_VERSION@", kubelet_version)
    nodes = [
        _stage("Node", name, step, selector=unready, value="true", prelude="", pieces="")
        for name, step in yaml.safe_load(nodes_file).items()
    ]
    return "\n---\n".join(json.dumps(stage) for stage in [*nodes, *pods])


def binding_policy() -> list[dict[str, Any]]:
    """Return the admission policy that copies a node's `sim.vlm.dev/` labels to the pods bound to it.

    A policy is weighed for every node that its binding selects, at every binding of a pod. So there is one binding per
    label, each of which selects the few nodes that carry it, and not one binding for all nodes.
    """
    policy, binding = yaml.safe_load_all((_FOLDER / "node-labels.yaml").read_text())
    bindings = []
    for label in NODE_LABELS:
        selector = {"matchExpressions": [{"key": f"{PREFIX}{label}", "operator": "Exists"}]}
        spec = {**binding["spec"], "paramRef": {**binding["spec"]["paramRef"], "selector": selector}}
        bindings.append({**binding, "metadata": {"name": f"{PREFIX[:-1]}-{label}"}, "spec": spec})
    return [policy, *bindings]


def _stage(
    kind: str, name: str, step: dict[str, Any], *, selector: str, value: str, prelude: str, pieces: str
) -> dict[str, Any]:
    following: dict[str, Any] = {"statusTemplate": pieces + step["status"]}
    if "event" in step:
        following["event"] = step["event"]
    if step.get("delete"):
        following["delete"] = True
    first = [{"key": step["if"], "operator": "Exists"}] if "if" in step else []
    spec: dict[str, Any] = {
        "resourceRef": {"apiGroup": "v1", "kind": kind},
        "selector": {"matchExpressions": [*first, {"key": selector, "operator": "In", "values": [value]}]},
        "next": following,
    }
    if "after" in step:
        spec["delay"] = {
            "durationMilliseconds": 0,
            "durationFrom": {"expressionFrom": f"{prelude}\n{step['after']}"},
        }
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": f"{kind.lower()}-{name}"},
        "spec": spec,
    }
