"""GPU nodes as data: what NVIDIA's GPU feature discovery and device plugin would make of a machine."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DRIVER = "580.95.05"
CUDA = "13.0"


@dataclass(frozen=True, kw_only=True)
class GpuNode:
    """One machine with GPUs of one kind.

    `labels` are added to (and win over) the discovered ones; those that start with `sim.vlm.dev/` steer the imitation
    of every pod on the node.
    """

    name: str
    product: str = "NVIDIA-H100-80GB-HBM3"
    gpus: int = 8
    memory_mib: int = 81559
    """Memory of one GPU."""
    compute: str = "9.0"
    """CUDA compute capability, major.minor."""
    family: str = "hopper"
    cpu: str = "96"
    memory: str = "1Ti"
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()

    def discovered_labels(self) -> dict[str, str]:
        """Return the labels of GPU feature discovery 0.17."""
        if not self.gpus:
            return {}
        compute_major, compute_minor = self.compute.split(".")
        cuda_major, cuda_minor = CUDA.split(".")
        driver_major, driver_minor, driver_revision = DRIVER.split(".")
        words = {
            "cuda.driver-version.full": DRIVER,
            "cuda.driver-version.major": driver_major,
            "cuda.driver-version.minor": driver_minor,
            "cuda.driver-version.revision": driver_revision,
            "cuda.driver.major": driver_major,
            "cuda.driver.minor": driver_minor,
            "cuda.driver.rev": driver_revision,
            "cuda.runtime-version.full": CUDA,
            "cuda.runtime-version.major": cuda_major,
            "cuda.runtime-version.minor": cuda_minor,
            "cuda.runtime.major": cuda_major,
            "cuda.runtime.minor": cuda_minor,
            "gfd.timestamp": "1767225600",
            "gpu.compute.major": compute_major,
            "gpu.compute.minor": compute_minor,
            "gpu.count": str(self.gpus),
            "gpu.family": self.family,
            "gpu.machine": "Imitated-Machine",
            "gpu.memory": str(self.memory_mib),
            "gpu.mode": "compute",
            "gpu.present": "true",
            "gpu.product": re.sub(r"[^A-Za-z0-9_.-]", "-", self.product),
            "gpu.replicas": "1",
            "gpu.sharing-strategy": "none",
            "mig.capable": str(self.family in {"ampere", "hopper", "blackwell"}).lower(),
            "mig.strategy": "single",
            "mps.capable": "false",
            "vgpu.present": "false",
        }
        return {f"nvidia.com/{key}": value for key, value in words.items()}

    def manifest(self) -> dict[str, Any]:
        """Return the Node object; kwok fills in the rest of its status."""
        resources = {"cpu": self.cpu, "memory": self.memory, "pods": "110", "ephemeral-storage": "1Ti"}
        if self.gpus:
            resources["nvidia.com/gpu"] = str(self.gpus)
        common = {
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            "kubernetes.io/hostname": self.name,
            "node.kubernetes.io/instance-type": "imitated",
            "topology.kubernetes.io/zone": "zone-a",
        }
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": {**common, **self.discovered_labels(), **self.labels}},
            "spec": {"taints": [dict(taint) for taint in self.taints]} if self.taints else {},
            "status": {"capacity": resources, "allocatable": resources},
        }


def l4(name: str, *, gpus: int = 1, labels: Mapping[str, str] | None = None) -> GpuNode:
    """Return a small inference machine."""
    return GpuNode(
        name=name,
        product="NVIDIA-L4",
        gpus=gpus,
        memory_mib=23034,
        compute="8.9",
        family="ada-lovelace",
        cpu="16",
        memory="64Gi",
        labels=labels or {},
    )


def a100(name: str, *, gpus: int = 8, labels: Mapping[str, str] | None = None) -> GpuNode:
    """Return a training machine of the generation before."""
    return GpuNode(
        name=name,
        product="NVIDIA-A100-SXM4-80GB",
        gpus=gpus,
        memory_mib=81920,
        compute="8.0",
        family="ampere",
        labels=labels or {},
    )


def h100(name: str, *, gpus: int = 8, labels: Mapping[str, str] | None = None) -> GpuNode:
    """Return the default GpuNode, by its name."""
    return GpuNode(name=name, gpus=gpus, labels=labels or {})
