"""Bytes that the KV cache takes for tokens and for requests, on one rank."""

from vlm_operator.api.architecture import Architecture
from vlm_operator.sizing.parameters import head_size, round_up

BLOCK = 16
"""Tokens of one block of the cache, vLLM's default on NVIDIA GPUs."""
WINDOWS_SINCE = (0, 10)
"""Version from which layers with a window keep no more than the window; before, all layers kept everything."""
BYTES = {"Auto": 2.0, "BF16": 2.0, "FP8": 1.0, "FP8E4M3": 1.0, "FP8E5M2": 1.0}
"""Bytes of one element by the name of its type. Auto is taken as 16 bit."""

_ALWAYS_WHOLE = frozenset({"Llama4ForConditionalGeneration", "MllamaForConditionalGeneration"})
"""Classes for which the engine keeps every token on every layer, chunked attention or not, by default."""


def layer_token_bytes(architecture: Architecture, *, tensor: int, dtype: str) -> float:
    """Bytes of one token on one layer of one rank.

    Keys and values of at least one head; latent attention keeps one compressed entry that every rank holds whole.
    Raises KeyError for an unknown `dtype`.
    """
    element = BYTES[dtype]
    if architecture.latent_attention is not None:
        return (architecture.latent_attention.rank + architecture.latent_attention.rope_size) * element
    heads = max(1, -(-architecture.key_value_heads // tensor))
    return 2 * heads * head_size(architecture) * element


def token_bytes(architecture: Architecture, *, tensor: int, dtype: str) -> float:
    """Bytes of one token on all layers of one rank, without pipeline and without windows."""
    return architecture.layers * layer_token_bytes(architecture, tensor=tensor, dtype=dtype)


def request_bytes(
    architecture: Architecture,
    *,
    tokens: int,
    layers: int,
    tensor: int,
    dtype: str,
    batched_tokens: int,
    version: tuple[int, ...],
) -> float:
    """Bytes of one request of `tokens` on the `layers` (of the architecture's) that a rank holds.

    A layer with a window keeps the window and the tokens of one step, no more (vLLM's hybrid cache); layers with a
    window are taken as spread evenly over a pipeline.
    """
    whole = round_up(tokens, BLOCK)
    layer = layer_token_bytes(architecture, tensor=tensor, dtype=dtype)
    local = architecture.local_attention
    if local is None or version < WINDOWS_SINCE or architecture.name in _ALWAYS_WHOLE:
        return layers * whole * layer
    windowed = layers * min(1.0, local.layers / architecture.layers)
    kept = min(whole, round_up(local.window + batched_tokens, BLOCK))
    return layer * (whole * (layers - windowed) + kept * windowed)
