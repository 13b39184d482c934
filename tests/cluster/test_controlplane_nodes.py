"""What the imitated nodes do to pods: the ordinary life, and every fault that can be asked for."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.support.pods import Pods, condition, container, is_ready, waiting_reason
from controlplane import ControlPlane, GpuNode, PrerequisiteError, pod_network, wait_until

pytestmark = pytest.mark.cluster

SOON = {"ready-after": "0s"}


@pytest.fixture
def pods(control_plane: ControlPlane, namespace: str) -> Pods:
    return Pods(api=control_plane.api, namespace=namespace)


@pytest.fixture
def ready_pod(pods: Pods) -> str:
    pods.create("engine", notes=SOON)
    pods.until_ready("engine")
    return "engine"


def test_a_node_carries_the_labels_of_gpu_feature_discovery(control_plane: ControlPlane) -> None:
    node = control_plane.api.get("/api/v1/nodes/gpu-l4")
    seen = {key.removeprefix("nvidia.com/"): value for key, value in node["metadata"]["labels"].items()}
    assert (seen["gpu.product"], seen["gpu.memory"], seen["gpu.count"]) == ("NVIDIA-L4", "23034", "4")
    assert (seen["gpu.compute.major"], seen["gpu.compute.minor"]) == ("8", "9")
    assert seen["cuda.driver-version.full"].startswith(seen["cuda.driver.major"])
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "4"


def test_a_pod_runs_first_and_is_ready_after_its_delay(pods: Pods) -> None:
    pods.create("engine", notes={"ready-after": "1500ms"})
    running = pods.until("engine", lambda p: container(p).get("state", {}).get("running"), "runs")
    began = time.monotonic()
    assert not is_ready(running)
    assert {condition(running, kind) for kind in ("PodScheduled", "Initialized", "PodReadyToStartContainers")} == {
        "True"
    }
    ready = pods.until_ready("engine")
    assert time.monotonic() - began > 1
    assert ready["status"]["phase"] == "Running"
    assert container(ready)["ready"]
    assert container(ready)["started"]
    assert re.match(r"198\.1[89]\.", ready["status"]["podIP"])


def test_an_update_of_the_pod_does_not_start_its_delay_anew(pods: Pods) -> None:
    pods.create("engine", notes={"ready-after": "2s"})
    began = time.monotonic()
    deadline = began + 20
    while not is_ready(pods.get("engine")) and time.monotonic() < deadline:
        pods.annotate("engine", {"touched": str(time.monotonic())})
        time.sleep(0.3)
    assert is_ready(pods.get("engine"))
    assert time.monotonic() - began > 1.8


def test_the_third_pod_finds_no_gpu(pods: Pods) -> None:
    where = {"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-L4"}}
    for name in ("first", "second"):
        pods.create(name, gpus=2, notes=SOON, **where)
        pods.until_ready(name)
    pods.create("third", gpus=2, **where)
    third = pods.until("third", lambda p: condition(p, "PodScheduled") == "False", "is refused by the scheduler")
    refusal = next(c for c in third["status"]["conditions"] if c["type"] == "PodScheduled")
    assert refusal["reason"] == "Unschedulable"
    assert "Insufficient nvidia.com/gpu" in refusal["message"]
    pods.delete("first")
    pods.until_ready("third")


def test_a_service_finds_the_pod_at_its_address(control_plane: ControlPlane, pods: Pods, namespace: str) -> None:
    spec = {"selector": {"app": "engine"}, "ports": [{"port": 80, "targetPort": 8000}]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "engine"}, "spec": spec}
    control_plane.api.post(f"/api/v1/namespaces/{namespace}/services", service)
    pods.create("engine", notes=SOON, labels={"app": "engine"})
    address = pods.until_ready("engine")["status"]["podIP"]

    def ready_addresses() -> list[str]:
        slices = control_plane.api.get(f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices")["items"]
        endpoints = [endpoint for found in slices for endpoint in found["endpoints"] or []]
        return [a for endpoint in endpoints if endpoint["conditions"]["ready"] for a in endpoint["addresses"]]

    wait_until(lambda: ready_addresses() == [address], "the EndpointSlice holds the pod")
    assert address.startswith("198.1")


ENGINE = """
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.request import urlopen

class Engine(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"healthy")

