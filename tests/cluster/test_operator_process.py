"""The operator as a process: start, stop, health, logs, namespaces, a CRD that comes and goes."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster.support.operator import CRD, Deployments, Object, RunningOperator, cli
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


@dataclass(frozen=True)
class Moment:
    """When the start is ended: at a line of the log, else when a plugin for credentials runs, else after some seconds."""

    name: str
    at: str = ""
    after: float = 0.0
    number: int = signal.SIGTERM
    user: Object | None = None
    server: str | None = None


def _hanging(marker: Path) -> Object:
    script = f"echo $$ > {marker}.part; mv {marker}.part {marker}; exec sleep 600"
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script]}
    return {"exec": plugin}


def test_a_signal_ends_the_start_at_any_moment(own_plane: ControlPlane, tmp_path: Path) -> None:
    own_plane.install_crd(CRD)
    operator_kubeconfig(own_plane)  # installs what all of them need, once
    with socket.create_server(("127.0.0.1", 0)) as silent:
        moments = [
            Moment("first"),
            Moment("imports", after=0.4),
            Moment("plugin", user=_hanging(tmp_path / "plugin")),
            Moment("silent", at="health and metrics on", server=f"http://127.0.0.1:{silent.getsockname()[1]}"),
            Moment("answers", at="health and metrics on", number=signal.SIGINT),
            Moment("watches", at="serves watches"),
            Moment("lists", at="VLMDeployments found", number=signal.SIGINT),
            Moment("leads", at="leads as"),
        ]
        with ThreadPoolExecutor(4) as pool:
            said = list(pool.map(lambda moment: _ended_at(own_plane, tmp_path, moment), moments))
    for moment, (code, text) in zip(moments, said, strict=True):
        assert code == 0 or (not moment.at and code == -moment.number), (moment.name, code, text)
        assert "Traceback" not in text, (moment.name, text)
        assert "starts again" not in text, (moment.name, text)
        assert moment.at in text, (moment.name, text)
    assert "gave the lease vlm-system/vlm-operator back" in said[-1][1]
    leases = own_plane.api.get("/apis/coordination.k8s.io/v1/namespaces/vlm-system/leases")["items"]
    assert {lease["spec"].get("holderIdentity", "") for lease in leases} == {""}


def _ended_at(plane: ControlPlane, folder: Path, moment: Moment) -> tuple[int, str]:
    """Start an operator for a namespace of its own, end it at the moment, and return its exit code and what it said."""
    config = json.loads(operator_kubeconfig(plane).read_text())
    config["users"][0]["user"] = moment.user or config["users"][0]["user"]
    config["clusters"][0]["cluster"]["server"] = moment.server or config["clusters"][0]["cluster"]["server"]
    kubeconfig = folder / f"{moment.name}.kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    place = [f"--kubeconfig={kubeconfig}", f"--namespace={moment.name}", "--health-host=127.0.0.1", "--health-port=0"]
    elect = ["--leader-elect", "--leader-elect-namespace=vlm-system"]
    with subprocess.Popen(
        [sys.executable, "-m", "vlm_operator.cli.operator", "run", *place, *elect],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = ""
        while moment.at not in said and (line := process.stdout.readline()):
            said += line
        if moment.user:
            wait_until((folder / moment.name).exists, "the plugin runs")
        time.sleep(moment.after)
        process.send_signal(moment.number)
        try:
            said += process.communicate(timeout=60)[0]
        finally:
            process.kill()
            if moment.user:
                with contextlib.suppress(ProcessLookupError):  # it may have gone with the operator
                    os.kill(int((folder / moment.name).read_text()), signal.SIGKILL)
    return process.returncode, said


@pytest.fixture
def bare() -> list[str]:
    """A command that runs another where no folder for temporary files can be written, with no more than it needs."""
    enter = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*enter, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not make a mount namespace, in which folders can be made read-only")
    read_only = "for f in /tmp /var/tmp; do mount --bind $f $f && mount -o remount,bind,ro $f; done"
    nothing = "env -i PATH=/usr/bin:/bin LC_ALL=C"
    return [*enter, "sh", "-c", f'{read_only} && cd /proc && exec {nothing} "$@" <&-', "sh"]


def test_it_runs_without_a_home_a_locale_an_input_and_a_folder_to_write_to(
    own_plane: ControlPlane, bare: list[str], tmp_path: Path
) -> None:
    own_plane.install_crd(CRD)
    config = json.loads(operator_kubeconfig(own_plane).read_text())
    cluster = config["clusters"][0]["cluster"]
    del cluster["certificate-authority-data"]
    cluster["certificate-authority"] = str(own_plane.ca_file)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    operator = RunningOperator(own_plane, "bare", (f"--kubeconfig={kubeconfig}",), within=bare).start()
    own_plane.signal_program("bare", signal.SIGTERM)
    wait_until(lambda: "bare" in own_plane.ended_programs(), "it has ended")
    assert own_plane.ended_programs()["bare"] == 0
    assert "Traceback" not in operator.text()


def test_certificates_that_need_a_folder_are_told_where_none_can_be_written(
    own_plane: ControlPlane, bare: list[str]
) -> None:
    command = [sys.executable, "-m", "vlm_operator.cli.operator", "run", f"--kubeconfig={own_plane.kubeconfig}"]
    done = subprocess.run([*bare, *command], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "holds certificates that need a temporary file, and none can be written; mount" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_standard_streams_it_runs(own_plane: ControlPlane) -> None:
    own_plane.install_crd(CRD)
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place = [f"--kubeconfig={operator_kubeconfig(own_plane)}", "--health-host=127.0.0.1", f"--health-port={port}"]
    own_plane.start_program("mute", [*closed, sys.executable, "-m", "vlm_operator.cli.operator", "run", *place])

    def ready() -> bool:
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as reply,
        ):
            return bool(reply.status == 200)
        return False

    wait_until(ready, "it is ready")
    own_plane.stop_program("mute")


def test_the_command_line_prints_the_crd() -> None:
    assert cli("crd").stdout == CRD.read_text()


@pytest.mark.parametrize(("redirection", "why"), [(">/dev/full", "no space left on device"), (">&-", "it is closed")])
def test_an_output_that_takes_nothing_is_told(redirection: str, why: str) -> None:
    command = ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "vlm_operator.cli.operator", "crd"]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, f"vlm-operator: cannot write to standard output: {why}\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--kubeconfig=/nowhere"], "/nowhere cannot be read: no such file or directory; correct --kubeconfig"),
        (["run", "--log-level=nonsense"], "--log-level nonsense must be"),
        ([], "COMMAND"),
    ],
)
def test_wrong_usage_is_one_plain_sentence(arguments: list[str], words: str) -> None:
    done = cli(*arguments)
    assert done.returncode in {1, 2}
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("host", "why"),
    [("127.0.0.1", "address already in use"), ("nonsense.invalid", "name or service not known")],
)
def test_an_address_for_health_that_cannot_be_had_is_told(own_plane: ControlPlane, host: str, why: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        place = [f"--health-host={host}", f"--health-port={port}"]
        done = cli("run", f"--kubeconfig={operator_kubeconfig(own_plane)}", *place)
    assert done.returncode == 1
    told = f"vlm-operator: cannot serve health and metrics on {host}, port {port}: {why}; set --health-port"
    assert done.stderr.lower().startswith(told.lower())


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
