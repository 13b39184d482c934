"""What is wrong with the values of one flag of `spec.engine.args`, by the facts about vLLM's parser."""

import json
import operator
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from vlm_operator.api.findings import Finding
from vlm_operator.engines.vllm import numbers
from vlm_operator.engines.vllm.command_line import END_OF_FLAGS, Given
from vlm_operator.engines.vllm.credentials import is_credential_name, quoted, shown
from vlm_operator.engines.vllm.flags import Bound, Flag, KnownFlags, MemberType

INVALID_ARGUMENT = "InvalidArgument"
"""The engine would not start with an argument: it is unknown, or its value is missing, superfluous or not allowed."""

_NO_VALUE = ("None", "")
_WANTED = {
    "integer": ("a whole number", "write it in digits"),
    "number": ("a number", "write it in digits"),
    "size": ("a whole number", "write it in digits, or as a size such as 4k (4000) or 4K (4096)"),
    "boolean": ("true or false", "write one of them"),
}
"""What a value must be, and the way out, by its type."""
_BOUNDS: dict[Bound, tuple[Callable[[Any, Any], bool], str]] = {
    "ge": (operator.ge, "at least"),
    "gt": (operator.gt, "more than"),
    "le": (operator.le, "at most"),
    "lt": (operator.lt, "less than"),
}
_OBJECTS = frozenset({"json", "object-or-text", "object-or-pair"})
_LEVEL, _LEVELS = "--optimization-level", ("0", "1", "2", "3")
"""The parser takes any text for it, and the configuration that vLLM makes of it does not."""
_MANY = 20
"""More choices than one reads for the sake of a slip."""
_PAIR = frozenset({"name", "path"})


def item(index: int) -> str:
    """An argument as the path of a field."""
    return f"spec.engine.args[{index}]"


def argument_error(index: int, reason: str, message: str, advice: str) -> Finding:
    """A finding about one argument that refuses the resource."""
    return Finding(reason=reason, severity="Error", field=item(index), message=message, advice=advice)


def _invalid(index: int, message: str, advice: str) -> Finding:
    return argument_error(index, INVALID_ARGUMENT, message, advice)


def values_taken(given: Given, flag: Flag) -> int:
    """How many of the words after a flag it takes for its values."""
    if flag.kind == "switch" and not given.is_part:
        return 0
    return len(given.values) if flag.kind == "list" and not given.attached else min(1, len(given.values))


def stray_words(given: Given, *, after: int = 0) -> Iterator[Finding]:
    """A finding for each value beyond those that the flag takes."""
    if given.flag == END_OF_FLAGS:
        message = f"{given.flag!r} is no argument: vLLM would take what follows for further models"
        yield _invalid(given.index, message, "remove it")
    for number, word in enumerate(given.values[after:], start=after):
        told = "(a credential)" if is_credential_name(given.option) else quoted(word)
        advice = "write the flag and its value as two items" if word.startswith("-") and " " in word else "remove it"
        yield _invalid(given.position(number), f"{told} belongs to no flag", advice)


def values_are_right(given: Given, flag: Flag, known: KnownFlags) -> Iterator[Finding]:
    """The flag has as many values as it takes, and each is one that it takes."""
    name = shown(given.flag)
    if given.option not in known.spellings:  # `-O3` carries its value
        if flag.name == _LEVEL:
            yield from _level_is_right(given, given.flag[2:])
        yield from stray_words(given)
        return
    if given.is_part and flag.type not in _OBJECTS:
        yield _invalid(given.index, f"{name} is no argument: {given.option} takes no object", f"use {given.option}")
        yield from stray_words(given, after=1)
        return
    taken = values_taken(given, flag)
    if flag.kind == "switch" and given.values:
        advice = f"remove {quoted(given.values[0])}"
        yield _invalid(given.index, f"{name} is a switch and takes no value", advice)
        taken = 1
    elif not taken and (given.is_part or flag.kind in {"value", "list"}):
        advice = "add it as the next item"
        if given.following and known.find(given.following.partition("=")[0]) is None:
            advice = f"write {name}={shown(given.following)} if that is its value"
        yield _invalid(given.index, f"{name} needs a value", advice)
    else:
        for number, value in enumerate(given.values[:taken]):
            yield from _value_is_right(given, flag, value, number)
    yield from stray_words(given, after=taken)


def _value_is_right(given: Given, flag: Flag, value: str, number: int) -> Iterator[Finding]:
    if given.is_part:
        yield from _members_are_right(given, flag, _part(given, flag, value))
    elif flag.none and value in _NO_VALUE:
        return
    elif flag.choices:
        if _compared(value, flag) not in {_compared(choice, flag) for choice in flag.choices}:
            yield _choice(given.index, shown(given.flag), value, flag.choices)
    elif flag.name == _LEVEL:
        yield from _level_is_right(given, value)
    elif flag.type == "json" or (flag.type == "object-or-text" and value.lstrip().startswith("{")):
        # What begins like JSON and is none the parser takes for text, and nothing that takes it could be called so.
        yield from _json_is_right(given, flag, value)
    elif flag.type == "object-or-pair":
        yield from _pair_is_right(given, flag, value, number)
    elif flag.type in _WANTED and _number(value, flag) is None:
        yield _no_number(given.position(number), shown(given.flag), flag.type, quoted(value))


