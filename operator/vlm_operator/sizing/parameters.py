"""How many parameters a model has, part by part: what is quantised, what is split and what is repeated depends on it.

Counted from the sizes in an `Architecture`. Where the total is stated, the layers are scaled to it, so that biases and
the like, which the sizes do not tell, are in the sum.
"""

from collections.abc import Callable
from dataclasses import dataclass

from vlm_operator.api.architecture import Architecture, ImageRule, VisionArchitecture

VOCABULARY_MULTIPLE = 64
"""vLLM pads the rows of embedding and head to a multiple of this."""
LATENT_HEAD = 128
"""Size of a head without its position in DeepSeek-V2 and V3, for keys and for values; no configuration of the
catalogue differs."""
TEMPORAL_PATCH = 2
"""Frames in one patch of the Qwen and GLM towers."""
MLLAMA_STATES = 6
"""Results of the tower of Llama 3.2 Vision that its projector takes, the last one included."""
MLLAMA_POSITIONS = 9 * 4 * 1601
"""Positions of its tower: for each of 8 shapes and none, of 4 tiles, the 1,600 patches and one more."""

_IMAGE_CLASSES = frozenset({"Phi3VForCausalLM", "Phi4MMForCausalLM", "MolmoForCausalLM", "DeepseekVLV2ForCausalLM"})
"""Classes that take images though they are named like a plain language model."""
_MORE_THAN_SIZES_TELL = frozenset({"Phi4MMForCausalLM"})
"""Classes with an audio encoder and adapters besides decoder and tower: their count is unknown unless it is stated."""
_GATED_TOWERS = frozenset(
    {
        "Qwen2_5_VLForConditionalGeneration",
        "PixtralForConditionalGeneration",
        "Mistral3ForConditionalGeneration",
        "Glm4vForConditionalGeneration",
        "Glm4vMoeForConditionalGeneration",
    }
)
"""Classes whose vision tower has an MLP of three matrices instead of two."""
_VIDEO_PATCHES = frozenset({"Qwen2VL", "Qwen3VL", "Glm4V"})
"""Image rules of towers whose patches span two frames."""


@dataclass(frozen=True, kw_only=True)
class Language:
    """Parameters of the decoder."""

    embedding: int
    """Input embedding, its rows padded."""
    head: int
    """Output head; 0 when it is the embedding."""
    query_and_output: int
    """Matrices that are split over the heads."""
    key_and_value: int
    """Matrices that are split over the key-value heads."""
    latent: int
    """Matrices of latent attention that every rank holds whole."""
    mlp: int
    """Plain MLPs and the experts that every token passes through."""
    experts: int
    """Routed experts."""
    router: int
    """What chooses the experts."""
    norms: int
    """Norms of all layers."""

    @property
    def linear(self) -> int:
        """What quantisation can take: attention, MLPs and experts."""
        return self.query_and_output + self.key_and_value + self.latent + self.mlp + self.experts

    @property
    def total(self) -> int:
        """All of them."""
        return self.embedding + self.head + self.linear + self.router + self.norms


