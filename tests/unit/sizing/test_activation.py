"""Peaks of a step, against what start-up logs show, and what they depend on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.sizing.memory_examples import LLAMA3_8B, QWEN25_VL_7B, architectures, changed
from vlm_operator.sizing.activation import (
    NO_IMAGES,
    Images,
    Step,
    decoding,
    embeddings,
    encoding,
    materialises_scores,
    sampling,
)
from vlm_operator.sizing.catalogue.loading import builtin
from vlm_operator.sizing.memory import GIB
from vlm_operator.sizing.weights import Layout

ONE = Layout()
LARGEST = Images(count=1, tokens=16_384, patches=65_536)


def tower_peak(architecture, images: Images, layout: Layout = ONE, *, vendor="nvidia", capability="9.0") -> float:
    """Bytes of a pass through a known tower."""
    found = encoding(architecture, layout, images, vendor=vendor, capability=capability)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("vocabulary", "sequences", "logged_gib"),
    [
        (152_064, 256, 1.40),
        (151_936, 1024, 5.64),
        (128_256, 256, 1.19),
        (128_256, 1024, 4.76),
        (201_088, 1024, 7.38),
        (262_208, 1024, 9.96),
    ],
)
def test_sampling_takes_what_logs_show(vocabulary: int, sequences: int, logged_gib: float) -> None:
    model = changed(LLAMA3_8B, vocabulary_size=vocabulary)
    assert sampling(model, Step(sequences=sequences, tokens=2048)) / GIB == pytest.approx(logged_gib, rel=0.03)


@pytest.mark.parametrize(
    ("name", "tokens", "logged_gib"),
    [
        ("Qwen/Qwen2-VL-7B-Instruct", 8192, 1.16),
        ("mistralai/Pixtral-12B-2409", 8192, 1.08),
        ("Qwen/Qwen2.5-VL-32B-Instruct", 32_768, 6.90),
    ],
)
def test_a_step_of_a_model_that_takes_images_takes_what_logs_show(name: str, tokens: int, logged_gib: float) -> None:
    found = decoding(builtin().model(name).architecture, ONE, Step(sequences=1, tokens=tokens))
    assert found / GIB == pytest.approx(logged_gib, rel=0.05)


def test_a_step_of_a_language_model_takes_what_a_log_shows() -> None:
    assert decoding(LLAMA3_8B, ONE, Step(sequences=1, tokens=20_000)) / GIB == pytest.approx(2.07, rel=0.01)


def test_the_tower_takes_what_a_log_of_two_largest_images_shows() -> None:
    two = Images(count=2, tokens=16_384, patches=65_536)
    found = tower_peak(builtin().model("Qwen/Qwen2.5-VL-3B-Instruct").architecture, two)
    assert 4.06 <= found / GIB <= 4.06 * 1.07


def test_llama_3_2_vision_takes_what_a_log_of_128_images_shows() -> None:
    images = Images(count=128, tokens=6404, patches=6404)
    found = tower_peak(builtin().model("meta-llama/Llama-3.2-11B-Vision-Instruct").architecture, images)
    assert 36.63 <= found / GIB <= 36.63 * 1.05


def test_no_images_take_nothing_even_of_an_unknown_tower() -> None:
    blind = changed(QWEN25_VL_7B, vision=None)
    assert encoding(blind, ONE, NO_IMAGES, vendor="nvidia", capability=None) == 0
    assert encoding(blind, ONE, LARGEST, vendor="nvidia", capability=None) is None


def test_in_data_mode_whole_images_are_shared_out() -> None:
    four, one = Images(count=4, tokens=64, patches=256), Images(count=1, tokens=64, patches=256)
    shared = Layout(tensor=4, encoder_data=True)
    assert tower_peak(QWEN25_VL_7B, four, shared) == tower_peak(QWEN25_VL_7B, one)
    assert tower_peak(QWEN25_VL_7B, one, shared) == tower_peak(QWEN25_VL_7B, one)


@pytest.mark.parametrize(
    ("vendor", "capability", "expected"),
    [("amd", "gfx1101", True), ("amd", "gfx942", False), ("amd", None, False), ("nvidia", "7.5", False)],
)
def test_scores_are_written_out_where_there_is_no_kernel(vendor: str, capability: str | None, expected: bool) -> None:
    assert materialises_scores(vendor, capability) is expected


def test_written_out_scores_of_the_largest_image_do_not_fit_anywhere() -> None:
    assert tower_peak(QWEN25_VL_7B, LARGEST, vendor="amd", capability="gfx1101") > 128 * GIB


def test_embeddings_wait_with_all_their_levels() -> None:
    assert embeddings(QWEN25_VL_7B, LARGEST) == 16_384 * 3584 * 2
    deep = changed(QWEN25_VL_7B, name="Qwen3VLForConditionalGeneration")
    assert embeddings(deep, LARGEST) == 4 * 16_384 * 3584 * 2


@given(architectures(), st.integers(1, 1024), st.integers(1, 20_000), st.sampled_from([1, 2, 4, 8]))
def test_more_never_takes_less_and_more_ranks_never_more(architecture, sequences, tokens, tensor) -> None:
    step, larger = Step(sequences=sequences, tokens=tokens), Step(sequences=sequences + 1, tokens=tokens + 1)
    here, there = Layout(tensor=tensor), Layout(tensor=2 * tensor)
    assert sampling(architecture, step) < sampling(architecture, larger)
    assert decoding(architecture, here, step) < decoding(architecture, here, larger)
    assert decoding(architecture, there, step) < decoding(architecture, here, step)
