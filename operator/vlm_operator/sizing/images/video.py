"""Tokens of videos, for the families whose rule for them is known.

Which frames are taken is decided before: these functions get their number.
"""

from math import ceil

from vlm_operator.api.architecture import ImageRule
from vlm_operator.sizing.images.families import read
from vlm_operator.sizing.images.free import FRAMES_OF_A_STEP, enlarged, fitted
from vlm_operator.sizing.images.settings import Reading, Settings
from vlm_operator.sizing.images.tiles import MINICPM_QUERIES

POOLING = 2
"""LLaVA-OneVision pools this many tokens of a frame a side."""
LIMITS_OVER_ALL_FRAMES: dict[ImageRule, tuple[int, int]] = {
    "Qwen3VL": (4_096, 25_165_824),
    "Glm4V": (12_544, 47_040_000),
}
"""Least and most pixels over all frames, of the video processors published with Qwen3-VL and GLM-4.1V."""


def read_video(
    frames: int, width: int, height: int, settings: Settings, pixels: tuple[int | None, int | None]
) -> Reading | None:
    """What a video becomes; None where the family's rule is unknown. `pixels` are the user's least and most."""
    if frames < 1 or width < 1 or height < 1:
        message = f"a video has at least one frame of one pixel, not {frames} of {width}x{height}"
        raise ValueError(message)
    if settings.rule in LIMITS_OVER_ALL_FRAMES:
        least, most = LIMITS_OVER_ALL_FRAMES[settings.rule]
        return _over_all_frames(frames, width, height, settings, (pixels[0] or least, pixels[1] or most))
    return _frame_by_frame(frames, width, height, settings)


def _frame_by_frame(frames: int, width: int, height: int, settings: Settings) -> Reading | None:
    """Families whose frames do not shrink with their number."""
    match settings.rule:
        case "Qwen2VL":
            frame = read(width, height, settings)
            return Reading(tokens=frame.tokens * _steps(frames), patches=frame.patches * _steps(frames))
        case "InternVL" | "NemotronVL":
            return Reading(tokens=frames * settings.tile_tokens, patches=frames * settings.tile_patches)
        case "LlavaOneVision":
            pooled = ceil(settings.tile_side / POOLING) ** 2
            return Reading(tokens=frames * pooled + 1, patches=frames * settings.tile_patches)
        case "MiniCPMV":
            return Reading(tokens=frames * MINICPM_QUERIES, patches=frames * settings.tile_patches)
        case _:
            return None


def _steps(frames: int) -> int:
    """Steps of time; an odd last frame is doubled."""
    return -(-frames // FRAMES_OF_A_STEP)


def _over_all_frames(frames: int, width: int, height: int, settings: Settings, pixels: tuple[int, int]) -> Reading:
    """The limits hold over all frames, so that a longer video has smaller ones."""
    frames = max(frames, FRAMES_OF_A_STEP)
    columns, rows = fitted(*enlarged(width, height, settings.unit), unit=settings.unit, pixels=pixels, frames=frames)
    tokens = columns * rows * _steps(frames)
    return Reading(tokens=tokens, patches=tokens * settings.merge**2)
