"""Let a test be the engine at a pod's address: run a command where all of 198.18.0.0/15 is local.

That is a network namespace of its own with nothing but loopback, so whatever the command needs from outside must be
there already, and the control plane it talks to must be started inside as well. Root is not needed where users may make
namespaces. Without that, a test maps pod addresses to loopback ports in its own dialer.
"""

import os
import shlex
import socket
import subprocess
from collections.abc import Sequence

from controlplane.errors import PrerequisiteError

POD_CIDR = "198.18.0.0/15"
"""A range reserved for benchmarks, so that no real host is shadowed."""

_SET_UP = f"ip link set lo up && ip route add local {POD_CIDR} dev lo"


def is_inside() -> bool:
    """Tell whether this process can answer at pod addresses."""
    with socket.socket() as probe:
        try:
            probe.bind(("198.18.0.1", 0))
        except OSError:
            return False
    return True


def inside(command: Sequence[str]) -> list[str]:
    """Return the command line that runs `command` in the pod network; raises PrerequisiteError if that cannot be."""
    if is_inside():
        return list(command)
    flags = "-n" if os.geteuid() == 0 else "-Urn"
    enter = ["unshare", flags, "sh", "-c"]
    try:
        attempt = subprocess.run([*enter, _SET_UP], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise PrerequisiteError(
            "Running inside the pod network needs unshare (util-linux) and ip (iproute2)."
        ) from None
    if attempt.returncode:
        words = attempt.stderr.strip() or f"status {attempt.returncode}"
        raise PrerequisiteError(f"This user may not make a network namespace, or ip (iproute2) is missing: {words}")
    return [*enter, f"{_SET_UP} && exec {shlex.join(command)}"]
