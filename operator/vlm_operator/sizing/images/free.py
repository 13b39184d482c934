"""Rules with free resolution: the image keeps its shape and its tokens follow its pixels.

Sources: the image processors of the families (Hugging Face transformers; Kimi-VL in the model's repository).
"""

from math import ceil, floor, sqrt

from vlm_operator.sizing.images.settings import Reading, RefusedImageError, Settings

MAX_RATIO = 200
"""Qwen and GLM refuse an image whose longer side is more than this many times the shorter one."""
KIMI_MAX_SIDE = 512
"""Kimi-VL has positions for fewer patches than this along each side."""
FRAMES_OF_A_STEP = 2
"""Frames that Qwen and GLM merge into one step of time."""


def fitted(width: int, height: int, *, unit: int, pixels: tuple[int, int], frames: int = 1) -> tuple[int, int]:
    """Columns and rows of `unit` pixels after resizing; `pixels` are the least and the most over all `frames`.

    Sides are rounded to the nearest unit (halves to even). Only when that leaves the limits is the image scaled, and
    then rounded inwards below the most or outwards above the least: an elongated small image can pass the most.
    Raises RefusedImageError beyond the ratio of 200.
    """
    if max(width, height) > MAX_RATIO * min(width, height):
        message = f"an image of {width}x{height} pixels is refused: its sides differ by more than {MAX_RATIO} to 1"
        raise RefusedImageError(message)
    least, most = pixels
    steps = 1 if frames == 1 else max(FRAMES_OF_A_STEP, round(frames / FRAMES_OF_A_STEP) * FRAMES_OF_A_STEP)
    columns, rows = round(width / unit), round(height / unit)
    area = steps * columns * rows * unit * unit
    if area > most:
        scale = sqrt(frames * height * width / most)
        return max(1, floor(width / scale / unit)), max(1, floor(height / scale / unit))
    if area < least:
        scale = sqrt(least / (frames * height * width))
        return ceil(width * scale / unit), ceil(height * scale / unit)
    return columns, rows


def enlarged(width: int, height: int, unit: int) -> tuple[int, int]:
    """The size with both sides at least about `unit`, as GLM and the videos of Qwen3 start with."""
    if min(width, height) >= unit:
        return width, height
    scale = max(unit / height, unit / width)
    return int(width * scale), int(height * scale)


def qwen(width: int, height: int, settings: Settings) -> Reading:
    """Qwen2-VL, Qwen2.5-VL and Qwen3-VL: one token per unit of 28 or 32 pixels a side."""
    columns, rows = fitted(width, height, unit=settings.unit, pixels=(settings.min_pixels, settings.max_pixels))
    return _merged(columns * rows, settings)


def glm(width: int, height: int, settings: Settings) -> Reading:
    """GLM-4.1V and GLM-4.5V: as Qwen, but the image counts as two frames against the limits."""
    columns, rows = fitted(
        *enlarged(width, height, settings.unit),
        unit=settings.unit,
        pixels=(settings.min_pixels, settings.max_pixels),
        frames=FRAMES_OF_A_STEP,
    )
    return _merged(columns * rows, settings)


def kimi(width: int, height: int, settings: Settings) -> Reading:
    """Kimi-VL: scaled down to a number of whole patches, then padded to whole tokens.

    What is padded is not limited, so that an elongated image costs more tokens than a square one. Raises
    RefusedImageError where a side has 512 patches or more.
    """
    patches = (width // settings.patch) * (height // settings.patch)
    most = settings.max_pixels // settings.patch**2
    if patches > most:
        scale = sqrt(most / patches)
        width, height = int(width * scale), int(height * scale)
    columns, rows = ceil(width / settings.unit), ceil(height / settings.unit)
    if max(columns, rows) * settings.merge >= KIMI_MAX_SIDE:
        message = f"an image of {width}x{height} pixels is refused: a side has {KIMI_MAX_SIDE} patches or more"
        raise RefusedImageError(message)
    return _merged(max(1, columns) * max(1, rows), settings)


def pixtral(width: int, height: int, settings: Settings) -> Reading:
    """Pixtral and Mistral Small 3.1: bounded longest side, one token per unit and one more at the end of each row."""
    scale = max(1.0, width / settings.tile, height / settings.tile)
    columns, rows = (max(1, ceil(floor(side / scale) / settings.unit)) for side in (width, height))
    return Reading(tokens=(columns + 1) * rows, patches=columns * rows * settings.merge**2)


def _merged(tokens: int, settings: Settings) -> Reading:
    return Reading(tokens=tokens, patches=tokens * settings.merge**2)
