"""Parameters by part, against counts made by hand and against published totals."""

import pytest

from unit.sizing.memory_examples import LLAMA3_8B, QWEN25_VL_7B, changed
from vlm_operator.api.architecture import Experts, LatentAttention
from vlm_operator.sizing.catalogue.loading import builtin
from vlm_operator.sizing.catalogue.rows import ModelRow
from vlm_operator.sizing.parameters import (
    NO_VISION,
    is_text_only,
    language_parameters,
    mixture_layers,
    vision_parameters,
)

NOT_COUNTED = {
    "microsoft/Phi-4-multimodal-instruct": "an audio encoder and adapters, which the sizes do not tell",
    "zai-org/GLM-4.5V": "its stated count was taken with heads of 4096 / 96 instead of 128, and is 3.2 % too small",
    "nvidia/Llama-3.1-Nemotron-Nano-VL-8B-V1": "no published count of its tower",
    "nvidia/NVIDIA-Nemotron-Nano-12B-v2-VL-BF16": "no published sizes",
}
"""Rows that cannot be compared, with the reason."""
STATED = [row for row in builtin().models if row.architecture and row.hf_id not in NOT_COUNTED]
KNOWN = [row.architecture for row in builtin().models if row.architecture]


def test_a_small_model_counted_by_hand() -> None:
    small = changed(
        LLAMA3_8B,
        layers=2,
        hidden_size=8,
        attention_heads=4,
        key_value_heads=2,
        head_size=2,
        intermediate_size=16,
        vocabulary_size=100,
    )
    found = language_parameters(small)
    assert found.query_and_output == 2 * 2 * 8 * 8
    assert found.key_and_value == 2 * 2 * 8 * 4
    assert found.mlp == 2 * 3 * 8 * 16
    assert found.norms == 5 * 8
    assert found.embedding == found.head == 128 * 8  # rows padded to a multiple of 64


def test_the_published_size_of_llama_3_8b_comes_out() -> None:
    assert language_parameters(LLAMA3_8B).total == pytest.approx(8_030_261_248, rel=1e-4)


def test_a_stated_total_is_kept_and_only_the_layers_are_scaled_to_it() -> None:
    more = changed(LLAMA3_8B, language_parameters=9_000_000_000)
    plain, scaled = language_parameters(LLAMA3_8B), language_parameters(more)
    assert scaled.total == pytest.approx(9_000_000_000, rel=1e-6)
    assert (scaled.embedding, scaled.head, scaled.norms) == (plain.embedding, plain.head, plain.norms)


def test_tied_embeddings_have_no_head() -> None:
    assert language_parameters(changed(LLAMA3_8B, tied_embeddings=True)).head == 0


def test_a_mixture_takes_the_place_of_the_mlp_where_it_stands() -> None:
    experts = Experts(count=4, active=2, shared=1, intermediate_size=32, every=2, dense_layers=2)
    model = changed(LLAMA3_8B, layers=10, experts=experts)
    found = language_parameters(model)
    assert mixture_layers(model) == 4
    assert found.experts == 4 * 4 * 3 * 4096 * 32
    assert found.router == 4 * 4 * 4096
    assert found.mlp == 6 * 3 * 4096 * 14_336 + 4 * 3 * 4096 * 32


def test_latent_attention_has_matrices_that_every_rank_holds() -> None:
    model = changed(LLAMA3_8B, latent_attention=LatentAttention(rank=512, rope_size=64))
    found = language_parameters(model)
    assert found.latent == 32 * 4096 * (512 + 64)
    assert found.key_and_value == 0


@pytest.mark.parametrize("row", STATED, ids=lambda row: row.hf_id)
def test_counts_from_sizes_alone_come_near_the_stated_ones(row: ModelRow) -> None:
    sizes = row.architecture
    assert sizes is not None
    alone = changed(sizes, language_parameters=None, vision_parameters=None)
    language, vision = language_parameters(alone).total, vision_parameters(alone)
    assert language == pytest.approx(sizes.language_parameters, rel=0.002)
    assert vision is not None
    assert vision.total == pytest.approx(sizes.vision_parameters, rel=0.03)


def test_the_rows_without_a_count_from_sizes_are_few() -> None:
    names = {row.hf_id for row in builtin().models if row not in STATED}
    assert names == set(NOT_COUNTED)


@pytest.mark.parametrize("sizes", [sizes for sizes in KNOWN if sizes.vision_parameters])
def test_towers_keep_their_stated_total(sizes) -> None:
    found = vision_parameters(sizes)
    assert found is not None
    assert found.total == sizes.vision_parameters


def test_a_tower_counted_from_its_sizes_comes_near() -> None:
    found = vision_parameters(changed(QWEN25_VL_7B, vision_parameters=None))
    assert found is not None
    assert found.total == pytest.approx(676_600_000, rel=0.02)


def test_a_tower_that_is_not_described_is_unknown_and_not_absent() -> None:
    assert vision_parameters(changed(QWEN25_VL_7B, vision=None, vision_parameters=None)) is None


def test_a_class_with_more_than_decoder_and_tower_is_unknown_unless_stated() -> None:
    phi4 = changed(QWEN25_VL_7B, name="Phi4MMForCausalLM", vision_parameters=None)
    assert vision_parameters(phi4) is None
    assert vision_parameters(changed(phi4, vision_parameters=10**9)) is not None


@pytest.mark.parametrize(
    ("name", "expected"),
    [("LlamaForCausalLM", True), ("MolmoForCausalLM", False), ("LlavaForConditionalGeneration", False)],
)
def test_a_plain_language_model_is_known_by_its_class(name: str, expected: bool) -> None:
    assert is_text_only(changed(LLAMA3_8B, name=name)) is expected


def test_a_language_model_has_no_tower() -> None:
    assert vision_parameters(LLAMA3_8B) == NO_VISION