def _level_is_right(given: Given, value: str) -> Iterator[Finding]:
    if numbers.integer(value) not in {int(level) for level in _LEVELS}:
        yield _choice(given.index, _LEVEL, value, _LEVELS)


def _no_number(index: int, name: str, type_: str, told: str) -> Finding:
    wanted, advice = _WANTED[type_]
    return _invalid(index, f"{name} takes {wanted}, not {told}", advice)


def _pair_is_right(given: Given, flag: Flag, value: str, number: int) -> Iterator[Finding]:
    """`name=path`, or an object with both; with a comma it is taken for an object."""
    if "=" in value and "," not in value:
        return
    made = _read(value, flag)
    if isinstance(made, dict) and made.keys() >= _PAIR:
        yield from _keys_are_right(given, given.option, flag.keys, made)
    else:
        message = f"{shown(given.flag)} takes name=path or a JSON object with name and path, not {quoted(value)}"
        yield _invalid(given.position(number), message, "write it as name=path")


def _choice(index: int, name: str, value: str, choices: tuple[str, ...]) -> Finding:
    near = get_close_matches(value.upper(), choices, n=1) if len(choices) > _MANY else []
    advice = f"did you mean {near[0]}?" if near else f"choose from {', '.join(choices)}"
    return _invalid(index, f"{name} does not take {quoted(value)}", advice)


def _compared(value: str, flag: Flag) -> object:
    """A value as it is compared with the choices."""
    if flag.type is not None:
        return _number(value, flag)
    return value.lower().replace("-", "_") if flag.folds else value


def _number(value: str, flag: Flag) -> float | None:
    read = {"integer": numbers.integer, "number": numbers.number, "size": numbers.size}[str(flag.type)]
    return read(value)


def _part(given: Given, flag: Flag, value: str) -> dict[str, object]:
    """The object that `--flag.key value` stands for."""
    made = value.split(",") if given.key.endswith("+") else _read(value, flag)
    for name in reversed(given.keys):
        made = {name: made}
    assert isinstance(made, dict)  # noqa: S101 # there is one name at least
    return made


def _read(value: str, flag: Flag) -> object:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        as_size = numbers.size(value) if flag.suffixes else None
        return value if as_size is None else as_size


def _json_is_right(given: Given, flag: Flag, value: str) -> Iterator[Finding]:
    name, advice = shown(given.flag), f'write it as {{"{next(iter(flag.keys), "key")}": ...}}'
    try:
        parsed = json.loads(numbers.expanded(value) if flag.suffixes else value)
    except (ValueError, RecursionError) as error:
        problem = f"{error.msg} at character {error.pos}" if isinstance(error, json.JSONDecodeError) else str(error)
        yield _invalid(given.index, f"{name} takes JSON, and {quoted(value)} is none: {problem[:120]}", advice)
        return
    if isinstance(parsed, dict):
        yield from _members_are_right(given, flag, parsed)
    elif flag.object or (flag.keys and parsed is not None):
        yield _invalid(given.index, f"{name} takes a JSON object, not {quoted(value)}", advice)


def _members_are_right(given: Given, flag: Flag, members: dict[str, object]) -> Iterator[Finding]:
    """Wrong keys, some of which vLLM would take without a word and then not do what was asked, and wrong words in them."""
    yield from _keys_are_right(given, given.option, flag.keys, members)
    for key, value in members.items():
        member, name = flag.members.get(key), f"{given.option}.{key}"
        if value is None:  # whether it may be left out is not known
            continue
        if member and member.keys and isinstance(value, dict):
            yield from _keys_are_right(given, name, member.keys, value)
        elif member and member.choices and isinstance(value, str):
            if (value.upper() if member.folds else value) not in member.choices:
                yield _choice(given.index, name, value, member.choices)
        elif member and member.type and not _is_of(value, member.type):
            yield _no_number(
                given.index, name, member.type, quoted(value if isinstance(value, str) else json.dumps(value))
            )
        elif member and member.bounds:
            yield from _is_within(given, name, member.bounds, value)


def _is_within(given: Given, name: str, bounds: Mapping[Bound, float], value: object) -> Iterator[Finding]:
    number = numbers.number(value) if isinstance(value, str) else value
    for bound, limit in bounds.items():
        holds, words = _BOUNDS[bound]
        if not holds(number, limit):
            told = quoted(value if isinstance(value, str) else json.dumps(value))
            yield _invalid(given.index, f"{name} must be {words} {limit:g}, and is {told}", "correct it")


def _is_of(value: object, type_: MemberType) -> bool:
    """Whether vLLM makes a value of the type of this one; text counts by what it spells, and truth values are numbers."""
    if isinstance(value, str):
        return numbers.boolean(value) if type_ == "boolean" else _is_of(numbers.number(value), type_)
    if isinstance(value, float) and type_ == "integer":
        return value.is_integer()
    if isinstance(value, int | float):
        return type_ != "boolean" or value in {0, 1}
    return False


def _keys_are_right(given: Given, name: str, allowed: tuple[str, ...], members: dict[str, object]) -> Iterator[Finding]:
    for key in members:
        if allowed and key not in allowed:
            near = get_close_matches(key, allowed, n=1)
            advice = f"did you mean {near[0]}?" if near else f"choose from {', '.join(allowed)}"
            yield _invalid(given.index, f"{name} has no key {quoted(key)}", advice)
