"""Questions around the memory of a replica: how long, how many, on how few GPUs, and what to change when it does not fit.

Every answer is worked out by `memory.estimate` on the changed question, so that it is what the change would give. Which
degrees and formats are possible is the caller's to say.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from vlm_operator.api.architecture import Architecture
from vlm_operator.sizing.images import takes_pixel_limits
from vlm_operator.sizing.kv_cache import BLOCK, request_bytes
from vlm_operator.sizing.memory import Device, Load, Memory, Version, estimate
from vlm_operator.sizing.weights import Layout

RESERVE = 0.05
"""Share of the GPU that a degree chosen for the user leaves free beyond one request of the longest context: what the
arithmetic can be wrong by, and room for a second request."""
LONGEST = 16_777_216
"""Longest context that is tried where the model's own is unknown."""
ROUND_LENGTH = 1024
"""Proposed lengths are multiples of this, where they are that long."""
PIXEL_STEPS = (4_014_080, 2_007_040, 1_003_520, 501_760, 200_704)
"""Proposed limits of pixels: multiples of 28 x 28, of which 1,003,520 costs 1,280 tokens in Qwen2.5-VL."""
LEAST_SEQUENCES = 4
"""Fewest sequences that are proposed."""

Kind = Literal[
    "Tensor", "Quantization", "OnlineQuantization", "MaxPixels", "Videos", "MaxModelLen", "MaxNumSeqs", "KvCacheDtype"
]


