"""What is wrong with a resource for vLLM, found before a pod is created.

Each check is a function from inputs to findings; `check` runs them all. Those about arguments are in `argument_checks`.
"""

from collections.abc import Callable, Iterator

from vlm_operator.api.findings import Finding
from vlm_operator.engines.base import PodInputs
from vlm_operator.engines.vllm.argument_checks import (
    API_KEY_IN_CLEAR,
    arguments_are_right,
    arguments_are_text,
    arguments_hold_no_credential,
    flags_come_once,
    flags_have_what_they_need,
    memory_is_counted,
)
from vlm_operator.engines.vllm.arguments import Lack, lacks
from vlm_operator.engines.vllm.credentials import holds_credential, variable_holds_credential
from vlm_operator.engines.vllm.flags import KnownFlags, known_flags, versions_with
from vlm_operator.engines.vllm.reserved import RESERVED_VARIABLES
from vlm_operator.engines.vllm.versions import DEFAULT_VERSION, KNOWN_VERSIONS, is_newer, standing, version_of

UNSUPPORTED_VERSION = "UnsupportedVersion"
"""The version is none of those whose arguments the operator can spell, and not newer than them either."""
FIELD_NOT_IN_VERSION = "FieldNotInVersion"
"""A field of the resource is set that the version has no argument for."""
UNKNOWN_VERSION = "UnknownVersion"
"""Nothing is known about the arguments of this version; those of the newest known version are taken for them."""
INVALID_VARIABLE = "InvalidVariable"
"""No process can get the value of an environment variable."""
RESERVED_VARIABLE = "ReservedVariable"
"""An environment variable belongs to the operator or would break the replica."""
IMAGE_NEEDED = "ImageNeeded"
"""The default image does not fit the GPU resource."""


def check(inputs: PodInputs, *, having: tuple[str, ...] | None = None) -> tuple[Finding, ...]:
    """Everything that is wrong, in the order of the fields. `having`: the known versions with the model's class, if known."""
    about_version = (*_version_is_known(inputs, having), *_version_has_the_fields(inputs, having))
    return (*about_version, *(finding for one in CHECKS for finding in one(inputs)))


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


def _version_is_known(inputs: PodInputs, having: tuple[str, ...] | None) -> Iterator[Finding]:
    version = version_of(inputs.engine)
    field, advice = "spec.engine.version", _known_version(having)
    match standing(version):
        case "Unsupported":
            told = f"is {version}, but this operator can spell the arguments of vLLM {', '.join(KNOWN_VERSIONS)}"
            told += " and newer only"
            yield Finding(reason=UNSUPPORTED_VERSION, severity="Error", field=field, message=told, advice=advice)
        case "Newer":
            told = f"is {version}, and arguments are checked against those of vLLM {DEFAULT_VERSION},"
            told += " the newest that this operator knows"
            yield Finding(reason=UNKNOWN_VERSION, severity="Warning", field=field, message=told, advice=advice)
        case "Known":
            return


def _known_version(having: tuple[str, ...] | None) -> str:
    """What to write for the version: one of those with the model's class."""
    if having == ():
        return "serve another model: none of the known versions has the class of this one"
    if having is None or having == KNOWN_VERSIONS:
        return f"leave it out to run vLLM {DEFAULT_VERSION}"
    range_ = f"{having[0]} to {having[-1]} have" if len(having) > 1 else f"{having[0]} alone has"
    way = f"leave it out to run vLLM {DEFAULT_VERSION}" if DEFAULT_VERSION in having else f'set it to "{having[-1]}"'
    return f"{way}: of the known versions {range_} the model's class"


def _version_has_the_fields(inputs: PodInputs, having: tuple[str, ...] | None) -> Iterator[Finding]:
    known = known_flags(version_of(inputs.engine))
    if known is None:
        return
    for lack in lacks(inputs, known):
        if lack.argument.lacking != "Nothing":
            yield _lacking(lack, known, having)


def _lacking(lack: Lack, known: KnownFlags, having: tuple[str, ...] | None) -> Finding:
    argument = lack.argument
    if lack.value is None:
        newer = [version for version in versions_with(argument.flag) if is_newer(version, known.version)]
        ways = [f"use vLLM {version} or newer" for version in newer if having is None or version in having][:1]
        ways += ["leave it out"] if argument.lacking == "Error" else []
        message = f"vLLM {known.version} has no {argument.flag} and {argument.consequence}"
        advice = ", or ".join(ways) or "expect that: no version with the model's class has it"
    else:
        message = f"{argument.flag} of vLLM {known.version} does not take {lack.value}"
        advice = f"it takes {', '.join(lack.choices)}"
    return Finding(
        reason=FIELD_NOT_IN_VERSION,
        severity="Warning" if argument.lacking == "Warning" else "Error",
        field=argument.field,
        message=message,
        advice=advice,
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
        if variable.value and "\0" in variable.value:
            message = f"the value of {variable.name} holds a NUL character, which no process can get"
            advice = "remove the character"
            yield Finding(reason=INVALID_VARIABLE, severity="Error", field=field, message=message, advice=advice)
        if variable.value and (variable_holds_credential(variable.name) or holds_credential(variable.value)):
            yield Finding(
                reason=API_KEY_IN_CLEAR,
                severity="Warning",
                field=field,
                message=f"everyone who can read the resource can read the key or token in {variable.name}",
                advice="keep it in a Secret and use valueFrom.secretKeyRef",
            )


CHECKS: tuple[Callable[[PodInputs], Iterator[Finding]], ...] = (
    _image_fits_gpu,
    arguments_are_text,
    arguments_are_right,
    flags_have_what_they_need,
    flags_come_once,
    memory_is_counted,
    arguments_hold_no_credential,
    _variables_are_free,
)
