"""Sizes from a `config.json`: files as the families write them give the rows of the catalogue."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlm_operator.api.architecture import Architecture
from vlm_operator.sizing.catalogue.loading import builtin
from vlm_operator.sizing.config_json import StoredFormat, read_config, read_stored_format
from vlm_operator.sizing.config_section import INVALID_CONFIG

Config = dict[str, Any]

QWEN25_VL_7B: Config = {
    "architectures": ["Qwen2_5_VLForConditionalGeneration"],
    "model_type": "qwen2_5_vl",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "max_position_embeddings": 128000,
    "max_window_layers": 28,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "sliding_window": 32768,
    "use_sliding_window": False,
    "tie_word_embeddings": False,
    "vocab_size": 152064,
    "vision_config": {
        "depth": 32,
        "hidden_size": 1280,
        "intermediate_size": 3420,
        "num_heads": 16,
        "out_hidden_size": 3584,
        "patch_size": 14,
        "spatial_merge_size": 2,
    },
}
QWEN2_VL_7B: Config = QWEN25_VL_7B | {
    "architectures": ["Qwen2VLForConditionalGeneration"],
    "model_type": "qwen2_vl",
    "max_position_embeddings": 32768,
    "vision_config": {"model_type": "qwen2_vl", "embed_dim": 1280, "hidden_size": 3584, "mlp_ratio": 4, "depth": 32}
    | {"num_heads": 16, "patch_size": 14, "spatial_merge_size": 2},
}
QWEN3_VL_30B: Config = {
    "architectures": ["Qwen3VLMoeForConditionalGeneration"],
    "text_config": {
        "model_type": "qwen3_vl_moe_text",
        "decoder_sparse_step": 1,
        "head_dim": 128,
        "hidden_size": 2048,
        "intermediate_size": 768,
        "max_position_embeddings": 262144,
        "mlp_only_layers": [],
        "moe_intermediate_size": 768,
        "num_attention_heads": 32,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "num_hidden_layers": 48,
        "num_key_value_heads": 4,
        "vocab_size": 151936,
    },
    "tie_word_embeddings": False,
    "vision_config": {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_heads": 16, "patch_size": 16}
    | {"spatial_merge_size": 2},
}
GEMMA3_27B: Config = {
    "architectures": ["Gemma3ForConditionalGeneration"],
    "mm_tokens_per_image": 256,
    "model_type": "gemma3",
    "text_config": {
        "head_dim": 128,
        "hidden_size": 5376,
        "intermediate_size": 21504,
        "model_type": "gemma3_text",
        "num_attention_heads": 32,
        "num_hidden_layers": 62,
        "num_key_value_heads": 16,
        "sliding_window": 1024,
    },
    "vision_config": {"hidden_size": 1152, "image_size": 896, "intermediate_size": 4304, "num_hidden_layers": 27}
    | {"model_type": "siglip_vision_model", "num_attention_heads": 16, "patch_size": 14},
}
LLAMA4_SCOUT: Config = {
    "architectures": ["Llama4ForConditionalGeneration"],
    "text_config": {
        "attention_chunk_size": 8192,
        "head_dim": 128,
        "hidden_size": 5120,
        "interleave_moe_layer_step": 1,
        "intermediate_size": 8192,
        "intermediate_size_mlp": 16384,
        "max_position_embeddings": 10485760,
        "model_type": "llama4_text",
        "no_rope_layers": [],
        "num_attention_heads": 40,
        "num_experts_per_tok": 1,
        "num_hidden_layers": 48,
        "num_key_value_heads": 8,
        "num_local_experts": 16,
        "vocab_size": 202048,
    },
    "vision_config": {"hidden_size": 1408, "image_size": 336, "intermediate_size": 5632, "num_attention_heads": 16}
    | {"num_hidden_layers": 34, "patch_size": 14, "pixel_shuffle_ratio": 0.5},
}
LLAMA32_11B: Config = {
    "architectures": ["MllamaForConditionalGeneration"],
    "text_config": {
        "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38],
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "max_position_embeddings": 131072,
        "num_attention_heads": 32,
        "num_hidden_layers": 40,
        "num_key_value_heads": 8,
        "tie_word_embeddings": False,
        "vocab_size": 128256,
    },
    "vision_config": {"attention_heads": 16, "hidden_size": 1280, "image_size": 560, "intermediate_size": 5120}
    | {"max_num_tiles": 4, "num_global_layers": 8, "num_hidden_layers": 32, "patch_size": 14},
}
DEEPSEEK_VL2_TINY: Config = {
    "model_type": "deepseek_vl_v2",
    "language_config": {
        "first_k_dense_replace": 1,
        "hidden_size": 1280,
        "intermediate_size": 6848,
        "kv_lora_rank": None,
        "max_position_embeddings": 4096,
        "moe_intermediate_size": 896,
        "n_routed_experts": 64,
        "n_shared_experts": 2,
        "num_attention_heads": 10,
        "num_experts_per_tok": 6,
        "num_hidden_layers": 12,
        "num_key_value_heads": 10,
        "qk_rope_head_dim": 0,
        "use_mla": False,
        "vocab_size": 129280,
    },
    "projector_config": {"model_type": "mlp_projector", "n_embed": 1280},
    "vision_config": {"layers": 27, "mlp_ratio": 3.7362, "model_type": "vision", "patch_size": 14, "width": 1152},
}
KIMI_VL: Config = {
    "architectures": ["KimiVLForConditionalGeneration"],
    "text_config": {
        "first_k_dense_replace": 1,
        "hidden_size": 2048,
        "intermediate_size": 11264,
        "kv_lora_rank": 512,
        "max_position_embeddings": 131072,
        "moe_intermediate_size": 1408,
        "moe_layer_freq": 1,
        "n_routed_experts": 64,
        "n_shared_experts": 2,
        "num_attention_heads": 16,
        "num_experts_per_tok": 6,
        "num_hidden_layers": 27,
        "num_key_value_heads": 16,
        "qk_rope_head_dim": 64,
        "vocab_size": 163840,
    },
    "vision_config": {"hidden_size": 1152, "intermediate_size": 4304, "merge_kernel_size": [2, 2], "patch_size": 14}
    | {"num_attention_heads": 16, "num_hidden_layers": 27},
}
INTERNVL3_78B: Config = {
    "architectures": ["InternVLChatModel"],
    "downsample_ratio": 0.5,
    "max_dynamic_patch": 12,
    "llm_config": {
        "hidden_size": 8192,
        "intermediate_size": 29568,
        "max_position_embeddings": 32768,
        "model_type": "qwen2",
        "num_attention_heads": 64,
        "num_hidden_layers": 80,
        "num_key_value_heads": 8,
        "sliding_window": 32768,
        "tie_word_embeddings": False,
        "vocab_size": 151674,
    },
    "vision_config": {"hidden_size": 3200, "image_size": 448, "intermediate_size": 12800, "num_attention_heads": 25}
    | {"num_hidden_layers": 45, "patch_size": 14},
}
LLAVA_15_7B: Config = {
    "architectures": ["LlavaForConditionalGeneration"],
    "text_config": {"max_position_embeddings": 4096, "model_type": "llama", "vocab_size": 32064},
    "vision_config": {
        "hidden_size": 1024,
        "image_size": 336,
        "intermediate_size": 4096,
        "model_type": "clip_vision_model",
    }
    | {"num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14},
}
MISTRAL_SMALL_31: Config = {
    "architectures": ["Mistral3ForConditionalGeneration"],
    "spatial_merge_size": 2,
    "text_config": {
        "head_dim": 128,
        "hidden_size": 5120,
        "intermediate_size": 32768,
        "max_position_embeddings": 131072,
        "model_type": "mistral",
        "num_attention_heads": 32,
        "num_hidden_layers": 40,
        "num_key_value_heads": 8,
        "sliding_window": None,
        "vocab_size": 131072,
    },
    "vision_config": {"model_type": "pixtral", "image_size": 1540, "patch_size": 14},
}
SMOLVLM2_22B: Config = {
    "architectures": ["SmolVLMForConditionalGeneration"],
    "scale_factor": 3,
    "text_config": {
        "head_dim": 64,
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "max_position_embeddings": 16384,
        "model_type": "llama",
        "num_hidden_layers": 24,
        "vocab_size": 49280,
    },
    "vision_config": {"hidden_size": 1152, "image_size": 384, "intermediate_size": 4304, "num_attention_heads": 16}
    | {"num_hidden_layers": 27, "patch_size": 14},
}
MOLMO_7B: Config = {
    "architectures": ["MolmoForCausalLM"],
    "hidden_size": 3584,
    "intermediate_size": 37888,
    "max_position_embeddings": 4096,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
}

SAME_AS_THE_CATALOGUE = [
    ("Qwen/Qwen2.5-VL-7B-Instruct", QWEN25_VL_7B),
    ("Qwen/Qwen2-VL-7B-Instruct", QWEN2_VL_7B),
    ("Qwen/Qwen3-VL-30B-A3B-Instruct", QWEN3_VL_30B),
    ("google/gemma-3-27b-it", GEMMA3_27B),
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct", LLAMA4_SCOUT),
    ("meta-llama/Llama-3.2-11B-Vision-Instruct", LLAMA32_11B),
    ("deepseek-ai/deepseek-vl2-tiny", DEEPSEEK_VL2_TINY),
    ("moonshotai/Kimi-VL-A3B-Instruct", KIMI_VL),
    ("OpenGVLab/InternVL3-78B", INTERNVL3_78B),
    ("llava-hf/llava-1.5-7b-hf", LLAVA_15_7B),
    ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", MISTRAL_SMALL_31),
    ("HuggingFaceTB/SmolVLM2-2.2B-Instruct", SMOLVLM2_22B),
    ("allenai/Molmo-7B-D-0924", MOLMO_7B),
]
same = pytest.mark.parametrize(
    ("name", "config"), SAME_AS_THE_CATALOGUE, ids=[name for name, _ in SAME_AS_THE_CATALOGUE]
)


def plain(sizes: Architecture) -> dict[str, Any]:
    """The sizes without what a file does not hold, and with defaults spelled out."""
    values = sizes.model_dump(exclude={"language_parameters", "vision_parameters"})
    values["headSize"] = values["headSize"] or values["hiddenSize"] // values["attentionHeads"]
    values["vision"]["spatialMergeSize"] = values["vision"]["spatialMergeSize"] or 1
    return values


@same
def test_a_file_of_each_family_gives_the_row_of_the_catalogue(name: str, config: Config) -> None:
    sizes, findings = read_config(config)
    match = builtin().model(name)
    assert match is not None
    assert match.architecture is not None
    assert findings == ()
    assert sizes is not None
    assert plain(sizes) == plain(match.architecture)


@same
def test_numbers_in_quotes_are_taken_with_a_warning_each(name: str, config: Config) -> None:
    del name
    quoted = quote(config)
    expected, _ = read_config(config)
    sizes, findings = read_config(quoted)
    assert sizes == expected
    assert findings
    assert {(finding.reason, finding.severity) for finding in findings} == {(INVALID_CONFIG, "Warning")}
    assert "without quotes" in findings[0].sentence()


TAKEN_AS_THEY_ARE = ("max_dynamic_patch", "mlp_ratio", "mm_tokens_per_image", "image_size")


def quote(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: part if name in TAKEN_AS_THEY_ARE else quote(part) for name, part in value.items()}
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def changed(path: str, value: Any) -> Config:
    """QWEN3_VL_30B with one value replaced; None takes it out."""
    config = copy.deepcopy(QWEN3_VL_30B)
    *parents, last = path.split(".")
    part = config
    for name in parents:
        part = part[name]
    part[last] = value
    return config


BROKEN = [
    ("text_config.num_hidden_layers", None, "is missing, also as n_layer"),
    ("architectures", None, "is missing"),
    ("architectures", [], "must be a list"),
    ("architectures", ["no class!"], "must be a class name"),
    ("text_config", [], "must be a map"),
    ("text_config.num_hidden_layers", 1.5, "is 1.5 but must be a whole number"),
    ("text_config.num_hidden_layers", "many", 'is "many" but must be a whole number'),
    ("text_config.num_hidden_layers", True, "is true but must be a whole number"),
    ("text_config.num_hidden_layers", 0, "is 0 but must be at least 1"),
    ("text_config.num_hidden_layers", -48, "must be at least 1"),
    ("text_config.num_hidden_layers", 10**6, "must be at most 1024"),
    ("text_config.num_hidden_layers", 10**400, "must be a whole number below 10^18"),
    ("text_config.num_hidden_layers", {"a": 1}, "is a map but must be a whole number"),
    ("text_config.num_experts", 10**6, "must be at most 4096"),
    ("tie_word_embeddings", "yes", "must be true or false"),
]


@pytest.mark.parametrize(("path", "value", "words"), BROKEN)
def test_what_is_missing_or_wrong_is_named_by_its_path(path: str, value: Any, words: str) -> None:
    sizes, findings = read_config(changed(path, value))
    assert sizes is None
    errors = [finding for finding in findings if finding.severity == "Error"]
    assert errors[0].field.startswith(path)
    assert words in errors[0].message
    assert len(errors) == 1 or path == "text_config"


def test_an_empty_file_names_every_missing_value_once() -> None:
    sizes, findings = read_config({})
    assert sizes is None
    assert [finding.field for finding in findings] == [
        "architectures",
        "num_hidden_layers",
        "hidden_size",
        "num_attention_heads",
        "intermediate_size",
        "vocab_size",
        "vision_config",
    ]


BROKEN_VISION = [
    ("vision_config.patch_size", None, "vision_config.patch_size"),
    ("vision_config.num_heads", "x", "vision_config.num_heads"),
    ("vision_config.depth", 0, "vision_config.depth"),
    ("vision_config.intermediate_size", None, "vision_config.intermediate_size"),
    ("vision_config", None, "vision_config"),
    ("vision_config", 7, "vision_config"),
]


@pytest.mark.parametrize(("path", "value", "field"), BROKEN_VISION)
def test_a_broken_vision_tower_is_left_out_with_a_warning(path: str, value: Any, field: str) -> None:
    sizes, findings = read_config(changed(path, value))
    assert sizes is not None
    assert sizes.vision is None
    assert [(finding.field, finding.severity) for finding in findings] == [(field, "Warning")]


@pytest.mark.parametrize("data", [None, [], "x", 7, [QWEN25_VL_7B]])
def test_what_is_no_map_is_refused(data: object) -> None:
    assert read_config(data)[0] is None
    assert len(read_config(data)[1]) == 1
    assert read_stored_format(data) is None


def test_an_unknown_class_has_sizes_but_no_way_to_make_tokens() -> None:
    sizes, findings = read_config(QWEN25_VL_7B | {"architectures": ["NewVLForConditionalGeneration"]})
    assert findings == ()
    assert sizes is not None
    assert sizes.images is None
    assert sizes.vision is not None


def test_pixtral_in_the_class_of_llava_makes_tokens_like_pixtral() -> None:
    sizes, _ = read_config(LLAVA_15_7B | {"vision_config": {"model_type": "pixtral"}})
    assert sizes is not None
    assert sizes.images is not None
    assert sizes.images.rule == "Pixtral"
    assert sizes.vision is not None
    assert sizes.vision.hidden_size == 1024


def test_tiles_are_those_of_the_file() -> None:
    sizes, _ = read_config(INTERNVL3_78B | {"max_dynamic_patch": 6})
    assert sizes is not None
    assert sizes.images is not None
    assert sizes.images.max_tiles == 6


WINDOWS = [
    (
        "a list of layers",
        {"sliding_window": 512, "layer_types": ["sliding_attention", "full_attention"] * 14},
        (512, 14),
    ),
    ("all layers", {"sliding_window": 512}, (512, 28)),
    ("from a layer on", {"sliding_window": 512, "use_sliding_window": True, "max_window_layers": 20}, (512, 8)),
    ("a pattern", {"sliding_window": 512, "sliding_window_pattern": 4}, (512, 21)),
    ("switched off", {"sliding_window": 512, "use_sliding_window": False}, None),
    ("wider than the context", {"sliding_window": 200_000}, None),
    ("none", {"sliding_window": None}, None),
]


@pytest.mark.parametrize(("values", "expected"), [row[1:] for row in WINDOWS], ids=[row[0] for row in WINDOWS])
def test_windows(values: Config, expected: tuple[int, int] | None) -> None:
    base = {key: value for key, value in QWEN25_VL_7B.items() if "window" not in key} | {"model_type": "new"}
    sizes, _ = read_config(base | values)
    assert sizes is not None
    local = sizes.local_attention
    assert (local and (local.window, local.layers)) == expected


EXPERTS = [
    ("listed plain layers", {"mlp_only_layers": [0, 1, 2]}, {"dense_layers": 3}),
    ("a mark per layer", {"moe_layer_freq": [0, 0, 1, 1]}, {"dense_layers": 2}),
    ("every second layer", {"decoder_sparse_step": 2}, {"every": 2}),
    ("a wide shared expert", {"shared_expert_intermediate_size": 3072}, {"shared": 4}),
]


@pytest.mark.parametrize(("values", "expected"), [row[1:] for row in EXPERTS], ids=[row[0] for row in EXPERTS])
def test_experts(values: Config, expected: dict[str, int]) -> None:
    sizes, _ = read_config(QWEN3_VL_30B | {"text_config": QWEN3_VL_30B["text_config"] | values})
    assert sizes is not None
    assert sizes.experts is not None
    assert {name: getattr(sizes.experts, name) for name in expected} == expected


def test_no_experts_are_a_dense_model() -> None:
    sizes, _ = read_config(changed("text_config.num_experts", 0))
    assert sizes is not None
    assert sizes.experts is None


PACKED: Config = {"quant_method": "compressed-tensors", "format": "pack-quantized"}

STORED = [
    (
        {"quant_method": "awq", "bits": 4, "group_size": 128},
        StoredFormat(method="awq", format="AWQ", bits=4, group_size=128),
    ),
    ({"quant_method": "gptq", "bits": 8, "group_size": -1}, StoredFormat(method="gptq", format="GPTQ", bits=8)),
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, StoredFormat(method="fp8", format="FP8")),
    (
        PACKED | {"config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}}},
        StoredFormat(method="compressed-tensors", format="INT4", bits=4, group_size=32),
    ),
    (
        PACKED | {"config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "int"}}}},
        StoredFormat(method="compressed-tensors", format="INT8", bits=8),
    ),
    (
        PACKED | {"config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}}},
        StoredFormat(method="compressed-tensors", format="FP8", bits=8),
    ),
    (
        {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"},
        StoredFormat(method="compressed-tensors", format="NVFP4"),
    ),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, StoredFormat(method="modelopt", format="NVFP4")),
    ({"quant_method": "modelopt", "quant_algo": "FP8"}, StoredFormat(method="modelopt", format="FP8")),
    ({"quant_method": "mxfp4"}, StoredFormat(method="mxfp4", format="MXFP4")),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, StoredFormat(method="bitsandbytes", format=None)),
    ({"bits": 4}, None),
    ("awq", None),
    (None, None),
]


@pytest.mark.parametrize(("section", "stored"), STORED)
def test_the_stored_format_is_read_wherever_it_stands(section: Any, stored: StoredFormat | None) -> None:
    assert read_stored_format(QWEN25_VL_7B | {"quantization_config": section}) == stored
    assert read_stored_format({"text_config": {"quantization_config": section}}) == stored


numbers = (
    st.integers() | st.floats() | st.integers(0, 10**6) | st.sampled_from([10**400, -1, 0, 1e300, "28", "-3", "1e5"])
)
NAMES = sorted(
    {
        name
        for _, config in SAME_AS_THE_CATALOGUE
        for part in (config, *(value for value in config.values() if isinstance(value, dict)))
        for name in part
    }
    | {"quantization_config", "quant_method", "config_groups", "layer_types", "slice_config", "mlp_ratio"}
)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=4), inner, max_size=6)
    ),
    max_leaves=20,
)


@given(json_values)
def test_any_json_is_read_without_failing(data: object) -> None:
    sizes, findings = read_config(data)
    assert sizes is not None or findings
    read_stored_format(data)


@given(st.sampled_from([config for _, config in SAME_AS_THE_CATALOGUE]), st.data())
def test_a_file_with_any_values_replaced_is_read_without_failing(config: Config, data: st.DataObject) -> None:
    spoiled = copy.deepcopy(config)
    for part in (spoiled, *(value for value in spoiled.values() if isinstance(value, dict))):
        for name in data.draw(st.lists(st.sampled_from(NAMES), max_size=3)):
            part[name] = data.draw(json_values)
    sizes, findings = read_config(spoiled)
    assert sizes is not None or any(finding.severity == "Error" for finding in findings)
    assert all(finding.field and finding.message for finding in findings)
