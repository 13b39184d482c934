"""Which GPUs a replica may run on, with what is known of their memory.

A product may be any of several; what is decided must hold on each of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from vlm_operator.api.findings import Finding
from vlm_operator.api.scalars import quantity_bytes
from vlm_operator.sizing.catalogue.rows import GpuRow
from vlm_operator.sizing.catalogue.similar import similar_labels
from vlm_operator.sizing.memory import GIB, Device, cuda_bytes
from vlm_operator.sizing.subject import Product, Subject, choices, gpu_doubt

GPU_UNKNOWN = "GpuUnknown"
"""The memory of a GPU is not known, so that the fit is not checked."""
GPU_MEMORY_IGNORED = "GpuMemoryIgnored"
"""The catalogue knows the GPUs, so that the memory in the spec is not used."""
GPU_SHARED = "GpuShared"
"""Other pods use the same GPU in turns, and its memory with it."""
GPU_RESOURCE_MISMATCH = "GpuResourceMismatch"
"""A product belongs to another resource than the one that is asked for."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A GPU that a replica may get."""

    label: str
    """What to call it."""
    field: str
    """Path of the field that allows it."""
    device: Device
    doubt: str = ""
    """` (unsourced)` when its memory has no source."""


def candidates(subject: Subject) -> tuple[Candidate, ...]:
    """The GPUs whose memory is known, in the order of the spec. The catalogue goes before `spec.gpu.memory`."""
    gpu = subject.spec.gpu
    found = [one for product in subject.products if (one := _candidate(subject, product))]
    if not gpu.products and gpu.memory is not None:
        device = _device(subject, None, quantity_bytes(gpu.memory))
        found.append(Candidate(label="the GPU", field="spec.gpu.memory", device=device))
    return tuple(found)


def _candidate(subject: Subject, product: Product) -> Candidate | None:
    row, given = product.row, subject.spec.gpu.memory
    known = known_bytes(row)
    if row is not None and known is not None:
        doubt = gpu_doubt(row, "cudaTotal" if row.cuda_gib else "memory")
        device = _device(subject, row, known)
        return Candidate(label=product.label, field=product.field, device=device, doubt=doubt)
    if given is None:
        return None
    return Candidate(label=product.label, field=product.field, device=_device(subject, row, quantity_bytes(given)))


def known_bytes(row: GpuRow | None) -> int | None:
    """Memory that CUDA reports according to the catalogue: as it was seen, else what the label allows for."""
    if row is None or (row.cuda_gib is None and row.memory_mib is None):
        return None
    return round(row.cuda_gib * GIB) if row.cuda_gib else cuda_bytes(row.memory_mib or 0)


def _device(subject: Subject, row: GpuRow | None, memory: int) -> Device:
    gpu = subject.spec.gpu
    vendor = "amd" if gpu.resource_name.startswith("amd.com/") else "nvidia"
    return Device(
        cuda_bytes=memory,
        capability=row.capability if row else None,
        memory_utilization=gpu.memory_utilization / 100,
        vendor=row.vendor if row else vendor,
    )


def check(subject: Subject) -> Iterator[Finding]:
    """What is wrong with `spec.gpu`, its age aside."""
    yield from _memory_is_known(subject)
    for product in subject.products:
        if product.row is not None:
            yield from _suits(subject, product, product.row)


def _memory_is_known(subject: Subject) -> Iterator[Finding]:
    given = subject.spec.gpu.memory
    unknown = [product for product in subject.products if known_bytes(product.row) is None]
    if given is None and (unknown or not subject.products):
        names = choices((product.label for product in unknown), "and") if unknown else "any GPU"
        yield Finding(
            reason=GPU_UNKNOWN,
            severity="Warning",
            field=unknown[0].field if unknown else "spec.gpu.products",
            message=f"the memory of {names} is not known, so that the fit is not checked",
            advice="".join(_meant(subject, product) for product in unknown)
            + "set spec.gpu.memory to what CUDA reports as total"
            + ("" if unknown else ", or name the products"),
        )
    elif given is not None and subject.products and not unknown:
        names = choices((product.label for product in subject.products), "and")
        yield Finding(
            reason=GPU_MEMORY_IGNORED,
            severity="Warning",
            field="spec.gpu.memory",
            message=f"memory {given} is not used: the catalogue knows {names}",
            advice="remove it",
        )


def _meant(subject: Subject, product: Product) -> str:
    near = similar_labels(subject.catalogue, product.label) if product.row is None else []
    return f"did you mean {choices(near)}? nodes are chosen by exactly {product.label}; otherwise " if near else ""


def _suits(subject: Subject, product: Product, row: GpuRow) -> Iterator[Finding]:
    resource = subject.spec.gpu.resource_name
    if row.shared:
        yield Finding(
            reason=GPU_SHARED,
            severity="Warning",
            field=product.field,
            message=f"{product.label} is shared in turns: memory that other pods take is missing here",
            advice="lower spec.gpu.memoryUtilization to the share that is free, or use slices",
        )
    if resource.partition("/")[0] != row.resource_name.partition("/")[0]:
        yield Finding(
            reason=GPU_RESOURCE_MISMATCH,
            severity="Warning",
            field="spec.gpu.resourceName",
            message=f"{product.label} is offered as {row.resource_name}, and resourceName is {resource}",
            advice=f"set resourceName to {row.resource_name}, or remove {product.label}",
        )
