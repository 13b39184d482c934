"""What the engine is asked for and what it makes of it: limits that it chooses itself, and what it measures with.

The choices are vLLM's by version and GPU. Nothing is added up here; `memory` does that.
"""

from dataclasses import dataclass, replace

from vlm_operator.api.architecture import Architecture, ImageTokens
from vlm_operator.sizing.activation import NO_IMAGES, Images
from vlm_operator.sizing.images import largest_image, video_tokens
from vlm_operator.sizing.parameters import is_text_only

MIB = 2**20
GIB = 2**30
Version = tuple[int, ...]
"""Version of the engine, `(0, 33)`."""

V1_SINCE: Version = (0, 8)
"""Version from which the engine profiles in the way described here; before, it ran as many sequences of the longest
context as a step could take."""
CHUNKS_LONG_PROMPTS_SINCE: Version = (0, 5, 4)
"""Version from which the older engine cut prompts into steps where the context is longer than `LONG_CONTEXT`."""
LONG_CONTEXT = 32_768
LARGE_GPU = 70 * GIB
VERY_LARGE_GPU = 160 * GIB
SEQUENCES, SEQUENCES_LARGE = 256, 1024
"""The engine's own limits of sequences: 1,024 on GPUs of 70 GiB and more except A100, which is known by its capability."""
BATCHED_TOKENS, BATCHED_TOKENS_LARGE, BATCHED_TOKENS_VERY_LARGE = 2048, 8192, 16384
"""The engine's own tokens per step, by the same rule, and from 160 GiB."""
BATCHED_TOKENS_OLD_IMAGES = 5120
"""Least tokens of a step of the older engine for models that take images."""
A100_CAPABILITY = "8.0"
UNLIMITED = 999
"""Items of a request where there is no limit: vLLM's own."""
FEWER_FRAMES_SINCE: Version = (0, 11)
PAIRS_OF_FRAMES, PAIRS_OF_FRAMES_BEFORE = 7, 8
"""Pairs of frames in the longest video that the engine measures with."""
_FREE_VIDEO = frozenset({"Qwen2VL", "Qwen3VL", "Glm4V"})
"""Rules whose videos are bounded by pixels."""
_LARGE_SIDE = 8192
"""Side in pixels of a frame that every limit reduces."""


@dataclass(frozen=True, kw_only=True)
class Device:
    """One GPU."""

    cuda_bytes: int | None
    """What CUDA reports as its memory; see `cuda_bytes` for what a label tells. None: unknown."""
    capability: str | None = None
    """Compute capability (`8.9`), for AMD the target (`gfx942`). None: unknown."""
    memory_utilization: float = 0.92
    """Share of the memory that the engine may use, 0 to 1."""
    vendor: str = "nvidia"
    """Who makes it."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """What the engine is asked to hold. None is the engine's or the model's own choice."""

    quantization: str = "None"
    """How the weights are stored, as the resource names it."""
    online_quantization: str | None = None
    """What 16-bit weights are turned into while loading."""
    group_size: int | None = None
    """Weights of one group of the stored format."""
    bits: int | None = None
    """Bits of a stored weight, where the format has several (GPTQ with 8)."""
    kv_cache_dtype: str = "Auto"
    """Data type of the KV cache, as the resource names it."""
    max_model_len: int | None = None
    """Longest context of a request in tokens."""
    max_num_seqs: int | None = None
    """Most sequences at once."""
    max_num_batched_tokens: int | None = None
    """Most tokens of one step."""
    images_per_prompt: int | None = None
    """Most images of a request."""
    videos_per_prompt: int | None = None
    """Most videos of a request."""
    min_pixels: int | None = None
    """Pixels to which smaller images are enlarged."""
    max_pixels: int | None = None
    """Pixels to which larger images are reduced."""
    eager: bool = False
    """Whether the engine records no CUDA graphs."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the engine runs with once its own choices are made."""

    max_model_len: int | None
    max_num_seqs: int
    max_num_batched_tokens: int


def cuda_bytes(label_mib: int) -> int:
    """What CUDA reports of a GPU whose label says `label_mib`, at the least.

    It is 235 to 700 MiB less in logs, and never more than 3 % less; 1,000 MiB where that is less than 3 %, and at
    least half a percent.
    """
    label = label_mib * MIB
    return round(min(label * 0.995, max(label * 0.97, label - 1000 * MIB)))


