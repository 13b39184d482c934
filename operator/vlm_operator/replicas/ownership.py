"""Whose an object is: ours, a remainder of a deleted deployment of the same name, or somebody else's."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from vlm_operator.api import GROUP, KIND


class Ownership(Enum):
    """The relation of an object to a deployment."""

    OURS = "ours"
    LEAVING = "leaving"
    """Its controller is an older deployment of the same name: the garbage collector removes it. Wait, never touch it."""
    FOREIGN = "foreign"
    """Anything else, orphans included. Never touched, never adopted."""


def ownership(obj: Mapping[str, Any], *, deployment: str, uid: str) -> Ownership:
    """Judge an object by its controller reference."""
    for reference in obj.get("metadata", {}).get("ownerReferences") or ():
        if not reference.get("controller"):
            continue
        if reference.get("uid") == uid:
            return Ownership.OURS
        group = str(reference.get("apiVersion", "")).split("/")[0]
        if (group, reference.get("kind"), reference.get("name")) == (GROUP, KIND, deployment):
            return Ownership.LEAVING
    return Ownership.FOREIGN
