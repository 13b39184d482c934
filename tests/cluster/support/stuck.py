"""A replica whose containers are not created, and what a kubelet tells of it."""

from datetime import UTC, datetime

from cluster.support.operator import Deployments
from controlplane import wait_until

START_LATE = {"sim.vlm.dev/start-after": "1h"}
"""Labels of a node whose pods stay in creation."""
CANNOT_MOUNT = 'MountVolume.SetUp failed for volume "models": no such share'


def stuck(deployments: Deployments) -> None:
    """Wait until a replica is in creation, tell that its volume cannot be mounted, and let it have been so for long."""
    name, uid = wait_until(lambda: _in_creation(deployments), "a pod is in creation")
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.1", "namespace": deployments.namespace},
        "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "type": "Warning",
        "reason": "FailedMount",
        "note": CANNOT_MOUNT,
        "action": "Mount",
        "reportingController": "kubelet",
        "reportingInstance": "imitated",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "name": name, "namespace": deployments.namespace, "uid": uid},
    }
    deployments.api.post(f"/apis/events.k8s.io/v1/namespaces/{deployments.namespace}/events", event)
    path = deployments.core("pods", name)
    conditions = deployments.api.get(path)["status"]["conditions"]
    for condition in conditions:
        if condition["type"] == "PodScheduled":
            condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    deployments.api.merge_patch(f"{path}/status", {"status": {"conditions": conditions}})


def _in_creation(deployments: Deployments) -> tuple[str, str] | None:
    for name, pod in deployments.pods().items():
        states = [one.get("state", {}) for one in pod["status"].get("containerStatuses", ())]
        if any(state.get("waiting", {}).get("reason") == "ContainerCreating" for state in states):
            return name, pod["metadata"]["uid"]
    return None
