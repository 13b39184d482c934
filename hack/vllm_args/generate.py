"""The facts file about the arguments of a version, from a dump of its parser (`vllm_args.dump`)."""

import json
from collections.abc import Iterable
from typing import Any

KINDS = {None: "value", 0: "switch", "?": "optional", "+": "list", "*": "list"}
"""What follows a flag: one value, nothing, at most one value, one value or more."""

UNLISTED_ALIASES = {"--optimization-level": ["-O"]}
"""Spellings that vLLM rewrites before its parser sees them, so that no dump has them."""


def option(entry: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The main spelling of one option, and what is to be known about it."""
    flags = entry["flags"]
    name = next((flag for flag in flags if flag.startswith("--")), flags[0])
    kind = KINDS[entry["nargs"]]
    negations = sorted(_negations(name, flags)) if kind == "switch" else []
    aliases = [flag for flag in flags if flag != name and flag not in negations] + UNLISTED_ALIASES.get(name, [])
    facts = {
        "kind": kind,
        "aliases": aliases,
        "negations": negations,
        **{
            name: entry.get(name)
            for name in ("choices", "folds", "type", "none", "object", "suffixes", "keys", "members")
        },
    }
    return name, {key: value for key, value in facts.items() if value}


def _negations(name: str, flags: Iterable[str]) -> set[str]:
    """The spellings that turn a switch off; the hidden `--no-enable-x` beside `--disable-x` is accepted by vLLM too."""
    bare = name.removeprefix("--").removeprefix("enable-").removeprefix("disable-")
    listed = {f"--no-{bare}", f"--enable-{bare}", f"--disable-{bare}"} & set(flags) - {name}
    return listed | {f"--no-{name.removeprefix('--')}"} if listed else set()


def facts_text(dump: dict[str, Any]) -> str:
    """The facts file: one line per option, sorted, so that a new version reads as a diff."""
    options = dict(sorted(option(entry) for entry in dump.values()))
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(facts)}" for name, facts in options.items())
    return f"{{\n{lines}\n}}\n"
