"""What the admin mounts is used when it is right; when it is not, every sentence says where, what and which rule."""

import json
import logging
import os
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import generate_latest

from vlm_operator.engines.override_probes import identity, probes
from vlm_operator.engines.registry import engine
from vlm_operator.engines.rendering import installed
from vlm_operator.runtime import telemetry
from vlm_operator.runtime.admin import read_catalogue, use_templates
from vlm_operator.runtime.connection import StartError
from vlm_operator.runtime.trial import trial
from vlm_operator.sizing.catalogue.loading import builtin, extended

ROOT = Path(__file__).parents[3]
TEMPLATE = "vllm/pod.yaml.j2"
BUILT_IN = (files("vlm_operator.engines") / "templates" / TEMPLATE).read_text()
OURS = BUILT_IN.replace("annotations: {{ annotations }}", "annotations: {{ dict(annotations, ours='yes') }}")
AFTER = OURS.count("\n") + 1
"""The line after its last one."""
GPU = {"name": "X1", "vendor": "nvidia", "productLabels": ["NVIDIA-X1"], "memoryMib": 24564}


def mounted(folder: Path, data: dict[str, str | bytes]) -> Path:
    """A folder as the kubelet mounts a ConfigMap: links through a hidden folder that is replaced as a whole."""
    hidden = folder / "..2026_11_30_12_00_00.1234"
    hidden.mkdir(parents=True)
    (folder / "..data").symlink_to(hidden.name)
    for name, text in data.items():
        (hidden / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        (folder / name).symlink_to(Path("..data") / name)
    return folder


def document(**parts: Any) -> str:
    return yaml.safe_dump(parts)


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    with installed({}):
        yield
    telemetry.TEMPLATE_OVERRIDES.clear()


def test_without_files_the_catalogue_is_the_built_in_one() -> None:
    assert read_catalogue(()) is builtin()


def test_the_files_of_a_mounted_folder_and_single_files_are_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gpus = [{**GPU, "productLabels": [f"NVIDIA-X{n}"]} for n in range(4)]
    names = ("a.yaml", "b.yml", "c.json", "notes.txt")
    folder = mounted(tmp_path / "c", {name: json.dumps({"gpus": [gpu]}) for name, gpu in zip(names, gpus, strict=True)})
    (folder / "sub.yaml").mkdir()
    single = tmp_path / "single.yaml"
    single.write_text(document(gpus=[{**GPU, "productLabels": ["NVIDIA-X9"]}]))
    catalogue = read_catalogue([folder, single])
    found = {number: catalogue.gpu(f"NVIDIA-X{number}") is not None for number in (0, 1, 2, 3, 9)}
    assert found == {0: True, 1: True, 2: True, 3: False, 9: True}
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        f"{folder / 'notes.txt'} is not read: its name must end with .yaml, .yml, .json"
    ]


def test_an_empty_folder_adds_nothing(tmp_path: Path) -> None:
    assert read_catalogue([mounted(tmp_path / "c", {})]).gpus == builtin().gpus


def test_a_warning_is_logged_and_the_catalogue_is_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = mounted(tmp_path / "c", {"a.yaml": document(gpus=[GPU]), "b.yaml": document(gpus=[GPU])})
    assert read_catalogue([folder]).gpu("NVIDIA-X1") is not None
    assert f"{folder}/b.yaml: gpus[0]: NVIDIA-X1 has a row before; this one counts" in caplog.text


def test_everything_that_is_wrong_is_told_in_one_line_each(tmp_path: Path) -> None:
    data: dict[str, str | bytes] = {
        "bad.yaml": document(gpus=[GPU | {"memoryMib": "24564"}, GPU | {"vendro": "x"}]),
        "binary.yaml": b"a: 1\n\xff\xfe",
        "bomb.yaml": "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdef", "bcdefg", strict=True)),
        "deep.json": '{"a":' * 5000,
        "empty.yaml": "",
        "list.yaml": "[1]",
        "two.yaml": "a: 1\n---\nb: 2\n",
        "words.yaml": "models: {a: [",
    }
    folder = mounted(tmp_path / "c", data)
    with pytest.raises(StartError) as caught:
        read_catalogue([folder])
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{folder}/") for line in lines)
    told = sorted(line.removeprefix(f"{folder}/") for line in lines)
    wanted = [
        'bad.yaml: gpus[0].memoryMib: is "24564" but must be a whole number; write it without quotes',
        "bad.yaml: gpus[1].vendro: is an unknown field; did you mean vendor?",
        "binary.yaml is not UTF-8 text; correct or remove it",
        "bomb.yaml holds more than 100000 values once its aliases are written out; correct or remove it",
        "deep.json is nested too deeply; correct or remove it",
        "empty.yaml is empty; it must hold one document; correct or remove it",
        "list.yaml: must be a map with models, gpus and sources",
        "two.yaml holds 2 documents; give one document at a time; correct or remove it",
    ]
    assert told[:-1] == wanted
    assert told[-1].startswith("words.yaml is not YAML: line 2, column 1: ")


