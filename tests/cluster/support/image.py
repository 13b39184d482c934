"""The image, built from the Dockerfile as it is, without a registry: its base is put together from Debian's packages.

Layers and images are kept for some time in the user's cache. An image whose sources have not changed is not built again.
"""

import ast
import hashlib
import json
import math
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cluster.support.container import Container
from cluster.support.operator import ROOT
from controlplane import cache

Object = dict[str, Any]

BASE = "localhost/python:3.11-slim"
PROGRAMS = ("buildah", "mmdebstrap")
SOURCES = ("Dockerfile", ".dockerignore", "LICENSE", "README.md", "operator", "pyproject.toml", "requirements")
ALONE = ("setpriv", "--pdeathsig=KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
"""Runs a command that ends with this process at the latest, however that ends, with all its children and mounts."""
KEPT_SECONDS = {"storage": 7 * 86400.0, "image": 3 * 3600.0, "unfinished": 0.0}
"""How long folders with such a name are kept: layers since they were begun, images since they were used."""
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
PIP_SETTINGS = frozenset({"index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "retries"})
"""Settings of this machine's pip that hold within the build, too."""

MMDEBSTRAP = (
    "mmdebstrap",
    "--quiet",
    "--variant=minbase",
    "--include=python3,python3-venv,ca-certificates",
    *(f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("doc", "man", "locale")),
)
LIKE_THE_REAL_ONE = """
    bundled=/usr/lib/python3.11/ensurepip/_bundled
    mkdir $bundled
    mv /usr/share/python-wheels/*.whl $bundled
    rm /usr/lib/python3.11/EXTERNALLY-MANAGED
    cd $bundled
    PYTHONPATH=$(echo pip-*.whl) python3 -m pip install --quiet --root-user-action=ignore --no-compile --no-index *.whl
    ln -s /usr/bin/python3 /usr/local/bin/python3
    find / -xdev -name "*.pyc" -delete
"""
"""Python, pip and setuptools stand where they stand in the real base, and there is no byte code, as there is none."""


def missing() -> str:
    """What keeps this machine from building the image, as a sentence; empty if nothing does."""
    if os.geteuid() != 0:
        return "Building the image takes root: run this as root."
    lacking = [program for program in PROGRAMS if shutil.which(program) is None]
    if lacking:
        return f"Building the image takes {' and '.join(lacking)}: install what is missing with the system's packages."
    if subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode:
        return "Building the image takes mounts of its own, which root may not make here: use a machine where it may."
    return ""


@dataclass(frozen=True, kw_only=True)
class Image:
    """A built image, as files in a folder."""

    folder: Path

    @property
    def rootfs(self) -> Path:
        """The files that its containers see."""
        return self.folder / "rootfs"

    @cached_property
    def config(self) -> Object:
        """What it says of its containers, in the terms of the OCI's image specification."""
        config: Object = json.loads((self.folder / "inspected.json").read_text())["OCIv1"]["config"]
        return config

    @property
    def bytes_over_base(self) -> int:
        """Bytes of the layers that it adds to its base, unpacked."""
        manifest = json.loads(json.loads((self.folder / "inspected.json").read_text())["Manifest"])
        return sum(layer["size"] for layer in manifest["layers"][1:])

    def container(
        self, *, user: int | None = None, files: Mapping[str, str] | None = None, **variables: str
    ) -> Container:
        """A container of it, with further variables."""
        own = dict(variable.split("=", 1) for variable in self.config["Env"])
        return Container(
            rootfs=str(self.rootfs),
            user=int(self.config["User"].partition(":")[0]) if user is None else user,
            variables=own | variables,
            files=files or {},
        )


def build(tell: Callable[[str], None]) -> Image:
    """Return the image of the sources as they are now."""
    home = cache.tools_root().with_name("image")
    image = Image(folder=home / f"image-{_digest(*_sources())}")
    with cache.locked(home):
        _forget_old(home)
        if image.folder.is_dir():
            os.utime(image.folder)
            return image
        tell("building the image (about two minutes the first time)")
        started = time.monotonic()
        with tempfile.TemporaryDirectory(dir=home, prefix="unfinished-") as scratch:
            storage = home / f"storage-{_digest(*(part.encode() for part in (*MMDEBSTRAP, LIKE_THE_REAL_ONE)))}"
            buildah = _Buildah(storage=storage, scratch=Path(scratch))
            if not buildah("images", "--quiet", f"--filter=reference={BASE}"):
                _make_base(buildah)
            _make_image(buildah, Path(scratch) / "image", tag=image.folder.name)
            (Path(scratch) / "image").rename(image.folder)
        tell(f"building the image: done in {time.monotonic() - started:.0f} s")
    return image


@dataclass(frozen=True, kw_only=True)
class _Buildah:
    """buildah with a storage of its own."""

    storage: Path
    scratch: Path

    def __call__(self, *arguments: str) -> str:
        return _run(["buildah", f"--root={self.storage}", f"--runroot={self.scratch / 'run'}", *arguments])


def _make_base(buildah: _Buildah) -> None:
    context = _context(buildah.scratch / "base", 'FROM scratch\nADD base.tar /\nCMD ["python3"]\n')
    like_the_real_one = f"--customize-hook=chroot \"$1\" sh -euc '{LIKE_THE_REAL_ONE}'"
    _run([*MMDEBSTRAP, like_the_real_one, "bookworm", str(context / "base.tar")])
    buildah("bud", "--quiet", f"--tag={BASE}", str(context))


def _make_image(buildah: _Buildah, folder: Path, *, tag: str) -> None:
    """Build it into a folder. The layers of earlier builds are used again."""
    pip_conf = buildah.scratch / "pip.conf"
    pip_conf.write_text("\n".join(["[global]", *_pip_settings()]))
    given = [f"--secret=id=pip.conf,src={pip_conf}"]
    certificates = ssl.get_default_verify_paths().cafile
    if certificates:
        given.append(f"--volume={certificates}:{CERTIFICATES}:ro")
    buildah("bud", f"--tag={tag}", "--isolation=chroot", "--pull-never", "--layers", *given, str(ROOT))
    # Not by the build itself, which would write all files after each step.
    whole = _context(buildah.scratch / "whole", f"FROM {tag}\n")
    buildah("bud", "--pull-never", f"--output=type=local,dest={folder / 'rootfs'}", str(whole))
    (folder / "rootfs").chmod(0o755)
    (folder / "inspected.json").write_text(buildah("inspect", "--type=image", tag))


def _context(folder: Path, dockerfile: str) -> Path:
    folder.mkdir()
    (folder / "Dockerfile").write_text(dockerfile)
    return folder


def _pip_settings() -> Iterator[str]:
    yield f"cert = {CERTIFICATES}"
    for line in _run([sys.executable, "-m", "pip", "config", "list"]).splitlines():
        name, _, value = line.partition("=")
        setting = name.rpartition(".")[2]
        if setting in PIP_SETTINGS:
            yield f"{setting} = {ast.literal_eval(value)}"


def _sources() -> Iterator[bytes]:
    for source in SOURCES:
        for path in sorted((ROOT / source).rglob("*")) if (ROOT / source).is_dir() else [ROOT / source]:
            if path.is_file() and "__pycache__" not in path.parts:
                yield str(path.relative_to(ROOT)).encode()
                yield path.read_bytes()


def _digest(*parts: bytes) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(hashlib.sha256(part).digest())
    return whole.hexdigest()[:16]


def _forget_old(home: Path) -> None:
    for folder in home.iterdir():
        kept = KEPT_SECONDS.get(folder.name.partition("-")[0], math.inf)
        if time.time() - folder.stat().st_mtime > kept:
            shutil.rmtree(folder)


def _run(argv: list[str]) -> str:
    done = subprocess.run([*ALONE, *argv], cwd="/", capture_output=True, text=True, check=False)
    if done.returncode:
        words = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise RuntimeError(f"{' '.join(argv)} ended with {done.returncode}:\n{words}")
    return done.stdout