@dataclass(frozen=True, kw_only=True)
class Vision:
    """Parameters of the vision tower."""

    attention: int
    """Attention of all layers."""
    mlp: int
    """MLPs of all layers."""
    rest: int
    """Patch embedding, positions and projector: every rank holds them whole."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.attention + self.mlp + self.rest


NO_VISION = Vision(attention=0, mlp=0, rest=0)


def head_size(architecture: Architecture) -> int:
    """Size of one attention head."""
    return architecture.head_size or architecture.hidden_size // architecture.attention_heads


def is_text_only(architecture: Architecture) -> bool:
    """Whether the model takes no images. A tower that is not described is unknown, not absent."""
    return (
        architecture.vision is None
        and architecture.vision_parameters is None
        and architecture.images is None
        and architecture.name.endswith("ForCausalLM")
        and architecture.name not in _IMAGE_CLASSES
    )


def gated_tower(architecture: Architecture) -> bool:
    """Whether an MLP of the vision tower has three matrices."""
    return architecture.name in _GATED_TOWERS


def language_parameters(architecture: Architecture) -> Language:
    """Parameters of the decoder, scaled to the stated total where there is one."""
    a = architecture
    table = a.hidden_size * round_up(a.vocabulary_size, VOCABULARY_MULTIPLE)
    exact_table = a.hidden_size * a.vocabulary_size
    query_and_output, key_and_value, latent = _attention(a)
    mlp, experts, router = _mlps(a)
    norms = a.hidden_size * (2 * a.layers + 1)
    tables = 1 if a.tied_embeddings else 2
    linear = query_and_output + key_and_value + latent + mlp + experts
    factor = 1.0
    if a.language_parameters is not None:
        stated = a.language_parameters - tables * exact_table - norms - router
        factor = max(0.0, stated / linear)
    return Language(
        embedding=table,
        head=0 if a.tied_embeddings else table,
        query_and_output=round(query_and_output * factor),
        key_and_value=round(key_and_value * factor),
        latent=round(latent * factor),
        mlp=round(mlp * factor),
        experts=round(experts * factor),
        router=router,
        norms=norms,
    )


def vision_parameters(architecture: Architecture) -> Vision | None:
    """Parameters of the vision tower with its projector; None when they are unknown."""
    if is_text_only(architecture):
        return NO_VISION
    tower, stated = architecture.vision, architecture.vision_parameters
    if tower is None:
        return None if stated is None else Vision(attention=0, mlp=0, rest=stated)
    if stated is None and architecture.name in _MORE_THAN_SIZES_TELL:
        return None
    attention = tower.layers * 4 * tower.hidden_size**2
    matrices = 3 if gated_tower(architecture) else 2
    mlp = tower.layers * matrices * tower.hidden_size * tower_mlp_width(architecture, tower)
    if stated is None:
        return Vision(attention=attention, mlp=mlp, rest=_rest_of_tower(architecture, tower))
    if attention + mlp > stated:  # a total that leaves out what the sizes tell
        return Vision(attention=0, mlp=0, rest=stated)
    return Vision(attention=attention, mlp=mlp, rest=stated - attention - mlp)


def round_up(value: int, multiple: int) -> int:
    """The smallest multiple that is not less than `value`."""
    return -(-value // multiple) * multiple


def _attention(a: Architecture) -> tuple[int, int, int]:
    """Query with output, key with value, latent."""
    if a.latent_attention is not None:
        rank, rope = a.latent_attention.rank, a.latent_attention.rope_size
        down = a.hidden_size * (rank + rope)
        query = a.hidden_size * a.attention_heads * (LATENT_HEAD + rope)
        up_and_output = a.attention_heads * LATENT_HEAD * (2 * rank + a.hidden_size)
        return a.layers * (query + up_and_output), 0, a.layers * down
    size = head_size(a)
    query_and_output = 2 * a.hidden_size * a.attention_heads * size
    return a.layers * query_and_output, a.layers * 2 * a.hidden_size * a.key_value_heads * size, 0


def _mlps(a: Architecture) -> tuple[int, int, int]:
    """Plain MLPs with shared experts, routed experts, routers."""
    plain = 3 * a.hidden_size * a.intermediate_size
    if a.experts is None:
        return a.layers * plain, 0, 0
    mixtures = mixture_layers(a)
    expert = 3 * a.hidden_size * a.experts.intermediate_size
    mlp = (a.layers - mixtures) * plain + mixtures * a.experts.shared * expert
    return mlp, mixtures * a.experts.count * expert, mixtures * a.experts.count * a.hidden_size


def mixture_layers(a: Architecture) -> int:
    """Layers that have a mixture of experts."""
    if a.experts is None:
        return 0
    return max(0, a.layers - a.experts.dense_layers) // a.experts.every


def _rest_of_tower(architecture: Architecture, tower: VisionArchitecture) -> int:
    """Patch embedding, positions where they are many, and what leads from the tower to the decoder."""
    rule = architecture.images.rule if architecture.images else None
    patches = patch_values(architecture, tower) * tower.hidden_size
    tables = MLLAMA_POSITIONS * tower.hidden_size if rule == "Mllama" else 0
    return patches + tables + _PROJECTORS.get(rule, _mlp_of_merged)(architecture, tower)


def _merged(tower: VisionArchitecture) -> int:
    """Width of the patches that become one token."""
    return tower.hidden_size * (tower.spatial_merge_size or 1) ** 2


def _mlp_of_merged(a: Architecture, tower: VisionArchitecture) -> int:
    """Two matrices, the first as wide as the merged patches (Qwen2-VL, Kimi-VL)."""
    merged = _merged(tower)
    return merged * merged + merged * a.hidden_size


def _four_mlps_of_merged(a: Architecture, tower: VisionArchitecture) -> int:
    """One for the last layer of the tower, three for earlier ones (Qwen3-VL)."""
    return 4 * _mlp_of_merged(a, tower)


def _mlp_of_decoder(a: Architecture, tower: VisionArchitecture) -> int:
    """Two matrices, the second as wide as the decoder (LLaVA, InternVL, DeepSeek-VL2)."""
    return (_merged(tower) + a.hidden_size) * a.hidden_size


def _one_matrix(a: Architecture, tower: VisionArchitecture) -> int:
    """From merged patches to the decoder (Idefics3, SmolVLM)."""
    return _merged(tower) * a.hidden_size


def _one_matrix_of_pooled(a: Architecture, tower: VisionArchitecture) -> int:
    """From one patch to the decoder: the patches of a token are averaged (Gemma 3)."""
    return tower.hidden_size * a.hidden_size


def _one_matrix_of_states(a: Architecture, tower: VisionArchitecture) -> int:
    """From the results of the layers that are kept, joined (Mllama)."""
    return MLLAMA_STATES * tower.hidden_size * a.hidden_size


def _merger_and_mlp(a: Architecture, tower: VisionArchitecture) -> int:
    """A matrix that merges patches into one of the tower's width, and two of the decoder's (Mistral 3)."""
    return _merged(tower) * tower.hidden_size + (tower.hidden_size + a.hidden_size) * a.hidden_size


def _resampler(a: Architecture, tower: VisionArchitecture) -> int:
    """Attention of the decoder's width with one matrix before and one after it (MiniCPM-V)."""
    return (tower.hidden_size + 5 * a.hidden_size) * a.hidden_size


