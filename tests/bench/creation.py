"""From a resource to its pods: ours against a Deployment of the same pods, interleaved on one control plane."""

import http.client
import json
import ssl
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.table import Row, percentile
from cluster.support.operator import CRD, RunningOperator, manifest
from controlplane import ControlPlane, l4

Object = dict[str, Any]
NAMESPACE = "bench"

PATIENCE = 60.0


class Connection:
    """One kept-alive connection, so that no handshake is measured."""

    def __init__(self, plane: ControlPlane) -> None:
        where = urllib.parse.urlsplit(plane.server)
        self._tls = ssl.create_default_context(cafile=str(plane.ca_file))
        self._tls.load_cert_chain(str(plane.pki / "admin.crt"), str(plane.pki / "admin.key"))
        self._http = http.client.HTTPSConnection(where.hostname or "", where.port, context=self._tls, timeout=PATIENCE)

    def call(self, method: str, path: str, body: Object | None = None) -> Object:
        """One request; an error of the server is raised with its words."""
        self._http.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        answer = self._http.getresponse()
        found: Object = json.loads(answer.read())
        if answer.status >= 400:
            raise RuntimeError(found.get("message"))
        return found

    def stream(self, path: str) -> Iterator[Object]:
        """The events of a watch, for ever."""
        self._http.request("GET", path)
        answer = self._http.getresponse()
        while line := answer.readline():
            yield json.loads(line)


class PodWatch:
    """When pods appeared and went, as a watch tells."""

    def __init__(self, plane: ControlPlane) -> None:
        self._connection = Connection(plane)
        self._changed = threading.Condition()
        self._there: dict[str, float] = {}
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        for event in self._connection.stream(f"/api/v1/namespaces/{NAMESPACE}/pods?watch=true"):
            now, name = time.perf_counter(), event["object"]["metadata"]["name"]
            with self._changed:
                if event["type"] == "ADDED":
                    self._there[name] = now
                elif event["type"] == "DELETED":
                    self._there.pop(name, None)
                self._changed.notify_all()

    def when(self, count: int) -> float:
        """Wait until exactly `count` pods are there; returns when the last of them appeared."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._there) == count, timeout=PATIENCE):
                message = f"{count} pods were not there within {PATIENCE:.0f} s; there are {len(self._there)}"
                raise RuntimeError(message)
            return max(self._there.values(), default=0.0)


def measure(quick: bool) -> list[Row]:  # the one switch of every measurement
    """Time from the request that creates the resource until the last pod is visible to a watch."""
    rows = []
    with _bench_plane() as plane:
        connection, watch = Connection(plane), PodWatch(plane)
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
