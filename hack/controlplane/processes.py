"""Start and stop programs through a keeper process, which ends them all if this process dies in any way."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from controlplane.errors import ControlPlaneError

_KEEPER = Path(__file__).with_name("keeper.py")


class Processes:
    """The running programs of one control plane, by name."""

    def __init__(self, folder: Path) -> None:
        """`folder` is removed by the keeper if this process dies without `close`."""
        self._talk = threading.Lock()
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_KEEPER), str(os.getpid()), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            cwd="/",
        )

    @property
    def keeper_pid(self) -> int:
        """The process id of the keeper."""
        return self._keeper.pid

    def start(self, name: str, argv: Sequence[str | Path], *, log: Path) -> int:
        """Start a program and return its process id. Its output is appended to `log`."""
        answer = self._ask(do="start", name=name, argv=[str(word) for word in argv], log=str(log))
        return int(answer["pid"])

    def stop(self, *names: str, grace_seconds: float = 1.0) -> None:
        """End the named programs together; those that ignore SIGTERM for the grace are killed."""
        self._ask(do="stop", names=list(names), grace_seconds=grace_seconds)

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a program."""
        self._ask(do="signal", name=name, number=int(number))

    def ended(self) -> Mapping[str, int]:
        """Return the exit status of each program that ended by itself (negative: by that signal)."""
        ended: dict[str, int] = self._ask(do="poll")["ended"]
        return ended

    def close(self) -> None:
        """End everything, the keeper included."""
        with self._talk:
            with contextlib.suppress(BrokenPipeError, ValueError):
                self._exchange({"do": "leave"})
            try:
                self._keeper.wait(10)
            except subprocess.TimeoutExpired:
                self._keeper.kill()
                self._keeper.wait()
            for pipe in (self._keeper.stdin, self._keeper.stdout):
                if pipe:
                    with contextlib.suppress(BrokenPipeError):  # what was not sent is sent no more
                        pipe.close()

    def _ask(self, **request: Any) -> dict[str, Any]:
        with self._talk:
            try:
                line = self._exchange(request)
            except (BrokenPipeError, ValueError):
                line = b""
        if not line:
            raise ControlPlaneError("The keeper of this control plane is gone, and all its programs with it.")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ControlPlaneError(f"Cannot start {request.get('name')}: {answer['error']}")
        return answer

    def _exchange(self, request: dict[str, Any]) -> bytes:
        """Send a request and return the line that answers it, or nothing if the keeper is gone or leaves."""
        if not self._keeper.stdin or not self._keeper.stdout:
            return b""
        self._keeper.stdin.write(json.dumps(request).encode() + b"\n")
        self._keeper.stdin.flush()
        return self._keeper.stdout.readline()
