"""A thousand resources on one control plane: until all have their pods, what they cost at rest, and a restart among them."""

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import local

from bench.observing import Connection, Object, PodWatch, writes
from bench.table import Row
from cluster.support.operator import CRD, RunningOperator, assert_permitted, manifest
from controlplane import AuditTrail, ControlPlane, GpuNode, l4, wait_until

OURS, PLAIN = "fleet", "plain"
"""Namespaces."""
CLIENTS = 8
"""Connections that write at once: as many as the operator has workers."""
GPUS_PER_NODE = 100
CORE = "/api/v1/namespaces"
KINDS = {
    "services": CORE,
    "configmaps": CORE,
    "controllerrevisions": "/apis/apps/v1/namespaces",
    "poddisruptionbudgets": "/apis/policy/v1/namespaces",
    "pods": CORE,
}
"""What the operator creates for a resource, in its order."""
LOADING = {"sim.vlm.dev/ready-after": "2m"}
"""Engines take minutes to load: no replica becomes ready while others are still created."""
ELECTED = ("--leader-elect", "--leader-elect-namespace=vlm-system")
"""As the chart runs it."""
SMALL = {"resources": {"requests": {"cpu": "10m", "memory": "64Mi"}}}


def measure(quick: bool) -> list[Row]:  # the one switch of every measurement
    """Creation against a plain client in the same run, rest, and restart."""
    count, rest = (100, 10.0) if quick else (1000, 60.0)
    with ControlPlane() as plane:
        plane.add_gpu_nodes(*gpu_nodes(count + 1, LOADING))
        plane.install_crd(CRD)
        for namespace in (OURS, PLAIN):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            plane.api.post("/api/v1/namespaces", body)
            plane.bound_claim(namespace, "models")
        operator = RunningOperator(plane, "vlm-operator", ELECTED).start()
        write, audit = Writers(plane), AuditTrail(plane.audit_log)
        plain = _plain_client(plane, write, operator, count)
        rows = [
            *_creation(plane, write, audit, operator, count=count, plain=plain),
            *_rest(operator, audit, count=count, seconds=rest),
            *_restart(plane, operator, count=count),
        ]
        assert_permitted()
        return rows


