"""Pods for tests of the imitation: make one, steer it, and look at what became of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from controlplane import Api, wait_until

Pod = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Pods:
    """The pods of one namespace."""

    api: Api
    namespace: str

    def create(
        self,
        name: str,
        *,
        gpus: int = 1,
        notes: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> None:
        """Create a pod with one container `engine`; `notes` are steering annotations without their prefix."""
        limits = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}} if gpus else {}
        engine = {"name": "engine", "image": "engine:1", **limits}
        metadata = {"name": name, "annotations": _prefixed(notes or {}), "labels": dict(labels or {})}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [engine], **spec}}
        self.api.post(self._path(), body)

    def annotate(self, name: str, notes: Mapping[str, str | None]) -> None:
        """Steer a pod that exists; None takes a note away."""
        self.api.merge_patch(self._path(name), {"metadata": {"annotations": _prefixed(notes)}})

    def get(self, name: str) -> Pod:
        """Return the pod."""
        pod: Pod = self.api.get(self._path(name))
        return pod

    def names(self) -> set[str]:
        """Return the names of the pods that exist."""
        return {pod["metadata"]["name"] for pod in self.api.get(self._path())["items"]}

    def delete(self, name: str, *, grace_seconds: int = 30) -> None:
        """Ask for a graceful deletion and return at once."""
        self.api.delete(self._path(name), {"gracePeriodSeconds": grace_seconds})

    def until(self, name: str, holds: Callable[[Pod], Any], what: str, *, timeout_seconds: float = 60) -> Pod:
        """Wait until `holds` is true of the pod, and return the pod."""

        def look() -> Pod | None:
            pod = self.get(name)
            return pod if holds(pod) else None

        pod = wait_until(look, f"pod {name} {what}", timeout_seconds=timeout_seconds)
        assert pod
        return pod

    def until_ready(self, name: str) -> Pod:
        """Wait until the pod is ready."""
        return self.until(name, is_ready, "is ready")

    def _path(self, name: str = "") -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods" + (f"/{name}" if name else "")


def condition(pod: Pod, kind: str) -> str | None:
    """Return the status of a condition: True, False, Unknown, or None if the pod does not have it."""
    return next((c["status"] for c in pod["status"].get("conditions", []) if c["type"] == kind), None)


def is_ready(pod: Pod) -> bool:
    """Tell whether a pod is ready."""
    return condition(pod, "Ready") == "True"


def container(pod: Pod, name: str = "engine") -> dict[str, Any]:
    """Return the status of a container, or nothing if it has none yet."""
    statuses = pod["status"].get("containerStatuses", []) + pod["status"].get("initContainerStatuses", [])
    return next((status for status in statuses if status["name"] == name), {})


def waiting_reason(pod: Pod, name: str = "engine") -> str | None:
    """Return why a container waits, or None if it does not."""
    reason: str | None = container(pod, name).get("state", {}).get("waiting", {}).get("reason")
    return reason


def _prefixed(notes: Mapping[str, Any]) -> dict[str, Any]:
    return {f"sim.vlm.dev/{key}": value for key, value in notes.items()}
