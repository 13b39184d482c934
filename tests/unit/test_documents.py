"""What the documents show of `kubectl vlm` is what it says, and every reason of the sizing is told.

A YAML or Python block that begins with a comment (`# some.yaml`) is that file, and `cat` shows one besides; what makes files of
them (`python3`, `sed`) is run, too. Commands for a cluster are run in `tests/cluster`.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from vlm_operator.cli.kubectl import main
from vlm_operator.simulator.policies import PEERS
from vlm_operator.sizing import checks, devices, parallelism, quantization, verdict, versions

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")) if "$ kubectl vlm" in path.read_text()
)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
STEP = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
REASON = re.compile(r"(?:[A-Z][a-z0-9]+){2,}")


def steps(path: Path) -> Iterator[tuple[str, str]]:
    """The commands of a document with what they are shown to say."""
    for kind, text in BLOCK.findall(path.read_text()):
        if kind == "console":
            yield from STEP.findall(text)


def write_files(path: Path, folder: Path) -> None:
    """Write the files that a document shows."""
    for kind, text in BLOCK.findall(path.read_text()):
        if kind in {"yaml", "python"} and (name := re.match(r"# ([a-z0-9_-]+\.(?:yaml|py))\n", text)):
            (folder / name[1]).write_text(text)
    for command, shown in steps(path):
        if command.startswith("cat "):
            (folder / command.removeprefix("cat ")).write_text(shown)


def run(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, int]:
    """What `kubectl vlm` says, standard error first, through what it is piped into."""
    words, _, pipe = command.partition(" | ")
    code = main(shlex.split(words)[2:])
    said = capsys.readouterr()
    out = said.out
    if pipe:
        out = subprocess.run(shlex.split(pipe), input=out, capture_output=True, text=True, check=True).stdout
    return said.err + out, code


def run_tool(command: str) -> str:
    """What a shell says to a command; `python3` is the Python of these tests, with the product."""
    Path("python3").write_text(f'#!/bin/sh\nPYTHONPATH={ROOT / "operator"} exec {sys.executable} "$@"\n')
    Path("python3").chmod(0o755)
    environment = os.environ | {"PATH": f"{Path.cwd()}:{os.environ['PATH']}"}
    done = subprocess.run(["/bin/sh", "-c", command], env=environment, capture_output=True, text=True, check=True)
    return done.stderr + done.stdout


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_kubectl_vlm_says_what_a_document_shows(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "manifests").symlink_to(ROOT / "manifests")
    monkeypatch.chdir(tmp_path)
    write_files(path, tmp_path)
    code = 0
    for command, shown in steps(path):
        if command.startswith("kubectl vlm ") and not command.startswith("kubectl vlm explain"):
            said, code = run(command, capsys)
            assert said == shown, command
        elif command.split()[0] in {"python3", "sed"}:
            assert run_tool(command) == shown, command
        elif command == "echo $?":
            assert shown == f"{code}\n"


def test_each_command_is_shown() -> None:
    shown = {
        command.split()[2] for path in DOCUMENTS for command, _ in steps(path) if command.startswith("kubectl vlm")
    }
    assert shown == {"plan", "render", "models", "gpus", "explain", "simulate"}


def test_every_policy_of_a_replay_is_told() -> None:
    told = set(re.findall(r"`([\w:-]+)`", (ROOT / "docs" / "simulate.md").read_text()))
    assert set(PEERS) <= told


@pytest.mark.parametrize("module", [checks, devices, parallelism, quantization, verdict, versions])
def test_every_reason_of_the_sizing_is_told(module: object) -> None:
    reasons = {text for text in vars(module).values() if isinstance(text, str) and REASON.fullmatch(text)}
    told = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "concepts.md").read_text()))
    assert reasons
    assert reasons <= told
