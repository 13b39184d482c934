"""`kubectl vlm plan`: the verdict with its arithmetic, in three forms, and the ways of using it."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vlm_operator.cli.kubectl import main

KEYS = {"gpuGiB", "weightsGiB", "kvGiB", "kvTokens", "activationGiB", "otherGiB", "fits"}
SAMPLES = sorted((Path(__file__).parents[3] / "manifests" / "samples").glob("*.yaml"))
HEAD = {"apiVersion": "vlm.dev/v1alpha1", "kind": "VLMDeployment", "metadata": {"name": "qwen"}}


def resource(**spec: Any) -> dict[str, Any]:
    base = {
        "model": {"name": "Qwen/Qwen2.5-VL-7B-Instruct", "size": "7B", "quantization": "AWQ", "maxModelLen": 32768},
        "weights": {"persistentVolumeClaim": {"claimName": "models"}},
        "parallelism": {"tensor": 2},
        "gpu": {"products": ["NVIDIA-L40S"]},
        "multimodal": {"limitsPerPrompt": {"image": 2, "video": 0}, "maxPixels": 1003520},
    }
    return HEAD | {"spec": base | spec}


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(what: Any, *options: str, output: str = "json") -> tuple[int, Any, str]:
        text = what if isinstance(what, str) else yaml.safe_dump(what)
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        code = main(["plan", "-f", "-", "-o", output, *options])
        said = capsys.readouterr()
        return code, json.loads(said.out) if output == "json" and said.out else said.out, said.err

    return run


def test_an_accepted_spec_with_all_numbers(plan: Any) -> None:
    code, answer, _ = plan(resource())
    assert (code, answer["accepted"]) == (0, True)
    assert answer["memory"].keys() >= KEYS
    memory = answer["memory"]
    assert memory["fits"] is True
    assert memory["gpuGiB"] == pytest.approx(44.39, abs=0.1)
    used = sum(memory[key] for key in ("weightsGiB", "activationGiB", "otherGiB", "kvGiB"))
    assert used == pytest.approx(memory["gpuGiB"] * 0.92, rel=0.01)
    assert answer["tensorParallel"] == 2
    assert answer["gpusPerReplica"] == 2
    assert answer["imageTokens"]["224x224"] == 64
    assert len(answer["imageTokens"]) == 4
    assert answer["maxConcurrency"] == pytest.approx(memory["kvTokens"] / 32768, rel=0.05)


def test_every_allowed_gpu_is_told_and_how_long_and_how_many_requests_may_be(plan: Any) -> None:
    _, answer, _ = plan(resource(gpu={"products": ["NVIDIA-L40S", "NVIDIA-H100-80GB-HBM3", "NVIDIA-L4"]}))
    assert answer["gpu"] == "NVIDIA-L4"
    assert list(answer["memoryByGpu"]) == ["NVIDIA-L40S", "NVIDIA-H100-80GB-HBM3", "NVIDIA-L4"]
    assert answer["memoryByGpu"]["NVIDIA-L4"] == answer["memory"]
    assert answer["largestMaxModelLen"] == 128000
    tokens = answer["memory"]["kvTokens"]
    assert answer["imageConcurrency"]["1024x1024"] == pytest.approx(
        tokens / (answer["imageTokens"]["1024x1024"] + 1024), 0.01
    )
    _, table, _ = plan(resource(gpu={"products": ["NVIDIA-L40S", "NVIDIA-L4"]}), output="table")
    assert "On the other GPUs:\n  NVIDIA-L40S: " in table


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_every_sample_fits_and_nothing_is_found_wrong_with_it(plan: Any, sample: Path) -> None:
    code, answer, _ = plan(sample.read_text())
    assert (code, answer["accepted"], answer["memory"]["fits"]) == (0, True, True)
    assert answer["findings"] == []


@pytest.mark.parametrize("tensor", [3, 6, 16])
def test_a_degree_that_does_not_divide_the_heads_is_refused_with_the_numbers(tensor: int, plan: Any) -> None:
    code, answer, _ = plan(resource(parallelism={"tensor": tensor}))
    assert (code, answer["accepted"]) == (1, False)
    finding = answer["findings"][0]
    assert finding["severity"] == "Error"
    assert finding["field"] == "spec.parallelism.tensor"
    assert "28" in finding["message"]
    assert str(tensor) in finding["message"]
    assert "1, 2 or 4" in finding["advice"]


def test_auto_takes_the_smallest_degree_that_fits(plan: Any) -> None:
    code, answer, _ = plan(resource(parallelism={"tensor": "Auto"}))
    assert code == 0
    assert answer["tensorParallel"] == 1


def test_checks_that_only_warn(plan: Any) -> None:
    code, answer, _ = plan(resource(parallelism={"tensor": 3}, checks="Warn"))
    assert (code, answer["accepted"]) == (0, True)
    assert {finding["severity"] for finding in answer["findings"]} == {"Warning"}


def test_what_is_not_known_is_null(plan: Any) -> None:
    model = {"name": "nobody/knows-this", "size": "7B"}
    code, answer, _ = plan(resource(model=model, gpu={}))
    assert code == 0
    assert answer["memory"]["gpuGiB"] is None
    assert answer["memory"]["fits"] is None
    assert answer["memory"]["kvTokens"] is None
    assert answer["maxConcurrency"] is None
    assert set(answer["imageTokens"].values()) == {None}


def test_the_table_shows_bars_and_the_verdict(plan: Any) -> None:
    code, table, _ = plan(resource(), output="table")
    assert code == 0
    assert table.startswith("qwen: accepted\n")
    assert "fits" in table
    assert "##" in table
    assert "Pods: 1 with 2 GPUs each, 2 GPUs in all" in table


def test_yaml_and_json_say_the_same(plan: Any) -> None:
    _, as_yaml, _ = plan(resource(), output="yaml")
    _, as_json, _ = plan(resource())
    assert yaml.safe_load(as_yaml) == as_json


def test_against_an_older_spec_it_tells_what_restarts(plan: Any, tmp_path: Path) -> None:
    old = tmp_path / "old.yaml"
    old.write_text(yaml.safe_dump(resource(replicas=1)))
    _, same, _ = plan(resource(replicas=1), "--against", str(old))
    assert (same["restarts"], same["changes"]) == (False, [])
    _, bigger, _ = plan(resource(replicas=3), "--against", str(old))
    assert bigger["changes"] == [{"field": "spec.replicas", "old": None, "new": 3, "restarts": False}]
    _, other, _ = plan(resource(parallelism={"tensor": 1}, service={"port": 80}), "--against", str(old))
    assert other["restarts"] is True
    assert {change["field"]: change["restarts"] for change in other["changes"]} == {
        "spec.parallelism.tensor": True,
        "spec.service.port": False,
    }


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (
            {"parallelism": {"tensor": "x"}},
            'spec.parallelism.tensor: is "x" but must be a whole number from 1 to 64, or Auto',
        ),
        ({"replica": 2}, "spec.replica: is an unknown field; did you mean replicas?"),
    ],
)
def test_what_cannot_be_read_is_not_compared_with(plan: Any, tmp_path: Path, part: dict[str, Any], said: str) -> None:
    old = tmp_path / "old.yaml"
    old.write_text(yaml.safe_dump(resource(**part)))
    code, answer, error = plan(resource(), "--against", str(old))
    assert (code, answer) == (2, "")
    assert error.startswith(f"kubectl vlm: {old} cannot be what runs now: {said}")
    old.write_text(yaml.safe_dump(resource()))
    code, answer, _ = plan(resource(**part), "--against", str(old))
    assert (code, "changes" in answer) == (1, False)


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"name": "llava"}, "has metadata.name llava, not qwen: that is another VLMDeployment"),
        ({"name": "qwen", "namespace": "other"}, "has metadata.namespace other, not models: that is another"),
        ({"name": "qwen"}, ""),
    ],
    ids=["a name", "a namespace", "no namespace stated"],
)
def test_another_deployment_is_not_compared_with(
    plan: Any, tmp_path: Path, metadata: dict[str, str], said: str
) -> None:
    old = tmp_path / "old.yaml"
    old.write_text(yaml.safe_dump(resource() | {"metadata": metadata}))
    new = resource() | {"metadata": {"name": "qwen", "namespace": "models"}}
    code, _, error = plan(new, "--against", str(old))
    assert (code, said in error) == (2 if said else 0, True)


def test_only_a_file_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    assert main(["plan", "--config", str(config), "--against", str(config)]) == 2
    assert "--against needs -f" in capsys.readouterr().err


def test_a_restart_on_demand_is_a_change(plan: Any, tmp_path: Path) -> None:
    old = tmp_path / "old.yaml"
    old.write_text(yaml.safe_dump(resource()))
    new = resource() | {"metadata": {"name": "qwen", "annotations": {"vlm.dev/restarted-at": "2027-01-01T00:00:00Z"}}}
    _, answer, _ = plan(new, "--against", str(old))
    assert [change["field"] for change in answer["changes"]] == ["metadata.annotations[vlm.dev/restarted-at]"]
    assert answer["restarts"] is True


CONFIG = {
    "architectures": ["Qwen2_5_VLForConditionalGeneration"],
    "_name_or_path": "our/fine-tune",
    "hidden_size": 3584,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": "4",
    "intermediate_size": 18944,
    "vocab_size": 152064,
    "max_position_embeddings": 128000,
    "vision_config": {"depth": 32, "hidden_size": 1280, "num_heads": 16, "intermediate_size": 3420, "patch_size": 14},
}


def test_a_config_alone_gives_the_block_to_paste(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(CONFIG))
    assert main(["plan", "--config", str(file)]) == 0
    table = capsys.readouterr().out
    assert "Paste this into spec.model:" in table
    block = table.split("Paste this into spec.model:\n")[1].split("\n\n")[0]
    assert yaml.safe_load(block)["architecture"]["attentionHeads"] == 28


def test_what_was_pasted_gives_the_same_numbers_as_the_config(plan: Any, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(CONFIG))
    model = {"name": "our/fine-tune", "size": "8.3B", "maxModelLen": 32768}
    code, answer, _ = plan(resource(model=model), "--config", str(file))
    assert code == 0
    assert answer["memory"]["weightsGiB"] == pytest.approx(15.45 / 2, rel=0.03)
    pasted = model | {"architecture": answer["architecture"]}
    _, again, _ = plan(resource(model=pasted))
    assert again["memory"] == answer["memory"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{}", "does not describe a model"),
        ("[]", "does not describe a model"),
        ("nonsense", "is not JSON"),
        ("", "is not JSON"),
        ('{"architectures": ["A"]}', "num_hidden_layers"),
        ("[" * 100_000, "is nested too deeply"),
    ],
)
def test_a_config_that_cannot_be_used(
    content: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "config.json"
    file.write_text(content)
    assert main(["plan", "--config", str(file)]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert "Traceback" not in said


def test_without_any_file_it_says_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan"]) == 2
    assert "needs a file" in capsys.readouterr().err


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + level)}: &{chr(98 + level)} [{', '.join([f'*{chr(97 + level)}'] * 9)}]\n" for level in range(8)
)


@pytest.mark.parametrize("command", ["plan", "render"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (yaml.safe_dump(HEAD) + BOMB, "values once its aliases are written out"),
        ("a: &a [*a]\n", "nested too deeply"),
        ("x" * 10_000_000, "is larger than 1000000 characters"),
        ("kind: [VLMDeployment", "is not YAML"),
        ("[1, 2]", "holds a list"),
        ("a: 1\n---\nb: 2\n", "holds 2 documents"),
        (yaml.safe_dump(HEAD | {"kind": "Pod"}), "is of kind Pod; it must be VLMDeployment"),
    ],
    ids=["alias bomb", "endless", "10 MB", "not YAML", "a list", "two documents", "another kind"],
)
def test_unusable_input_is_one_sentence(
    command: str, text: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert main([command, "-f", "-"]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.err.startswith("kubectl vlm: standard input ")
    assert (said.err.count("\n"), said.out) == (1, "")


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("size in lower case", {"model": {"name": "a/b", "size": "7b"}}, "spec.model.size"),
    ("size of nothing", {"model": {"name": "a/b", "size": "0B"}}, "spec.model.size"),
    ("negative size", {"model": {"name": "a/b", "size": "-1"}}, "spec.model.size"),
    ("wrong size", {"model": {"name": "Qwen/Qwen2.5-VL-7B-Instruct", "size": "3B"}}, "spec.model.size"),
    ("unknown quantisation", {"model": {"name": "a/b", "quantization": "EXL2"}}, "spec.model.quantization"),
    ("decimal memory", {"gpu": {"memory": "48GB"}}, "spec.gpu.memory"),
    ("too many degrees", {"parallelism": {"tensor": 65}}, "spec.parallelism.tensor"),
    ("pixels crossed", {"multimodal": {"minPixels": 10, "maxPixels": 5}}, "spec.multimodal.minPixels"),
    ("negative limit", {"multimodal": {"limitsPerPrompt": {"image": -1}}}, "spec.multimodal.limitsPerPrompt.image"),
    ("longer than the model", {"model": {"name": "Qwen/Qwen2.5-VL-7B-Instruct", "size": "7B", "maxModelLen": 999_999}},
     "spec.model.maxModelLen"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "field"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_bad_values_name_their_field(spec: dict[str, Any], field: str, plan: Any) -> None:
    code, answer, _ = plan(resource(**spec))
    assert code == 1
    errors = [finding["field"] for finding in answer["findings"] if finding["severity"] == "Error"]
    assert field in errors


@pytest.mark.parametrize("memory", ["48Gi", "49152Mi"])
def test_memory_in_binary_units_is_taken(memory: str, plan: Any) -> None:
    code, answer, _ = plan(resource(gpu={"memory": memory}))
    assert code == 0
    assert answer["memory"]["gpuGiB"] == 48.0


def test_an_unknown_product_is_a_warning_and_the_fit_unknown(plan: Any) -> None:
    code, answer, _ = plan(resource(gpu={"products": ["NVIDIA-X9000"]}))
    assert code == 0
    assert "spec.gpu.products[0]" in {finding["field"] for finding in answer["findings"]}
    assert answer["memory"]["fits"] is None


def test_limits_of_zero_free_the_memory_of_images(plan: Any) -> None:
    _, with_images, _ = plan(resource())
    code, without, _ = plan(resource(multimodal={"limitsPerPrompt": {"image": 0, "video": 0}}))
    assert code == 0
    assert without["memory"]["activationGiB"] < with_images["memory"]["activationGiB"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)
PLACES = [
    "model",
    "gpu",
    "parallelism",
    "multimodal",
    "engine",
    "replicas",
    "weights",
    "checks",
    "drain",
    "podTemplate",
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(PLACES), VALUES, min_size=1, max_size=3))
def test_nothing_in_a_spec_makes_it_crash(plan: Any, spec: dict[str, Any]) -> None:
    code, answer, _ = plan(json.dumps(resource(**spec)))
    assert code in {0, 1}
    assert answer["accepted"] is (code == 0)
    assert all(finding["field"] and finding["message"] for finding in answer["findings"])


QUANTISED = {"bits": 8, "group_size": 64, "quant_method": "gptq"}


def config_file(tmp_path: Path, **changes: Any) -> str:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(CONFIG | changes))
    return str(file)


def planned(capsys: pytest.CaptureFixture[str], *options: str) -> Any:
    main(["plan", "-o", "json", *options])
    return json.loads(capsys.readouterr().out)


def test_bits_and_groups_of_a_config_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = {}
    for bits in (4, 8):
        stored = QUANTISED | {"bits": bits}
        answer = planned(capsys, "--config", config_file(tmp_path, quantization_config=stored))
        assert answer["quantization"] == "GPTQ"
        assert (answer["architecture"]["weightBits"], answer["architecture"]["weightGroupSize"]) == (bits, 64)
        weights[bits] = answer["memory"]["weightsGiB"]
    assert weights[8] > weights[4] * 1.35


def test_three_bits_are_not_counted_as_four(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = []
    for bits in (3, 4):
        stored = QUANTISED | {"bits": bits}
        weights.append(planned(capsys, "--config", config_file(tmp_path, quantization_config=stored)))
    assert weights[0]["memory"]["weightsGiB"] < weights[1]["memory"]["weightsGiB"] * 0.95


def test_groups_of_64_divide_what_groups_of_128_do_not(tmp_path: Path, plan: Any) -> None:
    wide = {"hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64, "intermediate_size": 29568}
    wide |= {"num_key_value_heads": 8, "quantization_config": QUANTISED | {"bits": 4}}
    model = {"name": "our/wide", "size": "72B", "quantization": "GPTQ", "maxModelLen": 8192}
    spec = resource(model=model, gpu={"products": ["NVIDIA-H100-80GB-HBM3"]})
    _, answer, _ = plan(spec, "--config", config_file(tmp_path, **wide))
    assert "QuantizationGroups" not in {finding["reason"] for finding in answer["findings"]}
    wide["quantization_config"] = QUANTISED | {"bits": 4, "group_size": 128}
    _, answer, _ = plan(spec, "--config", config_file(tmp_path, **wide))
    assert "QuantizationGroups" in {finding["reason"] for finding in answer["findings"]}


def test_the_block_to_paste_gives_what_was_planned(tmp_path: Path, plan: Any, capsys: Any) -> None:
    file = config_file(tmp_path, quantization_config={"bits": 4, "group_size": 128, "quant_method": "awq"})
    assert main(["plan", "--config", file]) == 0
    block = yaml.safe_load(capsys.readouterr().out.split("Paste this into spec.model:\n")[1].split("\n\n")[0])
    assert block["quantization"] == "AWQ"
    model = {"name": "our/fine-tune", "size": "8.3B", "maxModelLen": 32768} | block
    _, pasted, _ = plan(resource(model=model))
    alone = planned(capsys, "--config", file)
    assert pasted["memory"]["weightsGiB"] == pytest.approx(alone["memory"]["weightsGiB"] / 2, rel=0.05)


@pytest.mark.parametrize(
    ("given", "reason"), [("None", "QuantizationMismatch"), ("AWQ", None), ("FP8", "QuantizationMismatch")]
)
def test_a_spec_that_does_not_agree_with_its_config_is_told(
    given: str, reason: str | None, tmp_path: Path, plan: Any
) -> None:
    file = config_file(tmp_path, quantization_config={"bits": 4, "group_size": 128, "quant_method": "awq"})
    model = {"name": "our/fine-tune", "size": "8.3B", "quantization": given, "maxModelLen": 32768}
    _, answer, _ = plan(resource(model=model), "--config", file)
    assert ("QuantizationMismatch" in {finding["reason"] for finding in answer["findings"]}) is (reason is not None)


def test_another_format_than_that_of_the_config_is_counted_with_bits_of_its_own(tmp_path: Path, plan: Any) -> None:
    spec = resource(model={"name": "our/fine-tune", "quantization": "FP8", "maxModelLen": 32768})
    stored = (None, QUANTISED | {"bits": 4, "group_size": 64})
    answers = [plan(spec, "--config", config_file(tmp_path, quantization_config=one))[1] for one in stored]
    assert answers[0]["memory"] == answers[1]["memory"]
    (told,) = (finding["message"] for finding in answers[1]["findings"] if finding["reason"] == "QuantizationMismatch")
    assert told.endswith("stored as GPTQ; they are counted as FP8")


def test_a_method_without_a_name_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = planned(capsys, "--config", config_file(tmp_path, quantization_config={"quant_method": "foo"}))
    assert any("'foo'" in finding["message"] for finding in answer["findings"])


def test_half_a_surrogate_pair_is_no_text(plan: Any) -> None:
    code, _, said = plan(json.dumps(resource(model={"name": "\ud800"})))
    assert code == 2
    assert "found invalid Unicode character escape code" in said
