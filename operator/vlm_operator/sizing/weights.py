"""Bytes of the weights on one GPU: by stored format, split over tensor and pipeline parallel ranks.

Embeddings, head, norms, routers and the vision tower are taken as left in 16 bit by every format, as published
checkpoints have them; one that leaves out more is larger than said here.
"""

from dataclasses import dataclass

from vlm_operator.api.architecture import Architecture
from vlm_operator.sizing.parameters import (
    Vision,
    head_size,
    language_parameters,
    round_up,
    vision_parameters,
)

SIXTEEN_BIT = 2.0
DEFAULT_GROUP = 128
MXFP4_MULTIPLE = 128
"""The kernels for MXFP4 experts pad both sides of a matrix to a multiple of this."""


@dataclass(frozen=True, kw_only=True)
class Format:
    """How quantised weights are stored."""

    element: float
    """Bytes of one weight."""
    scale: float = 0.0
    """Bytes of the scale of one group."""
    has_zero: bool = False
    """Whether a group has a zero besides, as wide as a weight."""
    group: int | None = None
    """Weights in a group where the checkpoint does not say; None: scales per channel or tensor, which are next to
    nothing."""
    experts_only: bool = False
    """Whether a mixture of experts leaves its attention in 16 bit."""

    def bytes_per_weight(self, group_size: int | None, bits: int | None) -> float:
        """Bytes of one weight with its share of the group; `bits` where the checkpoint has others than usual."""
        element = bits / 8 if bits is not None else self.element
        group = group_size or self.group
        if group is None or not self.scale:
            return element
        return element + (self.scale + (element if self.has_zero else 0.0)) / group


FORMATS: dict[str, Format] = {
    "None": Format(element=SIXTEEN_BIT),
    "AWQ": Format(element=0.5, scale=2.0, has_zero=True, group=DEFAULT_GROUP),
    "GPTQ": Format(element=0.5, scale=2.0, has_zero=True, group=DEFAULT_GROUP),
    "INT4": Format(element=0.5, scale=2.0, group=DEFAULT_GROUP),
    "INT8": Format(element=1.0, scale=2.0),
    "FP8": Format(element=1.0),
    "NVFP4": Format(element=0.5, scale=1.0, group=16),
    "MXFP4": Format(element=0.5, scale=1.0, group=32, experts_only=True),
}
"""Stored formats by their name in the resource. A group of AWQ and GPTQ has a 16-bit scale and a zero; of INT4 and INT8 a
16-bit scale; of NVFP4 and MXFP4 an 8-bit scale. FP8 has a scale per tensor, per channel or per block of 128 x 128.

Their checkpoints usually leave embeddings, head, norms, routers and the vision tower in 16 bit."""

ONLINE_BY_LAYER_SINCE = (0, 20)
"""Version from which weights that are quantised while loading are taken as quantised layer by layer; before, all of them
lie on the GPU in 16 bit first. The true version may be older."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How one replica is spread over GPUs."""

    tensor: int = 1
    """Tensor-parallel degree."""
    pipeline: int = 1
    """Pipeline-parallel degree."""
    data: int = 1
    """Data-parallel degree: engines of a replica, each with tensor x pipeline GPUs."""
    encoder_data: bool = False
    """Whether every rank holds all of the vision tower and takes a share of the images."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One step of the pipeline."""

    layers: int
    """Decoder layers that it holds."""
    first: bool
    """Whether it holds embedding and vision tower."""
    last: bool
    """Whether it holds the head."""


def stages(layers: int, pipeline: int) -> tuple[Stage, ...]:
    """The steps of a pipeline that differ: the first, the last, and the fullest between them.

    vLLM gives the layers that are left over to the steps before the last, latest first. Raises ValueError when there
    are more steps than layers.
    """
    if pipeline > layers:
        raise ValueError(f"a pipeline of {pipeline} steps cannot be made of {layers} layers")
    if pipeline == 1:
        return (Stage(layers=layers, first=True, last=True),)
    least, left = divmod(layers, pipeline)
    counts = [least] * pipeline
    for step in range(left):
        counts[(pipeline - 2 - step) % pipeline] += 1
    ends = (Stage(layers=counts[0], first=True, last=False), Stage(layers=counts[-1], first=False, last=True))
    if pipeline == 2:
        return ends
    return (*ends, Stage(layers=max(counts[1:-1]), first=False, last=False))


