"""What an engine calls its own Prometheus metrics."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Names = tuple[str, ...]
"""Names of one metric: a replica has at least one of them, and where it has several they say the same."""


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """Metrics by what they mean, as they stand in the engine's answer at `path`."""

    path: str = "/metrics"
    """On the engine's port."""
    model_label: str
    """Label with the first name that the model is served under."""
    running: Names
    """Requests in work now."""
    waiting: Names
    """Requests that wait for the engine to take them up."""
    kv_cache_usage: Names
    """Share of the KV cache in use, 0 to 1."""
    generated_tokens: Names
    """Tokens given out so far. It stands still while requests run only in an engine that hangs."""
    cache_info: Names
    """What the engine made of the memory that it found for the KV cache, in labels; one series for each of its ranks."""
    cache_tokens: Callable[[Mapping[str, str]], int | None]
    """Tokens that fit there, by those labels."""
