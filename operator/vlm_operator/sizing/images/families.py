"""One function per rule: from the size of an image to its tokens and patches."""

from collections.abc import Callable

from vlm_operator.api.architecture import ImageRule
from vlm_operator.sizing.images import free, tiles
from vlm_operator.sizing.images.settings import Reading, Settings

FAMILIES: dict[ImageRule, Callable[[int, int, Settings], Reading]] = {
    "Qwen2VL": free.qwen,
    "Qwen3VL": free.qwen,
    "Glm4V": free.glm,
    "KimiVL": free.kimi,
    "InternVL": tiles.intern_vl,
    "NemotronVL": tiles.intern_vl,
    "Mllama": tiles.mllama,
    "Llama4": tiles.llama4,
    "DeepSeekVL2": tiles.deepseek_vl2,
    "Llava": tiles.fixed,
    "LlavaNext": tiles.llava_next,
    "LlavaOneVision": tiles.llava_one_vision,
    "MiniCPMV": tiles.minicpm,
    "Pixtral": free.pixtral,
    "Mistral3": free.pixtral,
    "Gemma3": tiles.fixed,
    "Phi3V": tiles.phi3,
    "Molmo": tiles.molmo,
    "SmolVLM": tiles.idefics3,
    "Idefics3": tiles.idefics3,
}


def read(width: int, height: int, settings: Settings) -> Reading:
    """What an image of this size in pixels becomes. Raises RefusedImageError, and ValueError for sides below one."""
    if width < 1 or height < 1:
        message = f"an image has at least one pixel a side, not {width}x{height}"
        raise ValueError(message)
    return FAMILIES[settings.rule](width, height, settings)
