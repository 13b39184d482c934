"""Language models that start-up logs name, for the arithmetic alone: the catalogue holds models that take images.

Sizes are those of the published `config.json` files (Qwen, Meta, Mistral AI, Microsoft, OpenAI, DeepSeek, Google, IBM).
"""

import re
from collections.abc import Iterator

from vlm_operator.api.architecture import Architecture, Experts, LatentAttention, LocalAttention


def _qwen2(  # noqa: PLR0917 # a table, in the order of the published files
    layers: int, hidden: int, heads: int, kv: int, mlp: int, vocabulary: int, context: int, *, tied: bool = False
) -> Architecture:
    return Architecture(
        name="Qwen2ForCausalLM",
        layers=layers,
        hidden_size=hidden,
        attention_heads=heads,
        key_value_heads=kv,
        intermediate_size=mlp,
        vocabulary_size=vocabulary,
        max_context=context,
        tied_embeddings=tied,
    )


def _qwen3(layers: int, hidden: int, heads: int, mlp: int, *, tied: bool = False) -> Architecture:
    return Architecture(
        name="Qwen3ForCausalLM",
        layers=layers,
        hidden_size=hidden,
        attention_heads=heads,
        key_value_heads=8,
        head_size=128,
        intermediate_size=mlp,
        vocabulary_size=151_936,
        max_context=40_960,
        tied_embeddings=tied,
    )


def _qwen3_moe(layers: int, hidden: int, heads: int, expert: int, context: int) -> Architecture:
    return Architecture(
        name="Qwen3MoeForCausalLM",
        layers=layers,
        hidden_size=hidden,
        attention_heads=heads,
        key_value_heads=4,
        head_size=128,
        intermediate_size=expert,
        vocabulary_size=151_936,
        max_context=context,
        experts=Experts(count=128, active=8, intermediate_size=expert),
    )


def _llama(
    layers: int, hidden: int, heads: int, kv: int, mlp: int, *, vocabulary: int = 128_256, context: int = 131_072
) -> Architecture:
    return Architecture(
        name="LlamaForCausalLM",
        layers=layers,
        hidden_size=hidden,
        attention_heads=heads,
        key_value_heads=kv,
        intermediate_size=mlp,
        vocabulary_size=vocabulary,
        max_context=context,
    )


def _mistral(layers: int, hidden: int, mlp: int, vocabulary: int, context: int) -> Architecture:
    return Architecture(
        name="MistralForCausalLM",
        layers=layers,
        hidden_size=hidden,
        attention_heads=32,
        key_value_heads=8,
        head_size=128,
        intermediate_size=mlp,
        vocabulary_size=vocabulary,
        max_context=context,
    )