def rank_weights(
    architecture: Architecture,
    layout: Layout,
    stage: Stage,
    *,
    quantization: str = "None",
    group_size: int | None = None,
    bits: int | None = None,
) -> int | None:
    """Bytes of weights on one GPU of `stage`; None when the vision tower is unknown and the stage holds it.

    `quantization` names an entry of `FORMATS`, KeyError if there is none; for weights quantised while loading it is the
    format that they end up in. `group_size` and `bits` are the checkpoint's, None the usual ones.
    """
    vision = vision_parameters(architecture) if stage.first else None
    if stage.first and vision is None:
        return None
    stored = FORMATS[quantization]
    total = _decoder(architecture, layout, stage, stored, stored.bytes_per_weight(group_size, bits))
    if vision is not None:
        total += _tower(architecture, vision, layout) * SIXTEEN_BIT
    return round(total + rotary_bytes(architecture))


def _decoder(architecture: Architecture, layout: Layout, stage: Stage, stored: Format, tight: float) -> float:
    language, tensor = language_parameters(architecture), layout.tensor
    attention = SIXTEEN_BIT if stored.experts_only and architecture.experts else tight
    kv_split = min(tensor, architecture.key_value_heads)
    split = (
        language.query_and_output * attention / tensor
        + language.key_and_value * attention / kv_split
        + language.mlp * tight / tensor
        + language.experts * tight * _padding(architecture, stored) / tensor
    )
    whole = language.latent * attention + (language.router + language.norms) * SIXTEEN_BIT
    share = stage.layers / architecture.layers
    tables = (language.embedding if stage.first else 0) + (language.head if stage.last else 0)
    if stage.last and not stage.first and not language.head:  # a tied head is a copy when its embedding is elsewhere
        tables += language.embedding
    return share * (split + whole) + tables * SIXTEEN_BIT / tensor


def _padding(architecture: Architecture, stored: Format) -> float:
    """How much larger padding makes the experts."""
    if not stored.experts_only or architecture.experts is None:
        return 1.0
    sides = (architecture.hidden_size, architecture.experts.intermediate_size)
    padded, exact = 1, 1
    for side in sides:
        padded, exact = padded * round_up(side, MXFP4_MULTIPLE), exact * side
    return padded / exact


def _tower(architecture: Architecture, vision: Vision, layout: Layout) -> float:
    """Parameters of the vision tower on one rank."""
    tensor = 1 if layout.encoder_data else layout.tensor
    attention = vision.attention / tensor
    if architecture.vision is not None and architecture.vision.pads_heads:
        heads = architecture.vision.attention_heads
        attention *= round_up(heads, tensor) / heads
    return attention + vision.mlp / tensor + vision.rest


_ROTARY_COPIES = {
    "Qwen2VLForConditionalGeneration": 4,
    "Qwen2_5_VLForConditionalGeneration": 4,
    "Qwen3VLForConditionalGeneration": 4,
    "Qwen3VLMoeForConditionalGeneration": 4,
    "Glm4vForConditionalGeneration": 4,
    "Glm4vMoeForConditionalGeneration": 4,
    "Gemma3ForConditionalGeneration": 9,
}
"""Tables of positions as long as the context: positions in three dimensions are kept for four times the context, and
Gemma 3 keeps one table for local layers and one for positions scaled by 8."""


_USUAL_CONTEXT = 131_072
"""Context of which the table is taken where the model's is unknown: 32 MiB for heads of 128."""


def rotary_bytes(architecture: Architecture) -> int:
    """Bytes of the table of rotary positions, which every rank holds and which is loaded like weights.

    Its 0.12 GiB are what a log of Qwen2.5-VL-32B shows over the checkpoint (62.43 against 62.31), its 0.5 GiB what one of
    Gemma-3-4B shows (8.58 against 8.01).
    """
    latent = architecture.latent_attention
    width = latent.rope_size if latent is not None else head_size(architecture)
    positions = architecture.max_context or _USUAL_CONTEXT
    return round(positions * width * SIXTEEN_BIT * _ROTARY_COPIES.get(architecture.name, 1))
