"""Trouble at scale: a node full of replicas is lost, and deployments come and go for hours."""

import threading
import time
from collections import defaultdict, deque
from statistics import linear_regression

from bench.fleet import CORE, ELECTED, OURS, PLAIN, SMALL, Writers, gpu_nodes, progress, resources, template
from bench.observing import PATIENCE, Connection, PodWatch
from bench.table import Row, percentile
from cluster.support.operator import CRD, RunningOperator, assert_permitted, manifest
from controlplane import ControlPlane, Timing, wait_until
from vlm_operator.api.names import DEPLOYMENT_LABEL

ROUND = 25
"""Deployments that come, grow and go together in one round of the churn."""

FLAT_MIB = 1
"""What the memory may grow by over a thousand deployments and still count as flat: a leaked resource alone has 10 KB."""


def measure(quick: bool) -> list[Row]:  # the one switch of every measurement
    """Replacement of lost replicas, and memory over a churn."""
    deployments, replicas, rounds = (10, 5, 8) if quick else (100, 50, 80)
    with ControlPlane(timing=Timing(node_monitor_grace_seconds=40, node_eviction_seconds=2)) as plane:
        plane.add_gpu_nodes(*gpu_nodes((deployments + 2) * replicas))
        plane.install_crd(CRD)
        for namespace in (OURS, PLAIN):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            plane.api.post("/api/v1/namespaces", body)
            plane.bound_claim(namespace, "models")
        operator = RunningOperator(plane, "vlm-operator", ELECTED).start()
        write = Writers(plane)
        rows = [
            *_node_lost(plane, write, deployments=deployments, replicas=replicas),
            *_churn(plane, operator, write, rounds=rounds),
        ]
        assert_permitted()
        return rows


class Losses:
    """How long after its deletion each pod has a successor of the same deployment, as a watch tells."""

    def __init__(self, plane: ControlPlane) -> None:
        self._connection = Connection(plane)
        self._changed = threading.Condition()
        self._there: set[str] = set()
        self._lost: dict[str, deque[float]] = defaultdict(deque)
        self.seconds: list[float] = []
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        for event in self._connection.stream(f"{CORE}/{OURS}/pods?watch=true"):
            now, metadata = time.perf_counter(), event["object"]["metadata"]
            uid, lost = metadata["uid"], self._lost[metadata["labels"].get(DEPLOYMENT_LABEL, "")]
            with self._changed:
                if event["type"] == "ADDED":
                    self._there.add(uid)
                    if lost:
                        self.seconds.append(now - lost.popleft())
                elif uid in self._there and (event["type"] == "DELETED" or "deletionTimestamp" in metadata):
                    self._there.remove(uid)
                    lost.append(now)
                self._changed.notify_all()

    def wait(self, *, live: int, replaced: int) -> None:
        """Wait until so many pods live and so many were replaced."""
        with self._changed:
            if not self._changed.wait_for(
                lambda: len(self._there) == live and len(self.seconds) >= replaced, timeout=PATIENCE
            ):
                found = f"there are {len(self._there)}, and {len(self.seconds)} were replaced"
                raise RuntimeError(f"{live} pods, {replaced} of them new, were not there in time; {found}")


def _node_lost(plane: ControlPlane, write: Writers, *, deployments: int, replicas: int) -> list[Row]:
    pods, losses = deployments * replicas, Losses(plane)
    progress(f"{deployments} deployments with {replicas} replicas are created")
    write.each(lambda mine, number: _create(mine, f"m-{number}", replicas=replicas), deployments)
    losses.wait(live=pods, replaced=0)
    node, lost = _fullest(plane)
    progress(f"a node with {lost} replicas is lost")
    plane.lose_node(node)
    losses.wait(live=pods, replaced=lost)
    seconds = losses.seconds
    progress("all are removed")
    plane.return_node(node)
    write.each(lambda mine, number: _delete(mine, f"m-{number}"), deployments)
    wait_until(
        lambda: not plane.api.get(f"{CORE}/{OURS}/pods?limit=1")["items"], "none is left", timeout_seconds=PATIENCE
    )
    plain = _plain_client(plane, write, lost)
    p50, p99 = percentile(seconds, 0.5), percentile(seconds, 0.99)
    return [
        Row(
            what=f"{lost} of {pods} replicas lost with their node, until the last is replaced",
            ours=f"p50 {p50:.2f} s, p99 {p99:.2f} s, last {max(seconds):.2f} s",
            baseline=f"{plain:.2f} s (plain client, as many pods)",
            ratio=plain / max(seconds),
            aim="bounded by the API server",
        )
    ]


