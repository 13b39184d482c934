"""One answer about a spec: everything that is wrong in order, and numbers that are None rather than guessed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import supported_specs
from unit.sizing.subjects import (
    LLAMA_VISION,
    QWEN_3B,
    QWEN_7B,
    QWEN_72B,
    SMOLVLM,
    STATED,
    sentences,
    subject,
    vllm,
)
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.sizing.assess import SECTIONS, Assessment, assess
from vlm_operator.sizing.catalogue.loading import builtin, extended
from vlm_operator.sizing.subject import Subject

L40S, L4, T4 = "NVIDIA-L40S", "NVIDIA-L4", "Tesla-T4"
VERSIONS = ("0.33", "0.32.1", "0.31", "0.10.2", "0.7.3", "0.4", "1.0")


def answer(name: str = QWEN_7B, *, version: str = "0.33", **sections: Any) -> Assessment:
    return assess(subject(name, version=version, **sections))


def test_a_spec_that_fits_has_all_its_numbers() -> None:
    found = answer(
        model={"size": "7B", "quantization": "AWQ", "maxModelLen": 32768},
        multimodal={"maxPixels": 1003520},
        gpu={"products": [L40S]},
        parallelism={"tensor": 2, "data": 2},
    )
    assert sentences(found.findings) == []
    assert (found.tensor_parallel, found.gpus_per_replica, found.gpu) == (2, 4, L40S)
    assert found.memory is not None
    assert found.memory.fits
    assert found.max_concurrency is not None
    assert found.memory.kv_tokens == pytest.approx(found.max_concurrency * 32768, rel=0.001)
    assert list(found.image_tokens) == ["224x224", "1024x1024", "1920x1080", "1120x896"]
    assert list(found.image_tokens.values()) == [64, 1225, 1222, 1280]


def test_tokens_without_limits_are_those_of_the_model() -> None:
    assert list(answer().image_tokens.values()) == [64, 1369, 2691, 16384]


def test_without_images_there_is_no_largest() -> None:
    found = answer(multimodal={"limitsPerPrompt": {"image": 0}})
    assert list(found.image_tokens) == ["224x224", "1024x1024", "1920x1080"]


def test_what_is_unknown_is_none_and_said_once() -> None:
    found = answer("me/other")
    assert [one.reason for one in found.findings] == ["ModelUnknown", "GpuUnknown"]
    assert {one.severity for one in found.findings} == {"Warning"}
    assert (found.memory, found.gpu, found.max_concurrency) == (None, None, None)
    assert found.image_tokens == {"224x224": None, "1024x1024": None, "1920x1080": None}
    assert found.tensor_parallel == 1


def test_errors_come_first_then_fields_in_their_order() -> None:
    found = answer(
        model={"size": "8B", "maxModelLen": 200000},
        gpu={"products": [L40S], "memory": "48Gi"},
        parallelism={"tensor": 3},
        multimodal={"limitsPerPrompt": {"image": 99}, "encoderParallelism": "Data"},
    )
    assert [(one.severity, one.field) for one in found.findings] == [
        ("Error", "spec.model.size"),
        ("Error", "spec.model.maxModelLen"),
        ("Error", "spec.parallelism.tensor"),
        ("Warning", "spec.gpu.memory"),
        ("Warning", "spec.multimodal.limitsPerPrompt.image"),
    ]


def test_a_degree_that_is_not_allowed_is_not_weighed() -> None:
    found = answer(QWEN_72B, gpu={"products": [T4]}, parallelism={"tensor": 3})
    assert [one.reason for one in found.findings if one.severity == "Error"] == ["TensorParallelHeads"]


def test_checks_warn_refuses_nothing() -> None:
    sections: dict[str, Any] = {"gpu": {"products": [T4]}, "model": {"size": "9B"}}
    enforced, warned = answer(**sections), answer(**sections, checks="Warn")
    assert {"Error"} < {one.severity for one in enforced.findings}
    assert {one.severity for one in warned.findings} == {"Warning"}
    assert {one.message for one in warned.findings} == {one.message for one in enforced.findings}


def test_auto_without_a_degree_is_an_error_even_so() -> None:
    found = answer("me/other", parallelism={"tensor": "Auto"}, checks="Warn")
    assert (found.tensor_parallel, found.gpus_per_replica) == (None, None)
    first = found.findings[0]
    assert (first.reason, first.severity) == ("TensorParallelUndecided", "Error")


def test_auto_is_resolved() -> None:
    alone = {"limitsPerPrompt": {"video": 0}}
    found = answer(gpu={"products": [L4]}, parallelism={"tensor": "Auto", "data": 2}, multimodal=alone)
    assert (found.tensor_parallel, found.gpus_per_replica) == (2, 4)
    assert found.findings == ()


def test_the_largest_node_bounds_auto() -> None:
    found = assess(subject(gpu={"products": [L4]}, parallelism={"tensor": "Auto"}, gpus_per_node=1))
    assert found.tensor_parallel is None


def test_every_known_gpu_has_its_sum() -> None:
    found = answer(gpu={"products": [L40S, "X", L4, T4]})
    assert {label: memory.fits for label, memory in found.memory_by_gpu.items()} == {L40S: True, L4: False, T4: False}
    assert found.gpu == T4
    assert found.memory_by_gpu[T4] == found.memory
    assert found.question is not None
    assert found.question.memory == found.memory


def test_the_same_question_has_the_same_answer() -> None:
    assert answer(QWEN_3B, gpu={"products": [L4]}) == answer(QWEN_3B, gpu={"products": [L4]})


NAMES = st.sampled_from([row.hf_id for row in builtin().models] + ["me/other"])
LABELS = st.lists(st.sampled_from([row.product_labels[0] for row in builtin().gpus] + ["X"]), unique=True, max_size=3)
KNOWN = st.fixed_dictionaries({"name": NAMES, "labels": LABELS, "auto": st.booleans()})


@given(supported_specs(), KNOWN, st.sampled_from(VERSIONS), st.sampled_from([None, 1, 4, 8]))
def test_every_spec_has_an_answer(
    of: VLMDeploymentSpec, known: dict[str, Any], version: str, gpus_per_node: int | None
) -> None:
    for changed in (of, _about(of, **known)):
        found = assess(Subject(changed, builtin(), vllm(changed, version), gpus_per_node))
        assert all(one.field.startswith(SECTIONS) and one.message and one.advice for one in found.findings)
        assert [one.severity for one in found.findings] == sorted(one.severity for one in found.findings)
        assert (found.tensor_parallel is None) == ("TensorParallelUndecided" in {one.reason for one in found.findings})
        if found.memory is not None and found.memory.fits:
            assert found.max_concurrency is not None
            assert found.max_concurrency >= 1


def _about(of: VLMDeploymentSpec, *, name: str, labels: list[str], auto: bool) -> VLMDeploymentSpec:
    """The spec about something that the catalogue knows."""
    parts: dict[str, Any] = {
        "model": of.model.model_copy(update={"name": name}),
        "gpu": of.gpu.model_copy(update={"products": labels}),
    }
    if auto:
        parts["parallelism"] = of.parallelism.model_copy(update={"tensor": "Auto"})
    return of.model_copy(update=parts)


LARGEST = [
    ("google/gemma-3-4b-it", "896x896"),
    ("llava-hf/llava-1.5-7b-hf", "336x336"),
    (SMOLVLM, "512x512"),
    (LLAMA_VISION, "1120x1120"),
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "1344x1344"),
    ("mistralai/Pixtral-12B-2409", "1024x1024"),
    ("deepseek-ai/deepseek-vl2-tiny", "1024x1024"),
]


@pytest.mark.parametrize(("name", "size"), LARGEST)
def test_the_largest_image_is_always_told_and_last(name: str, size: str) -> None:
    tokens = answer(name).image_tokens
    assert list(tokens)[-1] == size
    assert tokens[size] == max(filter(None, tokens.values()))


def test_a_total_without_the_tower_still_gives_the_weights() -> None:
    sizes = {key: value for key, value in STATED.items() if key != "name"}
    row = {
        "hfId": "our/vl-8b",
        "family": "Ours",
        "architectureName": "OurVLForConditionalGeneration",
        "architecture": {"name": "OurVLForConditionalGeneration", **sizes},
        "totalParameters": 8_300_000_000,
        "marks": {"dimensions": "sourced"},
    }
    for total, known in ((8_300_000_000, True), (None, False)):
        catalogue, problems = extended(builtin(), {"ours.yaml": {"models": [row | {"totalParameters": total}]}})
        assert problems == ()
        found = assess(subject("our/vl-8b", gpu={"products": [L40S]}, catalogue=catalogue))
        (unknown,) = [one.message for one in found.findings if one.reason == "FitUnknown"]
        assert found.memory is not None
        if known:
            assert found.memory.weights == pytest.approx(2 * 8_300_000_000, rel=0.01)
            assert "its way with images is missing" in unknown
        else:
            assert found.memory.weights is None
            assert "the size of its vision tower is missing" in unknown
