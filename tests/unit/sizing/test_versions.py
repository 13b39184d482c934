"""A version of the engine has the model's class and code for the GPU, or it says so before a pod is created."""

from typing import Any

import pytest

from unit.replicas.tables import table
from unit.sizing.subjects import LLAMA_VISION, QWEN_7B, STATED, only, subject
from vlm_operator.sizing import versions
from vlm_operator.sizing.versions import parse_capability, parse_version

QWEN3 = "Qwen/Qwen3-VL-8B-Instruct"
IMAGE = {"image": "registry.example.com/vllm:0.33"}


def at(version: str, name: str = QWEN_7B, **more: Any) -> Any:
    return list(versions.check(subject(name, version=version, **more)))


CLASSES = [
    (
        "a class that ended",
        LLAMA_VISION,
        "0.33",
        "Error",
        (
            "vLLM 0.33 has no MllamaForConditionalGeneration any more: 0.10.2 was the last release with it;"
            ' set spec.engine.version to "0.10.2"'
        ),
    ),
    ("the release after the last", LLAMA_VISION, "0.11", "Error", "any more"),
    ("the last release", LLAMA_VISION, "0.10.2", None, ""),
    ("an earlier release", LLAMA_VISION, "0.9", None, ""),
    (
        "a class that came later",
        QWEN3,
        "0.10.2",
        "Error",
        (
            "vLLM 0.10.2 has no Qwen3VLForConditionalGeneration yet: 0.10.2 does not have it, 0.11.0 has it;"
            ' set spec.engine.version to "0.33", or an earlier one from "0.30" on'
        ),
    ),
    (
        "between two releases that were read",
        QWEN3,
        "0.10.3",
        "Warning",
        'set spec.engine.version to "0.33", or an',
    ),
    ("the first release that was read", QWEN3, "0.11.0", None, ""),
    ("a newer release than was read", QWEN_7B, "0.40", None, ""),
    ("an ended class in a newer release than was read", LLAMA_VISION, "0.40", "Error", "any more"),
    ("a model that nobody knows", "me/other", "0.33", None, ""),
]


@table("name, version, severity, words", CLASSES)
def test_the_class_of_a_model_in_a_version(name: str, version: str, severity: str | None, words: str) -> None:
    findings = at(version, name)
    assert [found.severity for found in findings] == ([severity] if severity else [])
    for found in findings:
        assert words in found.sentence()
        assert found.field == "spec.engine.version"


def test_a_model_outside_the_catalogue_is_judged_by_its_class() -> None:
    stated = STATED | {"name": "MllamaForConditionalGeneration"}
    assert only(at("0.33", "me/other", model={"architecture": stated}), "ArchitectureNotInVersion").severity == "Error"


BUILDS = [
    ("0.33", {}, "Error", "the image of vLLM 0.33 carries code from 7.5 on only; remove Tesla-V100-SXM2-16GB"),
    ("0.31", {}, "Warning", "the image of vLLM 0.31 carries code from 7.5 on only, as that of 0.33 does"),
    ("0.33", IMAGE, "Warning", "your image may carry code from 7.5 on only"),
    ("0.10.2", {}, None, ""),
]


@pytest.mark.parametrize(("version", "engine", "severity", "words"), BUILDS)
def test_a_gpu_older_than_the_build(version: str, engine: dict[str, Any], severity: str | None, words: str) -> None:
    findings = at(version, gpu={"products": ["Tesla-V100-SXM2-16GB"]}, engine=engine)
    found = [one for one in findings if one.reason == "GpuNotInBuild"]
    assert [one.severity for one in found] == ([severity] if severity else [])
    assert all(words in one.sentence() and one.field == "spec.gpu.products[0]" for one in found)


@pytest.mark.parametrize("product", ["Tesla-T4", "NVIDIA-L40S", "NVIDIA-B300-SXM6-AC", "AMD_Instinct_MI300X_OAM", "X"])
def test_a_gpu_that_the_build_or_its_relative_serves(product: str) -> None:
    assert "GpuNotInBuild" not in {found.reason for found in at("0.33", gpu={"products": [product]})}


def test_gpus_without_bfloat16_are_told_once() -> None:
    found = only(at("0.33", gpu={"products": ["NVIDIA-L40S", "Tesla-T4", "Tesla-V100-SXM2-32GB"]}), "Bfloat16Missing")
    assert (found.severity, found.field) == ("Warning", "spec.gpu.products[1]")
    assert found.message.startswith("Tesla-T4 and Tesla-V100-SXM2-32GB cannot compute in bfloat16")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0.33", (0, 33, 0)), ("0.10.2", (0, 10, 2)), ("0.6.3.post1", (0, 6, 3)), ("1.0", (1, 0, 0))],
)
def test_versions_are_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert parse_version(text) == numbers


@pytest.mark.parametrize(("text", "numbers"), [("8.9", (8, 9)), ("12.0", (12, 0)), ("gfx942", None), (None, None)])
def test_capabilities_are_numbers_for_one_maker(text: str | None, numbers: tuple[int, int] | None) -> None:
    assert parse_capability(text) == numbers