def test_a_path_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"none cannot be read: no such file or directory; correct"):
        read_catalogue([tmp_path / "none"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_folder_that_must_not_be_read_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0)
    try:
        with pytest.raises(StartError, match="cannot be read: permission denied; correct --catalogue"):
            read_catalogue([tmp_path])
    finally:
        tmp_path.chmod(0o700)


def test_the_example_of_the_documentation_is_right() -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs/admin.md").read_text(), re.MULTILINE | re.DOTALL)
    (example,) = yaml.safe_load(text)["data"].values()
    catalogue, findings = extended(builtin(), {"ours.yaml": yaml.safe_load(example)})
    assert findings == ()
    assert catalogue.model("our-team/vl-7b") is not None
    assert catalogue.gpu("NVIDIA-X1") is not None


def annotations() -> dict[str, str]:
    resolved = dict(probes(engine("vLLM")))["minimal"]
    pod = engine(resolved.inputs.engine.type).render_pod(resolved, identity(0))
    return dict(pod["metadata"]["annotations"])


def metric(template: str, state: str) -> float | None:
    return telemetry.REGISTRY.get_sample_value(
        "vlm_operator_template_overrides", {"template": template, "state": state}
    )


def test_a_good_override_is_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    use_templates(mounted(tmp_path / "t", {"vllm-pod.yaml.j2": OURS}))
    assert annotations() == {"ours": "yes"}
    assert (metric(TEMPLATE, "used"), metric(TEMPLATE, "failed")) == (1, 0)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    use_templates(None)
    assert annotations() == {}
    assert metric(TEMPLATE, "used") is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (OURS + "x: {{ nmae }}", f"probe minimal: line {AFTER}: 'nmae' is undefined"),
        (OURS + "{{ ''.__class__.__mro__ }}", f"probe minimal: line {AFTER}: access to attribute '__class__' of"),
        (OURS + "{% if", f"line {AFTER}: unexpected 'end of template'"),
        (b"\xff\xfe", "vllm-pod.yaml.j2 is not UTF-8 text"),
        ("x" * 1_000_001, "vllm-pod.yaml.j2 is larger than 1000000 characters"),
    ],
    ids=lambda value: value[-30:] if isinstance(value, str) else "bytes",
)
def test_a_broken_override_leaves_the_built_in_template(
    text: str | bytes, sentence: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = mounted(tmp_path / "t", {"vllm-pod.yaml.j2": text})
    use_templates(folder)
    assert annotations() == {}
    assert (metric(TEMPLATE, "used"), metric(TEMPLATE, "failed")) == (0, 1)
    (error,) = (record for record in caplog.records if record.levelno == logging.ERROR)
    said = error.getMessage()
    assert said.startswith(f"the built-in template {TEMPLATE} is used, its override {folder}/vllm-pod.yaml.j2 is not: ")
    assert sentence in said
    assert error.exc_info is None


def test_a_name_that_overrides_nothing_is_told_with_those_that_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    use_templates(mounted(tmp_path / "t", {"pod.yaml.j2": OURS, "vllm-pod.yaml.j2": OURS}))
    assert annotations() == {"ours": "yes"}
    assert "t/pod.yaml.j2 overrides no template; its name must be one of: vllm-pod.yaml.j2" in caplog.text
    assert metric("pod.yaml.j2", "failed") == 1
    assert b'template="pod.yaml.j2"' in generate_latest(telemetry.REGISTRY)


def test_a_folder_of_templates_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"none cannot be read: no such file or directory; correct --templates"):
        use_templates(tmp_path / "none")


def test_an_override_that_fails_later_gives_way_for_that_pod(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    later = OURS + "{% if grace_seconds == 107 %}x: {{ missing }}{% endif %}\n"
    use_templates(mounted(tmp_path / "t", {"vllm-pod.yaml.j2": later}))
    minimal = dict(probes(engine("vLLM")))["minimal"]
    drain = minimal.inputs.drain.model_copy(update={"timeout": "77s"})
    outside = minimal.model_copy(update={"inputs": minimal.inputs.model_copy(update={"drain": drain})})
    counted = {"template": TEMPLATE}
    before = telemetry.REGISTRY.get_sample_value("vlm_operator_template_fallbacks_total", counted) or 0
    pod = engine("vLLM").render_pod(outside, identity(0))
    assert pod["metadata"]["annotations"] == {}
    assert (
        "pod models/probe-0123456789-0 is made from the built-in template vllm/pod.yaml.j2, its override fails: "
        f"line {AFTER}: 'missing' is undefined"
    ) in caplog.text
    assert telemetry.REGISTRY.get_sample_value("vlm_operator_template_fallbacks_total", counted) == before + 1


def test_an_override_that_never_ends_is_stopped() -> None:
    text = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    assert "did not end within 3 s" in trial(TEMPLATE, OURS + text, seconds=3)


def test_an_override_that_takes_all_memory_is_stopped() -> None:
    assert "takes too much memory" in trial(TEMPLATE, OURS + "x: {{ 'a' * 900000000 }}")
