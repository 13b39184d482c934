"""One row of the catalogue: a model, a GPU, a quantisation method, a data type of the KV cache.

The same types read the files of this package and what an admin of a cluster adds. A value that is not known is None,
never zero. `marks` says how far each group of values can be trusted, `sources` where they come from.
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from vlm_operator.api import patterns
from vlm_operator.api.architecture import Architecture, Count, Parameters, Width
from vlm_operator.api.base import ApiModel, no_items
from vlm_operator.api.scalars import ExtendedResource, GpuProduct, ModelName, matching

Mark = Literal["sourced", "computed", "derived", "unsourced"]
"""Read in the named source; counted by building the model or by running its own code; worked out from other values;
believed but not verified."""
Text = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Version = Annotated[str, matching(patterns.ENGINE_RELEASE, max_length=24)]
Capability = Annotated[str, matching(patterns.COMPUTE_CAPABILITY, max_length=10)]
"""CUDA compute capability (`8.9`) or, for AMD, the target of its compiler (`gfx942`)."""
Format = Literal["AWQ", "GPTQ", "INT4", "INT8", "FP8", "NVFP4", "MXFP4"]
"""How weights are stored, as `spec.model.quantization` names it."""


class VllmVersions(ApiModel):
    """In which versions of vLLM the class of a model is registered, as far as wheels were read.

    The first version that has it lies after `absent_in` and not after `first_seen_in`.
    """

    first_seen_in: Version | None = None
    """Oldest version read that has it."""
    absent_in: Version | None = None
    """Newest version read before that which lacks it."""
    last_seen_in: Version | None = None
    """Newest version read that has it."""


class QuantisedRepo(ApiModel):
    """A repository with the weights of a model in fewer bits."""

    repo: ModelName
    """Its name."""
    format: Format | Literal["BitsAndBytes"]
    """How the weights are stored."""
    bits: Literal[4, 8]
    """Bits of a weight."""
    group_size: Count | None = None
    """Weights that share a scale. Default: unknown, or the format has no groups."""
    intermediate_size: Width | None = None
    """Width of the MLP where the repository pads it. Default: that of the model."""
    mark: Mark
    """How far the name and the format can be trusted."""


ModelFact = Literal[
    "dimensions",
    "vision",
    "maxContext",
    "localAttention",
    "crossAttention",
    "experts",
    "denseLayers",
    "parameters",
    "activeParameters",
    "images",
    "video",
    "vllm",
]


class ModelRow(ApiModel):
    """One model."""

    hf_id: ModelName
    """Name under which it is published; the key of the row."""
    family: Text
    """What it belongs to (`Qwen2.5-VL`)."""
    architecture_name: Annotated[str, matching(patterns.ARCHITECTURE_NAME, max_length=128)]
    """Class name that vLLM looks for, the first of `architectures` in `config.json`."""
    architecture: Architecture | None = None
    """Its sizes. Default: unknown."""
    total_parameters: Parameters | None = None
    """All parameters. Default: unknown."""
    active_parameters: Parameters | None = None
    """Parameters that one token passes through, for a mixture of experts. Default: unknown."""
    vllm: VllmVersions = Field(default_factory=VllmVersions.defaults)
    """In which versions of vLLM it runs."""
    quantised: Annotated[list[QuantisedRepo], Field(max_length=32)] = Field(default_factory=no_items)
    """Repositories with its weights in fewer bits."""
    video: Text | None = None
    """How a video becomes tokens, in words. Default: unknown."""
    marks: dict[ModelFact, Mark] = Field(default_factory=dict)
    """How far each group of values can be trusted."""
    sources: Annotated[list[Text], Field(max_length=32)] = Field(default_factory=no_items)
    """Keys of the sources, or the sources in words."""
    notes: Text | None = None
    """What else is to be known."""


class MigProfile(ApiModel):
    """One way to cut a GPU into slices (NVIDIA MIG)."""

    profile: Annotated[str, matching(patterns.MIG_PROFILE, max_length=8)]
    """Compute slices and memory (`1g.10gb`); the memory is nominal, in GB of 10^9 bytes."""
    count: Count
    """Slices that one GPU gives at most."""


class DenseTflops(ApiModel):
    """Dense matrix arithmetic in 10^12 operations per second. None: the GPU lacks it, or it is unknown."""

    bf16: float | None = None
    """bfloat16."""
    fp8: float | None = None
    """FP8."""
    int8: float | None = None
    """INT8."""
    fp4: float | None = None
    """FP4."""


GpuFact = Literal["productLabels", "memory", "cudaTotal", "capability", "speed", "mig"]


class GpuRow(ApiModel):
    """One kind of GPU."""

    name: Text
    """What people call it."""
    vendor: Literal["nvidia", "amd"]
    """Who makes it."""
    resource_name: ExtendedResource = "nvidia.com/gpu"
    """What its device plugin offers. Default: nvidia.com/gpu."""
    product_labels: Annotated[list[GpuProduct], Field(min_length=1, max_length=32)]
    """Values of the product label that mean this GPU; the first is the usual one and the key of the row."""
    nominal_gb: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Memory as it is sold, in GB."""
    memory_mib: Annotated[int, Field(ge=1, le=100_000_000)] | None = None
    """Memory in MiB as the driver and the memory label report it. Default: unknown."""
    nominal_memory: bool = False
    """Whether `memoryMib` is only the nominal size of a slice. Default: false."""
    other_memory_mib: Annotated[list[Annotated[int, Field(ge=1, le=100_000_000)]], Field(max_length=8)] = Field(
        default_factory=no_items
    )
    """What other drivers, or another setting of ECC, were seen to report, in MiB."""
    vram_label: Text | None = None
    """Value of the memory label of AMD (`192G`). Default: unknown, or another vendor."""
    cuda_gib: Annotated[float, Field(gt=0, le=100_000)] | None = None
    """Memory in GiB that CUDA reports, from start-up logs; vLLM multiplies this one. Default: never seen."""
    capability: Capability | None = None
    """What its kernels are compiled for. Default: unknown."""
    bandwidth: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Memory bandwidth in GB/s. Default: unknown."""
    tflops: DenseTflops = Field(default_factory=DenseTflops.defaults)
    """Speed of its matrix arithmetic."""
    interconnect: Text | None = None
    """How GPUs of a node talk to each other."""
    mig: Annotated[list[MigProfile], Field(max_length=32)] = Field(default_factory=no_items)
    """Slices it can be cut into."""
    mig_profile: str | None = None
    """The slice that this row is about. Default: none, a whole GPU."""
    shared: bool = False
    """Whether several pods share the GPU in turns, so that its memory is not this pod's alone. Default: false."""
    marks: dict[GpuFact, Mark] = Field(default_factory=dict)
    """How far each group of values can be trusted."""
    sources: Annotated[list[Text], Field(max_length=32)] = Field(default_factory=no_items)
    """Keys of the sources, or the sources in words."""
    notes: Text | None = None
    """What else is to be known."""