def _pooling_and_gated_mlp(a: Architecture, tower: VisionArchitecture) -> int:
    """Attention over patches of two layers, and an MLP as wide as the decoder's (Molmo)."""
    return 7 * tower.hidden_size**2 + a.intermediate_size * (2 * tower.hidden_size + a.hidden_size)


def _gated_merger(a: Architecture, tower: VisionArchitecture) -> int:
    """A convolution over the merged patches, a matrix and a gated MLP of the decoder's width (GLM)."""
    return (_merged(tower) + a.hidden_size + 3 * tower.intermediate_size) * a.hidden_size


_PROJECTORS: dict[ImageRule | None, Callable[[Architecture, VisionArchitecture], int]] = {
    "Qwen3VL": _four_mlps_of_merged,
    "Glm4V": _gated_merger,
    "InternVL": _mlp_of_decoder,
    "Mllama": _one_matrix_of_states,
    "DeepSeekVL2": _mlp_of_decoder,
    "Llava": _mlp_of_decoder,
    "LlavaNext": _mlp_of_decoder,
    "LlavaOneVision": _mlp_of_decoder,
    "MiniCPMV": _resampler,
    "Pixtral": _mlp_of_decoder,
    "Mistral3": _merger_and_mlp,
    "Gemma3": _one_matrix_of_pooled,
    "Phi3V": _mlp_of_decoder,
    "Molmo": _pooling_and_gated_mlp,
    "SmolVLM": _one_matrix,
    "Idefics3": _one_matrix,
}
"""What leads from the tower to the decoder, by rule; for the others two matrices, the first of the merged width."""


def tower_mlp_width(architecture: Architecture, tower: VisionArchitecture) -> int:
    """Width of the MLP of a layer. GLM's is the decoder's: what its configuration names is that of the merger."""
    glm = architecture.images is not None and architecture.images.rule == "Glm4V"
    return architecture.hidden_size if glm else tower.intermediate_size


def patch_values(architecture: Architecture, tower: VisionArchitecture) -> int:
    """Numbers that one patch has: its pixels in three colours, of two frames where a patch spans them."""
    frames = TEMPORAL_PATCH if architecture.images and architecture.images.rule in _VIDEO_PATCHES else 1
    return 3 * frames * tower.patch_size**2
