"""How one replica spends time on requests: constants, and the formulas that everything which imitates a replica shares.

A request passes, in this order:
1. the front end: `front_end_workers` in parallel, first come first served; loads and resizes images. It shows in none of the
   engine's gauges, only among the requests in flight. Absent where `front_end_seconds_per_image` is 0.
2. the engine's queue: first come first served; it is left when a slot and room in the KV cache are free.
3. the lane: encodes images and computes the prompt, one request at a time.
4. decoding: side by side with all that run; a step takes longer the more of them there are.

Left out: chunked prefill, prefix and image caches, preemption. The constants are those of a 7B model on one 48 GB GPU, by
order of magnitude; whoever has measured a model sets their own.
"""

from dataclasses import dataclass, fields
from math import isfinite
from typing import Any


class PhysicsError(ValueError):
    """A constant that no replica can have."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Physics:
    """Constants of one model on the GPUs of one replica."""

    prompt_tokens_per_second: float = 4000.0
    encode_seconds_per_image: float = 0.05
    seconds_per_request: float = 0.015
    """Of the lane, whatever the request holds."""
    decode_step_seconds: float = 0.025
    decode_step_seconds_per_request: float = 0.0005
    """What each request that runs adds to a step."""
    slots: int = 64
    """Requests that run at once (max_num_seqs)."""
    kv_tokens: float = 250_000.0
    front_end_seconds_per_image: float = 0.0
    front_end_seconds_per_request: float = 0.002
    front_end_workers: int = 1
    cold_start_seconds: float = 90.0
    cold_start_spread: float = 0.2
    """Cold starts are spread evenly by this share around their mean."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value, least = getattr(self, field.name), _LEAST.get(field.name, 0.0)
            positive = field.name in _POSITIVE
            if not isfinite(value) or value < least or (positive and value <= 0):
                rule = f"at least {least:g}" if not positive else "greater than 0"
                raise PhysicsError(f"{field.name} is {value:g}; it must be a number {rule}")
        if self.cold_start_spread > 1:
            raise PhysicsError(f"cold_start_spread is {self.cold_start_spread:g}; it must be a number from 0 to 1")

    def lane_seconds(self, *, prompt_tokens: Any, images: Any) -> Any:
        """Time that the lane spends on a request; numbers or arrays."""
        prompt = prompt_tokens / self.prompt_tokens_per_second
        return self.seconds_per_request + prompt + self.encode_seconds_per_image * images

    def front_end_seconds(self, *, images: Any) -> Any:
        """CPU time that a request costs before the engine sees it; numbers or arrays."""
        if not self.front_end_seconds_per_image:
            return 0.0 * images
        return self.front_end_seconds_per_request + self.front_end_seconds_per_image * images

    def decode_seconds(self, *, output_tokens: float, running: int) -> float:
        """Time from the first token to the last one, with as many requests running as when it began."""
        return decode_seconds(output_tokens, running, self.decode_step_seconds, self.decode_step_seconds_per_request)


def decode_seconds(output_tokens: float, running: int, step: float, step_per_request: float) -> float:
    """The formula of `Physics.decode_seconds` on plain numbers, so that an event loop can compile it."""
    return output_tokens * (step + step_per_request * running)


_POSITIVE = ("prompt_tokens_per_second", "kv_tokens")
_LEAST = {"slots": 1.0, "front_end_workers": 1.0}