def _gpt_oss(layers: int, experts: int) -> Architecture:
    return Architecture(
        name="GptOssForCausalLM",
        layers=layers,
        hidden_size=2880,
        attention_heads=64,
        key_value_heads=8,
        head_size=64,
        intermediate_size=2880,
        vocabulary_size=201_088,
        max_context=131_072,
        experts=Experts(count=experts, active=4, intermediate_size=2880),
        local_attention=LocalAttention(window=128, layers=layers // 2),
    )


QWEN25_05B = _qwen2(24, 896, 14, 2, 4864, 151_936, 32_768, tied=True)
QWEN25_15B = _qwen2(28, 1536, 12, 2, 8960, 151_936, 32_768, tied=True)
QWEN25_3B = _qwen2(36, 2048, 16, 2, 11_008, 151_936, 32_768, tied=True)
QWEN25_7B = _qwen2(28, 3584, 28, 4, 18_944, 152_064, 32_768)
QWEN25_14B = _qwen2(48, 5120, 40, 8, 13_824, 152_064, 131_072)
QWEN25_32B = _qwen2(64, 5120, 40, 8, 27_648, 152_064, 131_072)
QWEN25_72B = _qwen2(80, 8192, 64, 8, 29_568, 152_064, 131_072)
LLAMA3_8B = _llama(32, 4096, 32, 8, 14_336, context=8192)
LLAMA31_8B = _llama(32, 4096, 32, 8, 14_336)
LLAMA3_70B = _llama(80, 8192, 64, 8, 28_672)
LLAMA2_70B = _llama(80, 8192, 64, 8, 28_672, vocabulary=32_000, context=4096)
LLAMA2_13B = _llama(40, 5120, 40, 40, 13_824, vocabulary=32_000, context=4096)
LLAMA2_7B = _llama(32, 4096, 32, 32, 11_008, vocabulary=32_000, context=4096)
PHI4 = Architecture(
    name="Phi3ForCausalLM",
    layers=40,
    hidden_size=5120,
    attention_heads=40,
    key_value_heads=10,
    intermediate_size=17_920,
    vocabulary_size=100_352,
    max_context=16_384,
)
PHI3_MINI = Architecture(
    name="Phi3ForCausalLM",
    layers=32,
    hidden_size=3072,
    attention_heads=32,
    key_value_heads=32,
    intermediate_size=8192,
    vocabulary_size=32_064,
    max_context=131_072,
)
DEEPSEEK_R1 = Architecture(
    name="DeepseekV3ForCausalLM",
    layers=61,
    hidden_size=7168,
    attention_heads=128,
    key_value_heads=128,
    intermediate_size=18_432,
    vocabulary_size=129_280,
    max_context=163_840,
    experts=Experts(count=256, active=8, shared=1, intermediate_size=2048, dense_layers=3),
    latent_attention=LatentAttention(rank=512, rope_size=64),
    language_parameters=671_000_000_000,
)

NAMED: tuple[tuple[str, Architecture], ...] = (
    (r"Qwen3-0\.6B", _qwen3(28, 1024, 16, 3072, tied=True)),
    (r"Qwen3-1\.7B", _qwen3(28, 2048, 16, 6144, tied=True)),
    (r"Qwen3-4B", _qwen3(36, 2560, 32, 9728, tied=True)),
    (r"Qwen3-8B", _qwen3(36, 4096, 32, 12_288)),
    (r"Qwen3-14B", _qwen3(40, 5120, 40, 17_408)),
    (r"Qwen3-32B", _qwen3(64, 5120, 64, 25_600)),
    (r"Qwen3-30B-A3B", _qwen3_moe(48, 2048, 32, 768, 40_960)),
    (r"Qwen3-Coder-30B-A3B", _qwen3_moe(48, 2048, 32, 768, 262_144)),
    (r"Qwen3-235B-A22B", _qwen3_moe(94, 4096, 64, 1536, 40_960)),
    (r"Qwen2\.5-1\.5B class, untied head", _qwen2(28, 1536, 12, 2, 8960, 151_936, 131_072)),
    (r"(Qwen2\.5|R1-Distill-Qwen|Qwen2)(-Coder|-Math)?-0\.5B", QWEN25_05B),
    (r"R1-Distill-Qwen-1\.5B", _qwen2(28, 1536, 12, 2, 8960, 151_936, 131_072)),
    (r"(Qwen2\.5|Qwen2)(-Coder|-Math)?-1\.5B", QWEN25_15B),
    (r"Qwen2\.5(-Coder)?-3B", QWEN25_3B),
    (r"Qwen2\.5-7B-Instruct-1M", _qwen2(28, 3584, 28, 4, 18_944, 152_064, 1_010_000)),
    (r"R1-Distill-Qwen-7B", _qwen2(28, 3584, 28, 4, 18_944, 152_064, 131_072)),
    (r"(Qwen2\.5|Qwen2)(-Coder|-Math)?-7B", QWEN25_7B),
    (r"(Qwen2\.5(-Coder)?|R1-Distill-Qwen)-14B", QWEN25_14B),
    (r"(Qwen2\.5(-Coder)?|R1-Distill-Qwen|QwQ)-32B", QWEN25_32B),
    (r"(Qwen2\.5|Qwen2)(-Math)?-72B", QWEN25_72B),
    (r"Qwen1\.5-7B", _qwen2(32, 4096, 32, 32, 11_008, 151_936, 32_768)),
    (r"Qwen1\.5-14B", _qwen2(40, 5120, 40, 40, 13_696, 152_064, 32_768)),
    (r"Qwen1\.5-72B", _qwen2(80, 8192, 64, 64, 24_576, 152_064, 32_768)),
    (r"(Llama-3\.1-8B|R1-Distill-Llama-8B)", LLAMA31_8B),
    (r"Llama-3-8B", LLAMA3_8B),
    (r"(Llama-3(\.1|\.3)?-70B|R1-Distill-Llama-70B)", LLAMA3_70B),
    (r"Llama-3\.1-405B", _llama(126, 16_384, 128, 8, 53_248)),
    (r"Llama-2-7B", LLAMA2_7B),
    (r"Llama-2-13B", LLAMA2_13B),
    (r"Llama-2-70B", LLAMA2_70B),
    (r"Mistral-7B", _mistral(32, 4096, 14_336, 32_768, 32_768)),
    (r"Mistral-Nemo", _mistral(40, 5120, 14_336, 131_072, 131_072)),
    (r"gpt-oss-20b", _gpt_oss(24, 32)),
    (r"gpt-oss-120b", _gpt_oss(36, 128)),
    (r"Phi-4(?!-m)", PHI4),
    (r"Phi-3(\.5)?-mini", PHI3_MINI),
    (r"DeepSeek-(R1|V3)$", DEEPSEEK_R1),
)
"""Patterns of a log's model name, first match wins, and the sizes. Pieces may be joined with anything that is not a
letter or a digit."""


def text_model(name: str) -> Architecture | None:
    """The sizes of the language model that `name` begins with or contains."""
    return next(_matches(name), None)


def _matches(name: str) -> Iterator[Architecture]:
    for pattern, architecture in NAMED:
        if re.search(rf"(?<![A-Za-z0-9]){pattern}(?![0-9]*[A-Za-z]?[0-9.]*B)", name, re.IGNORECASE):
            yield architecture
