"""The answer about one spec: what is wrong, how its memory is used, what an image costs and how many requests run at once.

Pure and quick: the operator asks at every look at a resource, and `kubectl vlm plan` for whole folders of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from vlm_operator.api.findings import Finding
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.sizing import checks, verdict
from vlm_operator.sizing.fit import Question
from vlm_operator.sizing.memory import Memory
from vlm_operator.sizing.parallelism import obstacle
from vlm_operator.sizing.subject import Subject
from vlm_operator.sizing.verdict import Trial

SAMPLE_SIZES = ((224, 224), checks.ORDINARY_IMAGE, (1920, 1080))
"""Images whose tokens are told, width and height in pixels."""
SECTIONS = tuple(f"spec.{field.alias}" for field in VLMDeploymentSpec.model_fields.values())
"""Order of the fields in a spec, by which findings are sorted."""


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """What is known about a spec before anything is created. None is unknown."""

    findings: tuple[Finding, ...]
    """What is wrong: errors first, then in the order of the fields."""
    tensor_parallel: int | None
    """Tensor-parallel degree; for Auto the one that was chosen, None when none could be."""
    gpus_per_replica: int | None
    """GPUs that one replica uses."""
    memory: Memory | None
    """Memory of one GPU of the fullest rank, on the GPU that decides."""
    gpu: str | None
    """The GPU that decides: of several products the one with the least room."""
    memory_by_gpu: Mapping[str, Memory]
    """The memory on each allowed GPU that is known, by product, in the order of the spec."""
    question: Question | None
    """The model on the GPU that decides, to ask further (`fit.largest_max_model_len`, `fit.concurrency`)."""
    image_tokens: Mapping[str, int | None]
    """Tokens of images by their size (`1024x1024`), the largest allowed last."""
    max_concurrency: float | None
    """Requests of maxModelLen tokens that a replica holds at once, to two decimals, rounded down."""


def assess(subject: Subject) -> Assessment:
    """Judge a spec for an engine. With `checks: Warn` errors are warnings, unless no number can be given for tensor Auto."""
    findings = list(checks.check(subject))
    given = subject.spec.parallelism.tensor
    if given == "Auto":
        tensor, tried = verdict.choose(subject)
    else:
        tensor, tried = given, verdict.decisive(verdict.trials(subject, given))
    unresolved = [verdict.undecided(subject, tried)] if tensor is None else []
    # How a degree that is not allowed would fit is beside the point.
    if tensor is not None and tried is not None and obstacle(subject, tensor) is None:
        findings += verdict.check(subject, tried)
    if subject.spec.checks == "Warn":
        findings = [replace(finding, severity="Warning") for finding in findings]
    memory = tried.memory if tried else None
    return Assessment(
        findings=tuple(sorted([*findings, *unresolved], key=_order)),
        tensor_parallel=tensor,
        gpus_per_replica=None if tensor is None else tensor * subject.data_gpus,
        memory=memory,
        gpu=tried.candidate.label if tried and tried.candidate else None,
        memory_by_gpu=_memories(subject, tried),
        question=tried.question if tried else None,
        image_tokens=_image_tokens(subject),
        max_concurrency=_hundredths(memory.concurrency) if memory else None,
    )


def _memories(subject: Subject, tried: Trial | None) -> dict[str, Memory]:
    if tried is None or tried.candidate is None:
        return {}
    if len(subject.products) < 2:
        return {tried.candidate.label: tried.memory}
    every = verdict.trials(subject, tried.tensor)
    return {one.candidate.label: one.memory for one in every if one.candidate is not None}


def _order(finding: Finding) -> tuple[bool, int]:
    section = ".".join(finding.field.split("[")[0].split(".")[:2])
    return finding.severity != "Error", SECTIONS.index(section) if section in SECTIONS else len(SECTIONS)


def _image_tokens(subject: Subject) -> dict[str, int | None]:
    tokens = {f"{width}x{height}": checks.tokens_of(subject, width, height) for width, height in SAMPLE_SIZES}
    most = checks.largest(subject)
    if most is not None:
        key = f"{most.width}x{most.height}"
        tokens.pop(key, None)  # a sample of this size moves to the end
        tokens[key] = most.tokens
    return tokens


def _hundredths(number: float | None) -> float | None:
    return None if number is None else int(number * 100) / 100
