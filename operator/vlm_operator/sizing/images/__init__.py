"""Tokens of images and videos from their pixels, by each family's own rounding and tiling.

`settings` fills in a rule's defaults, `free` and `tiles` hold one function per family, `largest` finds what costs most
and `video` counts videos. Everything here is arithmetic on sizes; no image is ever opened.

Widths and heights are in pixels, as an image arrives. `min_pixels` and `max_pixels` are the user's and count only where
`takes_pixel_limits` says so. Every function raises RefusedImageError for an image that the family's own processor
refuses: sides that differ by more than 200 to 1 (Qwen, GLM), 512 patches a side (Kimi-VL).
"""

from vlm_operator.api.architecture import ImageTokens, VisionArchitecture
from vlm_operator.sizing.images.families import read
from vlm_operator.sizing.images.largest import ImageSize, largest, largest_of_photos
from vlm_operator.sizing.images.settings import RefusedImageError, settings_of, takes_pixel_limits
from vlm_operator.sizing.images.video import read_video

__all__ = [
    "ImageSize",
    "RefusedImageError",
    "image_tokens",
    "largest_image",
    "largest_photo",
    "patches",
    "takes_pixel_limits",
    "video_tokens",
]


def image_tokens(
    rule: ImageTokens,
    width: int,
    height: int,
    *,
    vision: VisionArchitecture | None = None,
    min_pixels: int | None = None,
    max_pixels: int | None = None,
) -> int:
    """Tokens of one image. For Mllama they are held in cross-attention and take no room in the prompt."""
    return read(width, height, settings_of(rule, vision, min_pixels, max_pixels)).tokens


def patches(
    rule: ImageTokens,
    width: int,
    height: int,
    *,
    vision: VisionArchitecture | None = None,
    min_pixels: int | None = None,
    max_pixels: int | None = None,
) -> int:
    """Patches of one image that the vision tower sees, before merging, over all tiles and the overview."""
    return read(width, height, settings_of(rule, vision, min_pixels, max_pixels)).patches


def largest_image(
    rule: ImageTokens,
    *,
    vision: VisionArchitecture | None = None,
    min_pixels: int | None = None,
    max_pixels: int | None = None,
) -> ImageSize:
    """The image with the most tokens, whatever its shape: what an engine must be ready for.

    When `min_pixels` is more than half of `max_pixels`, a small elongated image may still cost a few tokens more.
    """
    return largest(settings_of(rule, vision, min_pixels, max_pixels))


def largest_photo(
    rule: ImageTokens,
    *,
    vision: VisionArchitecture | None = None,
    min_pixels: int | None = None,
    max_pixels: int | None = None,
) -> ImageSize:
    """The image with the most tokens among the shapes of cameras and screens (1:1 to 16:9, either way up).

    It is what a user sends at worst. Less than `largest_image` where a strip costs more than a square: DeepSeek-VL2,
    LLaVA-OneVision, Phi-3.5-vision, Kimi-VL and Molmo.
    """
    return largest_of_photos(settings_of(rule, vision, min_pixels, max_pixels))


def video_tokens(
    rule: ImageTokens,
    frames: int,
    width: int,
    height: int,
    *,
    vision: VisionArchitecture | None = None,
    min_pixels: int | None = None,
    max_pixels: int | None = None,
) -> int | None:
    """Tokens of a video of `frames` frames as the engine takes them; None where the family's rule is not known.

    Timestamps and other text between frames are not counted. The limits hold per frame for Qwen2-VL and over all frames
    for Qwen3-VL and GLM. MiniCPM-V 4.5 packs frames together and needs less than what is counted here.
    """
    reading = read_video(
        frames, width, height, settings_of(rule, vision, min_pixels, max_pixels), (min_pixels, max_pixels)
    )
    return None if reading is None else reading.tokens
