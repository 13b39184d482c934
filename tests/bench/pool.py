"""What a warm pool is for: demand met by a promotion, against a Deployment that loads, and a rollout without a further GPU."""

import threading
import time
from collections.abc import Callable, Collection

from bench.observing import PATIENCE, Connection, Object
from bench.table import Row, percentile
from cluster.support.operator import CRD, RunningOperator, assert_permitted, manifest
from controlplane import ControlPlane, l4

NAMESPACE = "pool"
LOAD_SECONDS = 30
"""Time until a replica is ready. With a real model it is minutes, and every ratio below smaller."""
LOADING = {"sim.vlm.dev/ready-after": f"{LOAD_SECONDS}s"}
STANDBY = {"size": 1, "mode": "Standby"}
SERVING, STEPS = 8, "spec.replicas raised by one"
ROLE, REVISION = "vlm.dev/role", "vlm.dev/revision"
RESOURCES = f"/apis/vlm.dev/v1alpha1/namespaces/{NAMESPACE}/vlmdeployments"


def measure(quick: bool) -> list[Row]:  # the one switch of every measurement
    """Promotion and rollout, each on a control plane of its own."""
    return [*_promotions(5 if quick else 60, deployments=1 if quick else 5), *_rollout(2 if quick else SERVING)]


class Watch:
    """The objects of a kind as a watch tells them, each with the time at which it was last told."""

    def __init__(self, plane: ControlPlane, path: str) -> None:
        self._connection = Connection(plane)
        self._path = path
        self._changed = threading.Condition()
        self._there: dict[str, Object] = {}
        self._seen: Callable[[list[Object]], None] = lambda _: None
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        for event in self._connection.stream(f"{self._path}?watch=true"):
            with self._changed:
                name = event["object"]["metadata"]["name"]
                if event["type"] == "DELETED":
                    self._there.pop(name, None)
                else:
                    self._there[name] = event["object"]
                self._seen(list(self._there.values()))
                self._changed.notify_all()

    def each(self, seen: Callable[[list[Object]], None]) -> None:
        """Call with all objects after every event from now on."""
        with self._changed:
            self._seen = seen

    def when(self, holds: Callable[[list[Object]], bool], what: str) -> float:
        """Wait until the objects are so; returns the time."""
        with self._changed:
            if not self._changed.wait_for(lambda: holds(list(self._there.values())), timeout=PATIENCE):
                message = f"{what} did not come about within {PATIENCE:.0f} s"
                raise RuntimeError(message)
            return time.perf_counter()


def _plane(gpus: int) -> ControlPlane:
    plane = ControlPlane().start()
    plane.add_gpu_nodes(l4("gpu-0", gpus=gpus, labels=LOADING))
    plane.install_crd(CRD)
    plane.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    plane.bound_claim(NAMESPACE, "models")
    RunningOperator(plane, "vlm-operator").start()
    return plane


