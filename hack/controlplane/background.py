"""A control plane to play with: it runs in the background and outlives the shell that asked for it.

One per user. The background process holds a lock for as long as it lives, so "is it running" never needs a guess from
process ids; what others must know of it is in a small file beside the lock.
"""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from controlplane.cache import make_folder
from controlplane.cluster import ControlPlane
from controlplane.errors import ControlPlaneError, StartError
from controlplane.nodes import a100, h100, l4
from controlplane.tools import ensure_tools

START_SECONDS = 180.0
STOP_SECONDS = 30.0


def home() -> Path:
    """Return the folder of this user's background control plane."""
    base = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    return Path(base) / "vlm-operator" / "controlplane"


def up() -> Path:
    """Return the kubeconfig of the running control plane, starting one if there is none.

    Raises ControlPlaneError with the words of the background process if it does not come up.
    """
    ensure_tools()
    make_folder(home())
    with (home() / "up.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        child = None if _is_running() else _launch()
        return _await_ready(child)


def down() -> bool:
    """Stop the background control plane; returns False if there was none."""
    if not _is_running():
        return False
    pid = int(_facts().get("pid", 0))
    if pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while _is_running():
        if time.monotonic() > deadline:
            raise ControlPlaneError(f"The control plane (process {pid}) did not stop within {STOP_SECONDS:.0f} s.")
        time.sleep(0.05)
    return True


def serve() -> None:
    """Be the background process: run until told to end."""
    with (home() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # waits for one that is just ending, or for a glance of _is_running
        told_to_end = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: told_to_end.set())
        _publish({"pid": os.getpid(), "state": "starting"})
        try:
            with ControlPlane() as cluster:
                cluster.add_gpu_nodes(h100("gpu-h100"), a100("gpu-a100"), l4("gpu-l4", gpus=4))
                _publish({"pid": os.getpid(), "state": "ready", "kubeconfig": str(cluster.kubeconfig)})
                told_to_end.wait()
        except ControlPlaneError as error:
            _publish({"pid": os.getpid(), "state": "failed", "error": str(error)})
            raise
        (home() / "facts.json").unlink(missing_ok=True)


def _launch() -> subprocess.Popen[bytes]:
    (home() / "facts.json").unlink(missing_ok=True)
    with (home() / "log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "controlplane", "serve"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        )


def _await_ready(child: subprocess.Popen[bytes] | None) -> Path:
    """Wait until the background process (ours, or one somebody started before) tells that it is ready."""
    logs = (home() / "log",)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        alive = _is_running() if child is None else child.poll() is None
        facts = _facts()
        if facts.get("state") == "ready":
            return Path(facts["kubeconfig"])
        if facts.get("state") == "failed":
            raise StartError(facts["error"])
        if not alive:
            raise StartError("The background process ended before the control plane was ready.", logs=logs)
        time.sleep(0.05)
    if child:
        child.terminate()
    raise StartError(f"The control plane was not ready within {START_SECONDS:.0f} s.", logs=logs)


def _is_running() -> bool:
    try:
        lock = (home() / "lock").open("r")
    except FileNotFoundError:
        return False
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _facts() -> dict[str, Any]:
    try:
        facts: dict[str, Any] = json.loads((home() / "facts.json").read_text())
    except FileNotFoundError:
        return {}
    return facts


def _publish(facts: dict[str, Any]) -> None:
    unfinished = home() / "facts.json.unfinished"
    unfinished.write_text(json.dumps(facts))
    unfinished.replace(home() / "facts.json")
