"""Tokens of images: the published counts of each family, bounds that hold for every image, and what is refused."""

from dataclasses import dataclass
from typing import get_args

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from vlm_operator.api.architecture import ImageRule, ImageTokens, VisionArchitecture
from vlm_operator.sizing.images import (
    RefusedImageError,
    image_tokens,
    largest_image,
    largest_photo,
    patches,
    takes_pixel_limits,
    video_tokens,
)

RULES: tuple[ImageRule, ...] = get_args(ImageRule)
FREE: tuple[ImageRule, ...] = ("Qwen2VL", "Qwen3VL", "Glm4V")


def rule_of(
    name: ImageRule, *, min_pixels: int | None = None, max_pixels: int | None = None, tile_size: int | None = None
) -> ImageTokens:
    return ImageTokens(rule=name, min_pixels=min_pixels, max_pixels=max_pixels, tile_size=tile_size)


def tower(patch: int, merge: int | None) -> VisionArchitecture:
    return VisionArchitecture(
        layers=24,
        hidden_size=1024,
        attention_heads=16,
        intermediate_size=4096,
        patch_size=patch,
        spatial_merge_size=merge,
    )


@dataclass(frozen=True)
class Published:
    rule: ImageTokens
    vision: VisionArchitecture
    small: int
    square: int
    screen: int
    photo: int
    """The most that an image of a common shape costs."""
    strip: int
    """The most that an image of any shape costs."""


# fmt: off
PUBLISHED = {
    "Qwen2.5-VL": Published(rule_of("Qwen2VL"), tower(14, 2), 64, 1369, 2691, 16384, 16384),
    "Qwen3-VL": Published(rule_of("Qwen3VL"), tower(16, 2), 64, 1024, 2040, 16384, 16384),
    "GLM-4.1V": Published(rule_of("Glm4V"), tower(14, 2), 64, 1369, 2691, 6144, 6144),
    "Kimi-VL": Published(rule_of("KimiVL"), tower(14, 2), 64, 1089, 1032, 1089, 1338),
    "InternVL3": Published(rule_of("InternVL"), tower(14, 2), 256, 2560, 2304, 3328, 3328),
    "Nemotron Nano VL": Published(rule_of("NemotronVL"), tower(16, 2), 256, 1280, 2304, 3328, 3328),
    "Llama 3.2 Vision": Published(rule_of("Mllama"), tower(14, 1), 1601, 6404, 6404, 6404, 6404),
    "Llama 4": Published(rule_of("Llama4"), tower(14, 2), 144, 2448, 2304, 2448, 2448),
    "DeepSeek-VL2": Published(rule_of("DeepSeekVL2"), tower(14, 2), 421, 2017, 1807, 2017, 2101),
    "LLaVA 1.5": Published(rule_of("Llava"), tower(14, 1), 576, 576, 576, 576, 576),
    "LLaVA 1.6": Published(rule_of("LlavaNext"), tower(14, 1), 1176, 2928, 1948, 2928, 2928),
    "LLaVA-OneVision": Published(rule_of("LlavaOneVision"), tower(14, 1), 1485, 7371, 7269, 7371, 8765),
    "MiniCPM-V": Published(rule_of("MiniCPMV"), tower(14, None), 64, 448, 576, 640, 640),
    "Pixtral": Published(rule_of("Pixtral"), tower(16, 1), 210, 4160, 2340, 4160, 4160),
    "Mistral Small 3.1": Published(rule_of("Mistral3"), tower(14, 2), 72, 1406, 1736, 3080, 3080),
    "Gemma 3": Published(rule_of("Gemma3"), tower(14, 4), 256, 256, 256, 256, 256),
    "Phi-3.5-vision": Published(rule_of("Phi3V"), tower(14, 2), 757, 757, 757, 757, 781),
    "Molmo": Published(rule_of("Molmo"), tower(14, 2), 316, 972, 1196, 1204, 1460),
    "SmolVLM2-500M": Published(rule_of("SmolVLM"), tower(16, 4), 1088, 1088, 832, 1088, 1088),
    "SmolVLM2-2.2B": Published(rule_of("SmolVLM", tile_size=384), tower(14, 3), 1377, 1377, 1053, 1377, 1377),
    "Idefics3": Published(rule_of("Idefics3"), tower(14, 2), 2873, 2873, 2197, 2873, 2873),
}
# fmt: on


