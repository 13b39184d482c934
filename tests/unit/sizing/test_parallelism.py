"""Which tensor-parallel degrees a model allows is arithmetic; the message must show it and name the way out."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.replicas.tables import table
from unit.sizing.subjects import INTERNVL_78B, QWEN3_30B, QWEN_3B, QWEN_7B, QWEN_72B, SMOLVLM, STATED, only, subject
from vlm_operator.sizing import parallelism
from vlm_operator.sizing.parallelism import allowed_degrees, obstacle

AWQ = {"quantization": "AWQ"}
DATA = {"encoderParallelism": "Data"}
STATED_DEGREES: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "stated.json").read_text())


def tensor(degree: int, name: str = QWEN_7B, **more: Any) -> Any:
    return list(parallelism.check(subject(name, parallelism={"tensor": degree}, **more)))


REFUSED = [
    (
        "attention heads",
        3,
        QWEN_7B,
        {},
        "TensorParallelHeads",
        (
            "spec.parallelism.tensor: tensor is 3, but the model has 28 attention heads, and 28 / 3 leaves 1 over;"
            " set tensor to 1, 2 or 4"
        ),
    ),
    ("more GPUs than heads go into", 16, QWEN_7B, {}, "TensorParallelHeads", "28 / 16 leaves 12 over"),
    (
        "key-value heads that neither divide nor are divided",
        3,
        "OpenGVLab/InternVL3-2B",
        {},
        "TensorParallelKeyValueHeads",
        "2 key-value heads, and neither of 2 and 3 divides the other; set tensor to 1, 2 or 4",
    ),
    (
        "the MLP, where the heads would go",
        6,
        "OpenGVLab/InternVL3-2B",
        {"multimodal": DATA},
        "TensorParallelWidth",
        "8960 as the width of its MLP, and 8960 / 6 leaves 2 over; set tensor to 1, 2 or 4",
    ),
    (
        "the vocabulary, which is padded to a multiple of 64 and no more",
        3,
        SMOLVLM,
        {},
        "TensorParallelWidth",
        "49280 tokens in its padded vocabulary, and 49280 / 3 leaves 2 over; set tensor to 1",
    ),
    (
        "the MLP of a vision tower, which has a way out of its own",
        8,
        QWEN_3B,
        {},
        "TensorParallelVision",
        (
            "3420 as the width of the MLP in its vision tower, and 3420 / 8 leaves 4 over;"
            " set spec.multimodal.encoderParallelism to Data, or set tensor to 1, 2 or 4"
        ),
    ),
    (
        "the heads of a vision tower",
        8,
        "zai-org/GLM-4.5V",
        {},
        "TensorParallelVision",
        "12 attention heads in its vision tower, and 12 / 8 leaves 4 over; set spec.multimodal.encoderParallelism to Data",
    ),
    (
        "the groups of quantised weights",
        4,
        INTERNVL_78B,
        {"model": AWQ},
        "QuantizationGroups",
        (
            "29568 as the width of its MLP, and a share of 29568 / 4 = 7392 is no multiple of the 128 weights that have one"
            " scale in AWQ; set tensor to 1"
        ),
    ),
    (
        "groups that a published repository pads",
        2,
        QWEN_72B,
        {"model": AWQ},
        "QuantizationGroups",
        "set tensor to 1, or name Qwen/Qwen2.5-VL-72B-Instruct-AWQ, if you serve it: its MLP is padded to 29696",
    ),
]


@table("degree, name, more, reason, words", REFUSED)
def test_a_degree_that_does_not_divide_is_refused_with_the_ones_that_do(
    degree: int, name: str, more: dict[str, Any], reason: str, words: str
) -> None:
    findings = tensor(degree, name, **more)
    found = only(findings, reason)
    assert words in found.sentence()
    assert (found.severity, found.field) == ("Error", "spec.parallelism.tensor")
    assert sum(finding.severity == "Error" for finding in findings) == 1, "one cause is told once"


ALLOWED = [
    ("a divisor of all", QWEN_7B, 4, {}),
    ("more GPUs than key-value heads, which are then copied", QWEN_3B, 4, {}),
    ("a whole vision tower on each GPU", QWEN_3B, 8, {"multimodal": DATA}),
    ("a padded vision tower of 25 heads", INTERNVL_78B, 8, {}),
    ("one latent entry for all heads", "moonshotai/Kimi-VL-A3B-Instruct", 4, {}),
    ("a repository that pads its MLP", f"{QWEN_72B}-AWQ", 4, {"model": AWQ}),
    ("16 bit, where groups do not matter", INTERNVL_78B, 4, {}),
    ("FP8, which has no groups along a row", INTERNVL_78B, 4, {"model": {"quantization": "FP8"}}),
    ("a model that nobody knows", "me/other", 7, {}),
]


@table("name, degree, more", ALLOWED)
def test_a_degree_that_divides_is_allowed(name: str, degree: int, more: dict[str, Any]) -> None:
    assert [finding for finding in tensor(degree, name, **more) if finding.severity == "Error"] == []


@pytest.mark.parametrize("name", STATED_DEGREES)
def test_degrees_agree_with_those_that_were_worked_out_by_hand(name: str) -> None:
    """Some of those by hand look at heads alone; layers that cannot be divided are refused besides."""
    stated = STATED_DEGREES[name]
    languages = subject(name, multimodal=DATA)
    for degree in (1, 2, 3, 4, 5, 6, 8, 16):
        found = obstacle(subject(name), degree)
        vision = found is not None and found.reason == parallelism.TENSOR_VISION
        heads = found is not None and found.reason in {
            parallelism.TENSOR_HEADS,
            parallelism.TENSOR_KEY_VALUE_HEADS,
        }
        if stated["tpLanguage"] is not None:
            assert heads == (degree not in stated["tpLanguage"])
        if stated["tpVision"] is not None and found is None:
            assert degree in stated["tpVision"]
        if vision and parallelism.takes_encoder_data(languages):
            assert obstacle(languages, degree) is None
        if stated["tpGroup128"] is not None and degree in stated["tpLanguage"]:
            awq = obstacle(subject(name, model=AWQ, multimodal=DATA), degree)
            cut = awq is not None and awq.reason == parallelism.QUANTIZATION_GROUPS
            assert not (cut and degree in stated["tpGroup128"])


@given(st.sampled_from(sorted(STATED_DEGREES)), st.integers(1, 64), st.sampled_from(["None", "AWQ", "FP8"]))
def test_what_is_advised_is_allowed(name: str, degree: int, quantization: str) -> None:
    about = subject(name, model={"quantization": quantization}, parallelism={"tensor": degree})
    for found in parallelism.check(about):
        if found.field == "spec.parallelism.tensor" and found.severity == "Error":
            advised = allowed_degrees(about)
            assert advised
            assert all(obstacle(about, better) is None for better in advised)


def test_experts_that_are_cut_are_slow_but_run() -> None:
    found = only(tensor(4, QWEN3_30B, model=AWQ), "QuantizedExpertsSlow")
    assert found.severity == "Warning"
    assert "768 as the width of an expert, and a share of 768 / 4 = 192 is no multiple of the 128" in found.message


@pytest.mark.parametrize("flag", ["--enable-expert-parallel", "-ep"])
def test_whole_experts_are_not_cut(flag: str) -> None:
    assert "QuantizedExpertsSlow" not in {
        found.reason for found in tensor(4, QWEN3_30B, model=AWQ, engine={"args": [flag]})
    }


def test_a_tower_without_data_mode_is_shared_whatever_the_spec_says() -> None:
    findings = tensor(8, "HuggingFaceTB/SmolVLM2-2.2B-Instruct", multimodal=DATA)
    assert only(findings, "EncoderParallelismUnused").message == (
        "vLLM 0.33 has no data mode for the vision tower of SmolVLMForConditionalGeneration and shares its weights instead"
    )


def test_data_mode_of_one_gpu_changes_nothing() -> None:
    assert only(tensor(1, multimodal=DATA), "EncoderParallelismUnused").severity == "Warning"


def degrees(gpus_per_node: int | None = None, **given_degrees: int) -> Any:
    return list(parallelism.check(subject(gpus_per_node=gpus_per_node, parallelism=given_degrees)))


def test_a_replica_must_fit_on_the_largest_node() -> None:
    found = only(degrees(8, tensor=4, pipeline=4), "GpusPerNode")
    assert found.severity == "Error"
    assert found.sentence() == (
        "spec.parallelism: tensor 4 x pipeline 4 x data 1 is 16 GPUs of one node, and the largest node has 8;"
        " set tensor to 2"
    )
    assert degrees(16, tensor=4, pipeline=1, data=4) == []


@pytest.mark.parametrize(
    ("given_degrees", "advice"),
    [
        ({"tensor": 2, "data": 16}, "set tensor to 4, data to 1 and raise replicas"),
        ({"tensor": 1, "pipeline": 16}, "set tensor to 4, pipeline and data to 1"),
    ],
)
def test_the_way_onto_a_node_gives_up_copies_first(given_degrees: dict[str, int], advice: str) -> None:
    assert only(degrees(8, **given_degrees), "GpusPerNode").advice == advice


def test_without_nodes_more_gpus_than_usual_are_only_remarked() -> None:
    assert only(degrees(tensor=4, data=4), "GpusPerNode").severity == "Warning"
    assert degrees(tensor=4, data=2) == []


def test_a_pipeline_stage_needs_a_layer() -> None:
    found = only(degrees(pipeline=29), "PipelineStagesEmpty")
    assert "pipeline is 29, but the model has 28 layers" in found.message
    assert found.severity == "Error"
    assert [one.reason for one in degrees(pipeline=28)] == ["GpusPerNode"]


def test_a_pipeline_that_idles_at_images_is_remarked_where_its_gpus_could_share_the_tower() -> None:
    assert only(degrees(pipeline=2), "PipelineIdlesAtImages").advice == (
        "set tensor to 2 and pipeline to 1, which uses the same GPUs"
    )
    assert degrees(tensor=1, pipeline=3) == [], "three GPUs cannot share it"


def test_stated_sizes_are_judged_like_those_of_the_catalogue() -> None:
    assert only(tensor(3, "me/other", model={"architecture": STATED}), "TensorParallelHeads").severity == "Error"


def test_auto_allows_what_the_node_has() -> None:
    assert allowed_degrees(subject()) == (1, 2, 4)
    assert allowed_degrees(subject(gpus_per_node=2)) == (1, 2)
    assert allowed_degrees(subject(gpus_per_node=4, parallelism={"tensor": "Auto", "data": 2})) == (1, 2)
