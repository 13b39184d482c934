"""The objects of a deployment besides its pods and revisions, as manifests."""

from collections.abc import Iterable
from typing import Any

from vlm_operator.api.names import OUT_OF_BUDGET, child_labels, owner_reference, scripts_name, serving_selector
from vlm_operator.api.spec import Service
from vlm_operator.engines.base import HTTP_PORT


def service_manifest(*, deployment: str, namespace: str, uid: str, service: Service) -> dict[str, Any]:
    """The Service through which clients reach the serving replicas."""
    metadata = _metadata(deployment, namespace, uid, name=deployment, component="service")
    if service.annotations:
        metadata["annotations"] = dict(service.annotations)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "type": service.type,
            "selector": serving_selector(deployment),
            "ports": [{"name": "http", "protocol": "TCP", "port": service.port, "targetPort": HTTP_PORT}],
        },
    }


def budget_manifest(
    *, deployment: str, namespace: str, uid: str, serving: int, draining: Iterable[str] = ()
) -> dict[str, Any]:
    """The PodDisruptionBudget: evictions take one serving replica at a time, and those that are not ready at any time.

    It is a number: a percentage would be asked of the scale subresource, which does not know of warm replicas. `draining`:
    names of the replicas that have left the rotation. Kubernetes does not see a pod leave by a change of its labels, and would
    count it on; a change of the budget makes it count anew.
    """
    left = ",".join(sorted(draining))
    annotations = {"annotations": {OUT_OF_BUDGET: left}} if left else {}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(deployment, namespace, uid, name=deployment, component="disruption-budget") | annotations,
        "spec": {
            "minAvailable": max(0, serving - 1),
            "selector": {"matchLabels": serving_selector(deployment)},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def scripts_manifest(*, deployment: str, namespace: str, uid: str, scripts: dict[str, str]) -> dict[str, Any]:
    """The ConfigMap with the scripts that the pods mount."""
    name = scripts_name(deployment)
    metadata = _metadata(deployment, namespace, uid, name=name, component="engine-scripts")
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(scripts)}


def _metadata(deployment: str, namespace: str, uid: str, *, name: str, component: str) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": namespace,
        "labels": child_labels(deployment, component=component),
        "ownerReferences": [owner_reference(deployment, uid)],
    }
