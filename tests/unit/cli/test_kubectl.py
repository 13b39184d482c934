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
    assert sorted(found["kind"] for found in objects) == [
        "ConfigMap",
        "ControllerRevision",
        "Pod",
        "PodDisruptionBudget",
        "Service",
    ]
    (pod,) = (found for found in objects if found["kind"] == "Pod")
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "2"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"spec": {"model": {"name": "a/b", "quantization": "awq"}}}, "spec.model.quantization"),
        ({"spec": {"scaling": {"maxReplicas": 2, "policy": "Targets"}}}, "spec.scaling.policy"),
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


HEAD = "apiVersion: vlm.dev/v1alpha1\nkind: VLMDeployment\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty; it must hold one VLMDeployment"),
        ("---\n# nothing\n---\n~\n", "is empty; it must hold one VLMDeployment"),
        (HEAD + "---\n" + HEAD, "holds 2 documents; give one VLMDeployment at a time"),
        ("[1, 2]", "holds a list; it must hold one VLMDeployment"),
        ("[]", "holds a list; it must hold one VLMDeployment"),
        ("some words", "holds text; it must hold one VLMDeployment"),
        ("7", "holds a plain value; it must hold one VLMDeployment"),
        ("spec: {}\n", "has no kind; it must be VLMDeployment"),
        ("kind: [a]\n", "has no kind; it must be VLMDeployment"),
        ("kind: Pod\nmetadata: {name: x}\n", "is of kind Pod; it must be VLMDeployment"),
        ("kind: vlmdeployment\n", "is of kind vlmdeployment; it must be VLMDeployment"),
        ("apiVersion: v1\nkind: List\nitems: []\n", "is of kind List; give one VLMDeployment at a time"),
        ("kind: VLMDeploymentList\n", "is of kind VLMDeploymentList; give one VLMDeployment at a time"),
        ("kind: VLMDeployment\n", "has no apiVersion; it must be vlm.dev/v1alpha1"),
        ("apiVersion: vlm.dev/v1\nkind: VLMDeployment\n", "is of apiVersion vlm.dev/v1; it must be vlm.dev/v1alpha1"),
        (HEAD, "has no metadata.name"),
        (HEAD + "metadata: [a]\n", "has no metadata.name"),
        (HEAD + "metadata: {generateName: a-}\n", "has no metadata.name"),
        (HEAD + "metadata: {name: a, annotations: [b]}\n", "has metadata.annotations that are not a map of texts; put"),
        (
            HEAD + "metadata: {name: a, annotations: {b: 1}}\n",
            "has metadata.annotations that are not a map of texts; put",
        ),
        (HEAD + "metadata: {name: a, labels: [1]}\n", "has metadata.labels that are not a map of texts; put"),
        (HEAD + "metadata: {name: a, labels: {1: b}}\n", "has metadata.labels that are not a map of texts; put"),
        (HEAD + "metadata: {name: a, namespace: 5}\n", "has metadata.namespace 5, which is no text; put it in quotes"),
        (HEAD + "metadata: {name: a}\nfoo: 5\n", "has an unknown field foo; remove it, or move it into spec"),
        (HEAD + "metadata: {name: a}\nSpec: {}\n", "has an unknown field Spec; remove it, or move it into spec"),
        ("a: [\n", "is not YAML: line 2, column 1: did not find expected node content"),
        ("a: &a [1]\nb: *c\n", "is not YAML: line 2, column 4: found undefined alias"),
        ("a: 1\nb: 2\na: 3\n", "is not YAML: line 3, column 1: the key 'a' is already in line 1; keep one of them"),
        (
            '{"a": {"b": 1,\n"b": 2}}',
            "is not YAML: line 2, column 1: the key 'b' is already in line 1; keep one of them",
        ),
        ("a: \x07", "is not YAML: unacceptable character #x0007: control characters are not allowed"),
        ("a: !!python/none\n", "is not YAML: line 1, column 4: could not determine a constructor for the tag"),
        ("a: !!int x\n", "is not YAML: a value does not fit its type"),
        ("a: !!timestamp x\n", "is not YAML: a value does not fit its type"),
        ("a: 0b_\n", "is not YAML: a value does not fit its type"),
        ("a: \udcff\n", "is not UTF-8 text"),
        ("[" * 5000, "is not YAML: line 1, column 1001: exceeded maximum nesting depth"),
        ('{"a":' * 5000, "is nested too deeply"),
        (HEAD + "metadata: {name: a}\nspec: &a {b: *a}\n", "is nested too deeply"),
        ("x" * 1_000_001, "is larger than 1000000 characters"),
    ],
    ids=lambda text: text[:40],
)
def test_what_is_not_one_deployment_is_told_in_a_sentence(
    text: str, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(text, monkeypatch) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"kubectl vlm: standard input {sentence}")
    assert (said.err.count("\n"), said.out) == (1, "")


def test_a_merged_key_may_be_given_anew(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = SAMPLE.read_text().replace("metadata:", "metadata:\n  labels: {<<: {team: a, tier: b}, team: c}", 1)
    assert _run(text, monkeypatch) == 0
    assert capsys.readouterr().out


def test_a_date_is_text_as_it_is_to_kubectl(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SAMPLE.read_text().replace("metadata:", "metadata:\n  annotations: {vlm.dev/restarted-at: 2026-11-30}", 1)
    assert _run(text, monkeypatch) == 0
    assert "2026-11-30" in capsys.readouterr().out


def test_files_that_cannot_be_read_are_told_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    binary, absent, huge = tmp_path / "binary", tmp_path / "absent", tmp_path / "huge"
    binary.write_bytes(b"a: 1\n\xff\xfe\x00")
    huge.write_text("#" * 1_000_001)
    for path, sentence in (
        (binary, "is not UTF-8 text"),
        (absent, "cannot be read: no such file or directory"),
        (tmp_path, "cannot be read: is a directory"),
        (huge, "is larger than 1000000 characters"),
    ):
        assert main(["render", "-f", str(path)]) == 2
        assert capsys.readouterr().err == f"kubectl vlm: {path} {sentence}\n"


def test_a_forgotten_name_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["render", "-f", ""])
    assert "expected the name of a file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ({"name": "a/b", "quantization": "awq"}, 'spec.model.quantization: is "awq" but must be one of None, AWQ, '),
        ({"name": "a/b", "quantization": "awq"}, "; did you mean AWQ?"),
        ({"name": "a/b", "size": "7b"}, 'spec.model.size: is "7b" but must be the size in the published name'),
        ({"name": "a/b", "size": "7b"}, "; did you mean 7B?"),
    ],
)
def test_a_typo_is_told_with_the_right_spelling(
    model: dict[str, str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    resource = yaml.safe_load(SAMPLE.read_text())
    resource["spec"]["model"] = model
    assert _run(yaml.safe_dump(resource), monkeypatch) == 1
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("words", [["Qwen"], ["a/b"], [""], ["qwen", "-n", "Models"], ["qwen", "-n", ""]])
def test_a_name_that_no_deployment_can_have_is_told(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["explain", *words])
    assert "must be a name" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--kubeconfig", "--context"])
def test_a_cluster_that_is_not_named_is_told(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    status: int | str | None
    try:
        status = main(["explain", "qwen", option, ""])
    except SystemExit as left:
        status = left.code
    assert status == 2
    assert option.removeprefix("--") in capsys.readouterr().err
