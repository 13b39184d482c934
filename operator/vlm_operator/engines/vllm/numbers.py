"""How vLLM reads numbers: words of the command line, JSON with sizes in it, and numbers that stand as text in an object.

Each function gives None for what vLLM does not take.
"""

import re

_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT])")
_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_TEXT = re.compile(r'("(?:[^"\\]|\\.)*")')
_BARE_SIZE = re.compile(r"\b\d+(?:\.\d+)?[kKmMgGtT]\b")
_BOOLEANS = frozenset({"0", "1", "f", "false", "n", "no", "off", "on", "t", "true", "y", "yes"})


def integer(word: str) -> int | None:
    """A whole number."""
    try:
        return int(word)
    except ValueError:
        return None


def number(word: str) -> float | None:
    """A number."""
    try:
        return float(word)
    except ValueError:
        return None


def boolean(word: str) -> bool:
    """Whether text stands for a truth value in an object."""
    return word.lower() in _BOOLEANS


def size(word: str) -> int | None:
    """A whole number, with or without a suffix: 1000 for `1k`, 1024 for `1K`, 1500 for `1.5k`, and `1.5K` is none."""
    match = _SIZE.fullmatch(word.strip())
    if match is None:
        return integer(word)
    digits, suffix = match.groups()
    if suffix in _BINARY:
        whole = integer(digits)
        return None if whole is None else whole * _BINARY[suffix]
    try:
        return int(float(digits) * _DECIMAL[suffix])
    except OverflowError:
        return None


def expanded(json_text: str) -> str:
    """JSON with its sizes as numbers; text in it is left alone."""
    parts = _TEXT.split(json_text)
    parts[::2] = [_BARE_SIZE.sub(_as_number, part) for part in parts[::2]]
    return "".join(parts)


def _as_number(match: re.Match[str]) -> str:
    value = size(match[0])
    return match[0] if value is None else str(value)