def test_every_rule_is_in_the_table() -> None:
    assert {published.rule.rule for published in PUBLISHED.values()} == set(RULES)


@pytest.mark.parametrize("published", PUBLISHED.values(), ids=PUBLISHED)
def test_tokens_are_the_published_ones(published: Published) -> None:
    counted = [
        image_tokens(published.rule, *size, vision=published.vision)
        for size in ((224, 224), (1024, 1024), (1920, 1080))
    ]
    assert counted == [published.small, published.square, published.screen]


@pytest.mark.parametrize("published", PUBLISHED.values(), ids=PUBLISHED)
def test_the_largest_photo_is_the_published_most_and_a_strip_may_cost_more(published: Published) -> None:
    photo = largest_photo(published.rule, vision=published.vision)
    strip = largest_image(published.rule, vision=published.vision)
    assert (photo.tokens, strip.tokens) == (published.photo, published.strip)


@pytest.mark.parametrize("published", PUBLISHED.values(), ids=PUBLISHED)
def test_the_family_defaults_are_those_of_its_published_tower(published: Published) -> None:
    if published.rule.tile_size is None:
        assert image_tokens(published.rule, 1920, 1080) == published.screen


@pytest.mark.parametrize("published", PUBLISHED.values(), ids=PUBLISHED)
def test_the_largest_image_is_a_real_one(published: Published) -> None:
    for found in (
        largest_image(published.rule, vision=published.vision),
        largest_photo(published.rule, vision=published.vision),
    ):
        size = (found.width, found.height)
        assert image_tokens(published.rule, *size, vision=published.vision) == found.tokens
        assert patches(published.rule, *size, vision=published.vision) == found.patches


# fmt: off
PATCHES = [
    # 1920x1080 becomes 69 x 39 units of four patches.
    ("Qwen2VL", 4 * 69 * 39),
    # 4 x 2 tiles and the overview, 32 x 32 patches each.
    ("InternVL", 9 * 1024),
    # 2 x 2 tiles of 40 x 40 patches; class tokens are not patches.
    ("Mllama", 4 * 1600),
    # 64 x 36 patches, each a token.
    ("Pixtral", 64 * 36),
    # 55 x 31 units of four patches.
    ("Mistral3", 4 * 55 * 31),
    ("Gemma3", 64 * 64),
    # An overview of 43 x 24 patches and 4 x 2 slices of 30 x 34.
    ("MiniCPMV", 43 * 24 + 8 * 30 * 34),
    # Patches of the whole canvas, padding included: 5 x 3 tiles and the overview.
    ("LlavaOneVision", 16 * 27 * 27),
]
# fmt: on


@pytest.mark.parametrize(("name", "expected"), PATCHES, ids=[row[0] for row in PATCHES])
def test_patches_are_those_before_merging(name: ImageRule, expected: int) -> None:
    assert patches(rule_of(name), 1920, 1080) == expected


# fmt: off
BY_VLLM = [
    ((672, 672), 2928), ((448, 448), 2928), ((336, 336), 1176), ((2560, 1669), 2144), ((488, 183), 1458),
    ((1080, 1920), 1968), ((1008, 336), 2328), ((336, 1008), 2376), ((640, 480), 2340), ((333, 1001), 2376),
    ((3000, 100), 722), ((100, 3000), 792), ((7, 13), 888), ((1, 1), 1176),
]
"""What `LlavaNextProcessingInfo.get_num_image_tokens` of vLLM 0.32 gave for the tower of LLaVA 1.6."""
# fmt: on


@pytest.mark.parametrize(("size", "tokens"), BY_VLLM)
def test_llava_next_is_counted_as_vllm_counts_it(size: tuple[int, int], tokens: int) -> None:
    assert image_tokens(rule_of("LlavaNext"), *size) == tokens


sides = st.integers(1, 200) | st.integers(1, 9000) | st.integers(1, 200_000)