server = HTTPServer(("198.18.7.9", 8000), Engine)
Thread(target=server.serve_forever, daemon=True).start()
print(urlopen("http://198.18.7.9:8000").read().decode())
"""


def test_inside_the_pod_network_a_test_is_the_engine() -> None:
    try:
        command = pod_network.inside([sys.executable, "-c", ENGINE])
    except PrerequisiteError as error:
        pytest.skip(str(error))
    assert subprocess.check_output(command, text=True) == "healthy\n"


def test_init_containers_end_before_the_others_start_and_sidecars_stay(pods: Pods) -> None:
    init = [{"name": "fetch", "image": "fetch"}, {"name": "proxy", "image": "proxy", "restartPolicy": "Always"}]
    pods.create("engine", notes={**SOON, "init-after": "1s"}, initContainers=init)
    fetching = pods.until("engine", lambda p: container(p, "fetch").get("state", {}).get("running"), "fetches")
    assert waiting_reason(fetching) == "PodInitializing"
    ready = pods.until_ready("engine")
    assert container(ready, "fetch")["state"]["terminated"]["exitCode"] == 0
    assert container(ready, "proxy")["state"]["running"]


def test_a_readiness_gate_holds_the_pod_back(control_plane: ControlPlane, pods: Pods, namespace: str) -> None:
    pods.create("engine", notes=SOON, readinessGates=[{"conditionType": "example.com/open"}])
    held = pods.until("engine", lambda p: condition(p, "ContainersReady") == "True", "has ready containers")
    assert not is_ready(held)
    opened = {"status": {"conditions": [*held["status"]["conditions"], {"type": "example.com/open", "status": "True"}]}}
    control_plane.api.merge_patch(f"/api/v1/namespaces/{namespace}/pods/engine/status", opened)
    pods.until_ready("engine")


def test_an_image_that_cannot_be_pulled(pods: Pods) -> None:
    pods.create("engine", notes={**SOON, "fault": "image-pull"})
    failing = pods.until("engine", lambda p: waiting_reason(p) == "ImagePullBackOff", "waits for its image")
    assert failing["status"]["phase"] == "Pending"
    assert '"engine:1"' in container(failing)["state"]["waiting"]["message"]
    pods.annotate("engine", {"fault": None})
    pods.until_ready("engine")


def test_a_crash_loop_with_code_reason_and_message_that_grows_and_heals(pods: Pods, ready_pod: str) -> None:
    words = {"exit-code": "3", "reason": "CudaError", "message": "no kernel image", "back-off": "300ms"}
    pods.annotate(ready_pod, {"fault": "exit", **words})
    crashed = pods.until(ready_pod, lambda p: waiting_reason(p) == "CrashLoopBackOff", "is in a crash loop")
    last = container(crashed)["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"], last["message"]) == (3, "CudaError", "no kernel image")
    assert not is_ready(crashed)
    pods.until(ready_pod, lambda p: container(p)["restartCount"] >= 3, "has tried three times")
    pods.annotate(ready_pod, {"fault": None})
    healed = pods.until_ready(ready_pod)
    assert container(healed)["restartCount"] >= 3


def test_out_of_memory(pods: Pods, ready_pod: str) -> None:
    pods.annotate(ready_pod, {"fault": "oom"})
    killed = pods.until(ready_pod, lambda p: container(p).get("lastState", {}).get("terminated"), "was killed")
    last = container(killed)["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (137, "OOMKilled")


def test_a_container_restarts_once_and_is_ready_again(pods: Pods, ready_pod: str) -> None:
    pods.annotate(ready_pod, {"fault": "restart", "ready-after": "500ms"})
    restarted = pods.until(ready_pod, lambda p: container(p)["restartCount"] == 1, "has restarted")
    assert not is_ready(restarted)
    assert container(restarted)["state"]["running"]
    assert container(pods.until_ready(ready_pod))["restartCount"] == 1
    pods.annotate(ready_pod, {"restarts": "2"})
    pods.until(ready_pod, lambda p: container(p)["restartCount"] == 2 and is_ready(p), "has restarted again")


@pytest.mark.parametrize(("code", "phase"), [("0", "Succeeded"), ("7", "Failed")])
def test_without_a_restart_policy_the_end_of_the_container_ends_the_pod(pods: Pods, code: str, phase: str) -> None:
    pods.create("engine", notes={"fault": "exit", "exit-code": code}, restartPolicy="Never")
    ended = pods.until("engine", lambda p: p["status"]["phase"] in {"Succeeded", "Failed"}, "has ended")
    assert ended["status"]["phase"] == phase
    assert container(ended)["state"]["terminated"]["exitCode"] == int(code)


def test_a_named_container_fails_alone(pods: Pods) -> None:
    init = [{"name": "fetch", "image": "fetch"}]
    pods.create("engine", notes={**SOON, "fault": "exit", "container": "fetch"}, initContainers=init)
    failing = pods.until("engine", lambda p: waiting_reason(p, "fetch") == "CrashLoopBackOff", "fails to fetch")
    assert failing["status"]["phase"] == "Pending"
    assert waiting_reason(failing) == "PodInitializing"


def test_a_fault_may_wait_until_the_pod_has_been_ready(pods: Pods) -> None:
    pods.create("engine", notes={**SOON, "fault": "exit", "fault-after": "600ms"})
    pods.until_ready("engine")
    pods.until("engine", lambda p: container(p)["restartCount"], "has crashed")


def test_a_pod_that_never_becomes_ready_and_one_that_stops_being_ready(pods: Pods, ready_pod: str) -> None:
    pods.create("never", notes={**SOON, "fault": "never-ready"})
    pods.annotate(ready_pod, {"fault": "never-ready"})
    lost = pods.until(ready_pod, lambda p: not is_ready(p), "is no longer ready")
    assert container(lost)["state"]["running"]
    never = pods.until("never", lambda p: p["status"]["phase"] == "Running", "runs")
    assert not is_ready(never)
    pods.annotate(ready_pod, {"fault": None})
    pods.until_ready(ready_pod)
    assert not is_ready(pods.get("never"))


def test_an_evicted_pod_failed_and_says_so(pods: Pods, ready_pod: str) -> None:
    pods.annotate(ready_pod, {"fault": "evict"})
    evicted = pods.until(ready_pod, lambda p: p["status"]["phase"] == "Failed", "has failed")
    assert evicted["status"]["reason"] == "Evicted"
    assert condition(evicted, "DisruptionTarget") == "True"


def test_a_deleted_pod_does_not_wait_for_the_end_of_its_grace(pods: Pods, ready_pod: str) -> None:
    pods.delete(ready_pod, grace_seconds=600)
    wait_until(lambda: not pods.names(), "the pod is gone")


@pytest.mark.parametrize(("end_after", "grace_seconds", "expected"), [("1500ms", 600, 1.5), ("10m", 2, 2.0)])
def test_a_slow_end_takes_its_time_within_the_grace(
    pods: Pods, ready_pod: str, end_after: str, grace_seconds: int, expected: float
) -> None:
    pods.annotate(ready_pod, {"end-after": end_after})
    began = time.monotonic()
    pods.delete(ready_pod, grace_seconds=grace_seconds)
    assert pods.get(ready_pod)["metadata"]["deletionTimestamp"]
    assert is_ready(pods.get(ready_pod))
    wait_until(lambda: not pods.names(), "the pod is gone")
    assert time.monotonic() - began > expected - 0.1


def test_a_job_completes(control_plane: ControlPlane, pods: Pods, namespace: str) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "engine", "image": "fetch"}]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "fetch"}, "spec": {"template": template}}
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    control_plane.api.post(path, job)
    wait_until(lambda: control_plane.api.get(f"{path}/fetch")["status"].get("succeeded") == 1, "the job has succeeded")
    assert len(pods.names()) == 1


@pytest.fixture
def faulty_node(control_plane: ControlPlane) -> Iterator[str]:
    labels = {"sim.vlm.dev/fault": "exit", "sim.vlm.dev/exit-code": "9"}
    taint = {"key": "faulty", "value": "true", "effect": "NoSchedule"}
    control_plane.add_gpu_nodes(GpuNode(name="gpu-faulty", labels=labels, taints=(taint,)))
    yield "gpu-faulty"
    control_plane.api.delete("/api/v1/nodes/gpu-faulty")


def on(node: str) -> dict[str, Any]:
    return {"nodeSelector": {"kubernetes.io/hostname": node}, "tolerations": [{"operator": "Exists"}]}


def test_a_label_of_the_node_decides_for_all_its_pods(
    control_plane: ControlPlane, pods: Pods, faulty_node: str
) -> None:
    pods.create("engine", **on(faulty_node))
    crashed = pods.until("engine", lambda p: container(p).get("restartCount"), "has crashed")
    assert container(crashed)["lastState"]["terminated"]["exitCode"] == 9
    control_plane.kubectl("label", "node", faulty_node, "sim.vlm.dev/fault-", "sim.vlm.dev/ready-after=0s")
    pods.create("second", **on(faulty_node))
    pods.until_ready("second")


def test_on_a_lost_node_nothing_moves_until_it_returns(control_plane: ControlPlane, pods: Pods) -> None:
    pods.create("engine", notes=SOON, **on("gpu-a100"))
    pods.until_ready("engine")
    control_plane.lose_node("gpu-a100")
    try:
        # By then the imitated kubelet has heard of it.
        control_plane.wait_for_node("gpu-a100", ready=False, timeout=40)
        pods.delete("engine", grace_seconds=1)
        time.sleep(3)
        assert pods.get("engine")["metadata"]["deletionTimestamp"]
    finally:
        control_plane.return_node("gpu-a100")
    control_plane.wait_for_node("gpu-a100", ready=True)
    wait_until(lambda: not pods.names(), "the pod is gone")