def _promotions(count: int, *, deployments: int) -> list[Row]:
    plane = _plane(3 * count + 2 * deployments)
    try:
        connection = Connection(plane)
        pods = Watch(plane, f"/api/v1/namespaces/{NAMESPACE}/pods")
        slices = Watch(plane, f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices")
        for number in range(count):
            small = {"resources": {"requests": {"cpu": "10m", "memory": "64Mi"}}}
            connection.call("POST", RESOURCES, manifest(f"m{number}", replicas=1, warmPool=STANDBY, podTemplate=small))
        pods.when(lambda there: len(there) == 2 * count and all(map(_ready, there)), "all replicas are ready")
        labelled, routed = [], []
        for number in range(count):
            name = f"m{number}"
            slices.when(lambda there, name=name: _endpoints(there, name) == 1, f"{name} has an endpoint")
            started = time.perf_counter()
            connection.call("PATCH", f"{RESOURCES}/{name}", {"spec": {"replicas": 2}})
            labelled.append(
                pods.when(lambda there, name=name: _serving(there, name) == 2, f"{name} is promoted") - started
            )
            routed.append(
                slices.when(lambda there, name=name: _endpoints(there, name) == 2, f"{name} is routed") - started
            )
        loaded = [_deployment(connection, slices, f"theirs-{number}") for number in range(deployments)]
        assert_permitted()
    finally:
        plane.stop()
    theirs = percentile(loaded, 0.5)
    rows = []
    for what, times in (("the standby has the label", labelled), ("it is in the EndpointSlice", routed)):
        for share in (0.5, 0.99):
            ours = percentile(times, share)
            rows.append(
                Row(
                    what=f"{STEPS} -> {what}, p{share * 100:.0f} of {count}",
                    ours=f"{ours * 1000:.0f} ms",
                    baseline=f"{theirs:.1f} s (Deployment, {LOAD_SECONDS} s to load)",
                    ratio=ours / theirs,
                    aim="<= 0.1, <= 1 s",
                )
            )
    return rows


def _deployment(connection: Connection, slices: Watch, name: str) -> float:
    """Seconds from one replica more of a Deployment until it is in the EndpointSlice."""
    labels = {"app": name}
    port = {"port": 8000, "targetPort": 8000}
    service = {"metadata": {"name": name}, "spec": {"selector": labels, "ports": [port]}}
    connection.call(
        "POST", f"/api/v1/namespaces/{NAMESPACE}/services", {"apiVersion": "v1", "kind": "Service"} | service
    )
    container = {
        "name": "engine",
        "image": "engine",
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
        "startupProbe": {"httpGet": {"port": 8000}, "failureThreshold": 100},
        "readinessProbe": {"httpGet": {"port": 8000}},
    }
    toleration = {"key": "nvidia.com/gpu", "operator": "Exists"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], "tolerations": [toleration]}}
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    connection.call(
        "POST", path, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
    )
    slices.when(lambda there: _endpoints(there, name) == 1, f"{name} has an endpoint")
    started = time.perf_counter()
    connection.call("PATCH", f"{path}/{name}", {"spec": {"replicas": 2}})
    return slices.when(lambda there: _endpoints(there, name) == 2, f"{name} is routed") - started


def _rollout(serving: int) -> list[Row]:
    """A new revision of so many replicas and one on standby, where there is no GPU more."""
    plane = _plane(serving + 1)
    try:
        connection = Connection(plane)
        pods = Watch(plane, f"/api/v1/namespaces/{NAMESPACE}/pods")
        slices = Watch(plane, f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices")
        connection.call("POST", RESOURCES, manifest("m", replicas=serving, warmPool=STANDBY))
        pods.when(lambda there: len(there) == serving + 1 and all(map(_ready, there)), "all replicas are ready")
        slices.when(lambda there: _endpoints(there, "m") == serving, "all are routed")
        old = {
            pod["metadata"]["labels"][REVISION]
            for pod in plane.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
        }
        most, least = [0], [serving]
        pods.each(lambda there: most.__setitem__(0, max(most[0], len(there))))
        slices.each(lambda there: least.__setitem__(0, min(least[0], _endpoints(there, "m"))))
        started = time.perf_counter()
        model = {"name": "Qwen/Qwen2.5-VL-7B-Instruct", "quantization": "AWQ", "maxModelLen": 4096}
        connection.call("PATCH", f"{RESOURCES}/m", {"spec": {"model": model}})
        ended = pods.when(lambda there: _serving(there, "m", besides=old) == serving, "the new revision serves")
        assert_permitted()
    finally:
        plane.stop()
    loads = serving * LOAD_SECONDS
    return [
        Row(
            what=f"rollout of {serving} replicas through a pool of 1, {LOAD_SECONDS} s to load each",
            ours=f"{ended - started:.0f} s",
            baseline=f"{loads} s, one load after the other",
            ratio=(ended - started) / loads,
            aim="<= 1.15",
        ),
        Row(what="most pods during it", ours=str(most[0]), baseline=f"{serving + 1} GPUs", aim=f"<= {serving + 1}"),
        Row(what="fewest ready endpoints during it", ours=str(least[0]), aim=f">= {serving}"),
    ]


def _ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _serving(pods: list[Object], name: str, *, besides: Collection[str] = ()) -> int:
    labels = [pod["metadata"].get("labels") or {} for pod in pods if _ready(pod)]
    return sum(
        found.get("vlm.dev/deployment") == name and found[ROLE] == "serving" and found[REVISION] not in besides
        for found in labels
    )


def _endpoints(slices: list[Object], service: str) -> int:
    """Ready endpoints of a Service."""
    return sum(
        endpoint["conditions"].get("ready", False)
        for found in slices
        if found["metadata"]["labels"]["kubernetes.io/service-name"] == service
        for endpoint in found.get("endpoints") or ()
    )
