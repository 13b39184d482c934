"""Memory of the node that a replica uses: processes, prepared images, loading, and what lies in /dev/shm.

Estimates for requests, not limits: host memory grows with the images in flight.
"""

from dataclasses import dataclass

from vlm_operator.sizing.weights import Layout

_MIB = 2**20
_GIB = 2**30

API_SERVER = 800 * _MIB
"""One front end: 0.77 GiB seen, 0.75 for each further one."""
ENGINE = 800 * _MIB
"""One engine core: 0.75 GiB seen."""
WORKER = 2 * _GIB
"""One worker, of which there is one per GPU: 1.8 GiB seen on a build without GPUs, its 1 GiB of cache included."""
SHARD = 5 * _GIB
"""Most of a checkpoint that is in work at once: files are mapped one after the other, and published ones are cut into
pieces of at most 5 GB."""
SHARED_PER_GPU = _GIB
"""Room in /dev/shm for NCCL and the engine's queues."""
PROCESSOR_CACHE = 4 * _GIB
"""Prepared images that a process keeps, the engine's own choice."""


@dataclass(frozen=True, kw_only=True)
class HostMemory:
    """Bytes of host memory of one replica."""

    processes: int
    """Front ends, engines and workers."""
    processor_cache: int
    """Prepared images: the cache is kept by every front end and every engine."""
    loading: int
    """Part of the checkpoint that is mapped while it is copied to the GPUs; free again afterwards."""
    shared: int
    """Room that /dev/shm needs; it counts when it is used."""

    @property
    def total(self) -> int:
        """What the pod should have: loading is over before images are cached."""
        return self.processes + max(self.loading, self.processor_cache) + self.shared


def host_memory(
    layout: Layout,
    *,
    checkpoint: int | None = None,
    processor_cache: int = PROCESSOR_CACHE,
    api_servers: int | None = None,
) -> HostMemory:
    """Host memory of one replica.

    `checkpoint` are the bytes of all its weights, unknown taken as more than one file; `api_servers` is by default the
    data-parallel degree, as the engine chooses.
    """
    fronts = layout.data if api_servers is None else api_servers
    gpus = layout.tensor * layout.pipeline * layout.data
    return HostMemory(
        processes=fronts * API_SERVER + layout.data * ENGINE + gpus * WORKER,
        processor_cache=processor_cache * (fronts + layout.data),
        loading=SHARD if checkpoint is None else min(checkpoint, SHARD),
        shared=gpus * SHARED_PER_GPU,
    )
