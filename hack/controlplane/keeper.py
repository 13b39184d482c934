"""The keeper: a small process that owns the programs of one control plane, so that none outlives its owner.

It runs as a script (standard library only, no import of this package), is told what to do by JSON lines on stdin and
answers each with one line on stdout. Two things end everything it started: the owner's death, seen as the end of stdin
or through a pidfd (which also holds when a fork of the owner keeps the pipe open), and its own death, through the
parent-death signal of each child. It must stay single-threaded: that signal is tied to the thread that forks.
"""

import contextlib
import ctypes
import io
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


class Keeper:
    """The programs by name, in the order they were started."""

    def __init__(self, scratch: str) -> None:
        self.scratch = scratch
        """Removed when the owner dies without saying goodbye."""
        self.children: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, argv: list[str], log: str) -> dict[str, Any]:
        """Start a program that writes to `log`; it dies with this process."""
        keeper = os.getpid()

        def bind_to_keeper() -> None:
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != keeper:
                os._exit(1)

        with Path(log).open("ab") as file:
            self.children[name] = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                preexec_fn=bind_to_keeper,  # noqa: PLW1509 -- no threads here
            )
        return {"pid": self.children[name].pid}

    def stop(self, names: list[str], grace_seconds: float) -> dict[str, Any]:
        """Ask the named programs to end, all at once, and kill those that take longer than the grace."""
        going = [self.children.pop(name) for name in names if name in self.children]
        for child in going:
            child.terminate()
        deadline = time.monotonic() + grace_seconds
        for child in going:
            try:
                child.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        return {}

    def signal(self, name: str, number: int) -> dict[str, Any]:
        """Send a signal to a program."""
        self.children[name].send_signal(number)
        return {}

    def poll(self) -> dict[str, Any]:
        """Tell the exit status of the programs that have ended by themselves."""
        return {"ended": {name: code for name, child in self.children.items() if (code := child.poll()) is not None}}


def serve(keeper: Keeper, owner_pid: int) -> bool:
    """Obey until told to leave (True) or the owner is gone (False)."""
    requests = io.FileIO(sys.stdin.fileno(), closefd=False)  # unbuffered, so that select sees every request
    watched = [requests.fileno()]
    with contextlib.suppress(OSError):  # gone already, in which case stdin ends, or a kernel without pidfds
        watched.append(os.pidfd_open(owner_pid))
    while True:
        ready, _, _ = select.select(watched, [], [])
        if requests.fileno() not in ready:
            return False
        line = requests.readline()
        if not line:
            return False
        request = json.loads(line)
        verb = request.pop("do")
        if verb == "leave":
            return True
        try:
            answer = getattr(keeper, verb)(**request)
        except OSError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


def main() -> None:
    """Usage: keeper.py OWNER_PID SCRATCH_FOLDER."""
    for ignored in (signal.SIGINT, signal.SIGHUP):  # a Ctrl-C is the owner's to handle
        signal.signal(ignored, signal.SIG_IGN)
    keeper = Keeper(sys.argv[2])
    orderly = serve(keeper, int(sys.argv[1]))
    keeper.stop(list(keeper.children), grace_seconds=1.0 if orderly else 0.0)
    if not orderly:
        shutil.rmtree(keeper.scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