class Writers:
    """Sends many requests over a few connections."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._own = local()
        self._pool = ThreadPoolExecutor(CLIENTS)

    def each(self, work: Callable[[Connection, int], None], count: int) -> None:
        """Do `work` with a connection for each number below `count`."""
        list(self._pool.map(lambda number: work(self._connection(), number), range(count)))

    def _connection(self) -> Connection:
        if not hasattr(self._own, "connection"):
            self._own.connection = Connection(self._plane)
        found: Connection = self._own.connection
        return found


def gpu_nodes(gpus: int, labels: Mapping[str, str] | None = None) -> Iterable[GpuNode]:
    """Nodes with so many GPUs in all."""
    return (l4(f"gpu-{number}", gpus=GPUS_PER_NODE, labels=labels) for number in range(-(-gpus // GPUS_PER_NODE)))


def resources(operator: RunningOperator) -> dict[str, float]:
    """The metrics of an operator without labels, by name."""
    _, text = operator.answer("/metrics")
    return {
        name: float(value) for name, value in re.findall(r"^(\w+(?:\{result=\"ok\"\})?) (\S+)$", text, re.MULTILINE)
    }


def template(plane: ControlPlane, connection: Connection) -> dict[str, Object]:
    """What the operator creates for one resource, as a client could write it anew."""
    path = f"/apis/vlm.dev/v1alpha1/namespaces/{OURS}/vlmdeployments"
    watch = PodWatch(plane, OURS)
    connection.call("POST", path, manifest("template", podTemplate=SMALL))
    watch.when(1)
    bodies: dict[str, Object] = {}
    for plural, group in KINDS.items():
        items = connection.call("GET", f"{group}/{OURS}/{plural}?labelSelector=vlm.dev/deployment")["items"]
        for live in items:
            bodies[plural] = {key: value for key, value in live.items() if key != "status"}
            bodies[plural]["metadata"] = {key: live["metadata"].get(key) for key in ("labels", "annotations")}
    spec = bodies["services"]["spec"]
    bodies["services"]["spec"] = {key: spec[key] for key in ("ports", "selector", "type")}
    spec = bodies["pods"]["spec"]
    bodies["pods"]["spec"] = {key: spec[key] for key in spec if key not in {"nodeName", "tolerations", "priority"}}
    connection.call("DELETE", f"{path}/template", {"propagationPolicy": "Background"})
    watch.when(0)
    return bodies


def _plain_client(plane: ControlPlane, write: Writers, operator: RunningOperator, count: int) -> float:
    """Seconds in which a plain client writes the same objects for so many resources, which then live as the operator's do.

    The operator, which would watch them, stands still meanwhile.
    """
    connection = Connection(plane)
    bodies = template(plane, connection)
    operator.stop()

    def post(mine: Connection, number: int) -> None:
        for plural, body in bodies.items():
            named = json.loads(json.dumps(body).replace('"template"', f'"m-{number}"'))
            named["metadata"]["name"] = f"m-{number}"
            mine.call("POST", f"{KINDS[plural]}/{PLAIN}/{plural}", named)

    watch = PodWatch(plane, PLAIN)
    progress(f"a plain client writes {count} x {len(bodies)} objects")
    started = time.perf_counter()
    write.each(post, count)
    seconds = watch.when(count) - started
    progress("they are removed")
    connection.call("DELETE", f"{CORE}/{PLAIN}/pods", {"gracePeriodSeconds": 0})
    connection.call("DELETE", f"{CORE}/{PLAIN}")
    watch.when(0)
    operator.start()
    return seconds


def _creation(
    plane: ControlPlane, write: Writers, audit: AuditTrail, operator: RunningOperator, *, count: int, plain: float
) -> list[Row]:
    watch, before = PodWatch(plane, OURS), resources(operator)
    audit.news()

    def create(mine: Connection, number: int) -> None:
        path = f"/apis/vlm.dev/v1alpha1/namespaces/{OURS}/vlmdeployments"
        mine.call("POST", path, manifest(f"m-{number}", podTemplate=SMALL))

    progress(f"{count} resources are created")
    started = time.perf_counter()
    write.each(create, count)
    created = time.perf_counter() - started
    seconds = watch.when(count) - started
    progress("all become Ready")
    _settle(plane, operator, count)
    cpu = resources(operator)["process_cpu_seconds_total"] - before["process_cpu_seconds_total"]
    done = writes(audit.news())
    print(f"  writes: {_told(done)}; resources sent within {created:.1f} s", file=sys.stderr)
    status, events = done.pop("patch vlmdeployments/status", 0), done.pop("create events", 0)
    each = f"{sum(done.values()) / count:.2f} objects, {status / count:.2f} status, {events / count:.2f} events"
    return [
        Row(
            what=f"{count} resources at once, until all pods exist",
            ours=f"{seconds:.1f} s",
            baseline=f"{plain:.1f} s (plain client, same objects)",
            ratio=plain / seconds,
            aim=">= 0.5",
        ),
        Row(what="API writes per resource", ours=each, aim="its objects, <= 3 status"),
        Row(what="CPU of the operator per resource, until all are Ready", ours=f"{cpu / count * 1000:.0f} ms"),
    ]


def _settle(plane: ControlPlane, operator: RunningOperator, count: int) -> None:
    """Wait until every resource is Ready and nothing is left to look at."""
    path = f"/apis/vlm.dev/v1alpha1/namespaces/{OURS}/vlmdeployments"

    def look() -> bool:
        ready = sum(
            any(c["type"] == "Ready" and c["status"] == "True" for c in item.get("status", {}).get("conditions", ()))
            for item in plane.api.get(path)["items"]
        )
        return ready == count and resources(operator)["vlm_operator_queue_depth"] == 0

    wait_until(look, "all are Ready", timeout_seconds=600, every_seconds=2)
    time.sleep(5)


def _rest(operator: RunningOperator, audit: AuditTrail, *, count: int, seconds: float) -> list[Row]:
    progress(f"{seconds:.0f} s at rest")
    audit.news()
    before, started = resources(operator), time.perf_counter()
    time.sleep(seconds)
    after, passed = resources(operator), time.perf_counter() - started
    cpu = (after["process_cpu_seconds_total"] - before["process_cpu_seconds_total"]) / passed
    return [
        Row(
            what=f"{count} resources at rest for {seconds:.0f} s: writes",
            ours=_told(writes(audit.news())) or "none",
            aim="only Lease renewals",
        ),
        Row(what="CPU", ours=f"{cpu:.3f} cores", aim="< 0.05"),
        Row(what="RSS", ours=f"{after['process_resident_memory_bytes'] / 2**20:.0f} MiB", aim="<= 160"),
    ]


def _restart(plane: ControlPlane, operator: RunningOperator, *, count: int) -> list[Row]:
    progress("the operator is started again")
    pods = _uids(plane)
    operator.stop()
    began = time.perf_counter()
    operator.launch()

    def look() -> bool:
        now = resources(operator)
        looked = now.get('vlm_operator_reconciles_total{result="ok"}', 0)
        return looked >= count and now["vlm_operator_queue_depth"] == 0

    wait_until(look, "all were looked at", timeout_seconds=600, every_seconds=0.2)
    seconds = time.perf_counter() - began
    time.sleep(5)
    changed = len(pods ^ _uids(plane))
    return [
        Row(what="restart, from start of the process until all are reconciled", ours=f"{seconds:.1f} s", aim="<= 10 s"),
        Row(what="pods created or deleted meanwhile", ours=str(changed), aim="0"),
    ]


def _uids(plane: ControlPlane) -> set[str]:
    return {pod["metadata"]["uid"] for pod in plane.api.get(f"{CORE}/{OURS}/pods")["items"]}


def _told(counted: Counter[str]) -> str:
    return ", ".join(f"{number} {what}" for what, number in counted.most_common())


def progress(text: str) -> None:
    """Say what is being measured."""
    print(f"  {text}", file=sys.stderr, flush=True)
