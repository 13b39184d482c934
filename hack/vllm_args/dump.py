"""Print what the argument parser of the vLLM that is on the path knows, as JSON.

Runs inside the environment of `vllm_args.environment`, with nothing of this project on the path. For each destination:
its option strings (`flags`), `nargs`, the `choices` that the parser takes, the kind of its values (`type`), and for a JSON
object the keys that it may have (`keys`) and what stands under them (`members`), read from vLLM's own classes. What the
parser makes of a word is found by asking it: whether case and dashes do not count (`folds`), whether a word may stand for no
value (`none`), whether JSON must be an object (`object`), and whether its numbers may be sizes such as `80m` (`suffixes`).
"""

import argparse
import dataclasses
import enum
import importlib
import json
import sys
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

PARSERS = (
    "vllm.entrypoints.common.cli_args",  # since 0.33
    "vllm.entrypoints.launchers.cli_args",
    "vllm.entrypoints.openai.cli_args",  # 0.10.2
)
PARSER_CLASSES = ("vllm.utils.argparse_utils", "vllm.utils")
MEDIA = ("vllm.inputs.llm", "vllm.inputs.data", "vllm.inputs", "vllm.multimodal.inputs")
BY_MODALITY = ("limit_mm_per_prompt", "media_io_kwargs")
"""Objects whose keys are kinds of media."""
TYPES = {
    "int": "integer",
    "float": "number",
    "human_readable_int": "size",
    "loads": "json",
    "union_dict_and_str": "object-or-text",
}
NO_VALUE = ("None", "")
NO_OBJECTS = ("5", "null", "[]", "[1]", '"text"')
NUMBERS: dict[type, tuple[str, tuple[Any, ...]]] = {
    float: ("number", (0.25, 0.5, 1.5)),
    int: ("integer", (1, 2, 7, 16, 64, 4096)),
    bool: ("boolean", (True,)),
}
"""Types of values in an object, with examples of which one at least is allowed."""
BOUNDS = ("ge", "gt", "le", "lt")
"""What pydantic calls the bounds of a number."""
NO_NUMBERS: tuple[Any, ...] = ("no-such-word", {}, [])


def first_module(names: tuple[str, ...], attribute: str) -> Any:
    """The first of the modules that exists and has the attribute: both move between versions."""
    for name in names:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        if hasattr(module, attribute):
            return module
    raise SystemExit(f"none of {', '.join(names)} has {attribute}: vLLM has moved it; add its new place")


def build_parser() -> argparse.ArgumentParser:
    """The parser of `vllm serve`."""
    flexible = first_module(PARSER_CLASSES, "FlexibleArgumentParser").FlexibleArgumentParser
    parser: argparse.ArgumentParser = first_module(PARSERS, "make_arg_parser").make_arg_parser(flexible())
    return parser


def conversions(function: Callable[..., Any] | None) -> Iterator[Callable[..., Any]]:
    """A conversion and those that it wraps: an option that may be absent wraps the one for its values."""
    if function is None:
        return
    yield function
    for cell in getattr(function, "__closure__", None) or ():
        if callable(cell.cell_contents):
            yield from conversions(cell.cell_contents)


def described(action: argparse.Action) -> dict[str, Any]:
    """What the values of an option are: `type`, and `keys` where they are known."""
    if type(action).__name__ == "LoRAParserAction":
        return {"type": "object-or-pair", "keys": names_of(first_module(PARSERS, "LoRAModulePath").LoRAModulePath)}
    if dataclass := class_of(action):
        return {"type": "json", "keys": names_of(dataclass)}
    for function in conversions(action.type if callable(action.type) else None):
        if function.__name__ in TYPES:
            keys = keys_of(action.dest) if function.__name__ == "loads" else []
            return {"type": TYPES[function.__name__], "keys": keys}
    return {"type": None}


def class_of(action: argparse.Action) -> type | None:
    """The class that the parser makes of an object; None when it makes none."""
    for function in conversions(action.type if callable(action.type) else None):
        if function.__name__ == "parse_dataclass" and function.__defaults__:
            dataclass: type = function.__defaults__[0]
            return dataclass
    return None


def asked(parser: argparse.ArgumentParser, action: argparse.Action, type_: str | None) -> dict[str, Any]:
    """What the parser itself makes of words given to an option."""
    if action.nargs == 0:
        return {}
    choices = [str(choice) for choice in action.choices or () if takes(parser, action, str(choice))]
    folded = [choice.replace("_", "-").upper() for choice in choices]
    return {
        "choices": choices,
        "folds": folded != choices and all(takes(parser, action, choice) for choice in folded),
        "none": bool(type_ or choices) and all(takes(parser, action, word) for word in NO_VALUE),
        "object": type_ == "json" and not any(takes(parser, action, word) for word in NO_OBJECTS),
        "suffixes": type_ == "json"
        and any(takes(parser, action, f'{{"{key}": 4k}}') for key in described(action)["keys"]),
    }


