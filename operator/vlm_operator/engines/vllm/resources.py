"""What a replica reserves on its node."""

from vlm_operator.engines.base import Resolved

DEFAULT_CPU_PER_GPU = 4
DEFAULT_MEMORY_GIBIBYTES_PER_GPU = 16
"""vLLM runs a process per GPU beside its front end and the engine; images are decoded and prepared on the CPU, and
prepared ones are cached in host memory (4 GiB). There is no default limit: host memory grows with the images in flight,
and a killed worker takes every stream of the replica with it."""

Quantities = dict[str, str]


def gpu_count(resolved: Resolved) -> int:
    """GPUs of one replica."""
    parallelism = resolved.inputs.parallelism
    return resolved.tensor_parallel * parallelism.pipeline * parallelism.data


def resources(wanted: dict[str, Quantities], gpu_resource: str, gpus: int) -> dict[str, Quantities]:
    """Requests and limits: the wanted ones, defaults for CPU and memory where neither is given, and the GPUs."""
    requests = dict(wanted.get("requests", {}))
    limits = dict(wanted.get("limits", {}))
    defaults = {"cpu": str(DEFAULT_CPU_PER_GPU * gpus), "memory": f"{DEFAULT_MEMORY_GIBIBYTES_PER_GPU * gpus}Gi"}
    for name, quantity in defaults.items():
        if name not in requests and name not in limits:  # a limit alone becomes the request as well
            requests[name] = quantity
    requests[gpu_resource] = limits[gpu_resource] = str(gpus)
    return {"requests": requests, "limits": limits}
