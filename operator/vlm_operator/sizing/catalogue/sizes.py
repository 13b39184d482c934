"""The size of a model as its users write it (`7B`, `0.5B`, `256M`), from its published name or its parameters."""

import re
from decimal import ROUND_HALF_UP, Decimal

from vlm_operator.sizing.catalogue.rows import ModelRow

_UNITS = {"M": Decimal(10) ** 6, "B": Decimal(10) ** 9, "T": Decimal(10) ** 12}
_IN_NAME = re.compile(r"(?<![A-Za-z0-9.])([0-9]+(?:\.[0-9]+)?)([MBTmbt])(?![A-Za-z0-9])")
_ROUNDINGS = (Decimal("0.1"), Decimal(1))
_ALIKE = Decimal(2)
"""How far the size in a name may be from the total and still mean it; the next best, the active part, is further."""


def published_size(row: ModelRow) -> str | None:
    """Return the size in the published name, None where it has none (`Phi-3.5-vision`).

    Of a mixture of experts only the total counts: the 17B of `Llama-4-Scout-17B-16E` is what one token passes through,
    and A3B in `Qwen3-VL-30B-A3B` is no size.
    """
    for number, unit in _IN_NAME.findall(row.hf_id.rpartition("/")[2]):
        size = f"{number}{unit.upper()}"
        if not _is_mixture(row) or _means_the_total(_parameters(size), row):
            return size
    return None


def expected_sizes(row: ModelRow) -> tuple[str, ...]:
    """Return the texts that name the size of a model, the likeliest first; none when its size is unknown.

    Where the name has no size, it is the total rounded to one decimal or to an integer (`4.1B`, `4B`).
    """
    if published := published_size(row):
        return (published,)
    return () if row.total_parameters is None else rounded_sizes(row.total_parameters)


def rounded_sizes(parameters: int) -> tuple[str, ...]:
    """Return a number of parameters in billions, with one decimal and with none; below one billion in millions too."""
    units = "B" if parameters >= _UNITS["B"] else "MB"
    rounded = [(_rounded(parameters / _UNITS[unit], step), unit) for unit in units for step in _ROUNDINGS]
    return tuple(dict.fromkeys(f"{number}{unit}" for number, unit in rounded if number != "0"))


def _rounded(number: Decimal, step: Decimal) -> str:
    return f"{number.quantize(step, ROUND_HALF_UP).normalize():f}"


def size_agrees(row: ModelRow, size: str) -> bool:
    """Whether `size` (`7B`) is the size of the model; also when that is unknown. `0.256B` is `256M`."""
    expected = expected_sizes(row)
    return not expected or _parameters(size) in map(_parameters, expected)


def _is_mixture(row: ModelRow) -> bool:
    return row.active_parameters is not None or (row.architecture is not None and row.architecture.experts is not None)


def _means_the_total(parameters: Decimal, row: ModelRow) -> bool:
    if row.total_parameters is None:
        return parameters != row.active_parameters
    return 1 / _ALIKE < parameters / row.total_parameters < _ALIKE


def _parameters(size: str) -> Decimal:
    return Decimal(size[:-1]) * _UNITS[size[-1]]
