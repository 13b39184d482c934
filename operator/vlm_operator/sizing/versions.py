"""Which version of the engine has the model's class and carries code for a GPU.

The registries of many vLLM releases were read for the classes, so a class is known to be there, known to be missing, or
in between two releases that were read.
"""

import re
from collections.abc import Iterator

from vlm_operator.api.findings import Finding
from vlm_operator.sizing.subject import Product, Subject, choices, gpu_doubt

NOT_IN_VERSION = "ArchitectureNotInVersion"
"""The version of the engine does not have the model's class."""
VERSION_UNCERTAIN = "ArchitectureVersionUncertain"
"""The model's class came with one of several versions, this one among them."""
GPU_NOT_IN_BUILD = "GpuNotInBuild"
"""The published build of the engine carries no code for a GPU."""
HALF_PRECISION = "Bfloat16Missing"
"""A GPU cannot compute in bfloat16."""

Version = tuple[int, ...]
Capability = tuple[int, int]

NEWEST_READ: Version = (0, 33, 0)
"""The newest release whose registry was read; a class that it has is taken to be in later ones too."""
LEGACY: Version = (0, 10, 2)
"""The last release with some older classes; its minimum capabilities are known as well."""
_NUMBER = re.compile(r"[0-9]+")


def parse_version(text: str) -> Version:
    """The first three numbers of a version: (0, 33, 0) for `0.33`, (0, 6, 3) for `0.6.3.post1`."""
    numbers = [int(number) for number in _NUMBER.findall(text.partition(".post")[0])[:3]]
    return tuple(numbers + [0] * (3 - len(numbers)))


def parse_capability(text: str | None) -> Capability | None:
    """A compute capability as numbers: (8, 9) for `8.9`; None for what is none, such as `gfx942`."""
    if text is None or not re.fullmatch(r"[0-9]{1,2}\.[0-9]", text):
        return None
    major, minor = text.split(".")
    return int(major), int(minor)


def check(subject: Subject) -> Iterator[Finding]:
    """What does not go with `spec.engine.version`."""
    yield from _class(subject)
    for product in subject.products:
        yield from _build(subject, product)
    yield from _half_precision(subject)


def _class(subject: Subject) -> Iterator[Finding]:
    name = subject.class_name
    seen = subject.versions
    if name is None or seen is None:
        return
    version = parse_version(subject.engine_version)
    if seen.last_seen_in and parse_version(seen.last_seen_in) < min(version, NEWEST_READ):
        message = (
            f"vLLM {subject.engine_version} has no {name} any more: {seen.last_seen_in} was the last release with it"
        )
        yield _missing(message, f"set spec.engine.version to {_quoted(seen.last_seen_in)}")
    elif seen.absent_in and version <= parse_version(seen.absent_in):
        message = f"vLLM {subject.engine_version} has no {name} yet: {seen.absent_in} does not have it"
        advice = _newest(seen.last_seen_in) or "set a later spec.engine.version"
        yield _missing(message + (f", {seen.first_seen_in} has it" if seen.first_seen_in else ""), advice)
    elif seen.first_seen_in and seen.absent_in and version < parse_version(seen.first_seen_in):
        yield Finding(
            reason=VERSION_UNCERTAIN,
            severity="Warning",
            field="spec.engine.version",
            message=(
                f"it is not known whether vLLM {subject.engine_version} has {name}:"
                f" {seen.absent_in} does not have it, {seen.first_seen_in} has it"
            ),
            advice=f"set spec.engine.version to {_quoted(seen.first_seen_in)} or later",
        )


def _newest(last_seen: str | None) -> str:
    return f"set spec.engine.version to {_quoted(last_seen)}" if last_seen else ""


def _quoted(version: str) -> str:
    """A version as it must be written: quoted, or YAML reads a number; without a zero that says nothing."""
    numbers = parse_version(version)
    shown = numbers if numbers[2] else numbers[:2]
    return f'"{".".join(map(str, shown))}"'


def _missing(message: str, advice: str) -> Finding:
    return Finding(reason=NOT_IN_VERSION, severity="Error", field="spec.engine.version", message=message, advice=advice)


def _build(subject: Subject, product: Product) -> Iterator[Finding]:
    """GPUs that are older than all code in the image. What an image of one's own carries is not known."""
    build, version = subject.catalogue.pytorch, parse_version(subject.engine_version)
    capability = parse_capability(product.row.capability) if product.row else None
    if build is None or product.row is None or capability is None or version <= LEGACY:
        return
    oldest = min(filter(None, map(parse_capability, build.capabilities)))
    if capability >= oldest:
        return
    own = subject.spec.engine.image is not None
    certain = version >= NEWEST_READ and not own
    carries = "your image may carry" if own else f"the image of vLLM {subject.engine_version} carries"
    reach = "" if certain else ", as that of 0.33 does"
    yield Finding(
        reason=GPU_NOT_IN_BUILD,
        severity="Error" if certain else "Warning",
        field=product.field,
        message=(
            f"{product.row.name} has compute capability {product.row.capability}"
            f"{gpu_doubt(product.row, 'capability')}, and {carries} code from {oldest[0]}.{oldest[1]} on only{reach}"
        ),
        advice=f"remove {product.label}, or set spec.engine.image to one that is built for it",
    )


def _half_precision(subject: Subject) -> Iterator[Finding]:
    """Weights in 16 bit are bfloat16 as published; older GPUs take them as float16."""
    build = subject.catalogue.pytorch
    least = parse_capability(build.bfloat16_from) if build else None
    old = [product for product in subject.products if product.row and _below(product.row.capability, least)]
    if old:
        names = choices(tuple(product.label for product in old), "and")
        yield Finding(
            reason=HALF_PRECISION,
            severity="Warning",
            field=old[0].field,
            message=f"{names} cannot compute in bfloat16, which needs compute capability 8.0; float16 is used instead",
            advice="compare the answers of the model with those on a newer GPU",
        )


def _below(capability: str | None, least: Capability | None) -> bool:
    parsed = parse_capability(capability)
    return parsed is not None and least is not None and parsed < least
