"""Runs a command as a container runtime would: a root that nobody can write to, processes of its own, no rights.

As a script it takes the description as JSON and the command. All that it mounts is in a mount namespace of its own, which
the kernel takes away with the last process; the processes die with the script, however that ends. The network is the
machine's.
"""

import ctypes
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

CLONE_NEWNS, CLONE_NEWPID = 0x00020000, 0x20000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS = 1, 38
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, kw_only=True)
class Container:
    """What a container is run from."""

    rootfs: str
    user: int
    variables: Mapping[str, str] = field(default_factory=dict)
    """Its whole environment."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Contents of further files, which must lie below /run."""

    def command(self, *argv: str) -> list[str]:
        """The command that runs `argv` in it."""
        return [sys.executable, "-I", __file__, json.dumps(asdict(self)), *argv]


def main() -> int:
    """Usage: container.py DESCRIPTION COMMAND ARGUMENT...; ends as the command ends, and hands on SIGTERM and SIGINT."""
    container = Container(**json.loads(sys.argv[1]))
    _call("unshare", CLONE_NEWNS | CLONE_NEWPID)
    awaited = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _become(container, sys.argv[2:])
    while (number := signal.sigwait(awaited)) != signal.SIGCHLD:
        os.kill(child, number)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


def _become(container: Container, argv: Sequence[str]) -> None:
    """Be the first process of the container. Nothing goes on here after this."""
    _call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    root = container.rootfs
    _mount("", "/", flags=MS_REC | MS_PRIVATE)
    _mount(root, root, flags=MS_BIND)
    _mount("/dev", f"{root}/dev", flags=MS_BIND)
    _mount("proc", f"{root}/proc", kind="proc")
    _mount("tmpfs", f"{root}/run", kind="tmpfs")
    for path, content in container.files.items():
        file = Path(f"{root}/{path}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    for place in (root, f"{root}/dev", f"{root}/run"):
        _mount("", place, flags=MS_REMOUNT | MS_BIND | MS_RDONLY)
    os.chroot(root)
    os.chdir("/")
    os.setgroups([])
    os.setresgid(container.user, container.user, container.user)
    os.setresuid(container.user, container.user, container.user)
    _call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # again: a change of user takes it back
    os.execvpe(argv[0], list(argv), dict(container.variables))  # noqa: S606


def _mount(source: str, target: str, *, kind: str = "", flags: int = 0) -> None:
    _call("mount", source.encode(), target.encode(), kind.encode(), flags, None)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


if __name__ == "__main__":
    sys.exit(main())
