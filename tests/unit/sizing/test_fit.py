"""Answers around a fit, each checked against the arithmetic that it rests on."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.sizing.memory_examples import L40S, LLAMA3_8B, QWEN25_VL_7B, V33, architectures, changed
from vlm_operator.sizing.fit import (
    Question,
    changes,
    concurrency,
    largest_max_model_len,
    leaves_reserve,
    smallest_tensor,
)
from vlm_operator.sizing.memory import GIB, Layout, Load

L4 = replace(L40S, cuda_bytes=round(22.06 * GIB))
TOO_LONG = Question(QWEN25_VL_7B, L4, Layout(), Load(videos_per_prompt=0), V33)
"""Qwen2.5-VL-7B in 16 bit with its whole context of 128,000 tokens, and images alone, on 22 GiB."""
UNKNOWN = Question(changed(QWEN25_VL_7B, images=None), L40S, Layout(), Load(), V33)


def fits_at(question: Question, tokens: int) -> bool | None:
    """Whether it fits with a context of `tokens`."""
    return question.with_load(replace(question.load, max_model_len=tokens)).memory.fits


def test_the_largest_context_fits_and_one_block_more_does_not() -> None:
    found = largest_max_model_len(TOO_LONG)
    assert found is not None
    assert 0 < found < 128_000
    assert fits_at(TOO_LONG, found) is True
    assert fits_at(TOO_LONG, found + 1) is False


def test_a_context_that_fits_whole_is_not_cut() -> None:
    assert largest_max_model_len(replace(TOO_LONG, device=L40S)) == 128_000


def test_no_context_fits_where_the_weights_do_not() -> None:
    assert largest_max_model_len(replace(TOO_LONG, device=replace(L4, cuda_bytes=10 * GIB))) == 0


def test_what_is_unknown_has_no_answers() -> None:
    assert largest_max_model_len(UNKNOWN) is None
    assert concurrency(UNKNOWN, tokens=1000) is None
    assert smallest_tensor(UNKNOWN, [1, 2]) is None
    assert changes(UNKNOWN, degrees=[2], formats=["AWQ"]) == ()


def test_requests_at_once_by_hand() -> None:
    question = replace(TOO_LONG, device=L40S, load=Load(max_num_seqs=512, videos_per_prompt=0))
    kv = question.memory.kv
    assert concurrency(question, tokens=8192) == pytest.approx(kv / (8192 * 57_344))
    assert concurrency(question, tokens=16) == 512  # no more than its limit of sequences


def test_the_smallest_degree_leaves_the_reserve() -> None:
    found = smallest_tensor(TOO_LONG, [4, 1, 2])
    assert found is not None
    assert found.layout.tensor == 2
    assert smallest_tensor(TOO_LONG, [1]) is None


def test_a_larger_reserve_takes_more_gpus() -> None:
    memory = TOO_LONG.with_tensor(2).memory
    spare = (memory.kv - memory.kv_needed) / memory.gpu
    assert leaves_reserve(memory, spare - 0.01) is True
    assert leaves_reserve(memory, spare + 0.01) is False
    assert smallest_tensor(TOO_LONG, [2, 4], reserve=spare + 0.01).layout.tensor == 4


def test_the_nearest_changes_all_fit() -> None:
    found = changes(TOO_LONG, degrees=[1, 2, 4], formats=["AWQ", "FP8"], online=["FP8"])
    assert [(change.kind, change.value) for change in found] == [
        ("MaxModelLen", 34_816),
        ("OnlineQuantization", "FP8"),
        ("Quantization", "AWQ"),
        ("Tensor", 2),
    ]
    assert all(change.memory.fits for change in found)


def test_fewer_sequences_are_proposed_where_sampling_is_too_much() -> None:
    short = Question(LLAMA3_8B, replace(L40S, cuda_bytes=round(18.2 * GIB)), Layout(), Load(max_model_len=1024), V33)
    assert short.memory.limit == "Activation"
    found = {change.kind: change for change in changes(short)}
    assert found["MaxNumSeqs"].value == 128
    assert found["MaxNumSeqs"].memory.settings.max_num_seqs == 128


def test_smaller_images_are_proposed_where_the_encoder_is_too_much() -> None:
    load = Load(max_model_len=4096, max_num_seqs=16, videos_per_prompt=0, images_per_prompt=1)
    tight = Question(QWEN25_VL_7B, replace(L40S, cuda_bytes=round(19.4 * GIB)), Layout(), load, V33)
    assert tight.memory.fits is False
    found = {change.kind: change for change in changes(tight)}
    assert found["MaxPixels"].value == 4_014_080


def test_videos_off_is_proposed_where_small_images_do_not_help() -> None:
    load = Load(max_model_len=16_384, max_num_seqs=16, max_pixels=1_003_520)
    tight = Question(QWEN25_VL_7B, replace(L40S, cuda_bytes=round(19.0 * GIB)), Layout(), load, V33)
    assert tight.memory.fits is False
    assert {change.kind for change in changes(tight)} >= {"Videos"}


def test_half_the_cache_is_proposed_where_the_cache_is_short() -> None:
    load = Load(max_model_len=60_000, max_num_seqs=16, videos_per_prompt=0)
    found = {change.kind: change.value for change in changes(replace(TOO_LONG, load=load))}
    assert found["KvCacheDtype"] == "FP8"


def test_weights_that_are_quantised_already_are_not_quantised_again() -> None:
    question = replace(TOO_LONG, device=replace(L4, cuda_bytes=8 * GIB), load=Load(quantization="AWQ"))
    kinds = {change.kind for change in changes(question, formats=["FP8"], online=["FP8"], degrees=[8])}
    assert kinds <= {"Tensor"}


@settings(max_examples=30)
@given(architectures(), st.integers(12, 200), st.sampled_from([(0, 7, 3), V33]))
def test_halving_finds_the_edge(architecture, gib, version) -> None:
    question = Question(architecture, replace(L40S, cuda_bytes=gib * GIB), Layout(), Load(), version)
    found = largest_max_model_len(question)
    most = architecture.max_context
    assert found is not None
    assert found == 0 or fits_at(question, found) is True
    assert found == most or fits_at(question, min(most, found + 16)) is False
