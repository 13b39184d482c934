"""What pydantic found wrong, as a finding that a person can act on: field, value, rule and the way out."""

import difflib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pydantic_core import ErrorDetails

from vlm_operator.api import patterns
from vlm_operator.api.base import ApiModel, model_in
from vlm_operator.api.findings import INVALID_FIELD, Finding
from vlm_operator.api.patterns import BY_REGEX

_LONGEST_VALUE = 80
_NO_KEY = "(null)"
"""How a key without a name (`~: 1`) is shown in a path."""
_KEY_MARK = "[key]"
"""How pydantic ends the location of an error in the key of a map."""
_BARE = {"int_type": re.compile("-?[0-9]+"), "bool_type": re.compile("(?i)true|false|yes|no|on|off")}
"""Text that without quotes would be a value of the right kind."""
_WITH_UNITS = {
    pattern.regex
    for pattern in (patterns.DURATION, patterns.MEMORY, patterns.QUANTITY, patterns.MODEL_SIZE, patterns.ENGINE_VERSION)
}
_PLAIN_NAME = re.compile(r"^[A-Za-z0-9_]+$")


def invalid_field(details: ErrorDetails, *, root: type[ApiModel], name: str) -> Finding:
    """Return the finding for one error of pydantic in a value of type `root` that its owner calls `name` (`spec`)."""
    context = details.get("ctx") or {}
    location = [part for part in details["loc"] if part != _KEY_MARK]
    if details["input"] is None and (details["type"] == "invalid_key" or details["loc"][-1:] == (_KEY_MARK,)):
        location[-1] = _NO_KEY
    told = _TOLD.get(details["type"])
    return Finding(
        reason=INVALID_FIELD,
        severity="Error",
        field=_path(name, location) + _relative(str(context.get("field", ""))),
        message=_shown(details) + (told(context) if told else details["msg"]),
        advice=_advice(details, context, _model_at(root, location[:-1])),
    )


_SHAPES: dict[type, str] = {dict: "a map", list: "a list", type(None): "empty"}
_VALUE_IS_NO_NEWS = {"missing", "extra_forbidden", "string_too_long", "too_long", "too_short"}

_TOLD: dict[str, Callable[[dict[str, Any]], str]] = {
    "missing": lambda _: "is required",
    "extra_forbidden": lambda _: "is an unknown field",
    "string_pattern_mismatch": lambda ctx: BY_REGEX[ctx["pattern"]].meaning,
    "string_too_long": lambda ctx: f"must not be longer than {ctx['max_length']} characters",
    "string_too_short": lambda ctx: f"must have at least {ctx['min_length']} character(s)",
    "too_long": lambda ctx: f"must have at most {ctx['max_length']} items, not {ctx['actual_length'] or 'more'}",
    "too_short": lambda ctx: f"must have at least {ctx['min_length']} item(s)",
    "literal_error": lambda ctx: f"must be {'one of ' if ',' in _choices(ctx) else ''}{_choices(ctx)}",
    "greater_than_equal": lambda ctx: f"must be at least {ctx['ge']}",
    "less_than_equal": lambda ctx: f"must be at most {ctx['le']}",
    "string_type": lambda _: "must be text",
    "invalid_key": lambda _: "must be a name",
    "int_type": lambda _: "must be a whole number",
    "int_from_float": lambda _: "must be a whole number",
    "bool_type": lambda _: "must be true or false",
    "list_type": lambda _: "must be a list",
    "dict_type": lambda _: "must be a map",
    "model_type": lambda _: "must be a map of fields",
    "rule": lambda ctx: str(ctx["message"]),
}


def _choices(context: dict[str, Any]) -> str:
    return ", ".join(re.findall(r"'([^']*)'", context["expected"]))


def _shown(details: ErrorDetails) -> str:
    """Show a plain value as YAML would have it, and of a structure in the wrong place what it is."""
    value = details["input"]
    if details["type"] in _VALUE_IS_NO_NEWS:
        return ""
    if isinstance(value, str | int | float | bool):
        text = json.dumps(value, ensure_ascii=False)
        return f"is {text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + '...'} but "
    if value is None and details["type"] == "invalid_key":
        return "is an empty key but "
    if details["type"].endswith("_type"):
        return f"is {_SHAPES.get(type(value), 'something else')} but "
    return ""


def _advice(details: ErrorDetails, context: dict[str, Any], model: type[ApiModel] | None) -> str:
    value, advice = details["input"], ""
    match details["type"]:
        case "missing":
            advice = "set it"
        case "extra_forbidden":
            names = [field.alias or "" for field in model.model_fields.values()] if model else []
            advice = _similar(str(details["loc"][-1]), names) or "remove it"
        case "invalid_key":
            advice = "remove it"
        case "rule":
            advice = str(context.get("advice", ""))
        case "literal_error":
            advice = _similar(str(value), _choices(context).split(", "))
        case "string_pattern_mismatch" if context["pattern"] in _WITH_UNITS:
            advice = _respelt(str(value), context["pattern"])
        case "string_type" if isinstance(value, int | float):
            advice = f'put it in quotes: "{json.dumps(value)}"'
        case "int_type" | "bool_type" as kind if isinstance(value, str) and _BARE[kind].fullmatch(value):
            advice = "write it without quotes"
    return advice


def _respelt(text: str, pattern: str) -> str:
    """Try a number and its unit without spaces, v and B, and in every case."""
    compact = text.replace(" ", "")
    for bare in (compact, compact.removeprefix("v"), compact[:-1] if compact[-1:] in {"B", "b"} else compact):
        for spelling in (bare, bare.upper(), bare.title(), bare.lower()):
            if re.fullmatch(pattern, spelling):
                return f"did you mean {spelling}?"
    return ""


def _similar(word: str, known: Iterable[str]) -> str:
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), by_lower, n=1)
    return f"did you mean {by_lower[close[0]]}?" if close else ""


def _path(name: str, location: Sequence[int | str]) -> str:
    """Return the path as the API server writes it: `spec.engine.env[0].name`."""
    return name + "".join(map(_step, location))


def _step(part: int | str) -> str:
    """A part of a path. What a terminal or a log would act on is escaped."""
    if isinstance(part, int):
        return f"[{part}]"
    if _PLAIN_NAME.match(part):
        return f".{part}"
    return f"[{part if part.isprintable() else json.dumps(part)}]"


def _relative(field: str) -> str:
    return field if not field or field.startswith(("[", ".")) else f".{field}"


def _model_at(root: type[ApiModel], location: Sequence[int | str]) -> type[ApiModel] | None:
    """Return the type of the value at `location`, None where that is no model."""
    found: type[ApiModel] | None = root
    for part in location:
        if found is None or isinstance(part, int):
            continue
        fields = {field.alias: field for field in found.model_fields.values()}
        found = model_in(fields[part].annotation) if part in fields else None
    return found
