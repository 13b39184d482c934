"""Which degrees of parallelism a model allows, and which of them do not go with a spec.

vLLM splits every layer evenly and asserts that nothing is left over, after minutes of loading. A degree is allowed when
all `RULES` hold. Whether the shares fit into memory is decided elsewhere.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from vlm_operator.api.architecture import Architecture
from vlm_operator.api.findings import Finding
from vlm_operator.sizing.quantization import expert_groups, mlp_groups, padded_repo
from vlm_operator.sizing.subject import Subject, choices

TENSOR_HEADS = "TensorParallelHeads"
"""The attention heads cannot be shared evenly by the tensor-parallel GPUs."""
TENSOR_KEY_VALUE_HEADS = "TensorParallelKeyValueHeads"
"""The key-value heads can neither be shared nor copied evenly among the tensor-parallel GPUs."""
TENSOR_WIDTH = "TensorParallelWidth"
"""The width of a layer cannot be shared evenly by the tensor-parallel GPUs."""
TENSOR_VISION = "TensorParallelVision"
"""The vision tower cannot be shared evenly by the tensor-parallel GPUs."""
QUANTIZATION_GROUPS = "QuantizationGroups"
"""A share of the quantised weights would cut through a group that has one scale."""
SLOW_EXPERTS = "QuantizedExpertsSlow"
"""Groups of the quantised experts are cut, which the engine mends at the cost of speed."""
PIPELINE_LAYERS = "PipelineStagesEmpty"
"""There are more pipeline stages than layers."""
PIPELINE_ENCODER = "PipelineIdlesAtImages"
"""Only the first pipeline stage works on images."""
GPUS_PER_NODE = "GpusPerNode"
"""A replica uses more GPUs than a node has."""
ENCODER_DATA_UNUSED = "EncoderParallelismUnused"
"""`encoderParallelism: Data` has no effect."""

USUAL_GPUS_PER_NODE = 8
"""GPUs of the usual large server: what is proposed and chosen when nothing is known about the nodes."""
VOCABULARY_PADDING = 64
"""vLLM pads the vocabulary to a multiple of this before it shares it."""


@dataclass(frozen=True, kw_only=True)
class Obstacle:
    """Why a tensor-parallel degree is not allowed."""

    reason: str
    message: str


def takes_encoder_data(subject: Subject) -> bool:
    """Whether the engine can keep a whole vision tower on each GPU. For a model outside the catalogue it is assumed."""
    known = subject.engine.encoder_data
    return subject.row is None or known is None or subject.class_name in known


def encoder_in_shares(subject: Subject) -> bool:
    """Whether the tensor-parallel GPUs share the weights of the vision tower."""
    return subject.spec.multimodal.encoder_parallelism == "Weights" or not takes_encoder_data(subject)


def _left_over(what: str, number: int, degree: int) -> str | None:
    rest = number % degree
    return f"{number} {what}, and {number} / {degree} leaves {rest} over" if rest else None


def _heads(subject: Subject, sizes: Architecture, degree: int) -> str | None:
    return _left_over(f"attention heads{subject.doubt('dimensions')}", sizes.attention_heads, degree)


def _key_value_heads(subject: Subject, sizes: Architecture, degree: int) -> str | None:
    """Latent attention has one entry for all heads, which every GPU keeps."""
    heads = sizes.key_value_heads
    if sizes.latent_attention is not None or heads % degree == 0 or degree % heads == 0:
        return None
    return (
        f"{heads} key-value heads{subject.doubt('dimensions')}, and neither of {heads} and {degree} divides the other"
    )


def _width(subject: Subject, sizes: Architecture, degree: int) -> str | None:
    padded = -(-sizes.vocabulary_size // VOCABULARY_PADDING) * VOCABULARY_PADDING
    widths = [("as the width of its MLP", width) for width in plain_widths(sizes)]
    if sizes.experts and "WholeExperts" not in subject.engine.settings:
        widths.append(("as the width of an expert", sizes.experts.intermediate_size))
    widths.append(("tokens in its padded vocabulary", padded))
    doubt = subject.doubt("dimensions")
    messages = (_left_over(f"{what}{doubt}", width, degree) for what, width in widths)
    return next(filter(None, messages), None)


def plain_widths(sizes: Architecture) -> tuple[int, ...]:
    """Width of the plain MLP, where there is one beside the experts."""
    experts = sizes.experts
    plain = experts is None or experts.dense_layers > 0 or experts.every > 1
    return (sizes.intermediate_size,) if plain else ()


def _groups(subject: Subject, sizes: Architecture, degree: int) -> str | None:
    for width in plain_widths(sizes):
        if message := mlp_groups(subject, width, degree):
            return message
    return None


def _vision(subject: Subject, sizes: Architecture, degree: int) -> str | None:
    tower = sizes.vision
    if tower is None or not encoder_in_shares(subject):
        return None
    doubt = subject.doubt("vision")
    heads = None if tower.pads_heads else tower.attention_heads
    return (heads and _left_over(f"attention heads in its vision tower{doubt}", heads, degree)) or _left_over(
        f"as the width of the MLP in its vision tower{doubt}", tower.intermediate_size, degree
    )


Rule = Callable[[Subject, Architecture, int], str | None]

# The first rule that is broken is told: the others usually have the same cause.
RULES: tuple[tuple[str, Rule], ...] = (
    (TENSOR_HEADS, _heads),
    (TENSOR_KEY_VALUE_HEADS, _key_value_heads),
    (TENSOR_WIDTH, _width),
    (QUANTIZATION_GROUPS, _groups),
    (TENSOR_VISION, _vision),
)


def obstacle(subject: Subject, degree: int) -> Obstacle | None:
    """The first rule that forbids a tensor-parallel degree; None when it is allowed or the sizes are unknown."""
    if subject.architecture is None:
        return None
    for reason, rule in RULES:
        if message := rule(subject, subject.architecture, degree):
            return Obstacle(reason=reason, message=f"tensor is {degree}, but the model has {message}")
    return None


def allowed_degrees(subject: Subject) -> tuple[int, ...]:
    """The tensor-parallel degrees that the model and the node allow, smallest first; 1 when nothing else does."""
    most = max(1, node_gpus(subject) // subject.data_gpus)
    return tuple(degree for degree in range(1, most + 1) if obstacle(subject, degree) is None) or (1,)


def node_gpus(subject: Subject) -> int:
    """GPUs of the largest node, taken as the usual number when it is not known."""
    return subject.gpus_per_node or USUAL_GPUS_PER_NODE


def check(subject: Subject) -> Iterator[Finding]:
    """What is wrong with `spec.parallelism` and `spec.multimodal.encoderParallelism`."""
    tensor = subject.spec.parallelism.tensor
    if isinstance(tensor, int):
        yield from _tensor(subject, tensor)
        yield from _node(subject, tensor)
        yield from _slow_experts(subject, tensor)
    yield from _pipeline(subject)
    yield from _encoder_data(subject)


def _tensor(subject: Subject, degree: int) -> Iterator[Finding]:
    found = obstacle(subject, degree)
    if found is None:
        return
    advice = f"set tensor to {choices(allowed_degrees(subject))}"
    if found.reason == TENSOR_VISION and takes_encoder_data(subject):
        advice = f"set spec.multimodal.encoderParallelism to Data, or {advice}"
    elif found.reason == QUANTIZATION_GROUPS and (padded := padded_repo(subject, degree)):
        advice += f", or name {padded.repo}, if you serve it: its MLP is padded to {padded.intermediate_size}"
    yield Finding(
        reason=found.reason,
        severity="Error",
        field="spec.parallelism.tensor",
        message=found.message,
        advice=advice,
    )


def _node(subject: Subject, tensor: int) -> Iterator[Finding]:
    degrees = subject.spec.parallelism
    gpus = tensor * subject.data_gpus
    limit = subject.gpus_per_node
    product = f"tensor {tensor} x pipeline {degrees.pipeline} x data {degrees.data} is {gpus} GPUs of one node"
    if limit is not None and gpus > limit:
        yield Finding(
            reason=GPUS_PER_NODE,
            severity="Error",
            field="spec.parallelism",
            message=f"{product}, and the largest node has {limit}",
            advice=_smaller(subject, limit),
        )
    elif limit is None and gpus > USUAL_GPUS_PER_NODE and obstacle(subject, tensor) is None:
        yield Finding(
            reason=GPUS_PER_NODE,
            severity="Warning",
            field="spec.parallelism",
            message=f"{product}, and most servers have {USUAL_GPUS_PER_NODE} at most",
            advice=_smaller(subject, USUAL_GPUS_PER_NODE),
        )


def _smaller(subject: Subject, limit: int) -> str:
    """The largest allowed degree that the node takes, with one copy of the model if need be."""
    for data_gpus, note in (
        (subject.data_gpus, ""),
        (subject.spec.parallelism.pipeline, ", data to 1 and raise replicas"),
        (1, ", pipeline and data to 1"),
    ):
        fitting = [degree for degree in range(1, limit // data_gpus + 1) if obstacle(subject, degree) is None]
        if fitting:
            return f"set tensor to {fitting[-1]}{note}"
    return "set tensor, pipeline and data to 1"


def _slow_experts(subject: Subject, degree: int) -> Iterator[Finding]:
    sizes = subject.architecture
    if sizes is None or sizes.experts is None or "WholeExperts" in subject.engine.settings:
        return
    if message := expert_groups(subject, sizes.experts.intermediate_size, degree):
        yield Finding(
            reason=SLOW_EXPERTS,
            severity="Warning",
            field="spec.parallelism.tensor",
            message=f"tensor is {degree}, but the model has {message}; the engine falls back to a slower kernel",
            advice="set tensor to a smaller degree, or store the experts as FP8",
        )


def _pipeline(subject: Subject) -> Iterator[Finding]:
    stages = subject.spec.parallelism.pipeline
    sizes = subject.architecture
    if stages == 1 or sizes is None:
        return
    if stages > sizes.layers:
        yield Finding(
            reason=PIPELINE_LAYERS,
            severity="Error",
            field="spec.parallelism.pipeline",
            message=(
                f"pipeline is {stages}, but the model has {sizes.layers} layers{subject.doubt('dimensions')},"
                " and each stage needs one at least"
            ),
            advice=f"set pipeline to {sizes.layers} or less",
        )
    elif sizes.vision is not None:
        yield from _idle_stages(subject, stages)


def _idle_stages(subject: Subject, stages: int) -> Iterator[Finding]:
    """Say it only where the same GPUs can share the tower: else the pipeline has its reason."""
    tensor = subject.spec.parallelism.tensor
    if not isinstance(tensor, int) or tensor * stages > node_gpus(subject) or obstacle(subject, tensor * stages):
        return
    yield Finding(
        reason=PIPELINE_ENCODER,
        severity="Warning",
        field="spec.parallelism.pipeline",
        message=f"the vision tower is in the first of {stages} stages alone: the others wait while it works",
        advice=f"set tensor to {tensor * stages} and pipeline to 1, which uses the same GPUs",
    )


def _encoder_data(subject: Subject) -> Iterator[Finding]:
    if subject.spec.multimodal.encoder_parallelism != "Data":
        return
    if subject.spec.parallelism.tensor == 1:
        message = "encoderParallelism Data has no effect with tensor 1"
    elif not takes_encoder_data(subject):
        engine = f"{subject.engine.name} {subject.engine.version}"
        message = (
            f"{engine} has no data mode for the vision tower of {subject.class_name} and shares its weights instead"
        )
    else:
        return
    yield Finding(
        reason=ENCODER_DATA_UNUSED,
        severity="Warning",
        field="spec.multimodal.encoderParallelism",
        message=message,
        advice="remove it",
    )
