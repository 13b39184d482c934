"""Whether a model fits on its GPUs: weights, KV cache and peaks of the fullest rank against what CUDA reports.

Follows the order in which vLLM does it: a share of the GPU is the budget; weights, what lies outside PyTorch, the peak
of a profiled step and, in newer versions, the CUDA graphs are taken from it; the KV cache gets the rest, and must hold
one request of the longest context. Unknown is None and makes unknown what depends on it.
"""

from dataclasses import dataclass
from typing import Literal

from vlm_operator.api.architecture import Architecture
from vlm_operator.sizing import activation as peaks
from vlm_operator.sizing.demand import (
    GIB,
    MIB,
    V1_SINCE,
    Device,
    Load,
    Settings,
    Version,
    cuda_bytes,
    is_older,
    profiled_images,
    settings,
)
from vlm_operator.sizing.kv_cache import request_bytes
from vlm_operator.sizing.weights import ONLINE_BY_LAYER_SINCE, Layout, Stage, rank_weights, stages

__all__ = [
    "CONTEXT",
    "GIB",
    "Device",
    "Layout",
    "Limit",
    "Load",
    "Memory",
    "Settings",
    "Version",
    "cuda_bytes",
    "estimate",
]

Limit = Literal["Budget", "Weights", "Activation", "KV", "Sequences"]
"""What stands in the way: the share of the GPU is not free when the engine starts; the weights alone, with the peak, or
with a request of the longest context are too much. Of what fits: what bounds the requests at once."""

LESS_CONTEXT_SINCE: Version = (0, 7)
"""Version from which the CUDA context is not counted as memory outside PyTorch."""
GRAPHS_IN_BUDGET_SINCE: Version = (0, 21)
"""Version from which CUDA graphs are taken from the budget; before, they came on top of it."""
CONTEXT = 300 * MIB
"""What the CUDA context takes before the engine looks whether its budget is free, at the least."""
OTHER_ALONE = 192 * MIB
"""Outside PyTorch on one GPU: logs show 0.04 to 0.16 GiB. A little more: what two logs with images lack in all."""
OTHER_PARALLEL = 600 * MIB
"""Outside PyTorch with tensor parallelism, NCCL above all: logs show 0.20 to 0.55 GiB."""
OTHER_PIPELINE = 1024 * MIB
"""More for a pipeline; one log over two nodes shows 2.5 GiB in all."""
OLD_CONTEXT_ALONE, OLD_CONTEXT_PARALLEL = 300 * MIB, 1400 * MIB
"""What older versions count besides: their logs show 0.35 to 3.6 GiB."""
GRAPHS_BASE, GRAPHS_PER_LAYER = 256 * MIB, 8 * MIB
"""CUDA graphs: logs show 0.1 to 0.65 GiB for 24 to 40 layers. Where they come on top of the budget, half of this is sure."""


@dataclass(frozen=True, kw_only=True)
class Memory:
    """The memory of one GPU of the fullest rank, in bytes. None is unknown."""

    gpu: int | None
    """What CUDA reports."""
    budget: int | None
    """The share of it that the engine may use."""
    weights: int | None
    """Weights with the table of positions."""
    activation: int | None
    """Peak of a step."""
    images: peaks.Images | None
    """What the vision tower is run over for it."""
    graphs: int
    """CUDA graphs; taken from the budget or on top of it, by version."""
    other: int
    """Outside PyTorch: NCCL and growth of the context."""
    beside: int
    """What the process takes beside the budget, at the least."""
    kv: int | None
    """What is left for the KV cache; negative when the rest is already too much."""
    kv_needed: int | None
    """What one request of the longest context takes of it."""
    kv_tokens: int | None
    """Tokens that the KV cache holds in requests of the longest context, per replica."""
    concurrency: float | None
    """Requests of the longest context that it holds at once, per replica."""
    fits: bool | None
    """Whether the engine would start."""
    limit: Limit | None
    """What stands in the way, or bounds the requests at once."""
    settings: Settings
    """What the engine runs with."""
    stage: Stage
    """The step of the pipeline that is described."""


def estimate(architecture: Architecture, device: Device, layout: Layout, load: Load, version: Version) -> Memory:
    """The memory of the fullest rank.

    `version` is that of the engine, `(0, 33)`. Raises KeyError for a quantisation or a cache type that is not in
    `weights.FORMATS` and `kv_cache.BYTES`.
    """
    chosen = settings(architecture, device, load, version)
    images = profiled_images(architecture, load, chosen, version)
    case = _Case(
        architecture=architecture,
        device=device,
        layout=layout,
        load=load,
        version=version,
        chosen=chosen,
        images=images,
    )
    return min((_stage(case, stage) for stage in stages(architecture.layers, layout.pipeline)), key=_room)


def _room(memory: Memory) -> tuple[int, float]:
    """Order of stages: one that cannot be, then one that is unknown, then by how few requests they hold."""
    if memory.kv is None:
        return (0 if memory.fits is False else 1), 0.0
    return (0 if memory.fits is False else 2), memory.kv / memory.kv_needed if memory.kv_needed else float(memory.kv)


