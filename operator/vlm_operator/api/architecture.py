"""The facts about a model that decide memory, parallelism and tokens; also the schema of the catalogue's rows."""

from typing import Annotated, Literal

from pydantic import Field

from vlm_operator.api import patterns
from vlm_operator.api.base import ApiModel
from vlm_operator.api.scalars import matching

Count = Annotated[int, Field(ge=1, le=4096)]
Width = Annotated[int, Field(ge=1, le=10_000_000)]
MOST_TILES = 64
"""Four times the most that a family publishes. The search for the largest image goes through all grids of so many."""
Parameters = Annotated[int, Field(ge=1, le=100_000_000_000_000)]

ImageRule = Literal[
    "Qwen2VL",
    "Qwen3VL",
    "Glm4V",
    "KimiVL",
    "InternVL",
    "NemotronVL",
    "Mllama",
    "Llama4",
    "DeepSeekVL2",
    "Llava",
    "LlavaNext",
    "LlavaOneVision",
    "MiniCPMV",
    "Pixtral",
    "Mistral3",
    "Gemma3",
    "Phi3V",
    "Molmo",
    "SmolVLM",
    "Idefics3",
]
"""How a family of models turns pixels into tokens; `sizing.images` has one function for each."""


class Experts(ApiModel):
    """The mixture of experts that takes the place of the MLP."""

    count: Count
    """Routed experts of a layer."""
    active: Count | None = None
    """Experts that one token passes through."""
    shared: Annotated[int, Field(ge=0, le=4096)] = 0
    """Experts that every token passes through besides. Default: 0."""
    intermediate_size: Width
    """Width of one expert."""
    every: Count = 1
    """Every how many layers there is a mixture; the others have a plain MLP. Default: 1."""
    dense_layers: Annotated[int, Field(ge=0, le=1024)] = 0
    """First layers that have a plain MLP. Default: 0."""


class LatentAttention(ApiModel):
    """Multi-head latent attention: one compressed entry per token instead of keys and values per head."""

    rank: Width
    """Size of the compressed entry (`kv_lora_rank`)."""
    rope_size: Count
    """Size of the part that holds the position (`qk_rope_head_dim`)."""


class LocalAttention(ApiModel):
    """Layers that look back at a limited number of tokens."""

    window: Annotated[int, Field(ge=1, le=16_777_216)]
    """Tokens that they look back at."""
    layers: Count
    """Number of such layers; the others look back at everything."""


class VisionArchitecture(ApiModel):
    """The vision tower."""

    layers: Annotated[int, Field(ge=1, le=1024)]
    """Number of layers."""
    hidden_size: Width
    """Width."""
    attention_heads: Count
    """Number of attention heads."""
    intermediate_size: Width
    """Width of the MLP."""
    patch_size: Annotated[int, Field(ge=1, le=256)]
    """Side of a patch in pixels."""
    spatial_merge_size: Annotated[int, Field(ge=1, le=64)] | None = None
    """Patches merged per side into one token."""
    pads_heads: bool = False
    """Whether the engine pads the attention heads to a multiple of the tensor-parallel degree. Default: false."""


class ImageTokens(ApiModel):
    """How images become tokens."""

    rule: ImageRule
    """The family's way of resizing and tiling."""
    min_pixels: Annotated[int, Field(ge=1, le=1_073_741_824)] | None = None
    """Smaller images are enlarged to this many pixels (rules with free resolution)."""
    max_pixels: Annotated[int, Field(ge=1, le=1_073_741_824)] | None = None
    """Larger images are reduced to this many pixels (rules with free resolution)."""
    max_tiles: Annotated[int, Field(ge=1, le=MOST_TILES)] | None = None
    """Most tiles of one image (rules with tiles). Default: the family's own."""
    tile_size: Count | None = None
    """Side of a tile in pixels (rules with tiles). Default: the family's own."""


class Architecture(ApiModel):
    """The facts about a model that its `config.json` holds, for models outside the catalogue."""

    name: Annotated[str, matching(patterns.ARCHITECTURE_NAME, max_length=128)]
    """Class name, the first of `architectures` in `config.json`."""
    layers: Annotated[int, Field(ge=1, le=1024)]
    """Number of decoder layers."""
    hidden_size: Width
    """Width of the decoder."""
    attention_heads: Count
    """Number of attention heads."""
    key_value_heads: Count
    """Number of key-value heads."""
    head_size: Count | None = None
    """Size of one head. Default: hiddenSize / attentionHeads."""
    intermediate_size: Width
    """Width of the MLP."""
    vocabulary_size: Annotated[int, Field(ge=1, le=100_000_000)]
    """Number of tokens in the vocabulary."""
    max_context: Annotated[int, Field(ge=1, le=16_777_216)] | None = None
    """Longest context in tokens. Default: unknown."""
    tied_embeddings: bool = False
    """Whether input and output embeddings are one matrix. Default: false."""
    cross_attention_layers: Annotated[int, Field(ge=0, le=1024)] = 0
    """Layers that attend to the image instead of the text (Llama 3.2 Vision). Default: 0."""
    experts: Experts | None = None
    """The mixture of experts. Default: none, a dense model."""
    latent_attention: LatentAttention | None = None
    """Multi-head latent attention. Default: none, keys and values per head."""
    local_attention: LocalAttention | None = None
    """Layers that look back at a limited number of tokens. Default: none."""
    language_parameters: Parameters | None = None
    """Parameters of the decoder with its embeddings. Default: computed from the sizes."""
    vision: VisionArchitecture | None = None
    """The vision tower. Default: unknown."""
    vision_parameters: Parameters | None = None
    """Parameters of the vision tower and the projector. Default: computed from the sizes."""
    images: ImageTokens | None = None
    """How images become tokens. Default: unknown."""
    weight_bits: Annotated[int, Field(ge=2, le=8)] | None = None
    """Bits of a weight that is stored quantised. Default: those of the format, 4 for AWQ, GPTQ and INT4."""
    weight_group_size: Count | None = None
    """Quantised weights that share a scale. Default: 128 for the formats that have groups."""
