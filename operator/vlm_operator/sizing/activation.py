"""Memory that a forward pass needs at its peak, as the engine measures it before it sizes the KV cache.

Three peaks, of which the largest counts: the encoder over the largest images, one step of the decoder, and sampling.
The factors were found on start-up logs and are upper sides of them; a checkpoint with an unusual attention in its tower
can need more (see `materialises_scores`).
"""

from dataclasses import dataclass

from vlm_operator.api.architecture import Architecture
from vlm_operator.sizing.parameters import MLLAMA_STATES, gated_tower, is_text_only, patch_values, tower_mlp_width
from vlm_operator.sizing.weights import Layout

SAMPLER_COPIES = 9.7
"""Copies of the 32-bit logits that sampling holds at once (sorting them with their indices, softmax, sums): 1.40 GiB
for 256 sequences of Qwen's 152,064 tokens, 5.6 for 1,024, the same for Llama and gpt-oss."""
STEP_COPIES_TEXT = 3
"""Hidden states of a step that lie in memory together, in a language model: 2.06 GiB for 20,000 tokens of Llama-3.1-8B
with three of the MLP's width, 2.07 in the log."""
STEP_COPIES_IMAGES = 6
"""The same where embeddings of images are merged into those of the text: 1.13 GiB for Pixtral at 8,192 tokens (1.08 in
the log), 1.20 for Qwen2-VL-7B (1.16), 6.9 for Qwen2.5-VL-32B at 32,768 (6.90)."""
STEP_COPIES_MLP = 3
"""Results of the MLP of a step that lie in memory together: two projections and their product."""
TOWER_COPIES_ATTENTION = 12
"""Widths of a patch that attention in the vision tower holds at once: input, its norm, query, key and value twice, and
their rotation in 32 bit."""
TOWER_COPIES = 3
"""Widths of a patch that lie in memory with those of the MLP."""
PIXEL_BYTES = 4
"""Bytes of one number of a patch as it arrives."""

_ATTENTION_KERNELS_AMD = frozenset({"gfx90a", "gfx942", "gfx950"})
"""AMD GPUs with an attention kernel for the vision tower."""
_EXTRA_LEVELS = {"Qwen3VLForConditionalGeneration": 3, "Qwen3VLMoeForConditionalGeneration": 3}
"""Further embeddings of an image that a class hands to the decoder's first layers."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """What one step of the engine is profiled with."""

    sequences: int
    """Sequences that are sampled."""
    tokens: int
    """Tokens of one pass through the decoder."""


@dataclass(frozen=True, kw_only=True)
class Images:
    """The images (or videos) that the encoder is profiled with, together."""

    count: int
    """How many there are."""
    tokens: int
    """Tokens of one."""
    patches: int
    """Patches of one before they are merged."""
    video: bool = False
    """Whether it is a video."""


NO_IMAGES = Images(count=0, tokens=0, patches=0)


def sampling(architecture: Architecture, step: Step) -> float:
    """Bytes while the next tokens are drawn. Tensor parallelism does not lower it: every rank gathers all logits."""
    logits = step.sequences * architecture.vocabulary_size * 4 * SAMPLER_COPIES
    return logits + step.tokens * architecture.hidden_size * 2


def decoding(architecture: Architecture, layout: Layout, step: Step) -> float:
    """Bytes of one pass through the decoder."""
    copies = STEP_COPIES_TEXT if is_text_only(architecture) else STEP_COPIES_IMAGES
    width = copies * architecture.hidden_size + STEP_COPIES_MLP * _mlp_width(architecture) / layout.tensor
    return step.tokens * width * 2


def encoding(
    architecture: Architecture, layout: Layout, images: Images, *, vendor: str, capability: str | None
) -> float | None:
    """Bytes of one pass through the vision tower; None when there are images and the tower is unknown.

    A tower that is split over ranks still gathers its attention, so only the MLP shrinks; one in data mode shares whole
    images out.
    """
    if images.count == 0:
        return 0.0
    tower = architecture.vision
    if tower is None:
        return None
    count = -(-images.count // layout.tensor) if layout.encoder_data else images.count
    patches = count * images.patches
    split = 1 if layout.encoder_data else layout.tensor
    matrices = 3 if gated_tower(architecture) else 2
    attention = TOWER_COPIES_ATTENTION * tower.hidden_size
    mlp = TOWER_COPIES * tower.hidden_size + matrices * tower_mlp_width(architecture, tower) / split
    pixels = patch_values(architecture, tower) * PIXEL_BYTES
    kept = MLLAMA_STATES * tower.hidden_size if architecture.name == "MllamaForConditionalGeneration" else 0
    total = patches * (2 * (max(attention, mlp) + kept) + pixels)
    if materialises_scores(vendor, capability):
        total += -(-tower.attention_heads // split) * images.patches**2 * 2
    return total


def embeddings(architecture: Architecture, images: Images) -> float:
    """Bytes of the encoded images, which wait while the decoder is profiled."""
    levels = 1 + _EXTRA_LEVELS.get(architecture.name, 0)
    return images.count * images.tokens * architecture.hidden_size * levels * 2


def materialises_scores(vendor: str, capability: str | None) -> bool:
    """Whether attention in the vision tower writes all its scores to memory: AMD GPUs without a kernel for it."""
    return vendor == "amd" and capability is not None and capability not in _ATTENTION_KERNELS_AMD


def _mlp_width(architecture: Architecture) -> int:
    """The widest MLP that a token passes through at once."""
    experts = architecture.experts
    if experts is None:
        return architecture.intermediate_size
    mixture = ((experts.active or 1) + experts.shared) * experts.intermediate_size
    dense = experts.every > 1 or experts.dense_layers > 0
    return max(mixture, architecture.intermediate_size) if dense else mixture
