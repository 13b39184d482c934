"""Which version of the engine has the model's class and carries code for a GPU.

The registries of many releases were read for the classes, so a class is known to be there, known to be missing, or in
between two releases that were read. Of an engine without such readings nothing is said.
"""

import re
from collections.abc import Iterator

from vlm_operator.api.findings import Finding
from vlm_operator.sizing.catalogue.rows import VllmVersions
from vlm_operator.sizing.engine_facts import Readings, Version
from vlm_operator.sizing.subject import Product, Subject, choices, gpu_doubt

NOT_IN_VERSION = "ArchitectureNotInVersion"
"""The version of the engine does not have the model's class."""
VERSION_UNCERTAIN = "ArchitectureVersionUncertain"
"""The model's class came with one of several versions, this one among them."""
GPU_NOT_IN_BUILD = "GpuNotInBuild"
"""The published build of the engine carries no code for a GPU."""
HALF_PRECISION = "Bfloat16Missing"
"""A GPU cannot compute in bfloat16."""

Capability = tuple[int, int]

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
    readings = subject.engine.readings
    if readings is not None:
        yield from _class(subject, readings)
        for product in subject.products:
            yield from _build(subject, product, readings)
    yield from _half_precision(subject)


def versions_with_class(subject: Subject) -> tuple[str, ...] | None:
    """The versions that the operator knows to run and that have the model's class, oldest first. None: it is not known."""
    seen, readings = subject.versions, subject.engine.readings
    if seen is None or readings is None or seen == VllmVersions():
        return None
    return tuple(known for known in subject.engine.supported if _has(seen, parse_version(known), readings))


def _has(seen: VllmVersions, version: Version, readings: Readings) -> bool:
    """Whether a version certainly has a class."""
    if seen.last_seen_in and parse_version(seen.last_seen_in) < min(version, readings.newest):
        return False
    if seen.first_seen_in is None:
        return seen.absent_in is None
    return version >= parse_version(seen.first_seen_in)


def _class(subject: Subject, readings: Readings) -> Iterator[Finding]:
    name, seen, engine = subject.class_name, subject.versions, subject.engine
    if name is None or seen is None:
        return
    version = parse_version(engine.version)
    this = f"{engine.name} {engine.version}"
    if seen.last_seen_in and parse_version(seen.last_seen_in) < min(version, readings.newest):
        message = f"{this} has no {name} any more: {seen.last_seen_in} was the last release with it"
        yield _missing(message, _way_out(subject, seen))
    elif seen.absent_in and version <= parse_version(seen.absent_in):
        message = f"{this} has no {name} yet: {seen.absent_in} does not have it"
        yield _missing(
            message + (f", {seen.first_seen_in} has it" if seen.first_seen_in else ""), _way_out(subject, seen)
        )
    elif seen.first_seen_in and seen.absent_in and version < parse_version(seen.first_seen_in):
        yield Finding(
            reason=VERSION_UNCERTAIN,
            severity="Warning",
            field="spec.engine.version",
            message=(
                f"it is not known whether {this} has {name}:"
                f" {seen.absent_in} does not have it, {seen.first_seen_in} has it"
            ),
            advice=_way_out(subject, seen),
        )


def _way_out(subject: Subject, seen: VllmVersions) -> str:
    """Versions with the model's class as they must be written: in quotes, or YAML would read numbers."""
    engine, having = subject.engine, versions_with_class(subject)
    if having:
        earlier = f', or an earlier one from "{having[0]}" on' if len(having) > 1 else ""
        return f'set spec.engine.version to "{having[-1]}"{earlier}'
    if seen.last_seen_in is None or parse_version(seen.last_seen_in) > parse_version(engine.supported[-1]):
        return f"set spec.engine.version to a version with it, newer than {engine.supported[-1]}"
    return f"serve another model: no version of {engine.name} that this operator knows to run has this class"


def _missing(message: str, advice: str) -> Finding:
    return Finding(reason=NOT_IN_VERSION, severity="Error", field="spec.engine.version", message=message, advice=advice)


def _build(subject: Subject, product: Product, readings: Readings) -> Iterator[Finding]:
    """GPUs that are older than all code in the image. What an image of one's own carries is not known."""
    engine = subject.engine
    build, version = subject.catalogue.pytorch, parse_version(engine.version)
    capability = parse_capability(product.row.capability) if product.row else None
    if build is None or product.row is None or capability is None or version <= readings.legacy:
        return
    oldest = min(filter(None, map(parse_capability, build.capabilities)))
    if capability >= oldest:
        return
    own = subject.spec.engine.image is not None
    certain = version >= readings.newest and not own
    carries = "your image may carry" if own else f"the image of {engine.name} {engine.version} carries"
    newest = ".".join(map(str, readings.newest[:2]))
    reach = "" if certain else f", as that of {newest} does"
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
