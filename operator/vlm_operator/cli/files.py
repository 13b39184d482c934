"""Files that people give to `kubectl vlm`: one VLMDeployment as YAML or JSON, or a config.json."""

import json
from typing import Any

from vlm_operator.api import API_VERSION, KIND
from vlm_operator.api.documents import UnusableTextError, only, parse
from vlm_operator.runtime.files import named, text_of

_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")
"""What an object may have."""


def read_resource(filename: str) -> dict[str, Any]:
    """The one VLMDeployment in a file (`-`: standard input). Raises UnusableInputError."""
    with named(filename):
        return _resource(text_of(filename))


def read_json(filename: str) -> Any:
    """The JSON value in a file (`-`: standard input). Raises UnusableInputError."""
    with named(filename):
        try:
            return json.loads(text_of(filename))
        except ValueError as error:
            raise UnusableTextError(f"is not JSON: {error}") from error


def _resource(text: str) -> dict[str, Any]:
    found = only(parse(text), KIND)
    if not isinstance(found, dict):
        what = "a list" if isinstance(found, list) else "text" if isinstance(found, str) else "a plain value"
        raise UnusableTextError(f"holds {what}; it must hold one {KIND}")
    if str(found.get("kind")).endswith("List"):
        raise UnusableTextError(f"is of kind {found['kind']}; give one {KIND} at a time")
    _must_be(found, "kind", KIND)
    _must_be(found, "apiVersion", API_VERSION)
    if unknown := [key for key in found if key not in _FIELDS]:
        raise UnusableTextError(f"has an unknown field {unknown[0]}; remove it, or move it into spec")
    metadata = found.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise UnusableTextError("has no metadata.name")
    _metadata_is_right(metadata)
    return found


def _metadata_is_right(metadata: dict[str, Any]) -> None:
    namespace = metadata.get("namespace")
    if namespace is not None and not isinstance(namespace, str):
        raise UnusableTextError(
            f"has metadata.namespace {json.dumps(namespace, default=str)}, which is no text; put it in quotes"
        )
    for field in ("labels", "annotations"):
        given = metadata.get(field) or {}
        if not isinstance(given, dict) or not all(isinstance(part, str) for pair in given.items() for part in pair):
            raise UnusableTextError(f"has metadata.{field} that are not a map of texts; put the values in quotes")


def _must_be(found: dict[str, Any], field: str, wanted: str) -> None:
    given = found.get(field)
    if given != wanted:
        what = f"is of {field} {given}" if given and isinstance(given, str) else f"has no {field}"
        raise UnusableTextError(f"{what}; it must be {wanted}")
