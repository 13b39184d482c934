"""What must be true at every moment of a deployment's life, judged by what the API server says of pods and endpoints."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vlm_operator.api.names import DEPLOYMENT_LABEL, DRAINING, REVISION_LABEL, ROLE_LABEL, SERVING, SLOT_LABEL

Object = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What is promised while something goes on."""

    serving: int
    """Ready endpoints of the Service, at least."""
    live: int
    """Pods at most: neither leaving nor ended, and on nodes that are there."""


class Invariants:
    """Takes in the events of two watches, and remembers what was seen and what should never have been.

    A pod that serves has work in flight.
    """

    def __init__(self) -> None:
        self.bounds = Bounds(serving=0, live=0)
        self.violations: list[str] = []
        self.history: list[str] = []
        self.busy: dict[str, str] = {}
        """Addresses of pods with work in flight, by uid."""
        self.excused: set[str] = set()
        """Names of pods, and of deployments whose pods, somebody else than the operator deletes, and of nodes that are lost."""
        self._pods: dict[str, Object] = {}
        self._slices: dict[str, Object] = {}

    def pod(self, event: str, pod: Object) -> None:
        """Take in an event about a pod."""
        metadata = pod["metadata"]
        uid, before = metadata["uid"], self._pods.get(metadata["uid"])
        if event == "DELETED":
            self._pods.pop(uid, None)
        else:
            self._pods[uid] = pod
        self._note(f"pod {metadata['name']} {event.lower()}: {_in_short(pod)}")
        left = event == "DELETED" or _is_leaving(pod)
        if left and before is not None and not _is_leaving(before) and uid in self.busy:
            owner = metadata["labels"].get(DEPLOYMENT_LABEL)
            if not self.excused & {metadata["name"], owner, pod["spec"].get("nodeName")}:
                self._object(f"{metadata['name']} is deleted with work in flight")
        if left:
            self.busy.pop(uid, None)
        elif _is_ready(pod) and metadata["labels"].get(ROLE_LABEL) == SERVING:
            self.busy[uid] = pod["status"]["podIP"]
        self._judge_pods()

    def drains(self, uid: str) -> bool:
        """Whether a pod with work in flight gets no more of it."""
        pod = self._pods.get(uid)
        return uid in self.busy and pod is not None and pod["metadata"]["labels"].get(ROLE_LABEL) == DRAINING

    def endpoints(self, event: str, found: Object) -> None:
        """Take in an event about an EndpointSlice."""
        name = found["metadata"]["name"]
        if event == "DELETED":
            self._slices.pop(name, None)
        else:
            self._slices[name] = found
        ready = sorted(
            endpoint["targetRef"]["name"]
            for one in self._slices.values()
            for endpoint in one.get("endpoints") or ()
            if endpoint["conditions"].get("ready")
        )
        self._note(f"ready endpoints: {', '.join(ready) or 'none'}")
        if len(ready) < self.bounds.serving:
            self._object(f"{len(ready)} ready endpoints, {self.bounds.serving} are promised")

    def _judge_pods(self) -> None:
        live = [
            pod
            for pod in self._pods.values()
            if not _is_leaving(pod)
            and pod.get("status", {}).get("phase") not in {"Failed", "Succeeded"}
            and pod["spec"].get("nodeName") not in self.excused
        ]
        if len(live) > self.bounds.live:
            self._object(f"{len(live)} live pods, {self.bounds.live} are allowed")
        places: dict[tuple[str, str], str] = {}
        for pod in live:
            labels, name = pod["metadata"]["labels"], pod["metadata"]["name"]
            place = labels.get(REVISION_LABEL, ""), labels.get(SLOT_LABEL, "")
            if place in places:
                self._object(f"{places[place]} and {name} hold the same slot")
            places[place] = name

    def _note(self, words: str) -> None:
        self.history.append(words)

    def _object(self, words: str) -> None:
        self.history.append(f"  !! {words}")
        self.violations.append(words)


def _is_leaving(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _in_short(pod: Object) -> str:
    parts = [
        pod["metadata"]["labels"].get(ROLE_LABEL, "no role"),
        pod.get("status", {}).get("phase", "Pending"),
        *(["ready"] if _is_ready(pod) else []),
        *(["leaving"] if _is_leaving(pod) else []),
    ]
    return ", ".join(parts)
