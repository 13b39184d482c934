"""Strings with a meaning: durations, quantities, names. Each is bounded and keeps one canonical spelling.

The canonical spelling matters because a revision is a hash: `90m` and `1h30m`, `4096Mi` and `4Gi` must not restart
pods.
"""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from vlm_operator.api import patterns
from vlm_operator.api.patterns import Pattern

LARGEST_WHOLE_QUANTITY = 999_999_999_999_999

_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_DURATION_PART = re.compile(r"([0-9.]+)(ms|s|m|h)")
_FACTORS = {"": Decimal(1), "m": Decimal("0.001")}
_FACTORS |= {suffix: Decimal(1000) ** power for power, suffix in enumerate(("k", "M", "G", "T", "P"), start=1)}
_FACTORS |= {suffix: Decimal(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi"), start=1)}
_NUMBER_AND_SUFFIX = re.compile(r"^([0-9]+(?:\.[0-9]+)?)([A-Za-z]*)$")


def _milliseconds(text: str) -> int:
    return int(sum(Decimal(number) * _MILLISECONDS[unit] for number, unit in _DURATION_PART.findall(text)))


def duration_seconds(text: str) -> float:
    """Return the length of a Go-style duration (`1h30m`, `500ms`) in seconds."""
    return _milliseconds(text) / 1000


def quantity_value(text: str) -> Decimal:
    """Return the number that a Kubernetes quantity stands for: bytes for memory, cores for CPU. Raises ValueError."""
    match = _NUMBER_AND_SUFFIX.match(text)
    if match is None or match[2] not in _FACTORS:
        raise ValueError(f"{text!r} is not a quantity")
    return Decimal(match[1]) * _FACTORS[match[2]]


def quantity_bytes(text: str) -> int:
    """Return a memory quantity in bytes, rounded down."""
    return int(quantity_value(text))


def canonical_duration(text: str) -> str:
    """Return the one spelling of a duration: hours, minutes, seconds, milliseconds without zero parts (`1h30m`)."""
    hours, rest = divmod(_milliseconds(text), 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    seconds, milliseconds = divmod(rest, 1000)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"), (milliseconds, "ms"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


def canonical_quantity(text: str) -> str:
    """Return the one spelling of a quantity: whole with the largest binary suffix that divides it, else in milli."""
    value = quantity_value(text)
    if value != value.to_integral_value():
        return f"{int(value * 1000)}m"
    whole = int(value)
    for suffix in ("Ti", "Gi", "Mi", "Ki"):
        if whole and whole % int(_FACTORS[suffix]) == 0:
            return f"{whole // int(_FACTORS[suffix])}{suffix}"
    return str(whole)


def canonical_memory(text: str) -> str:
    """Return the one spelling of a memory size, in whole bytes (rounded down)."""
    return canonical_quantity(str(quantity_bytes(text)))


def _duration_between(minimum: str, maximum: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        if not _milliseconds(minimum) <= _milliseconds(text) <= _milliseconds(maximum):
            raise PydanticCustomError("rule", "{message}", {"message": _range_message(minimum, maximum)})
        return canonical_duration(text)

    return check


def _range_message(minimum: str, maximum: str) -> str:
    return f"must be a duration from {minimum} to {maximum}, for example 90s, 5m or 1h30m"


def duration(minimum: str, maximum: str) -> Any:
    """Return the type of a duration field that allows `minimum` to `maximum` (both inclusive)."""
    # The pattern comes first: duration() of anything else would be an evaluation error with a message of its own.
    well_formed = f"self.matches(r'{patterns.DURATION.regex}')"
    in_range = f"duration(self) >= duration('{minimum}') && duration(self) <= duration('{maximum}')"
    rule: JsonDict = {"rule": f"{well_formed} && {in_range}", "message": _range_message(minimum, maximum)}
    return Annotated[
        str,
        matching(patterns.DURATION, max_length=32),
        AfterValidator(_duration_between(minimum, maximum)),
        Field(json_schema_extra={"x-kubernetes-validations": [rule]}),
    ]


def matching(pattern: Pattern, *, max_length: int, min_length: int | None = None) -> StringConstraints:
    """Return the constraint that a string matches `pattern` and is not longer than `max_length` characters."""
    return StringConstraints(pattern=pattern.regex, max_length=max_length, min_length=min_length)


def _whole_numbers_as_text(value: Any) -> Any:
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    if not 0 <= value <= LARGEST_WHOLE_QUANTITY:
        message = f"must be from 0 to {LARGEST_WHOLE_QUANTITY}"
        raise PydanticCustomError("rule", "{message}", {"message": message})
    return str(value)


Memory = Annotated[str, matching(patterns.MEMORY, max_length=24), AfterValidator(canonical_memory)]
"""Bytes as a Kubernetes quantity (`48Gi`, `49152Mi`)."""

Quantity = Annotated[
    str,
    matching(patterns.QUANTITY, max_length=24),
    BeforeValidator(_whole_numbers_as_text),
    AfterValidator(canonical_quantity),
    Field(json_schema_extra={"x-kubernetes-int-or-string": True, "minimum": 0, "maximum": LARGEST_WHOLE_QUANTITY}),
]
"""Any Kubernetes quantity; YAML may write it as a whole number."""

DnsLabel = Annotated[str, matching(patterns.DNS_LABEL, max_length=63)]
ObjectName = Annotated[str, matching(patterns.SUBDOMAIN, max_length=253)]
DataKey = Annotated[str, matching(patterns.DATA_KEY, max_length=253)]
LabelKey = Annotated[str, matching(patterns.LABEL_KEY, max_length=253)]
LabelValue = Annotated[str, matching(patterns.LABEL_VALUE, max_length=63)]
GpuProduct = Annotated[str, matching(patterns.LABEL_VALUE, max_length=63, min_length=1)]
"""A value of the node label nvidia.com/gpu.product."""
ExtendedResource = Annotated[str, matching(patterns.EXTENDED_RESOURCE, max_length=240)]
"""A resource that a device plugin offers. Quota needs room for `requests.` in front of it."""
Tokens = Annotated[int, Field(ge=1, le=16_777_216)]
ModelName = Annotated[str, matching(patterns.MODEL_NAME, max_length=192)]
"""A model as a client names it: one or two segments (`Qwen/Qwen2.5-VL-7B-Instruct`)."""