def settings(architecture: Architecture, device: Device, load: Load, version: Version) -> Settings:
    """The engine's choices where `load` makes none.

    An unknown memory or capability is taken as that of a large GPU, where the choices cost most.
    """
    max_model_len = load.max_model_len or architecture.max_context
    gpu = device.cuda_bytes or VERY_LARGE_GPU
    large = gpu >= LARGE_GPU and device.capability != A100_CAPABILITY
    if is_older(architecture, version):
        tokens = load.max_num_batched_tokens or _older_tokens(architecture, max_model_len, version)
        return Settings(
            max_model_len=max_model_len, max_num_seqs=load.max_num_seqs or SEQUENCES, max_num_batched_tokens=tokens
        )
    tokens = load.max_num_batched_tokens or (
        BATCHED_TOKENS if not large else BATCHED_TOKENS_LARGE if gpu < VERY_LARGE_GPU else BATCHED_TOKENS_VERY_LARGE
    )
    sequences = load.max_num_seqs or min(tokens, SEQUENCES_LARGE if large else SEQUENCES)
    return Settings(max_model_len=max_model_len, max_num_seqs=sequences, max_num_batched_tokens=tokens)


def is_older(architecture: Architecture, version: Version) -> bool:
    """Whether the older engine runs the model: before 0.8, and Llama 3.2 Vision as long as it was there."""
    return version < V1_SINCE or architecture.name == "MllamaForConditionalGeneration"


def _older_tokens(architecture: Architecture, max_model_len: int | None, version: Version) -> int:
    least = BATCHED_TOKENS if is_text_only(architecture) else BATCHED_TOKENS_OLD_IMAGES
    if max_model_len is None:
        return least
    chunks = is_text_only(architecture) and max_model_len > LONG_CONTEXT and version >= CHUNKS_LONG_PROMPTS_SINCE
    return least if chunks else max(least, max_model_len)


def profiled_images(architecture: Architecture, load: Load, chosen: Settings, version: Version) -> Images | None:
    """The images that the engine encodes when it measures; None when their size is unknown.

    One kind of item, the one with most tokens, as many as the tokens of a step take, one at least.
    """
    if is_text_only(architecture) or (load.images_per_prompt == 0 and load.videos_per_prompt == 0):
        return NO_IMAGES
    if architecture.images is None:
        return None
    item = _largest_item(architecture, architecture.images, load, chosen, version)
    if architecture.name == "MllamaForConditionalGeneration":
        return replace(item, count=chosen.max_num_seqs)
    longest = chosen.max_model_len
    if is_older(architecture, version) and longest is not None and item.tokens > longest:  # it would refuse larger ones
        item = replace(item, tokens=longest, patches=round(item.patches * longest / item.tokens))
    limits = (load.images_per_prompt, load.videos_per_prompt)
    most = UNLIMITED if None in limits else max(limit or 0 for limit in limits)
    return replace(item, count=min(max(1, chosen.max_num_batched_tokens // item.tokens), most * chosen.max_num_seqs))


def _largest_item(
    architecture: Architecture, rule: ImageTokens, load: Load, chosen: Settings, version: Version
) -> Images:
    """The largest image or, where videos are not turned off, video.

    Of Qwen2-VL a video has as many pairs of the largest frames as the context takes, up to a number that vLLM sets, and
    one pair at least. Other families have a limit on the pixels of all frames. Those whose rule for videos is not known
    are taken by their images. Source: `get_max_video_tokens` in vLLM's model files.
    """
    vision, least, most = architecture.vision, load.min_pixels, load.max_pixels
    largest = largest_image(rule, vision=vision, min_pixels=least, max_pixels=most)
    image = Images(count=1, tokens=largest.tokens, patches=largest.patches)
    if load.videos_per_prompt == 0 or rule.rule not in _FREE_VIDEO:
        return image
    if rule.rule == "Qwen2VL":
        most_pairs = PAIRS_OF_FRAMES if version >= FEWER_FRAMES_SINCE else PAIRS_OF_FRAMES_BEFORE
        room = most_pairs if chosen.max_model_len is None else chosen.max_model_len // image.tokens
        pairs = max(1, min(most_pairs, room))
        return Images(count=1, tokens=image.tokens * pairs, patches=image.patches * pairs, video=True)
    longest = video_tokens(rule, 2, _LARGE_SIDE, _LARGE_SIDE, vision=vision, min_pixels=least, max_pixels=most) or 0
    video = min(longest, chosen.max_model_len or longest)
    if video <= image.tokens:
        return image
    return Images(count=1, tokens=video, patches=round(video * image.patches / image.tokens), video=True)
