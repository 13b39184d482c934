"""Where a live object differs from the fields that the operator owns, and the patch that puts them back."""

from collections.abc import Mapping
from typing import Any

EXACT = frozenset({"spec.selector"})
"""Maps that belong to the operator as a whole: a key added by somebody else is a difference, too."""


def first_difference(wanted: Any, live: Any, *, path: str = "") -> str | None:
    """Path of the first field of `wanted` that `live` lacks or has otherwise; None when all agree.

    Fields that only `live` has (defaults of the API server, other owners' fields) do not count. Lists agree when they
    have the same length and agree item by item.
    """
    if isinstance(wanted, dict):
        if not isinstance(live, dict) or (path in EXACT and wanted.keys() != live.keys()):
            return path
        parts = ((f"{path}.{key}".lstrip("."), value, live.get(key)) for key, value in wanted.items())
    elif isinstance(wanted, list):
        if not isinstance(live, list) or len(wanted) != len(live):
            return path
        parts = ((f"{path}[{i}]", value, other) for i, (value, other) in enumerate(zip(wanted, live, strict=True)))
    else:
        return None if wanted == live else path
    return next((found for place, a, b in parts if (found := first_difference(a, b, path=place)) is not None), None)


def patch_to(wanted: dict[str, Any], live: Any, *, path: str = "") -> dict[str, Any]:
    """The merge patch that gives `live` the fields of `wanted`, and takes strange keys out of maps that are wholly ours."""
    there = live if isinstance(live, Mapping) else {}
    extra = {key: None for key in there if key not in wanted} if path in EXACT else {}
    return {
        **extra,
        **{key: _part(value, there.get(key), f"{path}.{key}".lstrip(".")) for key, value in wanted.items()},
    }


def _part(value: Any, live: Any, path: str) -> Any:
    return patch_to(value, live, path=path) if isinstance(value, dict) else value
