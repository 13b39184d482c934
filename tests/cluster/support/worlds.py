"""The same history in two worlds: the cluster in memory with the plan, and a real API server with the operator.

After each event both come to rest, and must agree in what there is: pods by revision, role and readiness, and conditions.
"""

import signal
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import edits
from cluster.support.histories import OF_A_POD, Event, Kind, history
from cluster.support.operator import GROUP, Deployments, Object, RunningOperator
from controlplane import ApiError, ControlPlane, WaitTimeoutError, l4, wait_until
from controlplane.stages import PREFIX
from unit.replicas.examples import spec
from unit.replicas.model_cluster import Cluster, Pod
from vlm_operator.api.names import REVISION_LABEL, ROLE_LABEL, SLOT_LABEL

Picture = dict[str, Any]
ROUNDS = 500
SOON = 45.0
"""Seconds within which something that is due is waited for: rests of slots, but no deadline of a rollout."""
READY_AFTER, SLOW = "300ms", "5s"
"""How long a pod takes to become ready, and one that leaves slowly to go."""


class Modelled:
    """The world in memory."""

    def __init__(self) -> None:
        self._cluster = Cluster(wanted=spec())
        self._holds = False
        self._held: set[str] = set()
        self._known: set[str] = set()
        self._hit_last: Pod | None = None

    def happen(self, event: Event) -> bool:
        """Let an event happen; whether it could."""
        ready = self._ready()
        if event.kind in OF_A_POD and not ready:
            return False
        self._act(event, ready[event.choice % len(ready)] if ready else None)
        self._settle()
        return True

    def _act(self, event: Event, pod: Pod | None) -> None:
        cluster = self._cluster
        if event.resource is not None:
            cluster.write(event.resource)
        elif event.kind is Kind.RESTART:
            cluster.restart()
        elif event.kind is Kind.HOLD:
            self._holds = True
        elif event.kind is Kind.RELEASE:
            self._holds = False
            self._held.clear()
        elif event.kind is Kind.RECOVER and self._hit_last is not None:
            self._held.discard(self._hit_last.uid)
        elif pod is not None:
            self._hit(event.kind, pod)

    def _hit(self, kind: Kind, pod: Pod) -> None:
        match kind:
            case Kind.CRASH:
                self._cluster.restart_engine(pod)
                self._hold(pod)
            case Kind.FLAP:
                self._cluster.flap(pod)
                self._hold(pod)
            case Kind.DELETE | Kind.DELETE_SLOWLY:
                self._cluster.delete(pod, grace=30)
            case Kind.EVICT:
                self._cluster.end(pod)

    def _hold(self, pod: Pod) -> None:
        """It recovers later: whether the operator sees what is over at once is up to chance."""
        self._hit_last = pod
        self._held.add(pod.uid)

    def _settle(self) -> None:
        """Look and let pods get on, until nothing is left to do that is due soon."""
        cluster = self._cluster
        for _ in range(ROUNDS):
            done = cluster.look()
            fresh = {pod.uid for pod in cluster.pods.values()} - self._known
            self._known |= fresh
            self._held |= fresh if self._holds else set()
            moving = False
            for pod in list(cluster.pods.values()):
                if pod.terminating:
                    cluster.vanish(pod)
                    moving = True
                elif not pod.ready and not (pod.uid in self._held and pod.stage == "loading"):
                    cluster.advance(pod)
                    moving = True
            due = done.next_look is not None and done.next_look - cluster.now <= SOON
            if not done.actions and not moving and not due:
                return
            cluster.now = cluster.now + 1 if done.actions or moving else max(cluster.now + 1, done.next_look or 0.0)
        raise AssertionError(f"the world in memory does not come to rest: {cluster.status}")

    def _ready(self) -> list[Pod]:
        found = [pod for pod in self._cluster.pods.values() if pod.live and pod.ready]
        return sorted(found, key=lambda pod: _order(pod.labels))

    def picture(self) -> Picture:
        """What there is."""
        cluster = self._cluster
        pods = [_seen(pod.labels, ready=pod.ready) for pod in cluster.pods.values()]
        return _picture(pods, cluster.status)


