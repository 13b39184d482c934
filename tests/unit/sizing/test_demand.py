"""The engine's own choices by version and GPU, and the images that it measures with."""

import pytest

from unit.sizing.memory_examples import AS_IT_IS, H100, L40S, LLAMA3_8B, QWEN25_VL_7B, V33, changed
from vlm_operator.sizing.demand import GIB, MIB, Device, Load, cuda_bytes, profiled_images, settings

LLAMA31_8B = changed(LLAMA3_8B, max_context=131_072)


@pytest.mark.parametrize(
    ("gpu_gib", "capability", "version", "sequences", "tokens"),
    [
        (44, "8.9", V33, 256, 2048),
        (79, "9.0", V33, 1024, 8192),
        (79, "8.0", V33, 256, 2048),  # A100
        (79, None, V33, 1024, 8192),
        (139, "9.0", V33, 1024, 8192),
        (178, "10.0", V33, 1024, 16_384),
        (79, "9.0", (0, 7, 3), 256, 8192),
    ],
)
def test_the_engine_chooses_by_gpu_and_version(gpu_gib, capability, version, sequences, tokens) -> None:
    device = Device(cuda_bytes=gpu_gib * GIB, capability=capability)
    found = settings(LLAMA3_8B, device, AS_IT_IS, version)
    assert (found.max_num_seqs, found.max_num_batched_tokens) == (sequences, tokens)


@pytest.mark.parametrize(
    ("architecture", "length", "version", "tokens"),
    [
        (LLAMA31_8B, 20_000, (0, 7), 20_000),
        (LLAMA31_8B, 65_536, (0, 7), 2048),
        (LLAMA31_8B, 65_536, (0, 5, 3), 65_536),
        (LLAMA31_8B, 1000, (0, 7), 2048),
        (QWEN25_VL_7B, 65_536, (0, 7), 65_536),
        (QWEN25_VL_7B, 1000, (0, 7), 5120),
        (changed(QWEN25_VL_7B, name="MllamaForConditionalGeneration"), 65_536, (0, 10, 2), 65_536),
    ],
)
def test_the_older_engine_takes_whole_prompts_in_a_step(architecture, length, version, tokens) -> None:
    assert settings(architecture, H100, Load(max_model_len=length), version).max_num_batched_tokens == tokens


def test_what_is_given_is_kept() -> None:
    given_load = Load(max_model_len=1, max_num_seqs=2, max_num_batched_tokens=3)
    found = settings(LLAMA3_8B, H100, given_load, V33)
    assert (found.max_model_len, found.max_num_seqs, found.max_num_batched_tokens) == (1, 2, 3)


@pytest.mark.parametrize(
    ("load", "count", "tokens"),
    [
        (Load(), 1, 114_688),  # a log of 0.24 says so
        (Load(max_model_len=32_768), 1, 32_768),
        (Load(max_model_len=8192), 1, 16_384),
        (Load(images_per_prompt=0, videos_per_prompt=0), 0, 0),
        (Load(max_pixels=1_003_520, videos_per_prompt=0), 1, 1280),
        (Load(max_pixels=1_003_520, videos_per_prompt=0, max_num_batched_tokens=8192), 6, 1280),
        (Load(max_pixels=1_003_520, videos_per_prompt=0, images_per_prompt=1, max_num_seqs=2,
              max_num_batched_tokens=8192), 2, 1280),
        (Load(max_pixels=1_003_520), 1, 8960),
        (Load(max_pixels=1_003_520, max_model_len=8192), 1, 7680),
    ],
)  # fmt: skip
def test_the_engine_measures_with_the_largest_items_that_a_step_takes(load: Load, count: int, tokens: int) -> None:
    found = profiled_images(QWEN25_VL_7B, load, settings(QWEN25_VL_7B, L40S, load, V33), V33)
    assert found is not None
    assert (found.count, found.tokens) == (count, tokens)


@pytest.mark.parametrize(
    ("label_mib", "observed_gib"),
    [
        (15_360, 14.56),
        (23_034, 22.06),
        (24_564, 23.64),
        (46_068, 44.39),
        (40_960, 39.5),
        (81_559, 79.18),
        (143_771, 139.72),
    ],
)
def test_cuda_reports_a_little_less_than_the_label(label_mib: int, observed_gib: float) -> None:
    found = cuda_bytes(label_mib)
    assert observed_gib * 0.97 <= found / GIB <= observed_gib * 1.001
    assert 0.97 * label_mib * MIB <= found + 1
    assert found <= 0.995 * label_mib * MIB + 1
