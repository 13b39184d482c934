"""What a family of models needs to know to read an image: patches, tiles and limits, from the rule and its defaults."""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from vlm_operator.api.architecture import ImageRule, ImageTokens, VisionArchitecture

TAKES_PIXEL_LIMITS: frozenset[ImageRule] = frozenset({"Qwen2VL", "Qwen3VL", "Glm4V"})
"""Rules whose processor accepts a least and a most number of pixels."""


class RefusedImageError(ValueError):
    """The family's own processor raises on an image of this shape; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What one image or video becomes."""

    tokens: int
    """Tokens in the prompt; for Mllama the entries that cross-attention holds instead."""
    patches: int
    """Patches that the vision tower sees, before merging and without its class tokens."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A rule with every default filled in. Lengths are in pixels."""

    rule: ImageRule
    patch: int
    """Side of a patch."""
    merge: int
    """Patches merged per side into one token."""
    tile: int
    """Side of a tile; the longest side for Pixtral and Mistral3; 0 for rules with free resolution."""
    max_tiles: int
    """Most tiles of one image, without the overview."""
    min_pixels: int
    max_pixels: int
    """Limits of rules with free resolution; 0 elsewhere."""

    @property
    def unit(self) -> int:
        """Side of what becomes one token, in pixels."""
        return self.patch * self.merge

    @property
    def _tile_row(self) -> int:
        return max(1, self.tile // self.patch)

    @property
    def tile_patches(self) -> int:
        """Patches of one tile; a rest that fills no patch is lost."""
        return self._tile_row**2

    @property
    def tile_side(self) -> int:
        """Tokens along the side of one tile; a rest that fills no merge is padded."""
        return ceil(self._tile_row / self.merge)

    @property
    def tile_tokens(self) -> int:
        """Tokens of one tile."""
        return self.tile_side**2


def _free(rule: ImageRule, *, patch: int, min_pixels: int, max_pixels: int) -> Settings:
    return Settings(rule=rule, patch=patch, merge=2, tile=0, max_tiles=1, min_pixels=min_pixels, max_pixels=max_pixels)


def _tiled(rule: ImageRule, *, tile: int, merge: int, max_tiles: int = 1, patch: int = 14) -> Settings:
    return Settings(rule=rule, patch=patch, merge=merge, tile=tile, max_tiles=max_tiles, min_pixels=0, max_pixels=0)


# The defaults are those of the processors that the families publish with their models.
DEFAULTS: dict[ImageRule, Settings] = {
    settings.rule: settings
    for settings in (
        _free("Qwen2VL", patch=14, min_pixels=3136, max_pixels=12_845_056),
        _free("Qwen3VL", patch=16, min_pixels=65_536, max_pixels=16_777_216),
        # Both limits count an image as two frames.
        _free("Glm4V", patch=14, min_pixels=12_544, max_pixels=9_633_792),
        # 4096 patches of 14 x 14 pixels.
        _free("KimiVL", patch=14, min_pixels=0, max_pixels=802_816),
        _tiled("InternVL", tile=448, merge=2, max_tiles=12),
        _tiled("NemotronVL", tile=512, merge=2, max_tiles=12, patch=16),
        _tiled("Mllama", tile=560, merge=1, max_tiles=4),
        _tiled("Llama4", tile=336, merge=2, max_tiles=16),
        _tiled("DeepSeekVL2", tile=384, merge=2, max_tiles=9),
        _tiled("Llava", tile=336, merge=1),
        _tiled("LlavaNext", tile=336, merge=1, max_tiles=4),
        _tiled("LlavaOneVision", tile=384, merge=1, max_tiles=9),
        _tiled("MiniCPMV", tile=448, merge=1, max_tiles=9),
        _tiled("Pixtral", tile=1024, merge=1, patch=16),
        _tiled("Mistral3", tile=1540, merge=2),
        _tiled("Gemma3", tile=896, merge=4),
        _tiled("Phi3V", tile=336, merge=2, max_tiles=4),
        _tiled("Molmo", tile=336, merge=2, max_tiles=12),
        _tiled("SmolVLM", tile=512, merge=4, max_tiles=16, patch=16),
        _tiled("Idefics3", tile=364, merge=2, max_tiles=16),
    )
}


def takes_pixel_limits(rule: ImageTokens) -> bool:
    """Whether a user can bound the pixels of an image; other rules leave the user's limits unused.

    Kimi-VL bounds the number of patches, Pixtral and Mistral 3 the longest side, the others the number of tiles: their
    processors know no `min_pixels` and no `max_pixels`.
    """
    return rule.rule in TAKES_PIXEL_LIMITS


@lru_cache(maxsize=1024)
def settings_of(
    rule: ImageTokens, vision: VisionArchitecture | None, min_pixels: int | None, max_pixels: int | None
) -> Settings:
    """The rule as it applies: the user's limits before those of the rule, those before the family's own."""
    default = DEFAULTS[rule.rule]
    given = takes_pixel_limits(rule)
    return Settings(
        rule=rule.rule,
        patch=default.patch if vision is None else vision.patch_size,
        merge=default.merge if vision is None or vision.spatial_merge_size is None else vision.spatial_merge_size,
        tile=rule.tile_size or default.tile,
        max_tiles=rule.max_tiles or default.max_tiles,
        min_pixels=(given and min_pixels) or rule.min_pixels or default.min_pixels,
        max_pixels=(given and max_pixels) or rule.max_pixels or default.max_pixels,
    )
