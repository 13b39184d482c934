"""What a `config.json` leaves out because the classes that read it know it. `config_json` does the reading.

Files of transformers omit values that equal the defaults of their class, so a decoder may be two lines long. Defaults
are those of transformers 5.24.0, by `model_type`; how images become tokens is by the class that vLLM looks for.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from vlm_operator.api.architecture import ImageTokens, VisionArchitecture

_LLAMA = {
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
}
_MISTRAL = _LLAMA | {"intermediate_size": 14336, "num_key_value_heads": 8, "max_position_embeddings": 131072}
_GEMMA3 = {
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "vocab_size": 262208,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
    "sliding_window_pattern": 6,
}
_QWEN2 = {"num_key_value_heads": 32, "vocab_size": 151936, "max_position_embeddings": 32768}
_QWEN2 |= {"use_sliding_window": False}
_NO_WINDOW = {"use_sliding_window": False}

CLASS_NAMES = MappingProxyType({"deepseek_vl_v2": "DeepseekVLV2ForCausalLM"})
"""Classes of files without `architectures`, by `model_type`; vLLM must be told them with `--hf-overrides`."""

TEXT_DEFAULTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "llama": _LLAMA,
        "mistral": _MISTRAL,
        "gemma3_text": _GEMMA3,
        "gemma3": _GEMMA3,
        "qwen2": _QWEN2,
        "qwen3": _QWEN2 | {"head_dim": 128},
        "qwen2_vl": _NO_WINDOW,
        "qwen2_5_vl": _NO_WINDOW,
        "minicpmv": _NO_WINDOW,
    }
)
"""Of the decoder; only where files are known to lean on them."""

_CLIP = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "patch_size": 32,
    "image_size": 224,
}
_SIGLIP = _CLIP | {"patch_size": 16}

VISION_DEFAULTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "clip_vision_model": _CLIP,
        "siglip_vision_model": _SIGLIP,
        "siglip": _SIGLIP,
        "idefics3_vision": _SIGLIP,
        "smolvlm_vision": _SIGLIP,
        "pixtral": {
            "hidden_size": 1024,
            "intermediate_size": 4096,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "patch_size": 16,
            "image_size": 1024,
        },
        "qwen2_vl": {"embed_dim": 1280, "mlp_ratio": 4, "depth": 32, "num_heads": 16, "patch_size": 14}
        | {"spatial_merge_size": 2},
        "qwen2_5_vl": {"depth": 32, "num_heads": 16, "intermediate_size": 3420, "patch_size": 14}
        | {"spatial_merge_size": 2},
        # DeepSeek-VL2 names a SigLIP of the timm library, whose sizes are in the code, as is the projector's step.
        "vision": {"layers": 27, "num_heads": 16, "patch_size": 14, "spatial_merge_size": 2},
    }
)
"""Of the vision tower."""


def _clip_large(layers: int) -> VisionArchitecture:
    return VisionArchitecture(
        layers=layers,
        hidden_size=1024,
        attention_heads=16,
        intermediate_size=4096,
        patch_size=14,
        spatial_merge_size=2,
    )


FIXED_VISION = MappingProxyType({"Phi3VForCausalLM": _clip_large(24), "MolmoForCausalLM": _clip_large(23)})
"""Vision towers that are written in the code of the model (CLIP ViT-L/14 with 336 pixels)."""

_QWEN2_IMAGES = ImageTokens(rule="Qwen2VL", min_pixels=3136, max_pixels=12_845_056)
_QWEN3_IMAGES = ImageTokens(rule="Qwen3VL", min_pixels=65_536, max_pixels=16_777_216)
_GLM_IMAGES = ImageTokens(rule="Glm4V", min_pixels=12_544, max_pixels=9_633_792)
_INTERN_IMAGES = ImageTokens(rule="InternVL", max_tiles=12, tile_size=448)

IMAGES = MappingProxyType(
    {
        "Qwen2VLForConditionalGeneration": _QWEN2_IMAGES,
        "Qwen2_5_VLForConditionalGeneration": _QWEN2_IMAGES,
        "Qwen3VLForConditionalGeneration": _QWEN3_IMAGES,
        "Qwen3VLMoeForConditionalGeneration": _QWEN3_IMAGES,
        "Glm4vForConditionalGeneration": _GLM_IMAGES,
        "Glm4vMoeForConditionalGeneration": _GLM_IMAGES,
        "InternVLChatModel": _INTERN_IMAGES,
        "InternVLForConditionalGeneration": _INTERN_IMAGES,
        "Llama_Nemotron_Nano_VL": ImageTokens(rule="NemotronVL", max_tiles=12, tile_size=512),
        "KimiVLForConditionalGeneration": ImageTokens(rule="KimiVL"),
        "MllamaForConditionalGeneration": ImageTokens(rule="Mllama", max_tiles=4, tile_size=560),
        "Llama4ForConditionalGeneration": ImageTokens(rule="Llama4", max_tiles=16, tile_size=336),
        "DeepseekVLV2ForCausalLM": ImageTokens(rule="DeepSeekVL2", max_tiles=9, tile_size=384),
        "LlavaForConditionalGeneration": ImageTokens(rule="Llava"),
        "LlavaNextForConditionalGeneration": ImageTokens(rule="LlavaNext", max_tiles=4, tile_size=336),
        "LlavaOnevisionForConditionalGeneration": ImageTokens(rule="LlavaOneVision", max_tiles=9, tile_size=384),
        "MiniCPMV": ImageTokens(rule="MiniCPMV", max_tiles=9, tile_size=448),
        "PixtralForConditionalGeneration": ImageTokens(rule="Pixtral"),
        "Mistral3ForConditionalGeneration": ImageTokens(rule="Mistral3"),
        "Gemma3ForConditionalGeneration": ImageTokens(rule="Gemma3"),
        "Phi3VForCausalLM": ImageTokens(rule="Phi3V", max_tiles=4, tile_size=336),
        "MolmoForCausalLM": ImageTokens(rule="Molmo", max_tiles=12, tile_size=336),
        "SmolVLMForConditionalGeneration": ImageTokens(rule="SmolVLM"),
        "Idefics3ForConditionalGeneration": ImageTokens(rule="Idefics3", tile_size=364),
    }
)
"""How images become tokens. Limits of pixels and tiles are in a file of their own (`preprocessor_config.json`), so that
these are the ones the family was published with."""
PIXTRAL_IN_LLAVA = ImageTokens(rule="Pixtral")
"""The class of LLaVA with the vision tower of Pixtral."""
