"""How images and videos are taken in."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from vlm_operator.api.base import ApiModel, Rule, no_items
from vlm_operator.api.lists import SET
from vlm_operator.api.scalars import Memory, ObjectName

Pixels = Annotated[int, Field(ge=1, le=1_073_741_824)]
ItemsPerPrompt = Annotated[int, Field(ge=0, le=999)]


class LimitsPerPrompt(ApiModel):
    """Most media items in one request. 0 turns a kind off and frees the memory kept for it."""

    image: ItemsPerPrompt | None = None
    """Images. Default: the engine's limit."""
    video: ItemsPerPrompt | None = None
    """Videos. Default: the engine's limit."""
    audio: ItemsPerPrompt | None = None
    """Audio clips. Default: the engine's limit."""


class Multimodal(ApiModel):
    """How images and videos are taken in."""

    limits_per_prompt: LimitsPerPrompt | None = None
    """Most media items in one request."""
    min_pixels: Pixels | None = None
    """Smaller images are enlarged to this many pixels (models with free resolution)."""
    max_pixels: Pixels | None = None
    """Larger images are reduced to this many pixels (models with free resolution). It bounds tokens and memory per
    image."""
    processor_cache: Memory | None = None
    """Host memory for prepared images, per engine process. Default: 4Gi, the engine's own."""
    encoder_parallelism: Literal["Weights", "Data"] = "Weights"
    """How the vision tower uses the tensor-parallel GPUs: its weights are split (Weights), or each holds all of it and
    takes a share of the images (Data). Default: Weights."""
    allowed_media_domains: Annotated[list[ObjectName], Field(max_length=64), SET] = Field(default_factory=no_items)
    """Hosts from which the engine may fetch media by URL. Default: any, redirects excluded; restrict it where users
    are not trusted."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.minPixels) || !has(self.maxPixels) || self.minPixels <= self.maxPixels",
            message="minPixels must not be greater than maxPixels",
            holds=lambda m: m.min_pixels is None or m.max_pixels is None or m.min_pixels <= m.max_pixels,
            field_path=".minPixels",
            values=("min_pixels", "max_pixels"),
        ),
    )
