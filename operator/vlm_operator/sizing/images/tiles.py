"""Rules with tiles: the image is laid over a grid of squares of one size, mostly with an overview of the whole.

Each family chooses the grid in its own way. A grid is (columns, rows). Sources: the image processors of the families
(Hugging Face transformers, or the code in the model's repository) and vLLM's counts for them. Marker tokens around an
image and its tiles are counted only where the docstring says so.
"""

from collections.abc import Iterator
from functools import lru_cache
from math import ceil, inf, isqrt, log, sqrt

from vlm_operator.sizing.images.settings import Reading, Settings

Grid = tuple[int, int]

ONE_VISION_SIDE = 6
"""LLaVA-OneVision lays an image over a grid of at most this many tiles a side."""
ONE_VISION_SLACK = 1.1
"""It shrinks what exceeds its tiles only beyond this factor a side."""
MINICPM_QUERIES = 64
"""Tokens that the resampler of MiniCPM-V makes of an image, a slice or a frame."""
MOLMO_MARGIN = 4
"""Patches on each side of a crop that the neighbouring crops of Molmo also show."""


@lru_cache(maxsize=256)
def grids(most: int) -> tuple[Grid, ...]:
    """Every grid of at most `most` tiles, fewest tiles first."""
    found = [(columns, rows) for columns in range(1, most + 1) for rows in range(1, most // columns + 1)]
    return tuple(sorted(found, key=lambda grid: (grid[0] * grid[1], grid)))


def fixed(_width: int, _height: int, settings: Settings) -> Reading:
    """LLaVA 1.5 and Gemma 3: every image is resized to one tile (Gemma's crops are off by default)."""
    return Reading(tokens=settings.tile_tokens, patches=settings.tile_patches)


def intern_vl(width: int, height: int, settings: Settings) -> Reading:
    """InternVL and Nemotron Nano VL: the grid nearest in shape, with an overview when it has several tiles."""
    columns, rows = closest_grid(width, height, settings)
    return _with_overview(columns * rows, settings)


def closest_grid(width: int, height: int, settings: Settings) -> Grid:
    """The grid whose ratio is nearest to the image's.

    Of grids that are equally near, the one with more tiles wins if the image has more than half of its pixels.
    """
    ratio, area = width / height, width * height
    best, nearest = (1, 1), inf
    for columns, rows in grids(settings.max_tiles):
        distance = abs(ratio - columns / rows)
        if distance < nearest or (distance == nearest and 2 * area > settings.tile**2 * columns * rows):
            best, nearest = (columns, rows), distance
    return best


def mllama(width: int, height: int, settings: Settings) -> Reading:
    """Llama 3.2 Vision: entries of the cross-attention layers, each tile with one class token; no overview."""
    columns, rows = best_canvas(width, height, tile=settings.tile, most=settings.max_tiles)
    tiles = columns * rows
    return Reading(tokens=tiles * (settings.tile_tokens + 1), patches=tiles * settings.tile_patches)


def llama4(width: int, height: int, settings: Settings) -> Reading:
    """Llama 4: the canvas that fits best, with an overview when it has several tiles; separators are not counted."""
    columns, rows = best_canvas(width, height, tile=settings.tile, most=settings.max_tiles)
    return _with_overview(columns * rows, settings)


def best_canvas(width: float, height: float, *, tile: int, most: int) -> Grid:
    """The grid that needs the least enlargement, or else the least reduction; of equals the one with fewest tiles."""
    best, best_scale = (1, 1), -inf
    for columns, rows in grids(most):
        scale = min(_scale(columns * tile, width), _scale(rows * tile, height))
        better = scale < best_scale if best_scale >= 1 and scale >= 1 else scale > best_scale and best_scale < 1
        if better:
            best, best_scale = (columns, rows), scale
    return best


def _scale(target: int, side: float) -> float:
    return target / side if side else inf


def deepseek_vl2(width: int, height: int, settings: Settings) -> Reading:
    """DeepSeek-VL2: overview and grid, one separator between them and one token at the end of each row of tokens.

    vLLM turns tiling off when a prompt has more than two images; each then costs what one tile costs.
    """
    columns, rows = most_pixels_kept(width, height, tile=settings.tile, allowed=grids(settings.max_tiles))
    side = settings.tile_side
    tokens = side * (side + 1) + 1 + side * rows * (side * columns + 1)
    return Reading(tokens=tokens, patches=(columns * rows + 1) * settings.tile_patches)


def most_pixels_kept(width: int, height: int, *, tile: int, allowed: tuple[Grid, ...]) -> Grid:
    """The grid that keeps most of the image's own pixels, then the one that wastes the fewest of its own."""
    area = width * height
    best, best_kept, best_canvas_area = (1, 1), -1, 0
    for columns, rows in allowed:
        canvas_width, canvas_height = columns * tile, rows * tile
        scale = min(canvas_width / width, canvas_height / height)
        kept = min(int(width * scale) * int(height * scale), area)
        canvas = canvas_width * canvas_height
        if kept > best_kept or (kept == best_kept and canvas < best_canvas_area):
            best, best_kept, best_canvas_area = (columns, rows), kept, canvas
    return best


LLAVA_NEXT_GRIDS: tuple[Grid, ...] = ((2, 1), (1, 2), (2, 2), (1, 3), (3, 1))
"""The grids of `image_grid_pinpoints` in every LLaVA 1.6, in the order of the file: of equals the first is taken."""


def llava_next(width: int, height: int, settings: Settings) -> Reading:
    """LLaVA-NeXT (1.6): overview, and the grid without its padding, with one newline token per row of tokens.

    As vLLM counts (`llava_next.py`, `get_num_image_tokens`), which a test has values of.
    """
    columns, rows = most_pixels_kept(width, height, tile=settings.tile, allowed=LLAVA_NEXT_GRIDS)
    side = settings.tile_side
    across, down = _unpadded(width, height, columns * side, rows * side)
    return Reading(tokens=side**2 + (across + 1) * down, patches=(columns * rows + 1) * settings.tile_patches)


ONE_VISION_GRIDS: tuple[Grid, ...] = tuple(
    (columns, rows) for rows in range(1, ONE_VISION_SIDE + 1) for columns in range(1, ONE_VISION_SIDE + 1)
)


def llava_one_vision(width: int, height: int, settings: Settings) -> Reading:
    """LLaVA-OneVision: overview, and the grid without its padding, with one newline token per row of tokens.

    A grid much larger than `max_tiles` tiles is shrunk to that size.
    """
    columns, rows = most_pixels_kept(width, height, tile=settings.tile, allowed=ONE_VISION_GRIDS)
    side = settings.tile_side
    across, down = _unpadded(width, height, columns * side, rows * side)
    shrink = sqrt(across * down / (settings.max_tiles * side**2))
    if shrink > ONE_VISION_SLACK:
        across, down = int(across // shrink), int(down // shrink)
    return Reading(tokens=side**2 + (across + 1) * down, patches=(columns * rows + 1) * settings.tile_patches)


def _unpadded(width: int, height: int, across: int, down: int) -> tuple[int, int]:
    """What of the grid of tokens the image covers; padding is cut in equal parts from both sides."""
    if width / height > across / down:
        covered = int(round(height * (across / width), 7))
        return across, down - (down - covered) // 2 * 2
    covered = int(round(width * (down / height), 7))
    return across - (across - covered) // 2 * 2, down


def minicpm(width: int, height: int, settings: Settings) -> Reading:
    """MiniCPM-V: an overview, and slices when the image has more pixels than one; wrapper tokens are not counted."""
    slices = _minicpm_slices(width, height, settings)
    if slices is None:
        return Reading(tokens=MINICPM_QUERIES, patches=_minicpm_patches(width, height, settings, enlarge=True))
    columns, rows = slices
    overview = _minicpm_patches(width, height, settings, enlarge=False)
    part = _minicpm_patches(
        _nearest_multiple(width, columns) / columns, _nearest_multiple(height, rows) / rows, settings, enlarge=True
    )
    return Reading(tokens=MINICPM_QUERIES * (columns * rows + 1), patches=overview + columns * rows * part)


def _minicpm_slices(width: int, height: int, settings: Settings) -> Grid | None:
    """The grid of about as many slices as the image has pixels for, nearest in the logarithm of its ratio."""
    wanted = min(ceil(width * height / settings.tile**2), settings.max_tiles)
    if wanted <= 1:
        return None
    ratio = log(width / height)
    counts = [count for count in (wanted - 1, wanted, wanted + 1) if 1 < count <= settings.max_tiles]
    choices = [(columns, count // columns) for count in counts for columns in divisors(count)]
    return min(choices, key=lambda grid: abs(ratio - log(grid[0] / grid[1])))


def divisors(number: int) -> Iterator[int]:
    """The divisors of a number, smallest first."""
    return (divisor for divisor in range(1, number + 1) if number % divisor == 0)


def _minicpm_patches(width: float, height: float, settings: Settings, *, enlarge: bool) -> int:
    if enlarge or width * height > settings.tile**2:
        ratio = width / height
        height = int(settings.tile / sqrt(ratio))
        width = int(height * ratio)
    return (_nearest_multiple(width, settings.patch) // settings.patch) * (
        _nearest_multiple(height, settings.patch) // settings.patch
    )


def _nearest_multiple(length: float, unit: int) -> int:
    return max(round(length / unit), 1) * unit


def phi3(width: int, height: int, settings: Settings) -> Reading:
    """Phi-3.5-vision: crops and overview, one separator, and one newline token per row of both; small images grow."""
    wide, narrow = max(width, height), min(width, height)
    ratio = wide / narrow
    across = 1
    while (across + 1) * ceil((across + 1) / ratio) <= settings.max_tiles:
        across += 1
    down = max(1, ceil(int(across * settings.tile / ratio) / settings.tile))
    rows = down if width >= height else across
    tiles = across * down
    side = settings.tile_side
    return Reading(tokens=(tiles + 1) * side**2 + 1 + (rows + 1) * side, patches=(tiles + 1) * settings.tile_patches)


def molmo(width: int, height: int, settings: Settings) -> Reading:
    """Molmo: overview and overlapping crops; the tokens at start, end and end of row are counted."""
    window, margin = molmo_window(settings)
    columns, rows = best_canvas(width - margin, height - margin, tile=window, most=settings.max_tiles)
    overview = 2 + settings.tile_side * (settings.tile_side + 1)
    across, down = ((count * window + margin) // settings.patch // settings.merge for count in (columns, rows))
    return Reading(tokens=overview + 2 + down * (across + 1), patches=(columns * rows + 1) * settings.tile_patches)


def molmo_window(settings: Settings) -> tuple[int, int]:
    """Pixels that a crop adds along a side, and the margin that all crops of a side have once."""
    margin = 2 * MOLMO_MARGIN * settings.patch
    return max(settings.patch, settings.tile // settings.patch * settings.patch - margin), margin


def idefics3(width: int, height: int, settings: Settings) -> Reading:
    """Idefics3 and SmolVLM: the longest side becomes a fixed number of tiles; markers are not counted."""
    most = isqrt(settings.max_tiles)
    longest = most * settings.tile
    shorter = _shorter_side(longest, width, height)
    shorter += shorter % 2
    # The processor works the ratio out again from the rounded size.
    wide, tall = (longest, shorter) if width >= height else (shorter, longest)
    other = max(1, ceil(_shorter_side(longest, wide, tall) / settings.tile))
    return _with_overview(most * other, settings)


def _shorter_side(longest: int, width: int, height: int) -> int:
    ratio = width / height
    return max(1, int(longest / ratio if width >= height else longest * ratio))


def _with_overview(tiles: int, settings: Settings) -> Reading:
    pictures = tiles + 1 if tiles > 1 else 1
    return Reading(tokens=pictures * settings.tile_tokens, patches=pictures * settings.tile_patches)
