"""A model's `config.json` from the facts that the operator has about it, for vLLM's configuration to read."""

from dataclasses import dataclass, field
from typing import Any

from vlm_operator.api.architecture import Architecture, VisionArchitecture

Names = dict[str, str]

_USUAL_VISION: Names = {
    "num_hidden_layers": "layers",
    "hidden_size": "hidden_size",
    "num_attention_heads": "attention_heads",
    "intermediate_size": "intermediate_size",
    "patch_size": "patch_size",
}
_QWEN_VISION: Names = {
    "depth": "layers",
    "hidden_size": "hidden_size",
    "num_heads": "attention_heads",
    "intermediate_size": "intermediate_size",
    "patch_size": "patch_size",
    "spatial_merge_size": "spatial_merge_size",
}
_QWEN2_VISION: Names = _QWEN_VISION | {"embed_dim": "hidden_size"}  # there `hidden_size` is the width of the decoder


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How the configuration of a class of models is written."""

    model_type: str
    text_type: str
    vision_type: str
    vision: Names = field(default_factory=lambda: _USUAL_VISION)
    """Name in `vision_config` -> field of `VisionArchitecture`."""
    flat: bool = False
    """Whether the decoder's sizes stand beside `vision_config` instead of in `text_config`."""
    rope: dict[str, Any] | None = None


_MROPE = {"rope_type": "default", "type": "mrope", "mrope_section": [16, 24, 24], "rope_theta": 1e6}
_INTERLEAVED = {
    "rope_type": "default", "mrope_section": [24, 20, 20], "mrope_interleaved": True, "rope_theta": 5e6
}  # fmt: skip

# fmt: off
SHAPES: dict[str, Shape] = {
    "Gemma3ForConditionalGeneration": Shape(model_type="gemma3", text_type="gemma3_text", vision_type="siglip_vision_model"),
    "Glm4vForConditionalGeneration": Shape(
        model_type="glm4v", text_type="glm4v_text", vision_type="glm4v_vision", vision=_QWEN_VISION,
        rope={"rope_type": "default", "mrope_section": [8, 12, 12], "rope_theta": 1e4, "partial_rotary_factor": 0.5},
    ),
    "Idefics3ForConditionalGeneration": Shape(model_type="idefics3", text_type="llama", vision_type="idefics3_vision"),
    "LlavaForConditionalGeneration": Shape(model_type="llava", text_type="llama", vision_type="clip_vision_model"),
    "LlavaNextForConditionalGeneration": Shape(model_type="llava_next", text_type="mistral", vision_type="clip_vision_model"),
    "LlavaOnevisionForConditionalGeneration": Shape(
        model_type="llava_onevision", text_type="qwen2", vision_type="siglip_vision_model"
    ),
    "Mistral3ForConditionalGeneration": Shape(model_type="mistral3", text_type="mistral", vision_type="pixtral"),
    "Qwen2VLForConditionalGeneration": Shape(
        model_type="qwen2_vl", text_type="qwen2_vl_text", vision_type="qwen2_vl", vision=_QWEN2_VISION, flat=True, rope=_MROPE
    ),
    "Qwen2_5_VLForConditionalGeneration": Shape(
        model_type="qwen2_5_vl", text_type="qwen2_5_vl_text", vision_type="qwen2_5_vl", vision=_QWEN_VISION, flat=True,
        rope=_MROPE,
    ),
    "Qwen3VLForConditionalGeneration": Shape(
        model_type="qwen3_vl", text_type="qwen3_vl_text", vision_type="qwen3_vl", vision=_QWEN_VISION, rope=_INTERLEAVED
    ),
    "Qwen3VLMoeForConditionalGeneration": Shape(
        model_type="qwen3_vl_moe", text_type="qwen3_vl_moe_text", vision_type="qwen3_vl_moe", vision=_QWEN_VISION,
        rope=_INTERLEAVED,
    ),
    "SmolVLMForConditionalGeneration": Shape(model_type="smolvlm", text_type="llama", vision_type="smolvlm_vision"),
}
# fmt: on
"""The classes whose configuration comes with vLLM's libraries; that of the others comes with their weights."""

QUANTIZATION: dict[str, dict[str, Any]] = {
    "AWQ": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"},
    "GPTQ": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True},
    "FP8": {"quant_method": "fp8", "activation_scheme": "dynamic"},
}
"""`quantization_config` by `spec.model.quantization`."""


def config_of(architecture: Architecture, *, quantization: str = "None") -> dict[str, Any] | None:
    """The `config.json` of a model; None when its class is none of `SHAPES`, or how it is stored none of `QUANTIZATION`."""
    shape = SHAPES.get(architecture.name)
    if shape is None or quantization not in {"None", *QUANTIZATION}:
        return None
    config: dict[str, Any] = {"architectures": [architecture.name], "model_type": shape.model_type, "dtype": "bfloat16"}
    text = _text(architecture, shape)
    config |= text if shape.flat else {"text_config": text | {"model_type": shape.text_type}}
    config["tie_word_embeddings"] = architecture.tied_embeddings
    if architecture.vision:
        config["vision_config"] = {"model_type": shape.vision_type} | _vision(architecture.vision, shape)
        if architecture.name == "Qwen2VLForConditionalGeneration":
            config["vision_config"]["hidden_size"] = architecture.hidden_size
    if quantization != "None":
        config["quantization_config"] = QUANTIZATION[quantization]
    return config


def _text(architecture: Architecture, shape: Shape) -> dict[str, Any]:
    text: dict[str, Any] = {
        "num_hidden_layers": architecture.layers,
        "hidden_size": architecture.hidden_size,
        "num_attention_heads": architecture.attention_heads,
        "num_key_value_heads": architecture.key_value_heads,
        "head_dim": architecture.head_size or architecture.hidden_size // architecture.attention_heads,
        "intermediate_size": architecture.intermediate_size,
        "vocab_size": architecture.vocabulary_size,
        "rms_norm_eps": 1e-6,
        "hidden_act": "silu",
    }
    if architecture.max_context:
        text["max_position_embeddings"] = architecture.max_context
    if shape.rope:
        text["rope_parameters"] = shape.rope
    if experts := architecture.experts:
        text |= {
            "num_experts": experts.count,
            "num_experts_per_tok": experts.active,
            "moe_intermediate_size": experts.intermediate_size,
            "decoder_sparse_step": experts.every,
        }
    return text


def _vision(vision: VisionArchitecture, shape: Shape) -> dict[str, Any]:
    given = {name: getattr(vision, field_name) for name, field_name in shape.vision.items()}
    return {name: value for name, value in given.items() if value is not None}
