"""The image that costs most, found among the few shapes that can.

Each search proposes images and asks the family's own function, so that the answer is always the cost of a real image.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, isqrt

from vlm_operator.api.architecture import ImageRule
from vlm_operator.sizing.images.families import read
from vlm_operator.sizing.images.free import FRAMES_OF_A_STEP, KIMI_MAX_SIDE, MAX_RATIO
from vlm_operator.sizing.images.settings import RefusedImageError, Settings
from vlm_operator.sizing.images.tiles import (
    LLAVA_NEXT_GRIDS,
    ONE_VISION_SIDE,
    ONE_VISION_SLACK,
    Grid,
    divisors,
    molmo_window,
)

Size = tuple[int, int]

PHOTO_SIDES = (1024, 2048, 8192)
"""Longest sides in pixels of the images that `largest_photo` tries; the last is more than any family keeps."""
PHOTO_SHAPES: tuple[Size, ...] = ((1, 1), (4, 3), (3, 2), (16, 9), (3, 4), (2, 3), (9, 16))
"""Shapes of cameras and screens, either way up."""
PHOTO_RATIO = 2
"""No common shape has sides that differ by more than this."""


@dataclass(frozen=True, kw_only=True)
class ImageSize:
    """An image and what it becomes."""

    width: int
    height: int
    """Pixels."""
    tokens: int
    patches: int
    """Patches that the vision tower sees, before merging."""


@lru_cache(maxsize=256)
def largest(settings: Settings) -> ImageSize:
    """The image with the most tokens; of equals the one with the most patches, then the one nearest to a square."""
    return _costliest(_SEARCHES.get(settings.rule, _whole_grids)(settings), settings)


@lru_cache(maxsize=256)
def largest_of_photos(settings: Settings) -> ImageSize:
    """The image with the most tokens among common shapes."""
    return _costliest(_photos(settings), settings)


def _costliest(sizes: Iterator[Size], settings: Settings) -> ImageSize:
    costs = []
    for width, height in sizes:
        try:
            reading = read(width, height, settings)
        except RefusedImageError:
            continue
        costs.append(ImageSize(width=width, height=height, tokens=reading.tokens, patches=reading.patches))
    return max(costs, key=_cost)


def _cost(image: ImageSize) -> tuple[int, int, float]:
    shape = min(image.width, image.height) / max(image.width, image.height)
    return image.tokens, image.patches, shape


def _photos(settings: Settings) -> Iterator[Size]:
    for side in PHOTO_SIDES:
        for width, height in PHOTO_SHAPES:
            yield side * width // max(width, height), side * height // max(width, height)
    if _SEARCHES.get(settings.rule) is _free:
        # Rounding inwards seldom leaves a large image all that the limit allows; one of whole units has it.
        yield _most_units(settings, ratio=PHOTO_RATIO)


def _whole_grids(settings: Settings) -> Iterator[Size]:
    """Images that fill a grid exactly: the tokens of a tiling family depend on nothing but the grid."""
    for columns, rows in _full_grids(settings):
        yield columns * settings.tile, rows * settings.tile


def _molmo(settings: Settings) -> Iterator[Size]:
    window, margin = molmo_window(settings)
    for columns, rows in _full_grids(settings):
        yield columns * window + margin, rows * window + margin


def _full_grids(settings: Settings) -> Iterator[Grid]:
    """Grids of the most tiles; and one tile, because Idefics3 fills its square grid with any square image."""
    yield 1, 1
    for columns in divisors(settings.max_tiles):
        yield columns, settings.max_tiles // columns


def _square(settings: Settings) -> Iterator[Size]:
    yield settings.tile, settings.tile


def _next(settings: Settings) -> Iterator[Size]:
    for columns, rows in LLAVA_NEXT_GRIDS:
        yield columns * settings.tile, rows * settings.tile


def _one_vision(settings: Settings) -> Iterator[Size]:
    """Images that cover as much of a grid as is left unshrunk, either way up, for each length of the other side."""
    side = settings.tile_side
    most = int(ONE_VISION_SLACK**2 * settings.max_tiles * side**2)
    for count in range(1, ONE_VISION_SIDE + 1):
        long = count * side
        widest = min(ONE_VISION_SIDE * side, most // long)
        # Padding is cut in pairs of rows, so the neighbours of the widest are tried as well.
        for short in range(max(1, widest - 2), widest + 1):
            pixels = ceil(short * settings.tile / side)
            yield pixels, count * settings.tile
            yield count * settings.tile, pixels


def _free(settings: Settings) -> Iterator[Size]:
    """Images of the most tokens that the limit allows, and the elongated ones that rounding outwards takes past it."""
    unit = settings.unit
    yield _most_units(settings, ratio=MAX_RATIO)
    # Rounded inwards, yet never below one unit a side.
    yield MAX_RATIO * unit * 8, unit * 8
    yield MAX_RATIO * unit, unit
    yield MAX_RATIO, 1
    if 2 * settings.min_pixels > settings.max_pixels:
        # An enlarged image has at most about twice the tokens of the least.
        yield from _just_enlarged(settings.min_pixels // _frames(settings), unit)


def _frames(settings: Settings) -> int:
    """As how many frames an image counts against the limits."""
    return FRAMES_OF_A_STEP if settings.rule == "Glm4V" else 1


def _most_units(settings: Settings, *, ratio: int) -> Size:
    """The size in whole units with the largest area that the limit and the ratio of the sides allow.

    Of several shapes the one nearest to a square. Rounding allows for a little less than half a unit a side.
    """
    unit = settings.unit
    slack = unit // 2 - 1
    for area in range(settings.max_pixels // (_frames(settings) * unit * unit), 0, -1):
        short = next(side for side in range(isqrt(area), 0, -1) if area % side == 0)
        long = area // short
        if long <= ratio * short:
            return long * unit, short * unit
        if long * unit - slack <= ratio * (short * unit + slack):
            return long * unit - slack, short * unit + slack
    return unit, unit


def _just_enlarged(pixels: int, unit: int) -> Iterator[Size]:
    """Small images whose shorter side is enlarged to just over a whole number of units."""
    for short in (*range(1, unit // 2 + 1), unit):
        yield MAX_RATIO * short, short
        for rows in range(1, isqrt(pixels) // unit + 2):
            long = ceil(short * pixels / (rows * unit) ** 2) - 1
            if short <= long <= MAX_RATIO * short:
                yield long, short


def _kimi(settings: Settings) -> Iterator[Size]:
    """Images whose patches just do not fill their tokens, so that padding adds most.

    A side of n patches and a rest one pixel short of a patch is the longest that counts as n. For each such shorter side
    the other is as long as it can be before scaling down takes a token from the shorter one, or before it is refused.
    """
    patch, unit, rest = settings.patch, settings.unit, settings.patch - 1
    most = max(1, settings.max_pixels // patch**2)
    positions = KIMI_MAX_SIDE - settings.merge - 1
    longest = (positions * patch + rest) ** 2
    for count in range(isqrt(most) + 1):
        short = max(1, count * patch + rest)
        whole = ceil(short / unit) - 1
        scale = min(1.0, (whole * unit + 1) / short)
        whole_long = int(most / scale**2 / count) if count else positions
        # Scaled by sqrt(most / patches), the long side ends as `longest` squared says; the rest is in the second term.
        refused_from = int((longest * count / most - 2 * patch * rest) / patch**2)
        long = min(whole_long, max(positions, refused_from))
        for patches in (long, min(long, positions)):
            yield short, max(1, patches * patch + rest)


_SEARCHES: dict[ImageRule, Callable[[Settings], Iterator[Size]]] = {
    "Qwen2VL": _free,
    "Qwen3VL": _free,
    "Glm4V": _free,
    "KimiVL": _kimi,
    "LlavaNext": _next,
    "LlavaOneVision": _one_vision,
    "Molmo": _molmo,
    "Pixtral": _square,
    "Mistral3": _square,
}
"""Rules whose largest image is not one that fills a grid."""