@dataclass(frozen=True, kw_only=True)
class _Case:
    """What is asked, with the choices made: passed on as one."""

    architecture: Architecture
    device: Device
    layout: Layout
    load: Load
    version: Version
    chosen: Settings
    images: peaks.Images | None

    @property
    def older(self) -> bool:
        """Whether the older engine runs it."""
        return is_older(self.architecture, self.version)


def _stage(case: _Case, stage: Stage) -> Memory:
    """The memory of one GPU of a stage."""
    load, device, chosen = case.load, case.device, case.chosen
    weights = rank_weights(
        case.architecture,
        case.layout,
        stage,
        quantization=load.online_quantization or load.quantization,
        group_size=load.group_size,
        bits=load.bits,
    )
    peak = _peak(case, stage)
    graphs = 0 if load.eager else GRAPHS_BASE + GRAPHS_PER_LAYER * stage.layers
    other = _other(case.layout, case.version)
    budget = None if device.cuda_bytes is None else round(device.cuda_bytes * device.memory_utilization)
    charged = other + (graphs if case.version >= GRAPHS_IN_BUDGET_SINCE else 0)
    kv = None if budget is None or weights is None or peak is None else budget - weights - peak - charged
    needed = None
    if chosen.max_model_len is not None:
        needed = _request(case, stage, tokens=chosen.max_model_len)
    requests = None if kv is None or needed is None else max(0.0, kv / needed) * case.layout.data
    beside = CONTEXT + (graphs // 2 if V1_SINCE <= case.version < GRAPHS_IN_BUDGET_SINCE else 0)
    taken = _Taken(charged=charged, beside=beside, weights=weights or 0, peak=peak or 0, needed=needed or 0)
    limit = _obstacle(case, stage, taken)
    fits: bool | None = False
    if limit is None and device.cuda_bytes is not None and requests is not None:
        fits = True
        limit = "KV" if requests < chosen.max_num_seqs * case.layout.data else "Sequences"
    elif limit is None:
        fits = None
    return Memory(
        gpu=device.cuda_bytes,
        budget=budget,
        weights=weights,
        activation=peak,
        images=case.images if stage.first else peaks.NO_IMAGES,
        graphs=graphs,
        other=other,
        beside=beside,
        kv=kv,
        kv_needed=needed,
        kv_tokens=None if requests is None else int(requests * (chosen.max_model_len or 0)),
        concurrency=requests,
        fits=fits,
        limit=limit,
        settings=chosen,
        stage=stage,
    )


@dataclass(frozen=True, kw_only=True)
class _Taken:
    """What is taken of a GPU, in bytes; what is unknown is 0."""

    charged: int
    beside: int
    weights: int
    peak: int
    needed: int


def _obstacle(case: _Case, stage: Stage, taken: _Taken) -> Limit | None:
    """What keeps the engine from starting, as far as it is known."""
    gpu = case.device.cuda_bytes
    if gpu is None:
        return None
    budget = gpu * case.device.memory_utilization
    if case.version >= V1_SINCE and budget > gpu - taken.beside:
        return "Budget"
    loading = taken.weights
    if case.load.online_quantization is not None and case.version < ONLINE_BY_LAYER_SINCE:
        loading = rank_weights(case.architecture, case.layout, stage) or 0
    left = budget - taken.charged - taken.weights
    if left <= 0 or loading > gpu - CONTEXT:
        return "Weights"
    if left <= taken.peak:
        return "Activation"
    return "KV" if left - taken.peak < taken.needed else None


def _peak(case: _Case, stage: Stage) -> int | None:
    """The peak of a step on one stage; None when its images are unknown and it encodes them."""
    chosen, images = case.chosen, case.images if stage.first else peaks.NO_IMAGES
    if images is None:
        return None
    encoded = peaks.encoding(
        case.architecture, case.layout, images, vendor=case.device.vendor, capability=case.device.capability
    )
    if encoded is None:
        return None
    sequences = min(chosen.max_num_seqs, chosen.max_num_batched_tokens)
    if case.older and case.images is not None and case.images.count:
        sequences = min(sequences, case.images.count)
    step = peaks.Step(sequences=sequences, tokens=chosen.max_num_batched_tokens)
    passed = peaks.decoding(case.architecture, case.layout, step)
    if stage.last:
        passed = max(passed, peaks.sampling(case.architecture, step))
    held = 0.0 if case.older else peaks.embeddings(case.architecture, images)
    return round(max(encoded, held + passed))


def _other(layout: Layout, version: Version) -> int:
    """Memory outside PyTorch."""
    parallel = layout.tensor * layout.pipeline > 1
    total = OTHER_PARALLEL if parallel else OTHER_ALONE
    if layout.pipeline > 1:
        total += OTHER_PIPELINE
    if version < LESS_CONTEXT_SINCE:
        total += OLD_CONTEXT_PARALLEL if parallel else OLD_CONTEXT_ALONE
    return total


def _request(case: _Case, stage: Stage, *, tokens: int) -> int:
    return round(
        request_bytes(
            case.architecture,
            tokens=tokens,
            layers=stage.layers,
            tensor=case.layout.tensor,
            dtype=case.load.kv_cache_dtype,
            batched_tokens=case.chosen.max_num_batched_tokens,
            version=case.version,
        )
    )
