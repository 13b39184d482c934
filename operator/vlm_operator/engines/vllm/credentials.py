"""Recognises keys and tokens, so that none stays in a resource that everyone can read, or is repeated in a message."""

import json
import re
from collections.abc import Iterator

# Compiled when first needed: most specs give nothing to look at.
_SHAPES = (
    r"hf_[A-Za-z0-9]{16,}"  # Hugging Face
    r"|sk-[A-Za-z0-9_-]{16,}"  # OpenAI and services like it
    r"|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}"  # Amazon
    r"|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\."  # a JSON web token
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|://[^/\s:@]+:[^/\s@]+@"  # user and password in a URL
    r"|(?:^|[\"':=]\s*)(?i:bearer|basic(?=\s+\S*[0-9=+/]))(?:\s+|%20)[^\s\"']{3,}"  # a header
)
_NAMES = (
    r"(?i)^token$|(?:^|_)(?:api_?key|access_?key|secret(?:_access)?(?:_key)?|private_?key|password|passwd|credentials?"
    r"|authorization|(?:hf|auth|access|api|bearer|session|security|hub)_?token)$"
)
"""Not every name that ends in `token`: the tokens of a model are called so as well."""

_MEMBER = r"""["']?([\w.-]+)["']?\s*:\s*["']?([^\s"',}]+)"""
"""A key and its text, loosely."""


def holds_credential(text: str) -> bool:
    """Whether a word looks like a key or a token, has one in it, or is JSON with a key such as `api_key` that has text."""
    return re.search(_SHAPES, text) is not None or any(
        is_credential_name(name) and isinstance(value, str) and value for name, value in _members(text)
    )


def is_credential_name(name: str) -> bool:
    """Whether text under this name is a secret: `api_key`, `hub_token`, the last of `connector.extra.password`."""
    return re.search(_NAMES, name.rpartition(".")[2].replace("-", "_")) is not None


def shown(word: str) -> str:
    """A word as a message repeats it: short, in printable characters, and no credential."""
    if holds_credential(word):
        return "(a credential)"
    return word[:80] if word.isprintable() else repr(word[:80])


def quoted(word: str) -> str:
    """The same in quotes."""
    return shown(word) if holds_credential(word) else repr(word[:80])


def variable_holds_credential(name: str) -> bool:
    """Whether an environment variable with this name has a secret value: `HF_TOKEN`, `AWS_SECRET_ACCESS_KEY`."""
    return is_credential_name(name) or name.upper().endswith("_TOKEN")


def member_names(text: str) -> Iterator[str]:
    """The keys of all objects in a text that is JSON."""
    yield from (name for name, _ in _members(text))


def _members(text: str) -> Iterator[tuple[str, object]]:
    if not text.lstrip().startswith(("{", "[")):
        return
    try:
        waiting = [json.loads(text)]
    except (ValueError, RecursionError):  # what was meant as JSON may hold a secret all the same
        yield from ((found[1], found[2]) for found in re.finditer(_MEMBER, text))
        return
    while waiting:
        match waiting.pop():
            case dict() as members:
                yield from members.items()
                waiting += members.values()
            case list() as items:
                waiting += items
