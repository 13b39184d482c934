"""Runs a program in the background for as long as the background control plane lives.

    python -m controlplane accompany NAME -- PROGRAM ARGUMENT...

It waits on the control plane's lock, which falls free when that ends in whatever way, and then ends the program.
"""

import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from controlplane.background import home

END_SECONDS = 15.0


def start(name: str, argv: Sequence[str]) -> Path:
    """Start the program in the background unless one of that name runs already; returns its log."""
    log = home() / f"{name}.log"
    with (home() / f"{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return log
    with log.open("wb") as file:
        subprocess.Popen(
            [sys.executable, "-m", "controlplane", "accompany", name, "--", *argv],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]),
            },
        )
    return log


def accompany(name: str, argv: Sequence[str]) -> int:
    """Be the companion: run the program until it or the control plane ends; returns its exit status."""
    with (home() / f"{name}.lock").open("w") as lock, (home() / "lock").open("r") as life:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        threading.Thread(target=_end_with, args=(life.fileno(), child), daemon=True).start()
        return child.wait()


def _end_with(life: int, child: subprocess.Popen[bytes]) -> None:
    fcntl.flock(life, fcntl.LOCK_SH)
    child.terminate()
    try:
        child.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
