"""Where the demonstration plays: a control plane of its own, or the one in the background that stays.

On both the operator runs as a program of its own, from this checkout, with the ServiceAccount and the rights of an installation.
"""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from controlplane import AuditTrail, ControlPlane, accompany, background, l4
from controlplane.errors import ControlPlaneError
from controlplane.tools import ensure_tools
from installation import install_account, operator_kubeconfig, refused, write_account_kubeconfig

OPERATOR = "vlm-operator"


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A running control plane with GPU nodes."""

    kubeconfig: Path
    start_operator: Callable[[], Path]
    """Starts the operator; returns its log."""

    def kubectl(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run kubectl as administrator; with `check` a failure ends the demonstration with its words."""
        return _kubectl(self.kubeconfig, *args, check=check)

    def exists(self, *args: str) -> bool:
        """Whether `kubectl get ARGS` finds something."""
        return self.kubectl("get", *args, check=False).returncode == 0


def _kubectl(
    kubeconfig: Path,
    *args: str,
    input: str | None = None,  # noqa: A002 -- as in subprocess
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    command = [str(ensure_tools()["kubectl"]), f"--kubeconfig={kubeconfig}", *args]
    done = subprocess.run(command, input=input, capture_output=True, text=True, timeout=60, check=False)
    if check and done.returncode:
        raise ControlPlaneError(f"kubectl {' '.join(args)} failed: {done.stderr.strip()}")
    return done


def _operator(kubeconfig: Path) -> list[str]:
    """The operator, beside engines that it can ask at the addresses of the pods."""
    engines = ["env", f"PYTHONPATH={Path(__file__).parents[1]}", sys.executable, "-m", "simengine"]
    program = [*engines, sys.executable, "-m", "vlm_operator.cli.operator", "run"]
    return [*program, f"--kubeconfig={kubeconfig}", "--health-host=127.0.0.1", "--health-port=0"]


@contextlib.contextmanager
def passing_stage() -> Iterator[Stage]:
    """A control plane that ends with the demonstration."""
    with ControlPlane() as cluster:
        cluster.add_gpu_nodes(l4("gpu-node-1", gpus=4), l4("gpu-node-2", gpus=4))
        yield Stage(
            kubeconfig=cluster.kubeconfig,
            start_operator=lambda: cluster.start_program(OPERATOR, _operator(operator_kubeconfig(cluster))),
        )
        if without_right := refused(AuditTrail(cluster.audit_log).news()):
            raise ControlPlaneError("the operator lacks rights:\n" + "\n".join(without_right))


@contextlib.contextmanager
def kept_stage() -> Iterator[Stage]:
    """The control plane in the background, which stays until `make cluster-down`."""
    kubeconfig = background.up()

    def kubectl(*args: str, input: str | None = None) -> str:  # noqa: A002 -- as in subprocess
        return _kubectl(kubeconfig, *args, input=input).stdout

    def start() -> Path:
        install_account(kubectl)
        account = write_account_kubeconfig(background.home() / "operator.kubeconfig", kubectl, like=kubeconfig)
        return accompany.start(OPERATOR, _operator(account))

    yield Stage(kubeconfig=kubeconfig, start_operator=start)
