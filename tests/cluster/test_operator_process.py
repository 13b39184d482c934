"""The operator as a process: start, stop, health, logs, namespaces, a CRD that comes and goes."""

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.support.operator import CRD, Deployments, RunningOperator, cli
from cluster.support.story import until_garbage_is_collected
from controlplane import ControlPlane, Timing, l4, wait_until
from installation import operator_kubeconfig

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def own_plane() -> Iterator[ControlPlane]:
    """A control plane of this module's own, still without the CRD."""
    with ControlPlane(timing=Timing()) as cluster:
        cluster.add_gpu_nodes(l4("gpu-l4", gpus=8))
        for name in ("one", "two", "three"):
            cluster.api.post(
                "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            )
            cluster.bound_claim(name, "models")
        yield cluster


def _in(plane: ControlPlane, namespace: str) -> Deployments:
    return Deployments(control_plane=plane, namespace=namespace)


def test_it_waits_for_the_crd(own_plane: ControlPlane) -> None:
    operator = RunningOperator(own_plane, "early")
    operator.launch()
    wait_until(lambda: "waiting for the CustomResourceDefinition" in operator.text(), "it says what it waits for")
    wait_until(lambda: operator.answer("/readyz")[0] == 503, "it is not ready")
    assert "CustomResourceDefinition" in operator.answer("/readyz")[1]
    assert operator.answer("/healthz") == (200, "ok")
    own_plane.install_crd(CRD)
    wait_until(lambda: operator.answer("/readyz") == (200, "ok"), "it is ready")
    deployments = _in(own_plane, "one")
    deployments.create()
    deployments.until_ready()
    deployments.delete()
    operator.stop()


def test_it_serves_the_namespaces_it_is_given(own_plane: ControlPlane) -> None:
    own_plane.install_crd(CRD)
    operator = RunningOperator(own_plane, "narrow", ("--namespace=one", "--namespace=two", "--log-format=json")).start()
    for namespace in ("one", "two", "three"):
        _in(own_plane, namespace).create("narrow")
    for namespace in ("one", "two"):
        _in(own_plane, namespace).until_ready("narrow")
    assert _in(own_plane, "three").status("narrow") == {}
    lines = [json.loads(line) for line in operator.text().splitlines() if line.startswith("{")]
    assert any("created narrow-" in line.get("message", "") for line in lines)
    for namespace in ("one", "two", "three"):
        _in(own_plane, namespace).delete("narrow")
    operator.stop()


def test_a_successor_changes_nothing(own_plane: ControlPlane) -> None:
    own_plane.install_crd(CRD)
    deployments = _in(own_plane, "one")
    first = RunningOperator(own_plane, "first").start()
    deployments.create("steady", replicas=2)
    deployments.until_ready("steady")
    deployments.until("Progressing", "False", name="steady")
    first.stop()
    before = deployments.get("steady")["metadata"]["resourceVersion"], deployments.pods("steady")
    second = RunningOperator(own_plane, "second").start()
    wait_until(lambda: 'reconciles_total{result="ok"}' in second.answer("/metrics")[1], "it has looked")
    assert (deployments.get("steady")["metadata"]["resourceVersion"], deployments.pods("steady")) == before
    assert "create" not in second.text().replace("created", "")
    # What happened while none ran is caught up with.
    second.stop()
    deployments.api.delete(deployments.core("pods", min(before[1])), {"gracePeriodSeconds": 0})
    deployments.patch("steady", replicas=3)
    third = RunningOperator(own_plane, "third").start()
    deployments.until_ready("steady")
    assert len(deployments.ready_pods("steady")) == 3
    deployments.delete("steady")
    third.stop()


def test_a_crd_that_is_deleted_and_installed_again(own_plane: ControlPlane) -> None:
    own_plane.install_crd(CRD)
    deployments = _in(own_plane, "two")
    operator = RunningOperator(own_plane, "lasting").start()
    until_garbage_is_collected(own_plane.api, "two")
    deployments.create()
    deployments.until_ready()
    own_plane.kubectl("delete", "-f", str(CRD), "--timeout=60s")
    wait_until(lambda: not deployments.children("pods"), "its pods are gone with it", timeout_seconds=60)
    own_plane.install_crd(CRD)
    deployments.create(replicas=2)
    deployments.until_ready(timeout_seconds=60)
    assert len(deployments.ready_pods()) == 2
    deployments.delete()
    operator.stop()


def test_a_watch_that_finds_the_crd_gone_does_not_end_it(own_plane: ControlPlane) -> None:
    own_plane.install_crd(CRD)
    deployments = _in(own_plane, "three")
    operator = RunningOperator(own_plane, "tough").start()
    deployments.create()
    deployments.until_ready()
    # It wakes up with broken watches, and opens them again before it can know that the CRD is gone.
    own_plane.signal_program("tough", signal.SIGSTOP)
    own_plane.kubectl("delete", "-f", str(CRD), "--timeout=60s")
    own_plane.stop_apiserver()
    own_plane.start_apiserver()
    own_plane.signal_program("tough", signal.SIGCONT)
    wait_until(lambda: "404 page not found" in operator.text(), "a watch found it gone", timeout_seconds=60)
    own_plane.install_crd(CRD)
    deployments.create("again", replicas=2)
    deployments.until_ready("again", timeout_seconds=60)
    assert "tough" not in own_plane.ended_programs()
    deployments.delete("again")
    operator.stop()


def test_sigterm_ends_it_cleanly(own_plane: ControlPlane) -> None:
    own_plane.install_crd(CRD)
    operator = RunningOperator(own_plane, "brief").start()
    status, metrics = operator.answer("/metrics")
    assert status == 200
    assert "vlm_operator_api_requests_total" in metrics
    own_plane.signal_program("brief", signal.SIGTERM)
    wait_until(lambda: "brief" in own_plane.ended_programs(), "it has ended")
    assert own_plane.ended_programs()["brief"] == 0
    assert operator.text().splitlines()[-1].endswith("stopped")
    assert "Traceback" not in operator.text()


def test_the_command_line_prints_the_crd() -> None:
    assert cli("crd").stdout == CRD.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["run", "--kubeconfig=/nowhere"],
            "no usable cluster configuration: /nowhere cannot be read: no such file or directory",
        ),
        (["run", "--workers=0"], "--workers"),
        (["run", "--namespace="], "--namespace"),
        (["run", "--health-port=99999"], "--health-port"),
        (["run", "--log-level=nonsense"], "--log-level"),
        (["run", "--nonsense"], "--nonsense"),
        ([], "COMMAND"),
    ],
)
def test_wrong_usage_is_one_plain_sentence(arguments: list[str], words: str) -> None:
    done = cli(*arguments)
    assert done.returncode in {1, 2}
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_taken_health_port_is_told(own_plane: ControlPlane) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place = ["--health-host=127.0.0.1", f"--health-port={taken.getsockname()[1]}"]
        done = cli("run", f"--kubeconfig={operator_kubeconfig(own_plane)}", *place)
    assert done.returncode == 1
    assert "cannot serve health and metrics on" in done.stderr


def test_an_unreachable_api_server_is_told(tmp_path: Path) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "gone", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "gone", "context": {"cluster": "gone", "user": "nobody"}}],
        "users": [{"name": "nobody", "user": {}}],
        "current-context": "gone",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    done = cli("run", f"--kubeconfig={path}", "--health-port=0")
    assert done.returncode == 1
    assert "the API server did not answer" in done.stderr