class QuantizationRow(ApiModel):
    """One method of quantisation, as vLLM 0.33 runs it."""

    id: Text
    """Key of the row."""
    formats: list[Format] = Field(default_factory=no_items)
    """Formats of `spec.model.quantization` that mean this method."""
    bits: Literal[4, 8] | None = None
    """Bits of a weight. Default: either."""
    engine_names: list[Text] = Field(default_factory=no_items)
    """What vLLM calls it; several names are several loaders."""
    in_tree: bool = True
    """Whether vLLM 0.33 has it without a plugin. Default: true."""
    min_capability: Capability | None = None
    """Least compute capability that vLLM 0.33 accepts. Default: unknown, or no limit."""
    legacy_min_capability: Capability | None = None
    """The same for vLLM 0.10.2. Default: unknown, or not in that version."""
    native_from: Capability | None = None
    """Capability from which the multiplication itself runs in the format. Default: unknown."""
    supported_on: list[Capability] = Field(default_factory=no_items)
    """Capabilities on which it runs, as far as known."""
    groups_divide_shards: bool = False
    """Whether each rank's part of the input must be a multiple of the group size. Default: false."""
    mark: Mark
    """How far the values can be trusted."""
    sources: list[Text] = Field(default_factory=no_items)
    """Keys of the sources, or the sources in words."""
    notes: Text | None = None
    """What else is to be known."""


class KvCacheRow(ApiModel):
    """Data types of the KV cache that take the same space."""

    dtypes: list[Text]
    """What vLLM calls them."""
    bytes_per_element: Annotated[float, Field(gt=0, le=16)]
    """Bytes of one element, with its share of the scales."""
    backends: list[Text] = Field(default_factory=no_items)
    """Attention backends that have them; empty: all."""
    mark: Mark
    """How far the values can be trusted."""
    sources: list[Text] = Field(default_factory=no_items)
    """Keys of the sources, or the sources in words."""
    notes: Text | None = None
    """What else is to be known."""


class StoredWeight(ApiModel):
    """What one quantised weight takes. Embeddings, head, norms, router and vision tower usually stay at 16 bit."""

    format: Text
    """Name of the way to store it."""
    bytes_per_parameter: Annotated[float, Field(gt=0, le=16)]
    """Bytes of a weight, with its share of scales and zero points."""
    mark: Mark
    """How far the value can be trusted."""


class PytorchBuild(ApiModel):
    """The PyTorch in vLLM's default image, from 0.33 on."""

    wheel: Text
    """Which one."""
    capabilities: list[Capability]
    """What it has compiled code for; code runs on GPUs of the same major version and a later minor one."""
    bfloat16_from: Capability
    """Capability from which GPUs have bfloat16."""
    mark: Mark
    """How far the values can be trusted."""
    notes: Text | None = None
    """What else is to be known."""
