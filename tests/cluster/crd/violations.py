"""Ways to break a spec in one place, derived from the schema: one for each bound, choice, pattern and kind of value."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Raw = dict[str, Any]
Place = tuple[str | int, ...]


@dataclass(frozen=True, kw_only=True)
class Violation:
    """A spec that breaks one constraint of the schema."""

    kind: str
    """Which constraint, by its name in the schema."""
    place: Place
    """The field to blame."""
    spec: Raw


def field_by_server(place: Place) -> str:
    """Return the field as the API server writes it."""
    return "spec" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)


def field_by_types(place: Place) -> str:
    """Return the field as findings write it.

    A key of a map that is more than a word stands in brackets, escaped where it cannot be printed.
    """
    return "spec" + "".join(map(_step, place))


def _step(part: str | int) -> str:
    if isinstance(part, str) and re.fullmatch(r"[A-Za-z0-9_]+", part):
        return f".{part}"
    return f"[{part}]" if str(part).isprintable() else f"[{json.dumps(part)}]"


def places(value: Any, schema: Raw, place: Place = (), path: str = "") -> Iterator[tuple[str, Place, Raw]]:
    """Path in the schema, place in `value` and schema of everything in `value`."""
    yield path, place, schema
    if isinstance(value, dict):
        fields = schema.get("properties")
        for name, part in value.items():
            child, inner = (fields[name], f".{name}") if fields else (schema["additionalProperties"], "[]")
            yield from places(part, child, (*place, name), path + inner)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from places(part, schema["items"], (*place, index), f"{path}[]")


def violations(spec: Raw, schema: Raw, seen: set[str]) -> Iterator[Violation]:
    """Break `spec` in every way at every path of the schema that is not in `seen` yet, and note the paths there."""
    for path, place, node in places(spec, schema):
        if path not in seen and place:
            seen.add(path)
            for kind in node.keys() & _WRONG.keys():
                wrong = _WRONG[kind](at(spec, place), node)
                yield Violation(kind=kind, place=place, spec=changed(spec, place, wrong))
            for name in node.get("required", []):
                without = {key: part for key, part in at(spec, place).items() if key != name}
                yield Violation(kind="required", place=(*place, name), spec=changed(spec, place, without))
            if "properties" in node:
                unknown = at(spec, place) | {"unknown": 1}
                yield Violation(kind="unknown", place=(*place, "unknown"), spec=changed(spec, place, unknown))


def edges(spec: Raw, schema: Raw) -> Iterator[tuple[Place, Raw]]:
    """Put every number of `spec` on each end of its range."""
    for _, place, node in places(spec, schema):
        for bound in ("minimum", "maximum"):
            if bound in node:
                yield place, changed(spec, place, node[bound])


_WRONG_KIND = {"string": 7, "integer": "seven", "boolean": "maybe", "array": {}, "object": []}

_WRONG: dict[str, Callable[[Any, Raw], Any]] = {
    "type": lambda _, node: _WRONG_KIND[node["type"]],
    "x-kubernetes-int-or-string": lambda *_: True,
    "enum": lambda *_: "Nonsense",
    "pattern": lambda *_: "\u00a7 \u00a7",
    "minimum": lambda _, node: node["minimum"] - 1,
    "maximum": lambda _, node: node["maximum"] + 1,
    "minLength": lambda *_: "",
    "maxLength": lambda _, node: "1" * (node["maxLength"] + 1),
    "minItems": lambda value, node: value[: node["minItems"] - 1],
    "maxItems": lambda value, node: (value * (node["maxItems"] + 1))[: node["maxItems"] + 1],
    "maxProperties": lambda value, node: dict.fromkeys(
        (f"k{number}" for number in range(node["maxProperties"] + 1)), next(iter(value.values()))
    ),
}
"""A value that breaks a constraint, from a good value and the schema."""


def at(value: Any, place: Place) -> Any:
    """Return what stands at `place`."""
    for part in place:
        value = value[part]
    return value


def changed(value: Any, place: Place, part: Any) -> Any:
    """Return a copy of `value` with `part` at `place`."""
    if not place:
        return part
    made = copy.copy(value)
    made[place[0]] = changed(value[place[0]], place[1:], part)
    return made