@dataclass(frozen=True)
class Question:
    """A model on its GPUs with what it is asked to hold."""

    architecture: Architecture
    device: Device
    layout: Layout
    load: Load
    version: Version

    @cached_property
    def memory(self) -> Memory:
        """The memory of the fullest rank."""
        return estimate(self.architecture, self.device, self.layout, self.load, self.version)

    def with_load(self, load: Load) -> "Question":
        """The same with something else to hold."""
        return replace(self, load=load)

    def with_tensor(self, degree: int) -> "Question":
        """The same at another tensor-parallel degree."""
        return replace(self, layout=replace(self.layout, tensor=degree))


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change after which it would fit."""

    kind: Kind
    value: int | str
    """The new value: a degree, a format, a limit."""
    memory: Memory
    """The memory with it."""


def largest_max_model_len(question: Question) -> int | None:
    """Longest context in tokens that fits, up to the model's own, in whole blocks of the cache.

    0 when none does, None when it is unknown whether it fits. A longer context never needs less, so that halving finds
    it.
    """
    most = question.architecture.max_context or LONGEST
    whole = _fits_length(question, most)
    if whole is None or whole:
        return None if whole is None else most
    low, high = 0, -(-most // BLOCK)
    while high - low > 1:
        middle = (low + high) // 2
        if _fits_length(question, middle * BLOCK):
            low = middle
        else:
            high = middle
    return low * BLOCK


def _fits_length(question: Question, tokens: int) -> bool | None:
    return question.with_load(replace(question.load, max_model_len=tokens)).memory.fits


def concurrency(question: Question, *, tokens: int) -> float | None:
    """Requests of `tokens` that a replica holds at once, bounded by its limit of sequences; None when it is unknown."""
    memory = question.memory
    if memory.kv is None or tokens < 1:
        return None
    one = request_bytes(
        question.architecture,
        tokens=tokens,
        layers=memory.stage.layers,
        tensor=question.layout.tensor,
        dtype=question.load.kv_cache_dtype,
        batched_tokens=memory.settings.max_num_batched_tokens,
        version=question.version,
    )
    return min(max(0.0, memory.kv / one), memory.settings.max_num_seqs) * question.layout.data


def leaves_reserve(memory: Memory, reserve: float = RESERVE) -> bool | None:
    """Whether it fits and a share of the GPU is left beyond one request of the longest context; None when unknown."""
    if memory.fits is not True or memory.kv is None or memory.kv_needed is None or memory.gpu is None:
        return memory.fits
    return memory.kv - memory.kv_needed >= reserve * memory.gpu


def smallest_tensor(question: Question, degrees: Iterable[int], reserve: float = RESERVE) -> Question | None:
    """The question at the smallest of `degrees` that fits with the reserve; None when none does or it is unknown."""
    for degree in sorted(degrees):
        tried = question.with_tensor(degree)
        if leaves_reserve(tried.memory, reserve):
            return tried
    return None


def changes(
    question: Question, *, degrees: Iterable[int] = (), formats: Iterable[str] = (), online: Iterable[str] = ()
) -> tuple[Change, ...]:
    """The single changes after which it fits, each the least of its kind, cheapest for the user first.

    `degrees`, `formats` and `online` are what is possible for tensor parallelism, for stored weights and for weights
    quantised while loading. Empty when nothing that is known fits, or whether it fits is unknown.
    """
    tries = (
        _shorter(question),
        _smaller_images(question),
        _no_videos(question),
        _fewer_sequences(question),
        _smaller_cache(question),
        _online(question, online),
        _stored(question, formats),
        _more_gpus(question, degrees),
    )
    return tuple(
        change for one in tries if (change := next((tried for tried in one if tried.memory.fits), None)) is not None
    )


def _shorter(question: Question) -> Iterator[Change]:
    longest, now = largest_max_model_len(question), question.memory.settings.max_model_len
    if longest and (now is None or longest < now):
        rounded = longest // ROUND_LENGTH * ROUND_LENGTH or longest
        yield _changed("MaxModelLen", rounded, question.with_load(replace(question.load, max_model_len=rounded)))


def _smaller_images(question: Question) -> Iterator[Change]:
    rule, load = question.architecture.images, question.load
    if rule is None or not takes_pixel_limits(rule):
        return
    now = load.max_pixels or rule.max_pixels
    for pixels in PIXEL_STEPS:
        if (now is None or pixels < now) and pixels >= (load.min_pixels or 0):
            yield _changed("MaxPixels", pixels, question.with_load(replace(load, max_pixels=pixels)))


def _no_videos(question: Question) -> Iterator[Change]:
    if question.load.videos_per_prompt != 0:
        yield _changed("Videos", 0, question.with_load(replace(question.load, videos_per_prompt=0)))


def _fewer_sequences(question: Question) -> Iterator[Change]:
    sequences = 1 << (question.memory.settings.max_num_seqs - 1).bit_length()
    while (sequences := sequences // 2) >= LEAST_SEQUENCES:
        yield _changed("MaxNumSeqs", sequences, question.with_load(replace(question.load, max_num_seqs=sequences)))


def _smaller_cache(question: Question) -> Iterator[Change]:
    if question.load.kv_cache_dtype in {"Auto", "BF16"}:
        yield _changed("KvCacheDtype", "FP8", question.with_load(replace(question.load, kv_cache_dtype="FP8")))


def _online(question: Question, formats: Iterable[str]) -> Iterator[Change]:
    load = question.load
    if load.quantization == "None" and load.online_quantization is None:
        for name in formats:
            yield _changed("OnlineQuantization", name, question.with_load(replace(load, online_quantization=name)))


def _stored(question: Question, formats: Iterable[str]) -> Iterator[Change]:
    load = question.load
    if load.quantization == "None":
        for name in formats:
            changed = replace(load, quantization=name, online_quantization=None, group_size=None, bits=None)
            yield _changed("Quantization", name, question.with_load(changed))


def _more_gpus(question: Question, degrees: Iterable[int]) -> Iterator[Change]:
    for degree in sorted(degrees):
        if degree > question.layout.tensor:
            yield _changed("Tensor", degree, question.with_tensor(degree))


def _changed(kind: Kind, value: int | str, question: Question) -> Change:
    return Change(kind=kind, value=value, memory=question.memory)
