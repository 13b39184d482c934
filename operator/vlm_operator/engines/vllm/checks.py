"""What is wrong with a resource for vLLM, found before a pod is created.

Each check is a function from inputs to findings; `check` runs them all. Arguments are compared with the facts about the
version in use, exactly.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from difflib import get_close_matches

from vlm_operator.api.findings import Finding
from vlm_operator.engines.base import PodInputs
from vlm_operator.engines.vllm.command_line import END_OF_FLAGS, Given, divide
from vlm_operator.engines.vllm.flags import GATHERED, Flag, KnownFlags, known_flags, newest_flags
from vlm_operator.engines.vllm.reserved import OPERATOR_SETS, OWNED_FLAGS, REFUSED_FLAGS, RESERVED_VARIABLES
from vlm_operator.engines.vllm.versions import (
    DEFAULT_VERSION,
    OLDEST_VERSION,
    is_too_old,
    minor_version,
    version_of,
)

ARGUMENT_CONFLICT = "ArgumentConflict"
"""An argument sets what a field of the resource or the operator sets."""
ARGUMENT_REFUSED = "ArgumentRefused"
"""An argument would break the replica or the way it is watched."""
INVALID_ARGUMENT = "InvalidArgument"
"""The engine would not start with an argument: it is unknown, or its value is missing, superfluous or not allowed."""
REPEATED_ARGUMENT = "RepeatedArgument"
"""A flag is given more than once, and the engine keeps only one of its values."""
UNSUPPORTED_VERSION = "UnsupportedVersion"
"""The version is older than those whose arguments the operator can spell."""
UNKNOWN_VERSION = "UnknownVersion"
"""Nothing is known about the arguments of this version; those of the newest known version are taken for them."""
RESERVED_VARIABLE = "ReservedVariable"
"""An environment variable belongs to the operator or would break the replica."""
API_KEY_IN_CLEAR = "ApiKeyInClear"
"""An API key stands in the resource."""
IMAGE_NEEDED = "ImageNeeded"
"""The default image does not fit the GPU resource."""

_FEW = 3


def check(inputs: PodInputs) -> tuple[Finding, ...]:
    """Everything that is wrong, in the order of the fields."""
    return tuple(finding for one in CHECKS for finding in one(inputs))


def _image_fits_gpu(inputs: PodInputs) -> Iterator[Finding]:
    resource = inputs.gpu.resource_name
    if inputs.engine.image is None and not resource.startswith("nvidia.com/"):
        yield Finding(
            reason=IMAGE_NEEDED,
            severity="Warning",
            field="spec.engine.image",
            message=f"the default image is built for NVIDIA GPUs, and spec.gpu.resourceName is {resource}",
            advice="set an image that is built for these GPUs",
        )


def _version_is_known(inputs: PodInputs) -> Iterator[Finding]:
    version = version_of(inputs.engine)
    if known_flags(minor_version(version)) is not None:
        return
    field, advice = "spec.engine.version", f"leave it out to run vLLM {DEFAULT_VERSION}"
    if is_too_old(version):
        told = f"is {version}, but this operator can spell the arguments of vLLM {OLDEST_VERSION} and newer only"
        yield Finding(reason=UNSUPPORTED_VERSION, severity="Error", field=field, message=told, advice=advice)
    else:
        told = f"is {version}, and arguments are checked against those of vLLM {DEFAULT_VERSION},"
        told += " the newest that this operator knows"
        yield Finding(reason=UNKNOWN_VERSION, severity="Warning", field=field, message=told, advice=advice)


def _arguments_are_right(inputs: PodInputs) -> Iterator[Finding]:
    version = minor_version(version_of(inputs.engine))
    exact = known_flags(version)
    known = exact or newest_flags()
    for given in divide(inputs.engine.args):
        flag = known.find(given.flag)
        if given.flag in {"", END_OF_FLAGS}:
            yield from _stray_words(given)
        elif flag is None:
            doubt = "remove it" if exact else f"make sure that vLLM {version} has it"
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
    message = f"vLLM {known.version} has no argument {given.flag[:80]}"
    nearest = _nearest(given.option.lower(), known)
    if nearest is None:
        return _argument(given.index, INVALID_ARGUMENT, message, otherwise)
    field = OWNED_FLAGS.get(known.spellings[nearest].name)
    advice = f"did you mean {nearest}?" + (f" {field} sets it" if field else "")
    return _argument(given.index, INVALID_ARGUMENT, message, advice)


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
        advice = f"remove {values[0][:80]!r}"
        yield _argument(given.index, INVALID_ARGUMENT, f"{given.flag} is a switch and takes no value", advice)
    elif kind in {"value", "list"} and not values:
        yield _argument(given.index, INVALID_ARGUMENT, f"{given.flag} needs a value", "add it as the next item")
    elif flag.choices and not given.key:  # `--flag.key value` sets part of an object
        for value in values:
            if _folded(value) not in map(_folded, flag.choices):
                message = f"{given.flag} does not take {value[:80]!r}"
                yield _argument(given.index, INVALID_ARGUMENT, message, f"choose from {', '.join(flag.choices)}")
    yield from _stray_words(given, after=len(values))


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
        yield _argument(given.position(number), INVALID_ARGUMENT, f"{word[:80]!r} belongs to no flag", advice)


def _argument(index: int, reason: str, message: str, advice: str) -> Finding:
    return Finding(reason=reason, severity="Error", field=_item(index), message=message, advice=advice)


def _item(index: int) -> str:
    return f"spec.engine.args[{index}]"


def _flags_come_once(inputs: PodInputs) -> Iterator[Finding]:
    known = known_flags(minor_version(version_of(inputs.engine))) or newest_flags()
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


def _variables_are_free(inputs: PodInputs) -> Iterator[Finding]:
    for index, variable in enumerate(inputs.engine.env):
        field = f"spec.engine.env[{index}]"
        if variable.name in RESERVED_VARIABLES:
            yield Finding(
                reason=RESERVED_VARIABLE,
                severity="Error",
                field=field,
                message=f"{variable.name} cannot be set: {RESERVED_VARIABLES[variable.name]}",
                advice="remove it",
            )
        if variable.name == "VLLM_API_KEY" and variable.value is not None:
            yield Finding(
                reason=API_KEY_IN_CLEAR,
                severity="Warning",
                field=field,
                message="everyone who can read the resource can read the API key",
                advice="keep it in a Secret and use valueFrom.secretKeyRef",
            )


CHECKS: tuple[Callable[[PodInputs], Iterator[Finding]], ...] = (
    _version_is_known,
    _image_fits_gpu,
    _arguments_are_right,
    _flags_come_once,
    _variables_are_free,
)
