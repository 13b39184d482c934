"""A whole control plane as one value: etcd, API server, controller manager, scheduler, and nodes imitated by kwok.

    with ControlPlane() as cluster:
        cluster.add_gpu_nodes(h100("gpu-0"), l4("gpu-1"))
        cluster.kubectl("get", "nodes")

It needs no root, listens on free loopback ports only, and ends with the process that made it, however that dies. Any
number can run at once. How programs are started is in `programs`, what nodes and pods do is in `stages`.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import yaml

from controlplane import audit, programs
from controlplane.api import Api, wait_until
from controlplane.errors import ControlPlaneError, StartError, WaitTimeoutError
from controlplane.kubeconfig import write_kubeconfig
from controlplane.nodes import GpuNode
from controlplane.pod_network import POD_CIDR
from controlplane.ports import Ports
from controlplane.processes import Processes
from controlplane.programs import Layout, Timing
from controlplane.stages import GONE, binding_policy, render_stages
from controlplane.tools import KUBERNETES, ensure_tools

START_SECONDS = 90.0
"""Patience for one step of a start; a step takes a few seconds on an idle machine."""


class ControlPlane:
    """A Kubernetes control plane of this process's own."""

    def __init__(
        self,
        *,
        timing: Timing | None = None,
        pod_cidr: str = POD_CIDR,
        parent_folder: Path | None = None,
        apiserver_args: Sequence[str] = (),
        controller_manager_args: Sequence[str] = (),
        scheduler_args: Sequence[str] = (),
        tools: Mapping[str, Path] | None = None,
    ) -> None:
        """Prepare a control plane; nothing runs and nothing is built before `start`.

        Extra arguments come last on the command line and so win. `tools` replaces programs by name.
        """
        self._timing = timing or Timing()
        self._pod_cidr = pod_cidr
        self._parent_folder = parent_folder
        self._apiserver_args = tuple(apiserver_args)
        self._controller_manager_args = tuple(controller_manager_args)
        self._scheduler_args = tuple(scheduler_args)
        self._replaced_tools = dict(tools or {})
        self._processes: Processes | None = None
        self._nodes_run = False

    def start(self) -> Self:
        """Start everything but the nodes and return when pods could be created.

        Raises StartError, naming the logs, or what `ensure_tools` raises.
        """
        tools = {**ensure_tools(), **self._replaced_tools}
        self.dir = Path(tempfile.mkdtemp(prefix="vlm-controlplane-", dir=self._parent_folder))
        self._layout = Layout(
            folder=self.dir,
            ports=Ports("apiserver", "etcd", "etcd-peer"),
            tools=tools,
            timing=self._timing,
            pod_cidr=self._pod_cidr,
        )
        self._processes = Processes(self.dir)
        try:
            self._prepare_files()
            self._bring_up()
        except BaseException as error:
            if isinstance(error, (WaitTimeoutError, ControlPlaneError)) and not isinstance(error, StartError):
                error = StartError(str(error), logs=self.logs())
            self._shut_down(keep_logs=isinstance(error, StartError))
            raise error from None
        return self

    def stop(self) -> None:
        """End everything and remove its files; harmless when it is not running."""
        if self._processes:
            self._shut_down(keep_logs=False)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def server(self) -> str:
        """URL of the API server."""
        return self._layout.server

    @property
    def ca_file(self) -> Path:
        """Certificate of the authority that signed the API server and its users."""
        return self._layout.pki / "cluster.crt"

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of a cluster administrator."""
        return self.dir / "admin.kubeconfig"

    @property
    def pki(self) -> Path:
        """Folder with admin.crt and admin.key, and the certificates of the programs."""
        return self._layout.pki

    @property
    def audit_log(self) -> Path:
        """What service accounts asked of the API server, for an `AuditTrail`."""
        return self._layout.audit_log

    @property
    def keeper_pid(self) -> int:
        """Process id of the parent of all programs."""
        return self._running().keeper_pid

    def logs(self) -> tuple[Path, ...]:
        """Return the log files of the programs started so far."""
        return tuple(sorted((self.dir / "logs").glob("*.log")))

    def kubectl(self, *args: str, input: str | None = None, timeout: float = 60) -> str:  # noqa: A002 -- as in subprocess
        """Run kubectl as administrator and return what it prints; raises ControlPlaneError with its words."""
        command = [str(self._layout.tools["kubectl"]), f"--kubeconfig={self.kubeconfig}", *args]
        try:
            done = subprocess.run(command, input=input, capture_output=True, text=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            raise WaitTimeoutError(f"kubectl {' '.join(args)} did not end within {timeout:g} s") from None
        if done.returncode:
            raise ControlPlaneError(f"kubectl {' '.join(args)} failed: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def start_program(self, name: str, argv: Sequence[str | Path]) -> Path:
        """Start a program of the caller's that ends with the control plane at the latest; returns its log."""
        log = self._layout.log(name)
        self._running().start(name, argv, log=log)
        return log

    def stop_program(self, name: str, *, grace_seconds: float = 10.0) -> None:
        """End a program started by `start_program`."""
        self._running().stop(name, grace_seconds=grace_seconds)

    def signal_program(self, name: str, number: int) -> None:
        """Send a signal to a program started by `start_program`."""
        self._running().signal(name, number)

    def ended_programs(self) -> Mapping[str, int]:
        """Return the exit status of each program that ended by itself (negative: by that signal)."""
        return self._running().ended()

    def user_kubeconfig(self, name: str, groups: Sequence[str] = ()) -> Path:
        """Return a kubeconfig for user `name` in `groups`, who may do what RBAC says and nothing else."""
        return self._write_user(f"user-{name.replace(':', '-')}", user=name, groups=groups)

    def start_nodes(self) -> None:
        """Start imitating nodes; add_gpu_nodes does so by itself."""
        if self._nodes_run:
            return
        self._start("kwok", programs.kwok(self._layout, self.dir / "stages.yaml", f"!{GONE}"))
        self._nodes_run = True

    def stop_nodes(self) -> None:
        """Stop the imitation: every node falls silent. Deleted pods stay until it is started again."""
        self._running().stop("kwok")
        self._nodes_run = False

    def add_gpu_nodes(self, *nodes: GpuNode, timeout: float = START_SECONDS) -> None:
        """Create the nodes and wait until all are Ready."""
        self.start_nodes()
        for node in nodes:
            self.api.post("/api/v1/nodes", node.manifest())
        for node in nodes:
            self.wait_for_node(node.name, ready=True, timeout=timeout)

    def lose_node(self, name: str) -> None:
        """Let the kubelet of a node vanish; the cluster notices after the monitor's grace."""
        self.api.merge_patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {GONE: "true"}}})

    def return_node(self, name: str) -> None:
        """Bring a lost node back."""
        self.api.merge_patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {GONE: None}}})

    def wait_for_node(self, name: str, *, ready: bool, timeout: float = START_SECONDS) -> None:
        """Return when the node's Ready condition is True (or, with ready=False, is not)."""

        def look() -> bool:
            conditions = self.api.get(f"/api/v1/nodes/{name}").get("status", {}).get("conditions", [])
            return ready == any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

        wait_until(look, f"node {name} is {'Ready' if ready else 'not Ready'}", timeout_seconds=timeout)

    def install_crd(self, file: Path) -> None:
        """Install a CustomResourceDefinition, or what it became, and wait until its resource is served."""
        text = file.read_text()
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=text)
        name = yaml.safe_load(text)["metadata"]["name"]

        def look() -> bool:
            crd = self.api.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
            conditions = crd.get("status", {}).get("conditions") or []
            return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

        wait_until(look, f"{name} is served")

    def bound_claim(self, namespace: str, name: str, *, size: str = "100Gi", mode: str = "ReadWriteMany") -> None:
        """Create a claim with a volume of its own and wait until it is Bound. There is nothing behind the volume."""
        volume = f"{namespace}-{name}"
        claim = {"accessModes": [mode], "storageClassName": "", "volumeName": volume}
        driver = {"driver": "sim.vlm.dev", "volumeHandle": volume}
        self.api.post(
            "/api/v1/persistentvolumes",
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": volume},
                "spec": {
                    "capacity": {"storage": size},
                    "accessModes": [mode],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "claimRef": {"namespace": namespace, "name": name},
                    "csi": driver,
                },
            },
        )
        claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
        self.api.post(
            claims,
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": name},
                "spec": {**claim, "resources": {"requests": {"storage": size}}},
            },
        )
        wait_until(lambda: self.api.get(f"{claims}/{name}")["status"].get("phase") == "Bound", f"claim {name} is Bound")

    def stop_apiserver(self) -> None:
        """End the API server alone; its port stays reserved, so clients are refused."""
        self._running().stop("kube-apiserver", grace_seconds=1.0)

    def start_apiserver(self) -> None:
        """Start the API server again after `stop_apiserver` and wait until it is ready."""
        self._start("kube-apiserver", programs.apiserver(self._layout, self._apiserver_args))
        self._wait(lambda: self.api.answers("/readyz"), "the API server is ready")

    def _prepare_files(self) -> None:
        for folder in ("pki", "logs"):
            (self.dir / folder).mkdir(mode=0o700)
        self._authority = programs.make_pki(self._layout.pki)
        masters = ("system:masters",)
        self._write_user("admin", user="admin", groups=masters)
        self._write_user("scheduler", user="system:kube-scheduler")
        self._write_user("kwok", user="kwok", groups=masters)
        # One identity for all controllers: waiting for a token for each of them would double the time of a start.
        self._write_user("controller-manager", user="system:kube-controller-manager", groups=masters)
        (self.dir / "stages.yaml").write_text(render_stages(KUBERNETES.version))
        (self.dir / "audit-policy.yaml").write_text(audit.POLICY)
        self.api = Api(
            self.server,
            ca_file=self.ca_file,
            certificate=self._layout.pki / "admin.crt",
            key=self._layout.pki / "admin.key",
        )

    def _bring_up(self) -> None:
        layout = self._layout
        self._start("etcd", programs.etcd(layout))
        self.start_apiserver()
        self._start("kube-controller-manager", programs.controller_manager(layout, self._controller_manager_args))
        self._start("kube-scheduler", programs.scheduler(layout, self._scheduler_args))
        for part in binding_policy():
            plural = "mutatingadmissionpolic" + ("ies" if part["kind"].endswith("Policy") else "ybindings")
            self.api.post(f"/apis/admissionregistration.k8s.io/v1/{plural}", part)
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._wait(lambda: self.api.answers(account), "the controller manager has made the default ServiceAccount")

    def _start(self, name: str, argv: Sequence[str | Path]) -> None:
        self._running().start(name, argv, log=self._layout.log(name))

    def _wait(self, look: Any, what: str) -> None:
        def look_alive() -> Any:
            for name, code in self._running().ended().items():
                raise ControlPlaneError(f"{name} ended with status {code}: {_last_words(self._layout.log(name))}")
            return look()

        wait_until(look_alive, what, timeout_seconds=START_SECONDS)

    def _write_user(self, file_name: str, *, user: str, groups: Sequence[str] = ()) -> Path:
        certificate, key = self._authority.issue(file_name, user=user, groups=groups)
        path = self.dir / f"{file_name}.kubeconfig"
        return write_kubeconfig(
            path, server=self.server, ca_file=self.ca_file, user=user, certificate=certificate, key=key
        )

    def _running(self) -> Processes:
        if not self._processes:
            raise ControlPlaneError("This control plane is not running.")
        return self._processes

    def _shut_down(self, *, keep_logs: bool) -> None:
        processes, self._processes, self._nodes_run = self._running(), None, False
        processes.close()
        self._layout.ports.release()
        if not keep_logs:
            shutil.rmtree(self.dir, ignore_errors=True)
            return
        for entry in self.dir.iterdir():
            if entry.name != "logs":
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def _last_words(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1][:500] if lines else "it said nothing"
