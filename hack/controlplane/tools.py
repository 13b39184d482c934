"""The programs of a control plane, built with Go from the modules under go/ and kept in the user's cache.

`ensure_tools` is the one way in: with everything cached it touches neither Go nor the network.
"""

import hashlib
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from controlplane import cache
from controlplane.errors import ControlPlaneError, PrerequisiteError
from controlplane.toolchain import find_go, go_environment

Report = Callable[[str], None]
Build = Callable[["Family", "Program", Path], None]

BUILD_FLAGS = ("-trimpath", "-buildvcs=false", "-mod=readonly")
_NETWORK_TROUBLE = re.compile(
    r"dial tcp|no such host|lookup .* on|connection refused|i/o timeout|proxyconnect|TLS handshake"
)


@dataclass(frozen=True, kw_only=True)
class Program:
    """One binary: its file name, its Go package, and how long a first build takes on two cores."""

    name: str
    package: str
    build_seconds: int


@dataclass(frozen=True, kw_only=True)
class Family:
    """Programs whose dependencies resolve together: one folder with go.mod and go.sum."""

    folder: Path
    programs: tuple[Program, ...]
    version_packages: tuple[str, ...] = ()
    """Packages that hold gitVersion, gitMajor and gitMinor, as all of Kubernetes does."""
    version_module: str = ""
    """The required module whose version they get."""

    @cached_property
    def version(self) -> str:
        """The version of `version_module` in go.mod, with its leading v."""
        modules = (self.folder / "go.mod").read_text()
        found = re.search(rf"^(?:require)?\s+{re.escape(self.version_module)} (v\S+)", modules, re.MULTILINE)
        if not found:
            raise ControlPlaneError(f"{self.folder / 'go.mod'} does not require {self.version_module}.")
        return found.group(1)

    @property
    def ldflags(self) -> str:
        """The linker's flags: no symbol tables, and the version where the programs look for it."""
        words = ["-s", "-w"]
        if self.version_packages:
            major, minor = self.version.removeprefix("v").split(".")[:2]
            values = {"gitVersion": self.version, "gitMajor": major, "gitMinor": minor}
            words += [
                f"-X {package}.{key}={value}" for package in self.version_packages for key, value in values.items()
            ]
        return " ".join(words)

    @property
    def key(self) -> str:
        """A name that changes with everything that decides what the binaries are."""
        digest = hashlib.sha256()
        for part in ((self.folder / "go.mod").read_bytes(), (self.folder / "go.sum").read_bytes()):
            digest.update(hashlib.sha256(part).digest())
        digest.update("\0".join([*BUILD_FLAGS, self.ldflags, platform.system(), platform.machine()]).encode())
        return f"{self.folder.name}-{digest.hexdigest()[:16]}"


_GO = Path(__file__).parent / "go"

KUBERNETES = Family(
    folder=_GO / "kubernetes",
    programs=(
        Program(name="kube-apiserver", package="k8s.io/kubernetes/cmd/kube-apiserver", build_seconds=170),
        Program(
            name="kube-controller-manager", package="k8s.io/kubernetes/cmd/kube-controller-manager", build_seconds=40
        ),
        Program(name="kube-scheduler", package="k8s.io/kubernetes/cmd/kube-scheduler", build_seconds=5),
        Program(name="kubectl", package="k8s.io/kubernetes/cmd/kubectl", build_seconds=15),
    ),
    version_packages=("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"),
    version_module="k8s.io/kubernetes",
)
ETCD = Family(
    folder=_GO / "etcd",
    programs=(Program(name="etcd", package="go.etcd.io/etcd/server/v3", build_seconds=25),),
)
KWOK = Family(
    folder=_GO / "kwok",
    programs=(Program(name="kwok", package="sigs.k8s.io/kwok/cmd/kwok", build_seconds=50),),
)
FAMILIES = (KUBERNETES, ETCD, KWOK)
"""What a control plane consists of."""
HELM = Family(
    folder=_GO / "helm",
    programs=(Program(name="helm", package="helm.sh/helm/v4/cmd/helm", build_seconds=80),),
)
"""Only tests and generators need it."""


def ensure_tools(
    families: Sequence[Family] = FAMILIES,
    *,
    root: Path | None = None,
    build: Build | None = None,
    report: Report | None = None,
) -> Mapping[str, Path]:
    """Return the path of every program by name, building those that are missing or broken.

    Two callers at once build once: the second waits for the first. Raises PrerequisiteError when the machine lacks
    something, ControlPlaneError when the sources do not build.
    """
    root = root or cache.tools_root()
    report = report or _to_stderr
    total = sum(len(family.programs) for family in families)
    paths: dict[str, Path] = {}
    for family in families:
        folder = root / family.key
        wanted = {program.name: folder / program.name for program in family.programs}
        if not all(cache.is_sound(binary) for binary in wanted.values()):
            make = build or GoBuild(root=root, report=report)
            with cache.locked(folder):
                for number, program in enumerate(family.programs, start=len(paths) + 1):
                    if cache.is_sound(wanted[program.name]):
                        continue
                    label = f"[{number}/{total}] {program.name}"
                    report(f"{label}: building (about {program.build_seconds} s)")
                    seconds = _build_into(wanted[program.name], partial(make, family, program))
                    report(f"{label}: done in {seconds:.0f} s")
        paths |= wanted
    return paths


def _build_into(binary: Path, build: Callable[[Path], None]) -> float:
    """Put what `build` makes in the place of `binary` only when it is complete; return the seconds it took."""
    started = time.monotonic()
    unfinished = binary.with_name(f".{binary.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    build(unfinished)
    unfinished.chmod(0o755)
    unfinished.replace(binary)
    cache.write_stamp(binary)
    return time.monotonic() - started


@dataclass(frozen=True, kw_only=True)
class GoBuild:
    """Build a program of a family with `go build`; the output of a failed build is kept beside the binaries."""

    root: Path
    report: Report

    def __call__(self, family: Family, program: Program, output: Path) -> None:
        """Write the program to `output`."""
        with cache.locked(self.root):
            go = find_go(self.root, self.report)
        command = [str(go), "build", *BUILD_FLAGS, "-ldflags", family.ldflags, "-o", str(output), program.package]
        log = output.with_name(f"{program.name}.build.log")
        with log.open("w") as file:
            env = go_environment(self.root)
            done = subprocess.run(command, cwd=family.folder, env=env, stdout=file, stderr=file, check=False)
        if done.returncode == 0:
            log.unlink()
            return
        words = log.read_text(errors="replace")
        if _NETWORK_TROUBLE.search(words):
            raise PrerequisiteError(
                f"Building {program.name} needs Go modules that could not be downloaded; "
                f"connect to the network (or set GOPROXY) and run this again. Details: {log}"
            )
        if "no space left on device" in words:
            raise PrerequisiteError(f"Building {program.name} ran out of disk space; free some (5 GB are enough).")
        raise ControlPlaneError(f"Building {program.name} failed; the output of Go is in {log}")


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