class Real:
    """The world on a real API server, with a namespace, a node and an operator of its own."""

    def __init__(self, plane: ControlPlane, name: str, *, patience_seconds: float) -> None:
        self._plane = plane
        self._patience = patience_seconds
        self._name = name
        self._starts = 0
        self._resource: Object = {}
        self._hit_last = ""
        plane.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        plane.bound_claim(name, "models")
        plane.add_gpu_nodes(l4(f"gpu-{name}", gpus=16, labels={"history": name, f"{PREFIX}ready-after": READY_AFTER}))
        self._deployments = Deployments(control_plane=plane, namespace=name)
        self._operator = self._started()

    def end(self) -> None:
        """Leave nothing behind."""
        api, deployments = self._plane.api, self._deployments
        self._operator.stop()
        deployments.delete()
        api.delete(deployments.core("pods"), {"gracePeriodSeconds": 0})
        api.delete(f"/api/v1/nodes/gpu-{self._name}")
        api.delete(f"/api/v1/namespaces/{self._name}")

    def happen(self, event: Event) -> None:
        """Let an event happen; returns when it has."""
        if event.resource is not None:
            self._write(event.resource)
        elif event.kind is Kind.RESTART:
            self._plane.signal_program(self._operator.name, signal.SIGKILL)
            self._operator = self._started()
        elif event.kind is Kind.HOLD:
            self._label_node("never-ready")
        elif event.kind is Kind.RELEASE:
            self._label_node(None)
            for name in self._deployments.pods():
                self._note(name, {"fault": None})
        elif event.kind is Kind.RECOVER:
            if self._hit_last in self._deployments.pods():
                self._note(self._hit_last, {"fault": None, "ready-after": READY_AFTER})
        else:
            self._hit(event)

    def _hit(self, event: Event) -> None:
        ready = self._ready()
        name = ready[event.choice % len(ready)]
        path = self._deployments.core("pods", name)
        uid = self._deployments.pods()[name]["metadata"]["uid"]
        match event.kind:
            case Kind.CRASH:
                count = _restarts(self._plane.api.get(path)) + 1
                self._hit_last = name
                self._note(name, {"fault": "restart", "restarts": str(count), "ready-after": "1h"})
                self._until(path, uid, lambda pod: _restarts(pod) >= count)
            case Kind.FLAP:
                self._hit_last = name
                self._note(name, {"fault": "never-ready"})
                self._until(path, uid, lambda pod: not _is_ready(pod))
            case Kind.DELETE:
                self._plane.api.delete(path, {"gracePeriodSeconds": 0})
            case Kind.DELETE_SLOWLY:
                self._note(name, {"end-after": SLOW})
                self._plane.api.delete(path, {"gracePeriodSeconds": 30})
            case Kind.EVICT:
                self._note(name, {"fault": "evict"})
                self._until(path, uid, lambda pod: pod["status"]["phase"] == "Failed")

    def until(self, expected: Picture) -> None:
        """Wait until it agrees and is at rest. Raises WaitTimeoutError."""
        before: list[Any] = []

        def agrees() -> bool:
            nonlocal before
            known, before = before, self._versions()
            return known == before and self.picture() == expected

        wait_until(agrees, "they agree", timeout_seconds=self._patience, every_seconds=0.7)

    def picture(self) -> Picture:
        """What there is; no conditions while the operator has not judged the last edit."""
        pods = self._deployments.children("pods").values()
        resource = self._deployments.get()
        status = resource.get("status") or {}
        judged = status if status.get("observedGeneration") == resource["metadata"]["generation"] else {}
        return _picture([_seen(pod["metadata"]["labels"], ready=_is_ready(pod)) for pod in pods], judged)

    def last_words(self) -> str:
        """The end of the operator's log."""
        return "\n".join(self._operator.text().splitlines()[-60:])

    def _started(self) -> RunningOperator:
        self._starts += 1
        arguments = (f"--namespace={self._name}",)
        return RunningOperator(self._plane, f"{self._name}-{self._starts}", arguments).start()

    def _write(self, resource: Object) -> None:
        if self._resource:
            self._deployments.merge(edits.NAME, edits.difference(self._resource, resource))
        else:
            head = {"apiVersion": "vlm.dev/v1alpha1", "kind": "VLMDeployment"}
            self._plane.api.post(f"{GROUP}/namespaces/{self._name}/vlmdeployments", head | resource)
        self._resource = resource

    def _label_node(self, fault: str | None) -> None:
        labels = {"metadata": {"labels": {f"{PREFIX}fault": fault}}}
        self._plane.api.merge_patch(f"/api/v1/nodes/gpu-{self._name}", labels)

    def _note(self, pod: str, notes: Mapping[str, str | None]) -> None:
        annotations = {f"{PREFIX}{key}": value for key, value in notes.items()}
        self._plane.api.merge_patch(self._deployments.core("pods", pod), {"metadata": {"annotations": annotations}})

    def _until(self, path: str, uid: str, holds: Callable[[Object], bool]) -> None:
        """Wait until it has happened to the pod, or the operator has removed it since."""

        def happened() -> bool:
            try:
                pod = self._plane.api.get(path)
            except ApiError as error:
                if error.status != 404:
                    raise
                return True
            return bool(pod["metadata"]["uid"] != uid or holds(pod))

        wait_until(happened, "it has happened", timeout_seconds=self._patience)

    def _ready(self) -> list[str]:
        pods = self._deployments.pods()
        return sorted((n for n in pods if _is_ready(pods[n])), key=lambda n: _order(pods[n]["metadata"]["labels"]))

    def _versions(self) -> list[Any]:
        """Changes whenever anything has changed."""
        objects = [self._deployments.get(), *self._deployments.children("pods").values()]
        return sorted((obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]) for obj in objects)