@settings(max_examples=200)
@given(st.sampled_from(RULES), sides, sides)
def test_every_image_costs_something_and_none_more_than_the_largest(name: ImageRule, width: int, height: int) -> None:
    rule = rule_of(name)
    try:
        tokens = image_tokens(rule, width, height)
    except RefusedImageError:
        assume(False)
    assert 0 < tokens <= largest_image(rule).tokens
    assert patches(rule, width, height) > 0


@settings(max_examples=200)
@given(st.sampled_from(FREE), sides, st.integers(-200, 200), st.integers(1, 1 << 21), st.integers(2, 1 << 24))
def test_no_image_exceeds_the_largest_under_limits_of_the_user(
    name: ImageRule, short: int, ratio: int, least: int, most: int
) -> None:
    assume(2 * least <= most and ratio != 0)
    size = (short, short * ratio) if ratio > 0 else (short * -ratio, short)
    tokens = image_tokens(rule_of(name), *size, min_pixels=least, max_pixels=most)
    assert 0 < tokens <= largest_image(rule_of(name), min_pixels=least, max_pixels=most).tokens


@settings(max_examples=150)
@given(st.sampled_from(FREE), st.integers(1, 5000), st.integers(1, 5000), st.integers(1_500_000, 1 << 24))
def test_an_image_of_ordinary_shape_stays_within_the_pixels_of_the_user(
    name: ImageRule, width: int, height: int, most: int
) -> None:
    assume(max(width, height) <= 16 * min(width, height))
    frames, unit = (2, 28) if name == "Glm4V" else (1, 28 if name == "Qwen2VL" else 32)
    tokens = image_tokens(rule_of(name), width, height, max_pixels=most)
    assert frames * tokens * unit * unit <= most


@settings(max_examples=150)
@given(
    st.sampled_from([name for name in RULES if name not in FREE]),
    sides,
    sides,
    st.integers(1, 9) | st.just(16),
)
def test_no_image_exceeds_the_largest_for_other_numbers_of_tiles(
    name: ImageRule, width: int, height: int, tiles: int
) -> None:
    rule = ImageTokens(rule=name, max_tiles=tiles)
    try:
        tokens = image_tokens(rule, width, height)
    except RefusedImageError:
        assume(False)
    assert 0 < tokens <= largest_image(rule).tokens


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("size", [(1, 1), (100_000, 1), (1, 100_000), (200, 1), (13, 7000), (1_000_000, 1_000_000)])
def test_extreme_images_are_counted_or_refused(name: ImageRule, size: tuple[int, int]) -> None:
    rule = rule_of(name)
    strip = max(size) > 200 * min(size)
    if (name in FREE and strip) or (name == "KimiVL" and strip and max(size) > 7140):
        with pytest.raises(RefusedImageError):
            image_tokens(rule, *size)
    else:
        assert 0 < image_tokens(rule, *size) <= largest_image(rule).tokens


def test_a_ratio_of_200_is_the_last_that_qwen_takes() -> None:
    assert image_tokens(rule_of("Qwen2VL"), 200 * 28, 28) == 200
    with pytest.raises(RefusedImageError, match="5601x28 pixels is refused: its sides differ by more than 200 to 1"):
        image_tokens(rule_of("Qwen2VL"), 200 * 28 + 1, 28)


def test_kimi_refuses_a_side_of_512_patches() -> None:
    assert image_tokens(rule_of("KimiVL"), 7140, 28) == 255
    with pytest.raises(RefusedImageError, match="512 patches or more"):
        image_tokens(rule_of("KimiVL"), 7141, 28)


@pytest.mark.parametrize("size", [(0, 10), (10, 0), (-1, 10)])
def test_an_image_without_pixels_is_an_error(size: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="at least one pixel a side"):
        image_tokens(rule_of("Gemma3"), *size)


def test_limits_of_the_user_come_before_those_of_the_rule() -> None:
    rule = rule_of("Qwen2VL", min_pixels=3136, max_pixels=12_845_056)
    assert image_tokens(rule, 4000, 4000, max_pixels=1_003_520) == 35 * 35
    assert image_tokens(rule, 28, 28, min_pixels=28 * 28 * 100) == 100
    assert largest_image(rule, max_pixels=1_003_520).tokens == 1280


