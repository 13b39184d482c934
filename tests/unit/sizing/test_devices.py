"""Which GPUs a replica may get, and what is said where their memory is not known."""

from typing import Any

import pytest

from unit.replicas.tables import table
from unit.sizing.subjects import only, subject
from vlm_operator.sizing import devices
from vlm_operator.sizing.devices import candidates
from vlm_operator.sizing.memory import GIB, cuda_bytes

L40S, T4, MI300X = "NVIDIA-L40S", "Tesla-T4", "AMD_Instinct_MI300X_OAM"
SLICE = "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"


def memories(**gpu: Any) -> list[tuple[str, float | None]]:
    """Label and GiB of each candidate."""
    found = candidates(subject(gpu=gpu))
    return [(one.label, one.device.cuda_bytes and round(one.device.cuda_bytes / GIB, 2)) for one in found]


MEMORIES = [
    ("what CUDA was seen to report", {"products": [L40S]}, [(L40S, 44.39)]),
    (
        "the label, less what CUDA keeps",
        {"products": ["NVIDIA-L40"]},
        [("NVIDIA-L40", round(cuda_bytes(46068) / GIB, 2))],
    ),
    ("the catalogue before the spec", {"products": [L40S], "memory": "80Gi"}, [(L40S, 44.39)]),
    ("the spec for an unknown product", {"products": ["X", T4], "memory": "48Gi"}, [("X", 48.0), (T4, 14.56)]),
    ("the spec without products", {"memory": "49152Mi"}, [("the GPU", 48.0)]),
    ("nothing for an unknown product", {"products": ["X"]}, []),
    ("nothing without products", {}, []),
    ("a slice under its own label", {"products": [SLICE]}, [(SLICE, round(cuda_bytes(9536) / GIB, 2))]),
    (
        "a slice under the label of the whole",
        {"products": ["NVIDIA-A100-SXM4-80GB"], "resourceName": "nvidia.com/mig-1g.10gb"},
        [("NVIDIA-A100-SXM4-80GB", round(cuda_bytes(9536) / GIB, 2))],
    ),
]


@table("gpu, expected", MEMORIES)
def test_memory(gpu: dict[str, Any], expected: list[tuple[str, float]]) -> None:
    assert memories(**gpu) == expected


def test_a_device_has_what_the_catalogue_knows_and_the_share_of_the_spec() -> None:
    (found,) = candidates(subject(gpu={"products": [L40S], "memoryUtilization": 85}))
    assert (found.device.capability, found.device.vendor, found.device.memory_utilization) == ("8.9", "nvidia", 0.85)


def test_the_maker_of_an_unknown_gpu_is_that_of_its_resource() -> None:
    (found,) = candidates(subject(gpu={"resourceName": "amd.com/gpu", "memory": "192Gi"}))
    assert found.device.vendor == "amd"


def check(**gpu: Any) -> Any:
    return list(devices.check(subject(gpu=gpu)))


SAID = [
    ("nothing known", {}, "GpuUnknown", "spec.gpu.products", "the memory of any GPU is not known"),
    ("unknown products", {"products": [L40S, "X", "Y"]}, "GpuUnknown", "spec.gpu.products[1]", "the memory of X and Y"),
    (
        "a product without its memory",
        {"products": [MI300X], "resourceName": "amd.com/gpu"},
        "GpuUnknown",
        "spec.gpu.products[0]",
        MI300X,
    ),
    (
        "memory for nothing",
        {"products": [L40S], "memory": "48Gi"},
        "GpuMemoryIgnored",
        "spec.gpu.memory",
        "memory 48Gi is not used: the catalogue knows NVIDIA-L40S",
    ),
    ("a GPU in turns", {"products": ["Tesla-T4-SHARED"]}, "GpuShared", "spec.gpu.products[0]", "is shared in turns"),
    (
        "another maker's resource",
        {"products": [MI300X], "memory": "192Gi"},
        "GpuResourceMismatch",
        "spec.gpu.resourceName",
        "is offered as amd.com/gpu, and resourceName is nvidia.com/gpu",
    ),
]


@table("gpu, reason, field, words", SAID)
def test_what_is_said(gpu: dict[str, Any], reason: str, field: str, words: str) -> None:
    (found,) = check(**gpu)
    assert (found.reason, found.severity, found.field) == (reason, "Warning", field)
    assert words in found.message


@pytest.mark.parametrize(
    ("label", "meant"),
    [
        ("nvidia-l4", "NVIDIA-L4"),
        ("H100", "NVIDIA-H100-PCIe, NVIDIA-H100-80GB-HBM3 or NVIDIA-H100-NVL"),
        ("NVIDIA-A100-SXM-80GB", "NVIDIA-A100-SXM4-80GB"),
        ("NVIDIA", None),
        ("X-1000", None),
    ],
)
def test_for_an_unknown_label_the_nearest_known_ones_are_proposed(label: str, meant: str | None) -> None:
    advice = only(check(products=[L40S, label]), "GpuUnknown").advice
    told = f"did you mean {meant}? nodes are chosen by exactly {label}; otherwise set " if meant else "set spec.gpu.mem"
    assert advice.startswith(told)


def test_known_gpus_and_given_memory_are_enough() -> None:
    assert check(products=[L40S, T4]) == []
    assert check(products=["X"], memory="48Gi") == []
    assert check(memory="48Gi") == []


def test_a_slice_is_not_the_whole_gpu() -> None:
    assert only(check(products=["X-MIG-1g.10gb"]), "GpuUnknown").field == "spec.gpu.products[0]"
