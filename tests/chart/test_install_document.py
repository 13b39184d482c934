"""docs/install.md is run: each chapter as a shell script, from an empty cluster."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from chart.helm import CRD, ROOT, Helm
from controlplane import ControlPlane, ensure_tools, wait_until

pytestmark = pytest.mark.cluster

CHAPTER = re.compile(r"^## (.*)\n((?:(?!## ).*\n)*)", re.MULTILINE)
COMMANDS = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
CHAPTERS = {
    title: "".join(COMMANDS.findall(text)) for title, text in CHAPTER.findall((ROOT / "docs/install.md").read_text())
}
SPACES = ("vlm-system", "team-a", "team-b")


@pytest.fixture
def empty(plane: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane without anything that a chapter installs, before and after."""
    yield plane
    plane.kubectl("delete", "clusterrole,clusterrolebinding", "--selector=app.kubernetes.io/name=vlm-operator")
    for kind, names in (("namespaces", SPACES), ("crd", ("vlmdeployments.vlm.dev",))):
        plane.kubectl("delete", kind, *names, "--ignore-not-found")
    wait_until(lambda: not plane.api.answers(CRD), "the CRD is gone")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What the commands read of the repository."""
    for part in ("charts", "crds", "manifests", "operator"):
        shutil.copytree(ROOT / part, tmp_path / part)
    return tmp_path


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize("title", [title for title, commands in CHAPTERS.items() if commands])
def test_the_commands_of_a_chapter_work(helm: Helm, clone: Path, title: str) -> None:
    programs = {"helm": helm.program, "kubectl": ensure_tools()["kubectl"]}
    path = clone / "bin"
    path.mkdir()
    for name, program in programs.items():
        (path / name).symlink_to(program)
    environment = {**helm.environment, "PATH": f"{path}{os.pathsep}/usr/bin:/bin"}
    script = ["bash", "-euxc", CHAPTERS[title]]
    done = subprocess.run(script, cwd=clone, env=environment, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stderr


def test_the_readme_shows_commands_that_are_run_here() -> None:
    shown = [block for block in COMMANDS.findall((ROOT / "README.md").read_text()) if "helm " in block]
    run = [command for commands in CHAPTERS.values() for command in commands_of(commands)]
    assert shown
    assert all(command in run for block in shown for command in commands_of(block))


def commands_of(script: str) -> list[str]:
    return script.replace("\\\n", "").splitlines()
