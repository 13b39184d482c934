"""What a replica reserves on its node."""

from vlm_operator.api.scalars import quantity_bytes
from vlm_operator.engines.base import PodInputs, Resolved
from vlm_operator.sizing.host import PROCESSOR_CACHE, host_memory
from vlm_operator.sizing.weights import Layout

DEFAULT_CPU_PER_GPU = 4
"""vLLM runs a process per GPU beside its front end and the engine, and images are decoded and prepared on the CPU."""
_GIBIBYTE = 2**30

Quantities = dict[str, str]


def gpu_count(resolved: Resolved) -> int:
    """GPUs of one replica."""
    parallelism = resolved.inputs.parallelism
    return resolved.tensor_parallel * parallelism.pipeline * parallelism.data


def memory_request(inputs: PodInputs, *, tensor_parallel: int) -> str:
    """Memory that a replica needs on its node, in whole GiB.

    It is a request without a limit: host memory grows with the images in flight, and a killed worker takes every stream of
    the replica with it.
    """
    parallelism, cache = inputs.parallelism, inputs.multimodal.processor_cache
    needed = host_memory(
        Layout(tensor=tensor_parallel, pipeline=parallelism.pipeline, data=parallelism.data),
        processor_cache=quantity_bytes(cache) if cache else PROCESSOR_CACHE,
    )
    return f"{-(-needed.total // _GIBIBYTE)}Gi"


def resources(wanted: dict[str, Quantities], resolved: Resolved) -> dict[str, Quantities]:
    """Requests and limits: the wanted ones, defaults for CPU and memory where neither is given, and the GPUs."""
    gpu_resource, gpus = resolved.inputs.gpu.resource_name, gpu_count(resolved)
    requests = dict(wanted.get("requests", {}))
    limits = dict(wanted.get("limits", {}))
    defaults = {"cpu": str(DEFAULT_CPU_PER_GPU * gpus), "memory": resolved.host_memory}
    for name, quantity in defaults.items():
        if name not in requests and name not in limits:  # a limit alone becomes the request as well
            requests[name] = quantity
    requests[gpu_resource] = limits[gpu_resource] = str(gpus)
    return {"requests": requests, "limits": limits}