def _plain_client(plane: ControlPlane, write: Writers, count: int) -> float:
    """Seconds in which a plain client creates so many pods, which the operator does not see."""
    body = template(plane, Connection(plane))["pods"]
    progress(f"a plain client writes {count} pods")

    def post(mine: Connection, number: int) -> None:
        mine.call("POST", f"{CORE}/{PLAIN}/pods", {**body, "metadata": {"name": f"m-{number}"}})

    watch, started = PodWatch(plane, PLAIN), time.perf_counter()
    write.each(post, count)
    seconds = watch.when(count) - started
    Connection(plane).call("DELETE", f"{CORE}/{PLAIN}/pods", {"gracePeriodSeconds": 0})
    watch.when(0)
    return seconds


def _fullest(plane: ControlPlane) -> tuple[str, int]:
    """The node with the most replicas, and how many that are."""
    counts: dict[str, int] = defaultdict(int)

    def look() -> bool:
        counts.clear()
        pods = plane.api.get(f"{CORE}/{OURS}/pods")["items"]
        for pod in pods:
            counts[pod["spec"].get("nodeName", "")] += 1
        return not counts.get("")

    wait_until(look, "every replica has a node", timeout_seconds=PATIENCE, every_seconds=2)
    return max(counts.items(), key=lambda found: found[1])


def _churn(plane: ControlPlane, operator: RunningOperator, write: Writers, *, rounds: int) -> list[Row]:
    def come_and_go(number: int) -> None:
        name = f"churn-{number}"
        write.each(lambda mine, i: _create(mine, f"{name}-{i}", replicas=1), ROUND)
        write.each(lambda mine, i: _grow(mine, f"{name}-{i}"), ROUND)
        wait_until(lambda: _pods(plane) == 2 * ROUND, "all have grown", timeout_seconds=PATIENCE, every_seconds=0.2)
        write.each(lambda mine, i: _delete(mine, f"{name}-{i}"), ROUND)
        wait_until(lambda: _pods(plane) == 0, "all are gone", timeout_seconds=PATIENCE, every_seconds=0.2)

    memory = []
    for number in range(rounds):
        if number % 10 == 0:
            progress(f"churn: round {number + 1} of {rounds}")
        come_and_go(number)
        memory.append(resources(operator)["process_resident_memory_bytes"] / 2**20)
    # The first rounds fill the caches of the interpreter and the connections.
    late = memory[rounds // 4 :]
    slope = linear_regression(range(len(late)), late).slope
    gone = rounds * ROUND
    return [
        Row(
            what=f"RSS while {gone} deployments come, grow and go",
            ours=f"{memory[0]:.0f} -> {memory[-1]:.0f} MiB, {slope * 1000 / ROUND:+.1f} MiB per 1,000",
            aim=f"flat: < {FLAT_MIB} MiB per 1,000",
        )
    ]


def _path() -> str:
    return f"/apis/vlm.dev/v1alpha1/namespaces/{OURS}/vlmdeployments"


def _create(connection: Connection, name: str, *, replicas: int) -> None:
    connection.call("POST", _path(), manifest(name, replicas=replicas, podTemplate=SMALL))


def _grow(connection: Connection, name: str) -> None:
    connection.call("PATCH", f"{_path()}/{name}", {"spec": {"replicas": 2}})


def _delete(connection: Connection, name: str) -> None:
    connection.call("DELETE", f"{_path()}/{name}", {"propagationPolicy": "Background"})


def _pods(plane: ControlPlane) -> int:
    return len(plane.api.get(f"{CORE}/{OURS}/pods")["items"])
