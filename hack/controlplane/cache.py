"""A per-user cache of built programs that checks itself: a binary that is not the one that was put there is not used.

A program is one file next to its stamp. Nothing here knows how programs are built.
"""

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from controlplane.errors import PrerequisiteError


def tools_root() -> Path:
    """Return the folder that holds all built tools of this user."""
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(base) / "vlm-operator" / "tools"


def make_folder(folder: Path) -> None:
    """Create `folder`; raises PrerequisiteError when this user may not write there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise PrerequisiteError(
            f"Cannot write to {folder} ({reason}); set XDG_CACHE_HOME to a folder of yours."
        ) from error


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of `folder` against other processes; the kernel drops it if the holder dies."""
    make_folder(folder)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_sound(binary: Path) -> bool:
    """Tell whether `binary` is complete and executable.

    Size and modification time are compared with the stamp. The checksum (0.1 s per 100 MB) is only computed if the time
    differs, as after a copied cache.
    """
    try:
        stamp = json.loads(_stamp_of(binary).read_text())
        status = binary.stat()
        if not os.access(binary, os.X_OK) or status.st_size != stamp["size"]:
            return False
        if status.st_mtime_ns == stamp["mtime_ns"]:
            return True
        if _sha256(binary) != stamp["sha256"]:
            return False
    except (OSError, ValueError, KeyError, TypeError):
        return False
    with contextlib.suppress(OSError):
        write_stamp(binary)
    return True


def write_stamp(binary: Path) -> None:
    """Record what `binary` looks like now."""
    status = binary.stat()
    stamp = {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": _sha256(binary)}
    unfinished = binary.with_name(f".{binary.name}.stamp.{os.getpid()}")
    unfinished.write_text(json.dumps(stamp))
    unfinished.replace(_stamp_of(binary))


def _stamp_of(binary: Path) -> Path:
    return binary.with_name(f"{binary.name}.stamp")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
