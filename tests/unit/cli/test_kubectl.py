"""`kubectl vlm render`: what would be created, and a plain sentence for what cannot be used."""

import io
from pathlib import Path

import pytest
import yaml

from vlm_operator.cli.kubectl import main

SAMPLE = Path(__file__).parents[3] / "manifests" / "samples" / "qwen2.5-vl-7b-awq.yaml"


def _run(text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    return main(["render", "-f", "-"])


def test_it_prints_every_object_that_would_be_created(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "-f", str(SAMPLE)]) == 0
    objects = list(yaml.safe_load_all(capsys.readouterr().out))
    assert sorted(found["kind"] for found in objects) == ["ConfigMap", "ControllerRevision", "Pod", "Service"]
    (pod,) = (found for found in objects if found["kind"] == "Pod")
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "2"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"spec": {"model": {"name": "a/b", "quantization": "awq"}}}, "spec.model.quantization"),
        ({"spec": {"warmPool": {"size": 1}}}, "spec.warmPool"),
        ({"metadata": {"name": "With.Dots"}}, "metadata.name"),
        ({"spec": {"engine": {"args": ["--no-such-flag"]}}}, "spec.engine.args[0]"),
    ],
)
def test_a_refused_spec_is_told_by_field(
    change: dict[str, dict[str, object]],
    field: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    resource = yaml.safe_load(SAMPLE.read_text())
    for part, fields in change.items():
        resource[part] |= fields
    assert _run(yaml.safe_dump(resource), monkeypatch) == 1
    said = capsys.readouterr()
    assert said.err.startswith(f"Error: {field}: ")
    assert said.out == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "0 documents"),
        ("a: 1\n---\nb: 2\n", "2 documents"),
        ("[1, 2]", "exactly one object"),
        ("kind: Pod\nmetadata: {name: x}\n", "a Pod"),
        ("kind: VLMDeployment\n", "metadata"),
        ("a: [\n", "not YAML"),
        ("x" * 1_000_001, "larger than"),
        ("a: &a [1]\nb: *c\n", "not YAML"),
    ],
)
def test_what_is_not_one_deployment_is_unusable(
    text: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(text, monkeypatch) == 2
    assert words in capsys.readouterr().err


def test_files_that_cannot_be_read_are_unusable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    binary, huge = tmp_path / "binary", tmp_path / "huge"
    binary.write_bytes(b"\xff\xfe\x00")
    huge.write_text("#" * 1_000_001)
    for path in (binary, huge, tmp_path / "absent", tmp_path):
        assert main(["render", "-f", str(path)]) == 2
        assert str(path) in capsys.readouterr().err
