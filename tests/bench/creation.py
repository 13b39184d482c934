"""From a resource to its pods: ours against a Deployment of the same pods, interleaved on one control plane."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.observing import Connection, Object, PodWatch
from bench.table import Row, percentile
from cluster.support.operator import CRD, RunningOperator, assert_permitted, manifest
from controlplane import ControlPlane, l4

NAMESPACE = "bench"


def measure(quick: bool) -> list[Row]:  # the one switch of every measurement
    """Time from the request that creates the resource until the last pod is visible to a watch."""
    rows = []
    with _bench_plane() as plane:
        connection, watch = Connection(plane), PodWatch(plane, NAMESPACE)
        for replicas in (1, 8):
            ours, theirs = _interleaved(connection, watch, replicas=replicas, rounds=3 if quick else 50)
            for share in (0.5, 0.99):
                a, b = percentile(ours, share) * 1000, percentile(theirs, share) * 1000
                what = f"resource applied -> {replicas} pod{'s' if replicas > 1 else ''} created, p{share * 100:.0f}"
                rows.append(
                    Row(what=what, ours=f"{a:.0f} ms", baseline=f"{b:.0f} ms (Deployment)", ratio=a / b, aim="<= 0.7")
                )
    return rows


@contextmanager
def _bench_plane() -> Iterator[ControlPlane]:
    with ControlPlane() as plane:
        plane.add_gpu_nodes(l4("gpu-l4", gpus=8))
        plane.install_crd(CRD)
        plane.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        plane.bound_claim(NAMESPACE, "models")
        RunningOperator(plane, "vlm-operator").start()
        yield plane
        assert_permitted()


def _interleaved(
    connection: Connection, watch: PodWatch, *, replicas: int, rounds: int
) -> tuple[list[float], list[float]]:
    template = _pod_template(connection, watch)
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(rounds):
        _progress(f"{replicas} replicas: round {number + 1} of {rounds}")
        mine = manifest(f"ours-{number}", replicas=replicas)
        deployment = _deployment(f"theirs-{number}", template, replicas=replicas)
        turns = [
            ("/apis/vlm.dev/v1alpha1", "vlmdeployments", mine, ours),
            ("/apis/apps/v1", "deployments", deployment, theirs),
        ]
        for group, plural, body, times in turns if number % 2 else reversed(turns):
            times.append(_once(connection, watch, f"{group}/namespaces/{NAMESPACE}/{plural}", body, replicas=replicas))
    return ours, theirs


def _once(connection: Connection, watch: PodWatch, path: str, body: Object, *, replicas: int) -> float:
    started = time.perf_counter()
    connection.call("POST", path, body)
    seconds = watch.when(replicas) - started
    connection.call("DELETE", f"{path}/{body['metadata']['name']}", {"propagationPolicy": "Background"})
    watch.when(0)
    return seconds


def _pod_template(connection: Connection, watch: PodWatch) -> Object:
    """The pod that the operator makes, as a template for the Deployment."""
    path = f"/apis/vlm.dev/v1alpha1/namespaces/{NAMESPACE}/vlmdeployments"
    connection.call("POST", path, manifest("template"))
    watch.when(1)
    (pod,) = connection.call("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
    connection.call("DELETE", f"{path}/template", {"propagationPolicy": "Background"})
    watch.when(0)
    spec = {key: value for key, value in pod["spec"].items() if key not in {"nodeName", "tolerations", "priority"}}
    return {"metadata": {"labels": {"app": "theirs"}}, "spec": spec}


def _deployment(name: str, template: Object, *, replicas: int) -> Object:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template | {"metadata": {"labels": labels}},
        },
    }


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r  {text} ", end="", file=sys.stderr, flush=True)
