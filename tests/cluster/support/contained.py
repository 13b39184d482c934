"""The operator in a container of its image, with what it finds in a pod of an installation: no kubeconfig, but mounted files."""

import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cluster.support.image import Image
from cluster.support.operator import RunningOperator
from controlplane import ControlPlane
from installation import ACCOUNT, NAMESPACE, operator_kubeconfig

FOLDER = "/run/secrets/kubernetes.io/serviceaccount"


def account_files(plane: ControlPlane) -> dict[str, str]:
    """What the kubelet mounts into a pod of the operator's ServiceAccount."""
    operator_kubeconfig(plane)  # installs the account
    token = plane.kubectl("create", "token", ACCOUNT, f"--namespace={NAMESPACE}").strip()
    files = {"token": token, "ca.crt": plane.ca_file.read_text(), "namespace": NAMESPACE}
    return {f"{FOLDER}/{name}": content for name, content in files.items()}


@dataclass(kw_only=True)
class ContainedOperator(RunningOperator):
    """An operator that runs from an image."""

    image: Image
    files: Mapping[str, str] = field(repr=False)
    """What is mounted, by path."""
    user: int | None = None

    def launch(self) -> Path:
        """Start it without waiting; returns its log."""
        server = urllib.parse.urlsplit(self.control_plane.server)
        where = {"KUBERNETES_SERVICE_HOST": str(server.hostname), "KUBERNETES_SERVICE_PORT": str(server.port)}
        container = self.image.container(user=self.user, files=self.files, **where)
        program = [*self.image.config["Entrypoint"], *self.image.config["Cmd"]]
        place = ["--health-host=127.0.0.1", "--health-port=0"]
        command = container.command(*program, *place, *self.arguments)
        self.log = self.control_plane.start_program(self.name, command)
        return self.log
