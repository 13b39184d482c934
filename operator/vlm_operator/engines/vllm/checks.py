"""What is wrong with a resource for vLLM, found before a pod is created.

Each check is a function from inputs to findings; `check` runs them all. Arguments are compared with the facts about the
version in use, exactly.
"""

from collections.abc import Callable, Iterator
from difflib import get_close_matches

from vlm_operator.api.findings import Finding
from vlm_operator.engines.base import PodInputs
from vlm_operator.engines.vllm.command_line import Given, divide
from vlm_operator.engines.vllm.flags import Flag, KnownFlags, known_flags, newest_flags
from vlm_operator.engines.vllm.reserved import OPERATOR_SETS, OWNED_FLAGS, REFUSED_FLAGS, RESERVED_VARIABLES
from vlm_operator.engines.vllm.versions import DEFAULT_VERSION, minor_version, version_of

ARGUMENT_CONFLICT = "ArgumentConflict"
"""An argument sets what a field of the resource or the operator sets."""
ARGUMENT_REFUSED = "ArgumentRefused"
"""An argument would break the replica or the way it is watched."""
INVALID_ARGUMENT = "InvalidArgument"
"""The engine would not start with an argument: it is unknown, or its value is missing, superfluous or not allowed."""
ARGUMENTS_NOT_CHECKED = "ArgumentsNotChecked"
"""Nothing is known about the arguments of this version."""
RESERVED_VARIABLE = "ReservedVariable"
"""An environment variable belongs to the operator or would break the replica."""
API_KEY_IN_CLEAR = "ApiKeyInClear"
"""An API key stands in the resource."""
IMAGE_NEEDED = "ImageNeeded"
"""The default image does not fit the GPU resource."""


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
    if known_flags(minor_version(version)) is None:
        yield Finding(
            reason=ARGUMENTS_NOT_CHECKED,
            severity="Warning",
            field="spec.engine.version",
            message=f"arguments are not checked: nothing is known about those of vLLM {version}",
            advice=f"this operator knows vLLM {DEFAULT_VERSION}",
        )


def _arguments_are_right(inputs: PodInputs) -> Iterator[Finding]:
    known = known_flags(minor_version(version_of(inputs.engine)))
    for given in divide(inputs.engine.args):
        flag = (known or newest_flags()).find(given.flag)
        if not given.flag:
            yield _stray(given.index, given.values[0])
        elif flag is not None and flag.name in OWNED_FLAGS:
            yield _conflict(given, OWNED_FLAGS[flag.name])
        elif flag is not None and flag.name in REFUSED_FLAGS:
            why, advice = REFUSED_FLAGS[flag.name]
            yield _argument(given.index, ARGUMENT_REFUSED, f"{given.flag} cannot be used: {why}", advice)
        elif known is not None:
            yield from _unknown(given, known) if flag is None else _values_are_right(given, flag, known)


def _conflict(given: Given, field: str) -> Finding:
    if not field:
        return _argument(given.index, ARGUMENT_CONFLICT, f"{given.flag} cannot be used: {OPERATOR_SETS}", "remove it")
    message = f"{given.flag} sets what {field} sets"
    return _argument(given.index, ARGUMENT_CONFLICT, message, f"remove it and use {field}")


def _unknown(given: Given, known: KnownFlags) -> Iterator[Finding]:
    wanted = given.flag.replace("_", "-")
    close = get_close_matches(wanted, known.spellings, n=1, cutoff=0.75)
    longer = [name for name in known.spellings if name.startswith(wanted)] if wanted.startswith("--") else []
    nearest = min(longer, key=len) if longer else next(iter(close), "")
    message = f"vLLM {known.version} has no argument {given.flag}"
    yield _argument(given.index, INVALID_ARGUMENT, message, f"did you mean {nearest}?" if nearest else "remove it")


def _values_are_right(given: Given, flag: Flag, known: KnownFlags) -> Iterator[Finding]:
    if given.flag.replace("_", "-") not in known.spellings:
        return  # `--flag.key value` sets part of a JSON object, `-O3` carries its value: left to the engine
    values = given.values
    if flag.kind == "switch" and values:
        advice = f"remove {values[0][:80]!r}"
        yield _argument(given.index, INVALID_ARGUMENT, f"{given.flag} is a switch and takes no value", advice)
    elif flag.kind in {"value", "list"} and not values:
        yield _argument(given.index, INVALID_ARGUMENT, f"{given.flag} needs a value", "add it as the next item")
    elif len(values) > 1 and (flag.kind != "list" or given.attached):
        yield _stray(given.index + (1 if given.attached else 2), values[1])
    elif flag.choices and (wrong := [value for value in values if _folded(value) not in map(_folded, flag.choices)]):
        choices = ", ".join(flag.choices)
        message = f"{given.flag} does not take {wrong[0][:80]!r}"
        yield _argument(given.index, INVALID_ARGUMENT, message, f"choose from {choices}")


def _folded(value: str) -> str:
    """Some options fold their values before they compare them; none tells two choices apart by case or dashes."""
    return value.lower().replace("-", "_")


def _stray(index: int, word: str) -> Finding:
    advice = "write the flag and its value as two items" if word.startswith("-") else "remove it"
    return _argument(index, INVALID_ARGUMENT, f"{word[:80]!r} belongs to no flag", advice)


def _argument(index: int, reason: str, message: str, advice: str) -> Finding:
    return Finding(reason=reason, severity="Error", field=f"spec.engine.args[{index}]", message=message, advice=advice)


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
    _variables_are_free,
)
