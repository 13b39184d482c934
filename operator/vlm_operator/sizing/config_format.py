"""Reads from a `config.json` how the weights of a checkpoint are stored, as Hugging Face models bring it along.

What cannot be used becomes a warning with its path in the file: the weights are then counted as 16 bit, which is more than
they take.
"""

from dataclasses import dataclass, replace
from typing import Any

from vlm_operator.api.findings import Finding
from vlm_operator.sizing.config_section import TEXT_SECTIONS, shown, small, wrong

_SECTION, _OLD_SECTION = "quantization_config", "compression_config"
_METHODS = {"awq": "AWQ", "gptq": "GPTQ", "fp8": "FP8", "fbgemm_fp8": "FP8", "mxfp4": "MXFP4"}
_BITS = {"AWQ": (4, 8), "GPTQ": (2, 3, 4, 8)}
"""Bits of a weight that the method knows, where it knows several."""
_AS_16_BIT = "the weights are counted as 16 bit"


@dataclass(frozen=True, kw_only=True)
class StoredFormat:
    """How the weights of a checkpoint are stored, as its `config.json` says."""

    format: str
    """The format as `spec.model.quantization` calls it."""
    bits: int | None = None
    """Bits of a weight. None: the file does not say."""
    group_size: int | None = None
    """Weights that share a scale. None: the file does not say, or there are no groups."""


def read_stored_format(data: object) -> tuple[StoredFormat | None, tuple[Finding, ...]]:
    """Return how a `config.json` says that the weights are stored, None where it says nothing that can be used (16 bit)."""
    path, section = _section(data)
    if section is None:
        return None, ()
    if not isinstance(section, dict):
        return None, (_warning(path, f"is {shown(section)} but must be a map of names and values: {_AS_16_BIT}"),)
    # compressed-tensors once had a section of its own, which did not name it.
    method = section.get("quant_method", "compressed-tensors" if path.endswith(_OLD_SECTION) else None)
    if not isinstance(method, str):
        what = "is missing" if method is None else f"is {shown(method)} but must be text"
        return None, (_warning(f"{path}.quant_method", f"{what}: {_AS_16_BIT}"),)
    weights = _group_weights(section)
    stated = section.get("bits") or section.get("w_bit") or weights.get("num_bits")
    format_ = _METHODS.get(method.lower()) or _format_of(section, weights, small(stated))
    if format_ is None:
        message = f"is {method[:40]!r}, which spec.model.quantization has no name for: {_AS_16_BIT}"
        return None, (_warning(f"{path}.quant_method", message),)
    if format_ in _BITS and stated is not None and stated not in _BITS[format_]:
        known = ", ".join(map(str, _BITS[format_]))
        return None, (_warning(f"{path}.bits", f"is {shown(stated)} but {format_} has {known}: {_AS_16_BIT}"),)
    group = small(section.get("group_size") or section.get("q_group_size") or weights.get("group_size"))
    return StoredFormat(format=format_, bits=small(stated), group_size=group), ()


def _section(data: object) -> tuple[str, object]:
    """Return the path of the first section about the format, and what it holds."""
    holders = {"": data} | {f"{name}.": data.get(name) for name in TEXT_SECTIONS} if isinstance(data, dict) else {}
    for prefix, holder in holders.items():
        for name in (_SECTION, _OLD_SECTION):
            if isinstance(holder, dict) and holder.get(name) is not None:
                return f"{prefix}{name}", holder[name]
    return "", None


def _warning(where: str, message: str) -> Finding:
    return replace(wrong(where, message), severity="Warning")


def _group_weights(section: dict[str, Any]) -> dict[str, Any]:
    """Return what compressed-tensors says about the weights of its first group of layers."""
    groups = section.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, dict) else None
    weights = first.get("weights") if isinstance(first, dict) else None
    return weights if isinstance(weights, dict) else {}


def _format_of(section: dict[str, Any], weights: dict[str, Any], bits: int | None) -> str | None:
    """Return the format of methods that stand for several: compressed-tensors and modelopt."""
    told = f"{section.get('quant_algo')} {section.get('format')}".upper()
    for name in ("NVFP4", "MXFP4"):
        if name in told:
            return name
    if "FP8" in told or (weights.get("type") == "float" and bits == 8):
        return "FP8"
    return {4: "INT4", 8: "INT8"}.get(bits or 0) if weights.get("type") == "int" else None
