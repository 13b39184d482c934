"""The Python part of a release of vLLM, from its wheel.

A wheel is 300 to 500 MB, most of it compiled for GPUs. It is downloaded through pip, unpacked without what is compiled, and
deleted.
"""

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from controlplane.cache import locked
from controlplane.errors import PrerequisiteError

KEPT = (".py", ".json")
"""vLLM reads tables about kernels as JSON next to its modules."""

Progress = Callable[[str], None]


def python_part(release: str, *, root: Path, progress: Progress) -> Path:
    """The folder that holds the package `vllm` of a release (`0.33.0`); downloaded unless it is there.

    Raises PrerequisiteError when the wheel cannot be had.
    """
    folder = root / f"vllm-{release}"
    with locked(root):
        if not folder.is_dir():
            progress(f"downloading vllm {release} (300 to 500 MB, of which the Python part is kept) ...")
            with tempfile.TemporaryDirectory(dir=root) as scratch:
                unpacked = Path(scratch) / "unpacked"
                _unpack(_download(release, Path(scratch)), unpacked)
                unpacked.rename(folder)
    return folder


def _download(release: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary", ":all:", "--dest", str(folder), f"vllm=={release}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    wheels = list(folder.glob("vllm-*.whl"))
    if done.returncode or len(wheels) != 1:
        raise PrerequisiteError(f"Cannot download vllm {release}: {_last_line(done.stderr)}")
    return wheels[0]


def _unpack(wheel: Path, target: Path) -> None:
    """Without its metadata: vLLM takes a distribution called `vllm` for a hint about the hardware."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith("vllm/") and name.endswith(KEPT)]
        archive.extractall(target, names)


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "pip says nothing")
