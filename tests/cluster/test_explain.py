"""`kubectl vlm explain` against the real API server, with different rights."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cluster.support.operator import Deployments, engines
from controlplane import ControlPlane, wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

TOLD = ("type", "status", "reason", "message")


def run(*words: str, kubeconfig: Path) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "vlm_operator.cli.kubectl", "explain", *words, f"--kubeconfig={kubeconfig}"]
    return subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)


def explained(deployments: Deployments, *, kubeconfig: Path | None = None) -> dict[str, Any]:
    config = kubeconfig or deployments.control_plane.kubeconfig
    done = run("qwen", "-n", deployments.namespace, "-o", "json", kubeconfig=config)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_it_says_what_the_status_says(deployments: Deployments) -> None:
    deployments.create(replicas=1, warmPool={"size": 1, "mode": "Standby"})
    deployments.until_ready()
    deployments.until("WarmPoolReady", "True")
    told = explained(deployments)
    assert sorted(replica["role"] for replica in told["replicas"]) == ["serving", "warm"]
    assert {replica["phase"] for replica in told["replicas"]} == {"Ready"}
    assert {replica["node"] for replica in told["replicas"]} <= {"gpu-h100", "gpu-a100", "gpu-l4"}
    conditions = deployments.status()["conditions"]
    assert told["conditions"] == [{name: condition[name] for name in TOLD} for condition in conditions]
    assert (told["next"], told["waitsFor"], told["doubts"]) == ([], [], [])


def test_a_drain_is_told_while_it_lasts(deployments: Deployments) -> None:
    deployments.create(replicas=2)
    deployments.until_ready()
    addresses = [pod["status"]["podIP"] for pod in deployments.pods().values()]
    for address in addresses:
        engines()[address].in_flight = 1
    deployments.patch(replicas=1)
    deployments.until("Progressing", "True", reason="Draining")
    told = explained(deployments)
    assert "draining" in {replica["role"] for replica in told["replicas"]}
    assert [wait["reason"] for wait in told["waitsFor"]] == ["Draining"]
    assert any("requests in flight" in sentence for sentence in told["unread"])
    for address in addresses:
        engines().forget(address)


def test_rights_to_read_the_namespace_are_enough(control_plane: ControlPlane, deployments: Deployments) -> None:
    deployments.create()
    deployments.until_ready()
    ann = control_plane.user_kubeconfig("ann-explains", groups=["explainers"])
    refused = run("qwen", "-n", deployments.namespace, kubeconfig=ann)
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert "cannot get resource" in refused.stderr
    assert refused.stderr.endswith("; ask for the permission, or use another --context\n")
    rights = {
        "vlm.dev": ["vlmdeployments"],
        "": ["pods", "services", "configmaps"],
        "apps": ["controllerrevisions"],
        "policy": ["poddisruptionbudgets"],
    }
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "explain"},
        "rules": [
            {"apiGroups": [group], "resources": resources, "verbs": ["get", "list"]}
            for group, resources in rights.items()
        ],
    }
    namespace = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{deployments.namespace}"
    control_plane.api.post(f"{namespace}/roles", role)
    control_plane.kubectl(
        "create", "rolebinding", "explain", "-n", deployments.namespace, "--role=explain", "--group=explainers"
    )
    wait_until(
        lambda: run("qwen", "-n", deployments.namespace, kubeconfig=ann).returncode == 0, "the rights are in force"
    )
    told = explained(deployments, kubeconfig=ann)
    assert [replica["phase"] for replica in told["replicas"]] == ["Ready"]
    assert told["next"] == []
    kinds = " ".join(told["unread"])
    assert all(what in kinds for what in ("nodes cannot", "in flight of", "where clients are sent"))


def test_the_table_names_replicas_and_what_comes(deployments: Deployments) -> None:
    deployments.create(gpu={"products": ["NVIDIA-H100-80GB-HBM3"]}, podTemplate={"nodeSelector": {"no": "such-node"}})
    deployments.until("Available", "False", reason="Unschedulable")
    done = run("qwen", "-n", deployments.namespace, kubeconfig=deployments.control_plane.kubeconfig)
    assert done.returncode == 0, done.stderr
    (name,) = deployments.pods()
    assert f"{name}: Unschedulable: 0/3 nodes are available" in done.stdout
    assert "What the operator does next: nothing" in done.stdout


def test_what_is_not_there_is_told_with_the_way_out(deployments: Deployments) -> None:
    done = run("nobody", "-n", deployments.namespace, kubeconfig=deployments.control_plane.kubeconfig)
    assert done.returncode == 2
    assert f"there is no VLMDeployment nobody in namespace {deployments.namespace}" in done.stderr
    absent = run("qwen", kubeconfig=Path("/no/such/file"))
    assert absent.returncode == 2
    assert "kubectl vlm: " in absent.stderr
    assert absent.stderr.count("\n") == 1
