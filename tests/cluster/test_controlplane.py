"""The control plane starts in seconds, is a real cluster, and leaves nothing behind however its owner dies."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane import ApiError, ControlPlane, ControlPlaneError, StartError, wait_until
from controlplane.background import home
from controlplane.processes import Processes

pytestmark = pytest.mark.cluster

HACK = Path(__file__).parents[2] / "hack"

OWNER = """
import json, time
from controlplane import ControlPlane
began = time.monotonic()
cluster = ControlPlane().start()
facts = {"seconds": time.monotonic() - began, "keeper": cluster.keeper_pid, "folder": str(cluster.dir)}
facts["version"] = json.loads(cluster.kubectl("get", "--raw", "/version"))["gitVersion"]
print(json.dumps(facts), flush=True)
time.sleep(600)
"""


def exists(pid: int) -> bool:
    """Tell whether a process runs; one that is dead but not yet collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_the_tools_agree_on_the_version(control_plane: ControlPlane) -> None:
    versions = json.loads(control_plane.kubectl("version", "--output=json"))
    assert versions["clientVersion"]["gitVersion"] == versions["serverVersion"]["gitVersion"]
    assert versions["serverVersion"]["minor"] == "36"


def test_a_second_one_runs_beside_and_dies_with_its_killed_owner(control_plane: ControlPlane) -> None:
    env = {**os.environ, "PYTHONPATH": str(HACK)}
    with subprocess.Popen([sys.executable, "-c", OWNER], env=env, stdout=subprocess.PIPE) as owner:
        assert owner.stdout
        facts = json.loads(owner.stdout.readline())
        programs = children(facts["keeper"])
        assert len(programs) == 4
        assert facts["seconds"] < 60
        assert control_plane.api.answers("/readyz")
        owner.kill()
    wait_until(lambda: not any(map(exists, [facts["keeper"], *programs])), "all processes are gone")
    wait_until(lambda: not Path(facts["folder"]).exists(), "the files are gone")
    assert control_plane.api.answers("/readyz")


def test_programs_die_with_a_killed_keeper(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    sleeper = processes.start("sleeper", ["sleep", "600"], log=tmp_path / "log")
    os.kill(processes.keeper_pid, signal.SIGKILL)
    wait_until(lambda: not exists(sleeper), "the program is gone")
    with pytest.raises(ControlPlaneError, match="keeper"):
        processes.ended()
    processes.close()


def test_a_fork_of_the_owner_does_not_keep_programs_alive(tmp_path: Path) -> None:
    script = f"""
import os, time
from pathlib import Path
from controlplane.processes import Processes
processes = Processes(Path({str(tmp_path / "scratch")!r}))
print(processes.start("sleeper", ["sleep", "600"], log=Path({str(tmp_path / "log")!r})), flush=True)
if os.fork() == 0:
    os.close(1)
time.sleep(5)
"""
    env = {**os.environ, "PYTHONPATH": str(HACK)}
    with subprocess.Popen([sys.executable, "-c", script], env=env, stdout=subprocess.PIPE) as owner:
        assert owner.stdout
        sleeper = int(owner.stdout.readline())
        owner.kill()
        wait_until(lambda: not exists(sleeper), "the program is gone")


def test_stop_ends_a_program_that_will_not_listen(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    deaf = processes.start("deaf", ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"], log=tmp_path / "log")
    processes.close()
    assert not exists(deaf)


def test_a_failed_start_keeps_and_names_the_logs(tmp_path: Path) -> None:
    broken = tmp_path / "kube-apiserver"
    broken.write_text("#!/bin/sh\necho no such flag: --surprise >&2\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(StartError, match=r"kube-apiserver ended with status 3: no such flag") as failure:
        ControlPlane(tools={"kube-apiserver": broken}, parent_folder=tmp_path).start()
    log = next(path for path in failure.value.logs if path.name == "kube-apiserver.log")
    assert str(log) in str(failure.value)
    assert "--surprise" in log.read_text()
    assert [path.name for path in log.parents[1].iterdir()] == ["logs"]


def test_a_user_may_do_what_rbac_says(control_plane: ControlPlane, namespace: str) -> None:
    config = control_plane.user_kubeconfig("ann", groups=["viewers"])
    as_ann = (f"--kubeconfig={config}", "--namespace", namespace, "get", "pods")
    with pytest.raises(ControlPlaneError, match="Forbidden"):
        control_plane.kubectl(*as_ann)
    control_plane.kubectl("create", "rolebinding", "see", "-n", namespace, "--clusterrole=view", "--group=viewers")
    wait_until(lambda: _allowed(control_plane, *as_ann), "the binding is in force")


def _allowed(control_plane: ControlPlane, *args: str) -> bool:
    try:
        control_plane.kubectl(*args)
    except ControlPlaneError:
        return False
    return True


def test_pod_security_and_quota_are_enforced(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.kubectl("label", "ns", namespace, "pod-security.kubernetes.io/enforce=restricted")
    control_plane.kubectl("create", "quota", "few", "-n", namespace, "--hard=configmaps=1")
    with pytest.raises(ControlPlaneError, match="violates PodSecurity"):
        control_plane.kubectl("run", "bad", "-n", namespace, "--image=x", "--privileged")
    with pytest.raises(ControlPlaneError, match="exceeded quota"):
        control_plane.kubectl("create", "configmap", "-n", namespace, "one-too-many")


def test_a_claim_is_bound(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.bound_claim(namespace, "weights", size="50Gi")
    claim = control_plane.api.get(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/weights")
    assert claim["status"]["capacity"]["storage"] == "50Gi"


def test_an_object_of_an_owner_is_collected_with_it(control_plane: ControlPlane, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    owner = control_plane.api.post(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    owned = {"name": "owned", "ownerReferences": [reference]}
    control_plane.api.post(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": owned})
    control_plane.api.delete(f"{path}/owner")
    wait_until(lambda: not control_plane.api.answers(f"{path}/owned"), "the owned object is gone")


@pytest.mark.forbidden  # an API server that has just started refuses everybody until it knows the roles
def test_the_api_server_alone_can_go_and_come_back(control_plane: ControlPlane) -> None:
    control_plane.stop_apiserver()
    with pytest.raises(OSError, match="refused"):
        control_plane.api.get("/readyz")
    control_plane.start_apiserver()
    assert len(control_plane.api.get("/api/v1/nodes")["items"]) == 3
    with pytest.raises(ApiError) as absent:
        control_plane.api.get("/api/v1/nodes/none")
    assert (absent.value.status, absent.value.reason) == (404, "NotFound")


def test_one_in_the_background_outlives_the_shell_and_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(HACK))

    def command(word: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "controlplane", word], stdout=subprocess.PIPE, text=True, check=True
        )
        return done.stdout.strip()

    first = command("up")
    try:
        kubeconfig = Path(first.removeprefix("export KUBECONFIG="))
        assert kubeconfig.exists()
        assert command("up") == first
        keeper_and_owner = json.loads((home() / "facts.json").read_text())["pid"]
    finally:
        assert command("down") == "stopped"
    wait_until(lambda: not exists(keeper_and_owner), "the background process is gone")
    assert not kubeconfig.exists()
    assert command("down") == "no control plane was running"
