"""Recognises keys and tokens, so that none stays in a resource that everyone can read, or is repeated in a message."""

import json
import re
from collections.abc import Iterator

_SHAPES = re.compile(
    r"hf_[A-Za-z0-9]{16,}"  # Hugging Face
    r"|sk-[A-Za-z0-9_-]{16,}"  # OpenAI and services like it
    r"|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}"  # Amazon
    r"|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\."  # a JSON web token
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|://[^/\s:@]+:[^/\s@]+@"  # user and password in a URL
)
_NAMES = re.compile(
    r"^token$|(?:^|[_.-])(?:api_?key|access_?key|secret(?:_access)?(?:_key)?|private_?key|password|passwd|credentials?"
    r"|(?:hf|auth|access|api|bearer|session|security|hub)_?token)$",
    re.IGNORECASE,
)
"""Not every name that ends in `token`: the tokens of a model are called so as well."""


def holds_credential(text: str) -> bool:
    """Whether a word looks like a key or a token, has one in it, or is JSON with a key such as `api_key` that has text."""
    return _SHAPES.search(text) is not None or any(
        _NAMES.search(name) and isinstance(value, str) and value for name, value in _members(text)
    )


def variable_holds_credential(name: str) -> bool:
    """Whether an environment variable with this name has a secret value: `HF_TOKEN`, `AWS_SECRET_ACCESS_KEY`."""
    return _NAMES.search(name) is not None or name.upper().endswith("_TOKEN")


def _members(text: str) -> Iterator[tuple[str, object]]:
    if not text.lstrip().startswith(("{", "[")):
        return
    try:
        waiting = [json.loads(text)]
    except (ValueError, RecursionError):
        return
    while waiting:
        match waiting.pop():
            case dict() as members:
                yield from members.items()
                waiting += members.values()
            case list() as items:
                waiting += items
