"""How a `config.json` says that weights are stored, and what is said where it cannot be used."""

from typing import Any

import pytest

from unit.sizing.config_files import Config
from vlm_operator.sizing.config_format import StoredFormat, read_stored_format

PACKED: Config = {"quant_method": "compressed-tensors", "format": "pack-quantized"}

STORED = [
    (
        {"quant_method": "awq", "bits": 4, "group_size": 128},
        StoredFormat(format="AWQ", bits=4, group_size=128),
    ),
    ({"quant_method": "gptq", "bits": 8, "group_size": -1}, StoredFormat(format="GPTQ", bits=8)),
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, StoredFormat(format="FP8")),
    (
        PACKED | {"config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}}},
        StoredFormat(format="INT4", bits=4, group_size=32),
    ),
    (
        PACKED | {"config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "int"}}}},
        StoredFormat(format="INT8", bits=8),
    ),
    (
        PACKED | {"config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}}},
        StoredFormat(format="FP8", bits=8),
    ),
    (
        {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"},
        StoredFormat(format="NVFP4"),
    ),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, StoredFormat(format="NVFP4")),
    ({"quant_method": "modelopt", "quant_algo": "FP8"}, StoredFormat(format="FP8")),
    ({"quant_method": "mxfp4"}, StoredFormat(format="MXFP4")),
    ({"quant_method": "gptq", "bits": 3, "group_size": 128}, StoredFormat(format="GPTQ", bits=3, group_size=128)),
]


@pytest.mark.parametrize(("section", "stored"), STORED)
def test_the_stored_format_is_read_wherever_it_stands(section: Any, stored: StoredFormat) -> None:
    assert read_stored_format({"quantization_config": section}) == (stored, ())
    assert read_stored_format({"text_config": {"quantization_config": section}}) == (stored, ())


def test_the_old_section_of_compressed_tensors_is_read() -> None:
    weights = {"num_bits": 4, "type": "int", "group_size": 32}
    old = {"format": "pack-quantized", "config_groups": {"group_0": {"weights": weights}}}
    stored = StoredFormat(format="INT4", bits=4, group_size=32)
    assert read_stored_format({"compression_config": old}) == (stored, ())


@pytest.mark.parametrize("data", [{}, {"quantization_config": None}, [], 7])
def test_what_says_nothing_is_16_bit(data: object) -> None:
    assert read_stored_format(data) == (None, ())


UNUSABLE = [
    ([4], "quantization_config: is a list but must be a map of names and values"),
    ("awq", 'quantization_config: is "awq" but must be a map of names and values'),
    ({"bits": 4}, "quantization_config.quant_method: is missing"),
    ({"quant_method": 4}, "quantization_config.quant_method: is 4 but must be text"),
    ({"quant_method": "bitsandbytes"}, "quantization_config.quant_method: is 'bitsandbytes', which spec.model.quanti"),
    ({"quant_method": "gptq", "bits": 5}, "quantization_config.bits: is 5 but GPTQ has 2, 3, 4, 8"),
    ({"quant_method": "awq", "bits": 3}, "quantization_config.bits: is 3 but AWQ has 4, 8"),
]


@pytest.mark.parametrize(("section", "told"), UNUSABLE)
def test_what_cannot_be_used_is_told_and_counted_as_16_bit(section: Any, told: str) -> None:
    stored, (finding,) = read_stored_format({"quantization_config": section})
    assert stored is None
    assert finding.severity == "Warning"
    assert finding.sentence().startswith(told)
    assert finding.message.endswith("the weights are counted as 16 bit")