def test_limits_of_the_rule_come_before_those_of_the_family() -> None:
    assert largest_image(rule_of("Qwen2VL", max_pixels=28 * 28 * 400)).tokens == 400
    assert image_tokens(rule_of("KimiVL", max_pixels=16_384 * 196), 1792, 1792) == 64 * 64


def test_the_bound_holds_when_least_and_most_pixels_are_one() -> None:
    limit = 64 * 32 * 32
    found = largest_image(rule_of("Qwen3VL"), min_pixels=limit, max_pixels=limit)
    # A strip of just over one unit by just under 64 is rounded outwards to twice the units of the limit.
    assert found.tokens == 128
    for short in range(1, 40):
        for ratio in range(1, 201):
            size = (short, short * ratio)
            assert image_tokens(rule_of("Qwen3VL"), *size, min_pixels=limit, max_pixels=limit) <= found.tokens


def test_a_strip_passes_a_small_limit_because_no_side_is_rounded_to_nothing() -> None:
    # 5600 x 28 pixels scaled to 100 units would be 141 units by 0.7: the shorter side stays at one unit.
    rule = rule_of("Qwen2VL", max_pixels=28 * 28 * 100)
    assert image_tokens(rule, 200 * 28, 28) == largest_image(rule).tokens == 141
    assert largest_photo(rule).tokens == 100


@pytest.mark.parametrize("name", RULES)
def test_only_rules_with_free_resolution_take_limits_of_the_user(name: ImageRule) -> None:
    rule = rule_of(name)
    bounded = image_tokens(rule, 1920, 1080, min_pixels=10_000, max_pixels=100_000)
    assert takes_pixel_limits(rule) == (name in FREE)
    assert (bounded < image_tokens(rule, 1920, 1080)) == takes_pixel_limits(rule)


# fmt: off
VIDEOS = [
    ("an odd last frame is doubled", "Qwen2VL", 5, (224, 224), 3 * 64),
    ("limits over all frames leave a short video whole", "Qwen3VL", 16, (1280, 704), 8 * 40 * 22),
    ("limits over all frames shrink a long one", "Qwen3VL", 768, (1920, 1080), 384 * 7 * 4),
    ("GLM has its own limits", "Glm4V", 8, (1920, 1080), 4 * 69 * 39),
    ("a frame is one tile", "InternVL", 8, (1920, 1080), 8 * 256),
    ("a frame is pooled, one newline ends the video", "LlavaOneVision", 32, (640, 480), 32 * 196 + 1),
    ("a frame is not sliced", "MiniCPMV", 10, (1920, 1080), 640),
    ("Gemma's rule is unknown", "Gemma3", 8, (640, 480), None),
    ("Mllama takes no videos", "Mllama", 8, (640, 480), None),
]
# fmt: on


@pytest.mark.parametrize(("name", "frames", "size", "expected"), [v[1:] for v in VIDEOS], ids=[v[0] for v in VIDEOS])
def test_video_tokens(name: ImageRule, frames: int, size: tuple[int, int], expected: int | None) -> None:
    assert video_tokens(rule_of(name), frames, *size) == expected


def test_limits_of_the_user_hold_per_frame_for_qwen2_and_over_all_frames_for_qwen3() -> None:
    limit = 28 * 28 * 64
    assert video_tokens(rule_of("Qwen2VL"), 8, 1000, 1000, max_pixels=limit) == 4 * 64
    limit = 32 * 32 * 64 * 8
    assert video_tokens(rule_of("Qwen3VL"), 8, 1000, 1000, max_pixels=limit) == 4 * 64


@given(st.sampled_from(RULES), st.integers(1, 800), st.integers(1, 4000), st.integers(1, 4000))
def test_a_video_costs_something_or_is_unknown(name: ImageRule, frames: int, width: int, height: int) -> None:
    assume(max(width, height) <= 100 * min(width, height))
    tokens = video_tokens(rule_of(name), frames, width, height)
    assert tokens is None or tokens > 0


def test_a_video_without_frames_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one frame"):
        video_tokens(rule_of("Qwen2VL"), 0, 640, 480)
