"""Models and GPUs that the tests of the memory arithmetic share, and strategies for any."""

from hypothesis import strategies as st

from vlm_operator.api.architecture import Architecture, ImageTokens, VisionArchitecture
from vlm_operator.sizing.memory import GIB, Device, Load

QWEN25_VL_7B = Architecture(
    name="Qwen2_5_VLForConditionalGeneration",
    layers=28,
    hidden_size=3584,
    attention_heads=28,
    key_value_heads=4,
    head_size=128,
    intermediate_size=18_944,
    vocabulary_size=152_064,
    max_context=128_000,
    language_parameters=7_615_600_000,
    vision=VisionArchitecture(
        layers=32, hidden_size=1280, attention_heads=16, intermediate_size=3420, patch_size=14, spatial_merge_size=2
    ),
    vision_parameters=676_600_000,
    images=ImageTokens(rule="Qwen2VL", min_pixels=3136, max_pixels=12_845_056),
)
LLAMA3_8B = Architecture(
    name="LlamaForCausalLM",
    layers=32,
    hidden_size=4096,
    attention_heads=32,
    key_value_heads=8,
    intermediate_size=14_336,
    vocabulary_size=128_256,
    max_context=8192,
)
V33 = (0, 33)
L40S = Device(cuda_bytes=round(44.39 * GIB), capability="8.9")
H100 = Device(cuda_bytes=round(79.18 * GIB), capability="9.0")
AS_IT_IS = Load()


def changed(architecture: Architecture, **fields: object) -> Architecture:
    """The same model with some facts replaced."""
    return architecture.model_copy(update=fields)


def architectures() -> st.SearchStrategy[Architecture]:
    """Decoders of any shape with the tower of Qwen2.5-VL-7B, or with none."""
    return st.builds(
        lambda heads, kv, layers, width, tied, sees: changed(
            QWEN25_VL_7B if sees else LLAMA3_8B,
            attention_heads=heads * kv,
            key_value_heads=kv,
            head_size=128,
            layers=layers,
            hidden_size=128 * width,
            intermediate_size=384 * width,
            tied_embeddings=tied,
            language_parameters=None,
        ),
        heads=st.sampled_from([1, 2, 4, 8]),
        kv=st.sampled_from([1, 2, 4, 8, 16]),
        layers=st.integers(8, 96),
        width=st.integers(4, 64),
        tied=st.booleans(),
        sees=st.booleans(),
    )
