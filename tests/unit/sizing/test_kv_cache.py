"""Bytes of the KV cache, against sums made by hand and pairs of GiB and tokens from logs."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.sizing.memory_examples import LLAMA3_8B, QWEN25_VL_7B, V33, architectures, changed
from vlm_operator.api.architecture import LatentAttention, LocalAttention
from vlm_operator.sizing.catalogue.loading import builtin
from vlm_operator.sizing.kv_cache import BYTES, request_bytes, token_bytes

STATED = json.loads((Path(__file__).parent / "stated.json").read_text(encoding="utf-8"))
GEMMA = changed(
    LLAMA3_8B, name="Gemma3ForConditionalGeneration", layers=12, local_attention=LocalAttention(window=1024, layers=10)
)


def request(architecture, tokens: int, *, version=V33, tensor: int = 1, dtype: str = "Auto") -> float:
    """One request on all layers."""
    return request_bytes(
        architecture,
        tokens=tokens,
        layers=architecture.layers,
        tensor=tensor,
        dtype=dtype,
        batched_tokens=2048,
        version=version,
    )


@pytest.mark.parametrize("name", sorted(name for name in STATED if STATED[name]["kvBytesPerToken"] is not None))
def test_bytes_of_a_token_are_those_that_are_stated(name: str) -> None:
    architecture = builtin().model(name).architecture
    assert token_bytes(architecture, tensor=1, dtype="Auto") == STATED[name]["kvBytesPerToken"]


@pytest.mark.parametrize(
    ("tensor", "dtype", "expected"),
    [
        (1, "Auto", 57_344),  # 2 x 28 layers x 4 heads x 128 x 2 bytes
        (1, "FP8", 28_672),
        (2, "Auto", 28_672),
        (4, "Auto", 14_336),
        (8, "Auto", 14_336),  # one head is the least
    ],
)
def test_qwen_by_hand(tensor: int, dtype: str, expected: int) -> None:
    assert token_bytes(QWEN25_VL_7B, tensor=tensor, dtype=dtype) == expected


def test_latent_attention_does_not_shrink_with_ranks() -> None:
    model = changed(LLAMA3_8B, layers=27, latent_attention=LatentAttention(rank=512, rope_size=64))
    assert token_bytes(model, tensor=1, dtype="Auto") == token_bytes(model, tensor=8, dtype="Auto") == 31_104


def test_layers_with_a_window_keep_no_more_than_it_and_a_step() -> None:
    layer = 2 * 8 * 128 * 2
    assert request(GEMMA, 32_768) == pytest.approx(layer * (2 * 32_768 + 10 * (1024 + 2048)))


def test_they_keep_everything_in_older_engines_and_in_llama_4() -> None:
    layer = 2 * 8 * 128 * 2
    assert request(GEMMA, 32_768, version=(0, 9)) == layer * 12 * 32_768
    assert request(changed(GEMMA, name="Llama4ForConditionalGeneration"), 32_768) == layer * 12 * 32_768


def test_a_short_request_fills_its_window_only_as_far_as_it_goes() -> None:
    assert request(GEMMA, 512) == 12 * 2 * 8 * 128 * 2 * 512


def test_tokens_are_kept_in_whole_blocks() -> None:
    assert request(LLAMA3_8B, 1) == request(LLAMA3_8B, 16) < request(LLAMA3_8B, 17)


def test_an_unknown_type_is_an_error() -> None:
    with pytest.raises(KeyError):
        token_bytes(LLAMA3_8B, tensor=1, dtype="INT3")


@given(architectures(), st.integers(1, 200_000), st.sampled_from([1, 2, 4, 8]), st.sampled_from(sorted(BYTES)))
def test_more_tokens_never_take_less_and_more_ranks_never_more(architecture, tokens, tensor, dtype) -> None:
    here = request(architecture, tokens, tensor=tensor, dtype=dtype)
    assert request(architecture, tokens + 16, tensor=tensor, dtype=dtype) > here
    assert here / 2 <= request(architecture, tokens, tensor=2 * tensor, dtype=dtype) <= here


@given(architectures(), st.integers(1, 200_000), st.sampled_from([1, 2, 4, 8]))
def test_fp8_takes_half(architecture, tokens, tensor) -> None:
    half = request(architecture, tokens, tensor=tensor, dtype="FP8")
    assert 2 * half == request(architecture, tokens, tensor=tensor)
