"""What somebody may have meant by a name that the catalogue does not have: proposed, and never taken in its place."""

import re
from difflib import get_close_matches

from vlm_operator.sizing.catalogue.loading import Catalogue

_ALIKE = 0.85
"""How alike two names must be, of 1: a letter too many or too few, not another model."""
_FEW = 4
_WORD = re.compile("[a-z0-9.]+")


def similar_model(catalogue: Catalogue, name: str) -> str | None:
    """The model whose name after the slash is this one in another case, begins it, goes on from it or is much like it."""
    by_tail = {_tail(known): known for known in reversed(catalogue.model_names)}
    tail = _tail(name)
    parts = [known for known in by_tail if _goes_on(tail, known)]
    wholes = [known for known in by_tail if _goes_on(known, tail)]
    close = sorted(parts, key=len)[-1:] or sorted(wholes, key=len)[:1]
    close = close or get_close_matches(tail, by_tail, n=1, cutoff=_ALIKE)
    return by_tail[close[0]] if close else None


def _goes_on(name: str, start: str) -> bool:
    """Whether a name is another one with something added, less than it has itself."""
    return name.startswith(start) and len(name) <= 2 * len(start)


def similar_labels(catalogue: Catalogue, label: str) -> list[str]:
    """The product labels that are this one in another case or, if few, have all its words; else the one much like it."""
    by_lower = {known.lower(): known for known in catalogue.product_labels}
    lower = label.lower()
    if lower in by_lower:
        return [by_lower[lower]]
    words = set(_WORD.findall(lower))
    usual = [row.product_labels[0] for row in catalogue.gpus]
    having = [known for known in usual if words <= set(_WORD.findall(known.lower()))]
    if 0 < len(having) <= _FEW:
        return having
    return [by_lower[one] for one in get_close_matches(lower, by_lower, n=1, cutoff=_ALIKE)]


def _tail(name: str) -> str:
    return name.rpartition("/")[2].lower()