def takes(parser: argparse.ArgumentParser, action: argparse.Action, word: str) -> bool:
    """Whether an option takes a word as a value."""
    try:
        parser._check_value(action, parser._get_value(action, word))  # noqa: SLF001 # what argparse does with each word
    except Exception:  # noqa: BLE001 # whatever is raised, vLLM would not start
        return False
    return True


def keys_of(destination: str) -> list[str]:
    """The keys of an object that the parser takes as any JSON: from the part of the configuration that it becomes."""
    if destination in BY_MODALITY:
        builtins = first_module(MEDIA, "MultiModalDataBuiltins").MultiModalDataBuiltins
        return sorted(builtins.__annotations__)
    whole = importlib.import_module("vllm.config").VllmConfig
    annotation = typing.get_type_hints(whole).get(destination)
    for part in (annotation, *typing.get_args(annotation)):
        if dataclasses.is_dataclass(part) and isinstance(part, type):
            return names_of(part)
    return []


def names_of(dataclass: type) -> list[str]:
    """The fields that may be given."""
    return sorted(field.name for field in dataclasses.fields(dataclass) if field.init)


def members_of(parser: argparse.ArgumentParser, action: argparse.Action) -> dict[str, dict[str, Any]]:
    """What stands under the keys of an object: the keys of an object in it, the words to choose from, or numbers.

    Only where the parser holds to it: some classes read a value by rules of their own first.
    """
    dataclass = class_of(action)
    if dataclass is None:
        return {}
    hints = typing.get_type_hints(dataclass)

    def member(name: str) -> dict[str, Any]:
        def taken(*values: Any) -> bool:
            return any(takes(parser, action, json.dumps({name: value})) for value in values)

        known = member_of(hints[name])
        if "folds" in known and taken("auto"):  # stands for no choice
            known["choices"].append("AUTO")
        return known | bounds(dataclass, name) if known and holds(known, taken) else {}

    found = {name: member(name) for name in names_of(dataclass) if name in hints}
    return {name: known for name, known in found.items() if known}


def bounds(dataclass: type, name: str) -> dict[str, float]:
    """Between which numbers a field must be (`ge`, `gt`, `le`, `lt`), as its pydantic class says."""
    field = getattr(dataclass, "__pydantic_fields__", {}).get(name)
    rules = field.metadata if field is not None else ()
    return {bound: getattr(rule, bound) for rule in rules for bound in BOUNDS if hasattr(rule, bound)}


def holds(member: dict[str, Any], taken: Callable[..., bool]) -> bool:
    """Whether the parser takes what a member may be, and nothing else."""
    if "type" in member:
        examples = dict(NUMBERS.values())[member["type"]]
        return taken(*examples) and not taken(*NO_NUMBERS)
    choices = member.get("choices", ())
    others = {other for choice in choices for other in spelled_otherwise(choice)}
    told = all(map(taken, map(str.lower, choices))) if member.get("folds") else not taken(*others)
    return told and taken(*(choices or ({},))) and not taken("no-such-choice", {"no_such_key": 1})


def spelled_otherwise(choice: str) -> set[str]:
    """A word with another case or other dashes."""
    dashes = choice.replace("_", "-"), choice.replace("-", "_")
    return {*dashes, choice.swapcase(), *(word.upper() for word in dashes)} - {choice}


def member_of(hint: Any) -> dict[str, Any]:
    """The keys, the choices or the kind of number of a value with this type; empty when it may be something else as well."""
    parts = set(alternatives(hint)) - {type(None)}
    if parts == {int, float}:
        parts = {float}
    part = parts.pop() if len(parts) == 1 else None
    if part in NUMBERS:
        return {"type": NUMBERS[part][0]}
    if dataclasses.is_dataclass(part) and isinstance(part, type):
        return {"keys": names_of(part)}
    if isinstance(part, enum.EnumType):
        return {"choices": list(part.__members__), "folds": True}
    words = typing.get_args(part) if typing.get_origin(part) is typing.Literal else ()
    return {"choices": list(words)} if words and all(isinstance(word, str) for word in words) else {}


def alternatives(hint: Any) -> Iterator[Any]:
    """The types that a type hint allows."""
    if typing.get_origin(hint) in {typing.Union, types.UnionType}:
        for part in typing.get_args(hint):
            yield from alternatives(part)
    else:
        yield hint


def dump(parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Everything about all options, by destination."""
    return {
        action.dest: {
            "flags": list(action.option_strings),
            "nargs": action.nargs,
            **(known := described(action)),
            **asked(parser, action, known["type"]),
            "members": members_of(parser, action),
        }
        for action in parser._actions  # noqa: SLF001 # argparse has no other way to list them
        if action.option_strings
    }


if __name__ == "__main__":
    json.dump(dump(build_parser()), sys.stdout)
