"""What the documents show is what happens: their YAML is accepted, their commands work, their targets exist."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from cluster.support.operator import ROOT, Deployments
from vlm_operator.cli.kubectl import main as kubectl_vlm

pytestmark = pytest.mark.cluster

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("hack/**/*.md")])
SAMPLES = sorted(ROOT.glob("manifests/samples/*.yaml"))
EXPLAINS = ROOT / "docs/kubectl-vlm.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _blocks(path: Path, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(path.read_text()) if kind == language]


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_every_sample_is_accepted_and_becomes_ready(deployments: Deployments, path: Path) -> None:
    name = yaml.safe_load(path.read_text())["metadata"]["name"]
    deployments.control_plane.kubectl("apply", "-n", deployments.namespace, "-f", str(path))
    deployments.until_ready(name)


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_resource_in_a_document_is_accepted(deployments: Deployments, path: Path) -> None:
    for text in _blocks(path, "yaml"):
        place = ("-n", deployments.namespace, "--dry-run=server", "--validate=strict")
        deployments.control_plane.kubectl("apply", *place, "-f", "-", input=text)


def test_the_readme_shows_the_sample() -> None:
    (shown,) = _blocks(ROOT / "README.md", "yaml")
    assert yaml.safe_load(shown) == yaml.safe_load((ROOT / "manifests/samples/qwen2.5-vl-7b-awq.yaml").read_text())


@pytest.mark.usefixtures("operator")
def test_the_commands_of_the_documents_work(deployments: Deployments) -> None:
    for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))):
        for block in _blocks(path, "console"):
            for command, shown in re.findall(r"^\$ kubectl (?!vlm )(.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
                arguments = [
                    str(ROOT / word) if word.startswith("manifests/") else word for word in shlex.split(command)
                ]
                said = deployments.control_plane.kubectl(*arguments, "-n", deployments.namespace)
                assert _words(said) == _words(shown), command


@pytest.mark.usefixtures("operator")
def test_what_the_documents_explain_is_explained(deployments: Deployments, capsys: pytest.CaptureFixture[str]) -> None:
    sample = ROOT / "manifests/samples/qwen2.5-vl-7b-awq.yaml"
    deployments.control_plane.kubectl("apply", "-n", deployments.namespace, "-f", str(sample))
    deployments.until_ready("qwen25-vl-7b")
    (shown,) = re.findall(
        r"^\$ kubectl vlm explain qwen25-vl-7b\n(.*)", "".join(_blocks(EXPLAINS, "console")), re.MULTILINE | re.DOTALL
    )
    here = ("-n", deployments.namespace, f"--kubeconfig={deployments.control_plane.kubeconfig}")
    assert kubectl_vlm(["explain", "qwen25-vl-7b", *here]) == 0
    assert _particulars_left_out(capsys.readouterr().out) == _particulars_left_out(shown)


def _particulars_left_out(text: str) -> list[list[str]]:
    """Its words but for names of this cluster. No pod answers here, so what is in flight cannot be read."""
    names = {r"[0-9a-f]{10}": "REVISION", r"gpu-\w+": "NODE", r"namespace \S+,": "namespace", r" \? ": " 0 "}
    for name, word in names.items():
        text = re.sub(name, word, text)
    return _words(text.partition("What could not be read")[0])


def _words(text: str) -> list[list[str]]:
    """The text by lines and words, without the age at the end of a table's row."""
    return [
        [word for word in line.split() if not re.fullmatch(r"\d+[smh]", word)] for line in text.strip().splitlines()
    ]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_make_target_in_a_document_exists(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = path.read_text()
    named = set(re.findall(r"`make ([a-z-]+)", text)) | set(re.findall(r"^make ([a-z-]+)", text, re.MULTILINE))
    assert named <= targets
