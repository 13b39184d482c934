"""Print what the argument parser of the vLLM that is on the path knows, as JSON.

Runs inside the environment of `vllm_args.environment`, with nothing of this project on the path. For each destination:
its option strings (`flags`), `nargs` and `choices` as argparse holds them, the kind of its values (`type`), and for a JSON
object the keys that it may have (`keys`), read from vLLM's own classes.
"""

import argparse
import dataclasses
import importlib
import json
import sys
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
TYPES = {"int": "integer", "float": "number", "loads": "json"}


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
    for function in conversions(action.type if callable(action.type) else None):
        if function.__name__ == "parse_dataclass" and function.__defaults__:
            return {"type": "json", "keys": names_of(function.__defaults__[0])}
        if function.__name__ in TYPES:
            keys = keys_of(action.dest) if function.__name__ == "loads" else []
            return {"type": TYPES[function.__name__], "keys": keys}
    return {"type": None, "keys": []}


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


def dump(parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Everything about all options, by destination."""
    return {
        action.dest: {
            "flags": list(action.option_strings),
            "nargs": action.nargs,
            "choices": [str(choice) for choice in action.choices] if action.choices else None,
            **described(action),
        }
        for action in parser._actions  # noqa: SLF001 # argparse has no other way to list them
        if action.option_strings
    }


if __name__ == "__main__":
    json.dump(dump(build_parser()), sys.stdout)
