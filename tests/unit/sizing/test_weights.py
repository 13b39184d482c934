"""Weights of a rank, against sums made by hand, stated sizes and what logs show."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.sizing.memory_examples import LLAMA3_8B, QWEN25_VL_7B, architectures, changed
from vlm_operator.api.architecture import Experts
from vlm_operator.sizing.catalogue.loading import builtin
from vlm_operator.sizing.memory import GIB
from vlm_operator.sizing.weights import FORMATS, Layout, Stage, rank_weights, rotary_bytes, stages

STATED = json.loads((Path(__file__).parent / "stated.json").read_text(encoding="utf-8"))
KNOWN = {name: builtin().model(name).architecture for name in STATED}
FORMAT_OF = {"weightGib": ("None", 0.005), "int4Gib": ("AWQ", 0.02), "fp8Gib": ("FP8", 0.02)}
"""Keys of stated sizes, the format they are of and how far they may be off."""
ONE = Layout()


def whole(architecture, layout: Layout = ONE, quantization: str = "None", group_size: int | None = None) -> int | None:
    """The fullest stage."""
    found = [
        rank_weights(architecture, layout, stage, quantization=quantization, group_size=group_size)
        for stage in stages(architecture.layers, layout.pipeline)
    ]
    return None if None in found else max(found)


@pytest.mark.parametrize(
    ("name", "key"), [(name, key) for name in sorted(STATED) for key in FORMAT_OF if STATED[name].get(key) is not None]
)
def test_weights_are_those_that_are_stated(name: str, key: str) -> None:
    quantization, tolerance = FORMAT_OF[key]
    found = whole(KNOWN[name], quantization=quantization)
    assert found is not None
    checkpoint = found - rotary_bytes(KNOWN[name])
    # The last digit of the stated value is the other part of the tolerance.
    assert checkpoint / GIB == pytest.approx(STATED[name][key], rel=tolerance, abs=0.011)


@pytest.mark.parametrize(
    ("what", "name", "tensor", "logged_gib"),
    [
        ("with the positions in three dimensions", "Qwen/Qwen2.5-VL-32B-Instruct", 1, 62.43),
        ("with the positions scaled by 8", "google/gemma-3-4b-it", 1, 8.58),
        ("with parts that every rank holds", "google/gemma-3-27b-it", 4, 13.17),
        ("in a plain model", "mistralai/Mistral-Small-3.1-24B-Instruct-2503", 1, 44.76),
    ],
)
def test_weights_are_those_of_start_up_logs(what: str, name: str, tensor: int, logged_gib: float) -> None:
    found = whole(KNOWN[name], Layout(tensor=tensor))
    assert found is not None
    assert found / GIB == pytest.approx(logged_gib, rel=0.01), what


def test_awq_on_two_gpus_counted_by_hand() -> None:
    tables = 2 * 152_064 * 3584
    norms = 3584 * 57
    linear = 7_615_600_000 - tables - norms
    tower = 32 * (4 * 1280**2 + 3 * 1280 * 3420)
    expected = (
        linear * (0.5 + 2.5 / 128) / 2  # 4 bit; a 16-bit scale and a 4-bit zero per 128
        + tables * 2 / 2
        + norms * 2
        + tower * 2 / 2
        + (676_600_000 - tower) * 2
        + 128_000 * 4 * 128 * 2
    )
    assert whole(QWEN25_VL_7B, Layout(tensor=2), "AWQ", 128) == pytest.approx(expected, abs=4)


def test_a_tower_in_data_mode_is_whole_on_every_rank() -> None:
    split, shared = whole(QWEN25_VL_7B, Layout(tensor=4)), whole(QWEN25_VL_7B, Layout(tensor=4, encoder_data=True))
    tower = 32 * (4 * 1280**2 + 3 * 1280 * 3420)
    assert split is not None
    assert shared is not None
    assert shared - split == pytest.approx(tower * 2 * 3 / 4, abs=4)


def test_key_value_heads_are_repeated_where_there_are_more_ranks_than_heads() -> None:
    model = changed(LLAMA3_8B, key_value_heads=2, layers=1)
    per_rank = {tensor: whole(model, Layout(tensor=tensor)) for tensor in (2, 4)}
    key_and_value = 2 * 4096 * 2 * 128 * 2  # bytes of both matrices
    rest = per_rank[2] - rotary_bytes(model) - key_and_value / 2 - 3 * 4096 * 2
    assert per_rank[4] == pytest.approx(rest / 2 + key_and_value / 2 + 3 * 4096 * 2 + rotary_bytes(model), abs=4)


def test_padded_heads_make_the_tower_larger() -> None:
    tower = QWEN25_VL_7B.vision.model_copy(update={"attention_heads": 25, "pads_heads": True})
    plain = tower.model_copy(update={"pads_heads": False})
    padded = whole(changed(QWEN25_VL_7B, vision=tower), Layout(tensor=4))
    assert padded == pytest.approx(
        whole(changed(QWEN25_VL_7B, vision=plain), Layout(tensor=4)) + 32 * 4 * 1280**2 * 2 / 4 * 3 / 25, abs=4
    )


def test_a_smaller_group_has_more_scales() -> None:
    assert whole(LLAMA3_8B, quantization="AWQ", group_size=32) > whole(LLAMA3_8B, quantization="AWQ", group_size=128)


@pytest.mark.parametrize(
    ("quantization", "group_size", "bits", "expected"),
    [
        ("AWQ", None, None, 0.51953125),
        ("GPTQ", 128, 8, 1.0234375),
        ("INT4", 128, None, 0.515625),
        ("INT8", None, None, 1.0),
        ("FP8", 128, None, 1.0),
        ("NVFP4", None, None, 0.5625),
        ("MXFP4", None, None, 0.53125),
    ],
)
def test_bytes_of_a_weight_with_its_share_of_the_group(quantization, group_size, bits, expected) -> None:
    assert FORMATS[quantization].bytes_per_weight(group_size, bits) == expected


def test_mxfp4_of_a_mixture_leaves_attention_and_pads_experts() -> None:
    gpt_oss = changed(
        LLAMA3_8B,
        layers=24,
        hidden_size=2880,
        attention_heads=64,
        head_size=64,
        intermediate_size=2880,
        vocabulary_size=201_088,
        max_context=131_072,
        experts=Experts(count=32, active=4, intermediate_size=2880),
    )
    found = whole(gpt_oss, quantization="MXFP4")
    assert found is not None
    assert found / GIB == pytest.approx(13.47, rel=0.03)  # a log of gpt-oss-20b


def test_an_unknown_tower_makes_the_weights_unknown() -> None:
    assert whole(changed(QWEN25_VL_7B, vision=None, vision_parameters=None)) is None


@pytest.mark.parametrize(
    ("layers", "pipeline", "counts"),
    [(28, 1, [28]), (28, 2, [14, 14]), (61, 2, [31, 30]), (30, 4, [7, 7, 8]), (10, 4, [2, 2, 3])],
)
def test_layers_left_over_go_to_the_steps_before_the_last(layers: int, pipeline: int, counts: list[int]) -> None:
    found = stages(layers, pipeline)
    assert [stage.layers for stage in found] == counts
    assert found[0].first
    assert [stage for stage in found if stage.last] == [found[min(1, pipeline - 1)]]


def test_more_steps_than_layers_are_refused() -> None:
    with pytest.raises(ValueError, match="4 steps"):
        stages(3, 4)


def test_a_tied_head_is_a_copy_on_the_last_step() -> None:
    model = changed(LLAMA3_8B, tied_embeddings=True)
    last = rank_weights(model, Layout(pipeline=2), Stage(layers=16, first=False, last=True))
    middle = rank_weights(model, Layout(pipeline=2), Stage(layers=16, first=False, last=False))
    assert last - middle == 128_256 * 4096 * 2


@given(architectures(), st.sampled_from([1, 2, 4, 8]), st.sampled_from(sorted(FORMATS)), st.booleans())
def test_more_ranks_never_hold_more_each_and_together_never_less(architecture, tensor, quantization, data) -> None:
    alone = whole(architecture, Layout(tensor=tensor, encoder_data=data), quantization)
    shared = whole(architecture, Layout(tensor=2 * tensor, encoder_data=data), quantization)
    assert shared <= alone
    assert 2 * shared >= alone - 4


@given(architectures(), st.integers(1, 4))
def test_a_longer_pipeline_never_holds_more_in_one_step(architecture, pipeline) -> None:
    model = changed(architecture, tied_embeddings=False)
    assert whole(model, Layout(pipeline=2 * pipeline)) <= whole(model, Layout(pipeline=pipeline))


@given(architectures(), st.sampled_from(sorted(set(FORMATS) - {"None"})), st.sampled_from([1, 2, 4]))
def test_no_format_is_larger_than_16_bit(architecture, quantization, tensor) -> None:
    layout = Layout(tensor=tensor)
    assert whole(architecture, layout, quantization) < whole(architecture, layout)
