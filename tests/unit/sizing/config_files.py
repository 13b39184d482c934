"""Files `config.json` as the families write them, by the rows of the catalogue that they must give."""

from typing import Any

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
