"""How values of the resource are spelled for vLLM."""

import json
import math

from vlm_operator.api.scalars import duration_seconds, quantity_bytes
from vlm_operator.engines.base import PodInputs

KV_CACHE_DTYPES = {"Auto": None, "BF16": "bfloat16", "FP8": "fp8", "FP8E4M3": "fp8_e4m3", "FP8E5M2": "fp8_e5m2"}
"""Names of vLLM; None leaves the choice to it."""


def served_names(inputs: PodInputs) -> list[str]:
    """The names under which clients reach the model; metrics carry the first. Repetitions are dropped."""
    return list(dict.fromkeys([inputs.model.name, *inputs.model.served_names]))


def takes_images(inputs: PodInputs) -> bool:
    """Whether a request may hold an image."""
    limits = inputs.multimodal.limits_per_prompt
    return limits is None or limits.image != 0


def whole_seconds(duration: str) -> int:
    """A duration in seconds, rounded up."""
    return math.ceil(duration_seconds(duration))


def above_one(degree: object) -> object:
    """A degree of parallelism; None for 1, which is vLLM's default."""
    return None if degree == 1 else degree


def media_limits(inputs: PodInputs) -> str | None:
    """The limits per prompt as JSON, None when none is given."""
    limits = inputs.multimodal.limits_per_prompt
    return _json({"image": limits.image, "video": limits.video, "audio": limits.audio}) if limits else None


def processor_options(inputs: PodInputs) -> str | None:
    """Bounds of the size of images as JSON, None when none is given. Models with a fixed resolution ignore them."""
    return _json({"min_pixels": inputs.multimodal.min_pixels, "max_pixels": inputs.multimodal.max_pixels})


def gibibytes(quantity: str | None) -> str | None:
    """A quantity in GiB, to six decimals: `4`, `0.5`."""
    if quantity is None:
        return None
    return f"{quantity_bytes(quantity) / 2**30:.6f}".rstrip("0").rstrip(".")


def _json(options: dict[str, int | None]) -> str | None:
    given = {name: value for name, value in options.items() if value is not None}
    return json.dumps(given, separators=(",", ":")) if given else None