def replay(plane: ControlPlane, seed: int, *, events: int, patience_seconds: float) -> str:
    """Replay a history in both worlds; raises AssertionError where they do not agree. Returns what is to be reported."""
    name = f"history-{seed}"
    first = edits.merged(edits.FIRST, {"spec": {"podTemplate": {"nodeSelector": {"history": name}}}})
    modelled, real = Modelled(), Real(plane, name, patience_seconds=patience_seconds)
    told = []
    for event in history(Random(seed), first=first, events=events):
        if not modelled.happen(event):
            continue
        told.append(str(event) if event.resource is None else f"{event}: {event.resource['spec']}")
        real.happen(event)
        try:
            real.until(modelled.picture())
        except WaitTimeoutError:
            story = "\n".join(told)
            worlds = f"in memory {modelled.picture()}\nreal      {real.picture()}"
            raise AssertionError(f"history {seed}:\n{story}\n{worlds}\n{real.last_words()}") from None
    real.end()
    return f"history {seed}: {len(told)} events"


def _order(labels: Mapping[str, str]) -> tuple[str, str, int]:
    """The same pods come in the same places in both worlds: slots tell apart only what is alike."""
    return labels[REVISION_LABEL], labels[ROLE_LABEL], int(labels[SLOT_LABEL])


def _seen(labels: Mapping[str, str], *, ready: bool) -> tuple[str, str, bool]:
    return labels[REVISION_LABEL], labels[ROLE_LABEL], ready


def _picture(pods: list[tuple[str, str, bool]], status: Mapping[str, Any]) -> Picture:
    conditions = {c["type"]: (c["status"], c["reason"]) for c in status.get("conditions", ())}
    conditions.pop("WeightsReady", None)  # there are no claims in memory
    return {"pods": sorted(pods), "conditions": conditions}


def _is_ready(pod: Object) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ()))


def _restarts(pod: Object) -> int:
    return sum(int(status["restartCount"]) for status in pod["status"].get("containerStatuses", ()))
