"""The size of a model in the words of its users."""

import pytest

from vlm_operator.sizing.catalogue.loading import builtin
from vlm_operator.sizing.catalogue.rows import ModelRow
from vlm_operator.sizing.catalogue.sizes import expected_sizes, published_size, rounded_sizes, size_agrees


def row(name: str) -> ModelRow:
    match = builtin().model(name)
    assert match is not None
    return match.row


EXPECTED = [
    ("Qwen/Qwen2.5-VL-7B-Instruct", ("7B",)),
    ("llava-hf/llava-1.5-7b-hf", ("7B",)),
    ("llava-hf/llava-onevision-qwen2-0.5b-ov-hf", ("0.5B",)),
    ("HuggingFaceTB/SmolVLM2-256M-Video-Instruct", ("256M",)),
    ("HuggingFaceTB/SmolVLM2-2.2B-Instruct", ("2.2B",)),
    ("OpenGVLab/InternVL3_5-8B", ("8B",)),
    ("HuggingFaceM4/Idefics3-8B-Llama3", ("8B",)),
    ("nvidia/NVIDIA-Nemotron-Nano-12B-v2-VL-BF16", ("12B",)),
    ("Qwen/Qwen3-VL-30B-A3B-Instruct", ("30B",)),
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct", ("108.6B", "109B")),
    ("meta-llama/Llama-4-Maverick-17B-128E-Instruct", ("401.6B", "402B")),
    ("moonshotai/Kimi-VL-A3B-Instruct", ("16.4B", "16B")),
    ("zai-org/GLM-4.5V", ("104.4B", "104B")),
    ("microsoft/Phi-3.5-vision-instruct", ("4.1B", "4B")),
    ("openbmb/MiniCPM-V-2_6", ("8.1B", "8B")),
    ("deepseek-ai/deepseek-vl2-tiny", ("3.4B", "3B")),
    ("microsoft/Phi-4-multimodal-instruct", ()),
]


@pytest.mark.parametrize(("name", "sizes"), EXPECTED, ids=[name for name, _ in EXPECTED])
def test_expected_sizes(name: str, sizes: tuple[str, ...]) -> None:
    assert expected_sizes(row(name)) == sizes
    assert all(size_agrees(row(name), size) for size in sizes)


AGREEMENT = [
    ("Qwen/Qwen2.5-VL-7B-Instruct", "7B", True),
    ("Qwen/Qwen2.5-VL-7B-Instruct", "7.0B", True),
    ("Qwen/Qwen2.5-VL-7B-Instruct", "8.3B", False),
    ("Qwen/Qwen2.5-VL-7B-Instruct", "72B", False),
    ("Qwen/Qwen2.5-VL-7B-Instruct", "7M", False),
    ("HuggingFaceTB/SmolVLM2-256M-Video-Instruct", "0.256B", True),
    ("HuggingFaceTB/SmolVLM2-256M-Video-Instruct", "0.3B", False),
    ("Qwen/Qwen3-VL-30B-A3B-Instruct", "3B", False),
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "17B", False),
    ("microsoft/Phi-3.5-vision-instruct", "3.5B", False),
    ("microsoft/Phi-3.5-vision-instruct", "4.15B", False),
    ("microsoft/Phi-4-multimodal-instruct", "5.6B", True),
]


@pytest.mark.parametrize(("name", "size", "agrees"), AGREEMENT)
def test_agreement(name: str, size: str, agrees: bool) -> None:
    assert size_agrees(row(name), size) is agrees


def test_a_mixture_whose_total_is_unknown_is_not_sized_by_its_active_part() -> None:
    scout = row("meta-llama/Llama-4-Scout-17B-16E-Instruct").model_copy(update={"total_parameters": None})
    assert published_size(scout) is None
    assert expected_sizes(scout) == ()


ROUNDED = [
    (4_146_600_000, ("4.1B", "4B")),
    (4_000_000_000, ("4B",)),
    (110_000_000_000, ("110B",)),
    (256_500_000, ("256.5M", "257M", "0.3B")),
    (40_000_000, ("40M",)),
    (1_000_000_000_000, ("1000B",)),
]


@pytest.mark.parametrize(("parameters", "texts"), ROUNDED)
def test_rounded_sizes(parameters: int, texts: tuple[str, ...]) -> None:
    assert rounded_sizes(parameters) == texts
