"""What is wrong with `spec.engine.args`: each check is a function from inputs to findings.

Arguments are compared with the facts about the version in use, exactly.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches

from vlm_operator.api.findings import Finding
from vlm_operator.engines.base import PodInputs
from vlm_operator.engines.vllm.command_line import END_OF_FLAGS, Given, divide
from vlm_operator.engines.vllm.credentials import holds_credential
from vlm_operator.engines.vllm.flags import GATHERED, Flag, KnownFlags, assumed_flags, known_flags, versions_with
from vlm_operator.engines.vllm.removed import SUCCESSORS
from vlm_operator.engines.vllm.reserved import OPERATOR_SETS, OWNED_FLAGS, REFUSED_FLAGS
from vlm_operator.engines.vllm.versions import is_newer, minor_version, version_of

ARGUMENT_CONFLICT = "ArgumentConflict"
"""An argument sets what a field of the resource or the operator sets."""
ARGUMENT_REFUSED = "ArgumentRefused"
"""An argument would break the replica or the way it is watched."""
INVALID_ARGUMENT = "InvalidArgument"
"""The engine would not start with an argument: it is unknown, or its value is missing, superfluous or not allowed."""
REPEATED_ARGUMENT = "RepeatedArgument"
"""A flag is given more than once, and the engine keeps only one of its values."""
API_KEY_IN_CLEAR = "ApiKeyInClear"
"""An API key or a token stands in the resource."""

_FEW = 3
_NONE = ("None", "")
"""What the parser takes for no value at all."""


def arguments_are_right(inputs: PodInputs) -> Iterator[Finding]:
    """Every flag may be used here, the version has it, and it has the values that it takes."""
    version = version_of(inputs.engine)
    exact = known_flags(version)
    known = exact or assumed_flags(version)
    for given in divide(inputs.engine.args):
        flag = known.find(given.flag)
        if given.flag in {"", END_OF_FLAGS}:
            yield from _stray_words(given)
        elif flag is None:
            doubt = "remove it" if exact else f"make sure that vLLM {minor_version(version)} has it"
            yield _doubted(_unknown(given, known, otherwise=doubt), exact)
        elif flag.name in OWNED_FLAGS:
            yield _conflict(given, OWNED_FLAGS[flag.name])
        elif flag.name in REFUSED_FLAGS:
            why, advice = REFUSED_FLAGS[flag.name]
            yield _argument(given.index, ARGUMENT_REFUSED, f"{given.flag} cannot be used: {why}", advice)
        else:
            yield from (_doubted(finding, exact) for finding in _values_are_right(given, flag, known))


def _doubted(finding: Finding, exact: KnownFlags | None) -> Finding:
    """Only a warning when it was found by the facts about another version."""
    return finding if exact else replace(finding, severity="Warning")


def _conflict(given: Given, field: str) -> Finding:
    if not field:
        return _argument(given.index, ARGUMENT_CONFLICT, f"{given.flag} cannot be used: {OPERATOR_SETS}", "remove it")
    message = f"{given.flag} sets what {field} sets"
    return _argument(given.index, ARGUMENT_CONFLICT, message, f"remove it and use {field}")


def _unknown(given: Given, known: KnownFlags, *, otherwise: str) -> Finding:
    message = f"vLLM {known.version} has no argument {_shown(given.flag)}"
    if change := _change(given, known):
        return _argument(given.index, INVALID_ARGUMENT, f"{message}: {change[0]}", change[1])
    nearest = _nearest(given.option.lower(), known)
    if nearest is None:
        return _argument(given.index, INVALID_ARGUMENT, message, otherwise)
    field = OWNED_FLAGS.get(known.spellings[nearest].name)
    advice = f"did you mean {nearest}?" + (f" {field} sets it" if field else "")
    return _argument(given.index, INVALID_ARGUMENT, message, advice)


def _change(given: Given, known: KnownFlags) -> tuple[str, str] | None:
    """What became of a flag that other versions have, and the way out; None when none has it."""
    positive = given.option.replace("--no-", "--", 1)
    if successor := SUCCESSORS.get(given.option) or SUCCESSORS.get(positive):
        return "it was removed", successor
    having = versions_with(given.option)
    if newer := [version for version in having if is_newer(version, known.version)]:
        return f"it came with a later one, vLLM {newer[0]} has it", f"remove it, or use vLLM {newer[0]} or newer"
    return (f"vLLM {having[-1]} was the last known to have it", "remove it") if having else None


def _nearest(wanted: str, known: KnownFlags) -> str | None:
    """The spelling that was probably meant: one that may be used and is alike, or the only few that go on from it."""
    usable = [
        spelling
        for spelling, flag in known.spellings.items()
        if flag.name not in REFUSED_FLAGS and OWNED_FLAGS.get(flag.name) != ""
    ]
    longer = [spelling for spelling in usable if wanted.startswith("--") and spelling.startswith(wanted)]
    if 0 < len(longer) <= _FEW:
        return min(longer, key=len)
    return next(iter(get_close_matches(wanted, usable, n=1, cutoff=0.75)), None)


def _values_are_right(given: Given, flag: Flag, known: KnownFlags) -> Iterator[Finding]:
    if given.option not in known.spellings:  # `-O3` carries its value, which is left to the engine
        yield from _stray_words(given)
        return
    kind = "value" if given.key else flag.kind
    values = given.values[: None if kind == "list" and not given.attached else 1]
    if kind == "switch" and values:
        advice = f"remove {_quoted(values[0])}"
        yield _argument(given.index, INVALID_ARGUMENT, f"{given.flag} is a switch and takes no value", advice)
    elif kind in {"value", "list"} and not values:
        yield _argument(given.index, INVALID_ARGUMENT, f"{given.flag} needs a value", "add it as the next item")
    else:
        for number, value in enumerate(values):
            yield from _value_is_right(given, flag, value, number)
    yield from _stray_words(given, after=len(values))


def _value_is_right(given: Given, flag: Flag, value: str, number: int) -> Iterator[Finding]:
    if given.key:  # part of an object: `--flag.key value`
        yield from _keys_are_right(given, flag, [given.key.partition(".")[0].removesuffix("+")])
    elif flag.choices and _folded(value) not in map(_folded, flag.choices):
        message = f"{given.flag} does not take {_quoted(value)}"
        yield _argument(given.index, INVALID_ARGUMENT, message, f"choose from {', '.join(flag.choices)}")
    elif flag.type == "json":
        yield from _object_is_right(given, flag, value)
    elif flag.type and not _is_number(value, flag.type):
        wanted = "a whole number" if flag.type == "integer" else "a number"
        message = f"{given.flag} takes {wanted}, not {_quoted(value)}"
        yield _argument(given.position(number), INVALID_ARGUMENT, message, "write it in digits")


def _object_is_right(given: Given, flag: Flag, value: str) -> Iterator[Finding]:
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError) as error:
        if value in _NONE:
            return
        problem = f"{error.msg} at character {error.pos}" if isinstance(error, json.JSONDecodeError) else str(error)
        message = f"{given.flag} takes JSON, and {_quoted(value)} is none: {problem[:120]}"
        example = next(iter(flag.keys), "key")
        yield _argument(given.index, INVALID_ARGUMENT, message, f'write it as {{"{example}": ...}}')
        return
    if isinstance(parsed, dict):
        yield from _keys_are_right(given, flag, list(parsed))


def _keys_are_right(given: Given, flag: Flag, keys: list[str]) -> Iterator[Finding]:
    """Wrong keys, some of which vLLM would take without a word and then not do what was asked."""
    for key in keys:
        if flag.keys and key not in flag.keys:
            near = get_close_matches(key, flag.keys, n=1)
            advice = f"did you mean {near[0]}?" if near else f"choose from {', '.join(flag.keys)}"
            message = f"{given.option} has no key {_quoted(key)}"
            yield _argument(given.index, INVALID_ARGUMENT, message, advice)


def _is_number(value: str, kind: str) -> bool:
    try:
        int(value) if kind == "integer" else float(value)
    except ValueError:
        return value in _NONE
    return True


def _shown(word: str) -> str:
    """A word as a message repeats it: short, and no credential."""
    return "(a credential)" if holds_credential(word) else word[:80]


def _quoted(word: str) -> str:
    return _shown(word) if holds_credential(word) else repr(word[:80])


def _folded(value: str) -> str:
    """Some options fold their values before they compare them; none tells two choices apart by case or dashes."""
    return value.lower().replace("-", "_")


def _stray_words(given: Given, *, after: int = 0) -> Iterator[Finding]:
    """A finding for each value beyond those that the flag takes."""
    if given.flag == END_OF_FLAGS:
        message = f"{given.flag!r} is no argument: vLLM would take what follows for further models"
        yield _argument(given.index, INVALID_ARGUMENT, message, "remove it")
    for number, word in enumerate(given.values[after:], start=after):
        advice = "write the flag and its value as two items" if word.startswith("-") and " " in word else "remove it"
        yield _argument(given.position(number), INVALID_ARGUMENT, f"{_quoted(word)} belongs to no flag", advice)


def _argument(index: int, reason: str, message: str, advice: str) -> Finding:
    return Finding(reason=reason, severity="Error", field=_item(index), message=message, advice=advice)


def _item(index: int) -> str:
    return f"spec.engine.args[{index}]"


def flags_come_once(inputs: PodInputs) -> Iterator[Finding]:
    """No flag is given twice, where the engine keeps only one of its values."""
    known = assumed_flags(version_of(inputs.engine))
    earlier: dict[str, list[Given]] = {}
    for given in divide(inputs.engine.args):
        flag = known.find(given.flag)
        if flag is None or flag.name in GATHERED | OWNED_FLAGS.keys() | REFUSED_FLAGS.keys():
            continue
        same = earlier.setdefault(flag.name, [])
        if first := next((other for other in reversed(same) if _one_replaces_the_other(other, given)), None):
            yield _repeated(first, given)
        same.append(given)


def _one_replaces_the_other(first: Given, second: Given) -> bool:
    """Whether two uses of a flag cannot both count. vLLM gathers parts of an object by the flag as it is spelled."""
    if first.key and second.key and first.option == second.option:
        return first.key == second.key and not second.key.endswith("+")  # `+` appends to a list
    return True


def _repeated(first: Given, second: Given) -> Finding:
    kept = first if first.key and not second.key else second  # vLLM puts objects made of parts at the end
    return Finding(
        reason=REPEATED_ARGUMENT,
        severity="Warning",
        field=_item(second.index),
        message=f"{second.flag} sets again what {first.flag} in {_item(first.index)} sets,"
        f" and of the two vLLM keeps only {kept.flag} in {_item(kept.index)}",
        advice="remove one of them",
    )


def arguments_hold_no_credential(inputs: PodInputs) -> Iterator[Finding]:
    """No key and no token stands in plain sight."""
    advice = "keep it in a Secret, and give it to the engine by spec.engine.env with valueFrom.secretKeyRef"
    known = assumed_flags(version_of(inputs.engine))
    for given in divide(inputs.engine.args):
        flag = known.find(given.flag)
        if flag and flag.name in REFUSED_FLAGS:
            continue
        token = given.values[:1] if given.option == "--hf-token" else ()
        if token or any(map(holds_credential, (given.flag, *given.values))):
            where = given.flag.partition(".")[0] if given.flag.startswith("-") else "a word"
            message = f"{_shown(where)} has a key or a token in it, which everyone can read who can read the resource"
            yield Finding(
                reason=API_KEY_IN_CLEAR, severity="Error", field=_item(given.index), message=message, advice=advice
            )
