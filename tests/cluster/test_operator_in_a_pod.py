"""The operator as in a pod: no kubeconfig, but the files that the kubelet mounts, with a token that it replaces."""

import os
import subprocess
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.support.operator import CRD, Deployments, RunningOperator
from controlplane import OWNERS_ENFORCED, ControlPlane, l4, wait_until
from installation import ACCOUNT, NAMESPACE, operator_kubeconfig

pytestmark = pytest.mark.cluster

ENTER = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane that ends each watch after a few seconds, so that it is opened with the token of then.

    It asks owners for their rights, and so refuses children of a VLMDeployment for half a minute after the CRD was created.
    """
    with ControlPlane(apiserver_args=["--min-request-timeout=3", OWNERS_ENFORCED]) as cluster:
        cluster.add_gpu_nodes(l4("gpu-l4", gpus=8))
        cluster.install_crd(CRD)
        operator_kubeconfig(cluster)
        yield cluster


@pytest.fixture
def mounted(plane: ControlPlane, tmp_path: Path) -> Path:
    """What is mounted into the pod. The token is valid as long as a Secret `pod-1` is there, as one is bound to its pod."""
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pod-1"}}
    plane.api.post(f"/api/v1/namespaces/{NAMESPACE}/secrets", body)
    (tmp_path / "ca.crt").write_bytes(plane.ca_file.read_bytes())
    (tmp_path / "namespace").write_text(NAMESPACE)
    _replace_token(tmp_path, _token(plane, "--bound-object-kind=Secret", "--bound-object-name=pod-1"))
    return tmp_path


def _token(plane: ControlPlane, *options: str) -> str:
    return plane.kubectl("create", "token", ACCOUNT, f"--namespace={NAMESPACE}", *options).strip()


def _replace_token(folder: Path, token: str) -> None:
    (folder / "token.new").write_text(token)
    (folder / "token.new").replace(folder / "token")


def _in_a_pod(plane: ControlPlane, mounted: Path) -> list[str]:
    """How a program is started where it finds these files, and the API server as the kubelet tells it."""
    if subprocess.run([*ENTER, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not make a mount namespace, in which files could be where they are in a pod")
    place, server = "/var/run/secrets/kubernetes.io", urllib.parse.urlsplit(plane.server)
    look = f"mount -t tmpfs none /var/run && mkdir -p {place} && ln -s {mounted} {place}/serviceaccount"
    env = f"env -u KUBECONFIG KUBERNETES_SERVICE_HOST={server.hostname} KUBERNETES_SERVICE_PORT={server.port}"
    return [*ENTER, "sh", "-c", f'{look} && exec {env} "$@"', "sh"]


def test_it_works_and_follows_a_token_that_is_replaced(plane: ControlPlane, mounted: Path) -> None:
    plane.bound_claim("default", "models")
    deployments = Deployments(control_plane=plane, namespace="default")
    operator = RunningOperator(
        plane, "in-a-pod", ("--leader-elect", "--log-level=debug"), within=_in_a_pod(plane, mounted)
    ).start()
    deployments.create()
    deployments.until_ready(timeout_seconds=90)
    lease = plane.api.get(f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{ACCOUNT}")
    assert lease["spec"]["holderIdentity"]

    _replace_token(mounted, _token(plane))
    plane.api.delete(f"/api/v1/namespaces/{NAMESPACE}/secrets/pod-1")
    # The API server trusts a token for some seconds after it has looked at it. Then a watch is opened with the old one.
    again = "Re-authentication has finished"
    wait_until(lambda: again in operator.text(), "the watches have the new token", timeout_seconds=60)
    # Only a watch can tell it of these, for the next full list is minutes away.
    deployments.patch(replicas=2)
    deployments.until_ready()
    deployments.create("later")
    deployments.until_ready("later")
    assert "in-a-pod" not in plane.ended_programs()
    assert "start again" not in operator.text()
    operator.stop()
