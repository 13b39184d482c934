"""What the settings of all peers share."""

from dataclasses import dataclass
from math import isfinite


class SettingsError(ValueError):
    """A setting that no policy can follow, with its value and the rule."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Engine:
    """What a peer is told of the engine and its work, where a real one reads it from what the simulator does not show."""

    kv_tokens: float
    """Tokens that the KV cache of one replica holds."""
    slots: int
    """Requests that one replica works on side by side (max_num_seqs)."""
    prompt_tokens: float = 0.0
    """Mean of a request, until its counters tell; 0: not known."""
    output_tokens: float = 0.0
    """Mean of a request; 0: not known."""

    def __post_init__(self) -> None:
        require_positive(self, "kv_tokens", "slots")
        require_at_least_zero(self, "prompt_tokens", "output_tokens")


def require_positive(settings: object, *names: str) -> None:
    """Raise SettingsError unless each of these fields is a number greater than 0."""
    for name in names:
        value = getattr(settings, name)
        if not isfinite(value) or value <= 0:
            raise SettingsError(_sentence(settings, name, value, "greater than 0"))


def require_at_least_zero(settings: object, *names: str) -> None:
    """Raise SettingsError unless each of these fields is a number from 0 on."""
    for name in names:
        value = getattr(settings, name)
        if not isfinite(value) or value < 0:
            raise SettingsError(_sentence(settings, name, value, "at least 0"))


def require_share(settings: object, *names: str) -> None:
    """Raise SettingsError unless each of these fields is a share: greater than 0, and 1 at most."""
    for name in names:
        value = getattr(settings, name)
        if not 0 < value <= 1:
            raise SettingsError(_sentence(settings, name, value, "greater than 0 and at most 1"))


def require_order(settings: object, lower: str, upper: str) -> None:
    """Raise SettingsError unless the first field is at most the second."""
    value, most = getattr(settings, lower), getattr(settings, upper)
    if not value <= most:
        raise SettingsError(f"{type(settings).__name__}.{lower} is {value:g}; it must be at most {upper} ({most:g})")


def _sentence(settings: object, name: str, value: float, rule: str) -> str:
    return f"{type(settings).__name__}.{name} is {value:g}; it must be a number {rule}"
