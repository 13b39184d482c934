"""Whether a spec fits on the GPUs that it allows, in words and numbers, and what would make it fit.

The arithmetic is that of `memory` and `fit`; here it is asked for each allowed GPU, and the one with the least room
decides.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from vlm_operator.api.architecture import Architecture
from vlm_operator.api.findings import Finding, Severity
from vlm_operator.sizing import quantization
from vlm_operator.sizing.checks import largest
from vlm_operator.sizing.devices import Candidate, candidates
from vlm_operator.sizing.fit import RESERVE, Change, Question, changes, leaves_reserve
from vlm_operator.sizing.memory import GIB, Device, Layout, Limit, Load, Memory
from vlm_operator.sizing.parallelism import allowed_degrees, encoder_in_shares, obstacle
from vlm_operator.sizing.quantization import group_size, stated_bits
from vlm_operator.sizing.subject import Subject, choices
from vlm_operator.sizing.weights import FORMATS

MEMORY_SHARE_TOO_HIGH = "MemoryUtilizationTooHigh"
"""The engine may use a larger share of the GPU than a starting process finds free."""
WEIGHTS_DO_NOT_FIT = "WeightsDoNotFit"
"""The weights alone take more than the engine may use."""
STEP_DOES_NOT_FIT = "StepDoesNotFit"
"""Weights and the peak of a step take more than the engine may use."""
CONTEXT_DOES_NOT_FIT = "ContextDoesNotFit"
"""What is left for the KV cache does not hold one request of the longest context."""
FIT_UNKNOWN = "FitUnknown"
"""Something about the model is missing, so that it is not known whether it fits."""
TENSOR_UNDECIDED = "TensorParallelUndecided"
"""No tensor-parallel degree can be chosen."""
TENSOR_TIGHT = "TensorParallelTight"
"""The chosen tensor-parallel degree fits without the reserve."""

PROPOSED_FORMATS = ("FP8", "AWQ")
"""Formats that are proposed for stored weights: the most common ones, the more exact one first."""
MOST_PROPOSALS = 4
"""Changes that are told; the cheapest come first."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """How a spec fits at one tensor-parallel degree, on the GPU that decides."""

    candidate: Candidate | None
    """The GPU; None when the memory of none is known."""
    question: Question

    @property
    def memory(self) -> Memory:
        """Memory of one GPU of the fullest rank."""
        return self.question.memory

    @property
    def tensor(self) -> int:
        """The degree that was tried."""
        return self.question.layout.tensor


def load_of(subject: Subject) -> Load:
    """What the engine is asked to hold."""
    spec, limits = subject.spec, subject.spec.multimodal.limits_per_prompt
    repo = subject.repo if subject.repo and subject.repo.format in FORMATS else None
    return Load(
        quantization=repo.format if repo else spec.model.quantization,
        bits=repo.bits if repo else stated_bits(subject),
        online_quantization=spec.model.online_quantization,
        group_size=group_size(subject),
        kv_cache_dtype=spec.model.kv_cache_dtype,
        max_model_len=spec.model.max_model_len,
        max_num_seqs=spec.engine.max_num_seqs,
        max_num_batched_tokens=spec.engine.max_num_batched_tokens,
        images_per_prompt=limits.image if limits else None,
        videos_per_prompt=limits.video if limits else None,
        min_pixels=spec.multimodal.min_pixels,
        max_pixels=spec.multimodal.max_pixels,
        eager="Eager" in subject.engine.settings,
    )


def trials(subject: Subject, tensor: int) -> tuple[Trial, ...]:
    """How it fits on each GPU that is known, in the order of the spec; on one that is not, when none is.

    Empty when the sizes are unknown or do not make the pipeline.
    """
    sizes, degrees = subject.architecture, subject.spec.parallelism
    if sizes is None or sizes.layers < degrees.pipeline:
        return ()
    layout = Layout(
        tensor=tensor,
        pipeline=degrees.pipeline,
        data=degrees.data,
        encoder_data=not encoder_in_shares(subject),
    )
    load, version = load_of(subject), subject.engine.memory_as
    known = candidates(subject)
    questions = {one.device: Question(sizes, one.device, layout, load, version) for one in known}
    if not known:
        return (Trial(candidate=None, question=Question(sizes, Device(cuda_bytes=None), layout, load, version)),)
    return tuple(Trial(candidate=one, question=questions[one.device]) for one in known)


def decisive(tried: tuple[Trial, ...]) -> Trial | None:
    """The trial on the GPU with the least room."""
    return min(tried, key=_room, default=None)


def _room(tried: Trial) -> tuple[bool, float]:
    memory = tried.memory
    if memory.kv is None:
        return memory.fits is not False, float(memory.gpu or 0)
    return memory.fits is not False, memory.kv / (memory.kv_needed or GIB)


def choose(subject: Subject) -> tuple[int | None, Trial | None]:
    """The tensor-parallel degree for Auto: the smallest allowed one that fits with the reserve, else one that fits.

    With None comes the last trial, which shows why there is none.
    """
    last, fitting = None, None
    for degree in allowed_degrees(subject):
        last = decisive(trials(subject, degree))
        if last is None or last.memory.fits is None:
            return None, last
        if leaves_reserve(last.memory):
            return degree, last
        fitting = last if last.memory.fits else fitting
    return (fitting.tensor, fitting) if fitting else (None, last)


def undecided(subject: Subject, last: Trial | None) -> Finding:
    """Why no degree could be chosen for Auto. Nothing can be started without one, whatever `spec.checks` says."""
    if last is None or last.memory.fits is None:
        missing = "the memory of the GPU" if last and last.candidate is None else "the model"
        message = f"tensor is Auto, but too little is known of {missing} to choose"
        advice = "set tensor to a number"
    else:
        degrees = choices(allowed_degrees(subject), "and")
        message = (
            f"tensor is Auto, but the model fits at none of {degrees}; at {last.tensor}, {arithmetic(subject, last)}"
        )
        advice = _way_out(subject, last)
    return Finding(
        reason=TENSOR_UNDECIDED, severity="Error", field="spec.parallelism.tensor", message=message, advice=advice
    )


def check(subject: Subject, tried: Trial) -> Iterator[Finding]:
    """What is to be said about the fit."""
    memory = tried.memory
    if memory.fits is False and memory.limit is not None:
        yield _does_not_fit(subject, tried, memory.limit)
    elif memory.fits is None and tried.candidate is not None:
        yield Finding(
            reason=FIT_UNKNOWN,
            severity="Warning",
            field="spec.model.name",
            message=f"whether the model fits on {tried.candidate.label} is not known: {_missing(memory)} is missing",
            advice="try it with one replica first",
        )
    elif subject.spec.parallelism.tensor == "Auto" and leaves_reserve(memory) is False:
        yield Finding(
            reason=TENSOR_TIGHT,
            severity="Warning",
            field="spec.parallelism.tensor",
            message=(
                f"tensor {tried.tensor} is the largest degree that fits, and leaves less than {RESERVE:.0%} of the GPU"
                f" beyond one request: {arithmetic(subject, tried)}"
            ),
            advice="lower maxModelLen, or use a larger GPU",
        )


def _missing(memory: Memory) -> str:
    if memory.weights is None:
        return "the size of its vision tower"
    return "its way with images" if memory.activation is None else "its longest context"


_LIMITS: dict[Limit, tuple[str, str]] = {
    "Budget": (MEMORY_SHARE_TOO_HIGH, "spec.gpu.memoryUtilization"),
    "Weights": (WEIGHTS_DO_NOT_FIT, "spec.gpu"),
    "Activation": (STEP_DOES_NOT_FIT, "spec.gpu"),
    "KV": (CONTEXT_DOES_NOT_FIT, "spec.model.maxModelLen"),
}
"""Reason and field by what stands in the way; for what is wrong with the GPU the field that allows it."""


def _does_not_fit(subject: Subject, tried: Trial, limit: Limit) -> Finding:
    reason, field = _LIMITS[limit]
    if field == "spec.gpu" and tried.candidate is not None:
        field = tried.candidate.field
    if limit == "Budget":
        gpu = tried.question.device.cuda_bytes or 0
        beside = tried.memory.beside
        message = f"{_budget(tried)}, and a starting process needs {_gib(beside)} GiB besides"
        advice = f"set memoryUtilization to {int(100 * (gpu - beside) / gpu)} or less"
    else:
        message, advice = arithmetic(subject, tried), _way_out(subject, tried)
    if other := subject.engine.settings.get("OtherSum"):
        message += f" ({other} changes the sum)"
    severity: Severity = "Warning" if other else "Error"
    return Finding(reason=reason, severity=severity, field=field, message=message, advice=advice)


def arithmetic(subject: Subject, tried: Trial) -> str:
    """The sum in words, in GiB of one GPU: what there is, what is taken, what is left and what is needed."""
    memory = tried.memory
    parts = []
    if memory.weights is not None:
        parts.append(f"weights take {_gib(memory.weights)}{subject.doubt('dimensions')}")
    if memory.activation is not None:
        video = f" with a video of {memory.images.tokens} tokens" if memory.images and memory.images.video else ""
        parts.append(f"the peak of a step{video} {_gib(memory.activation)}")
    if memory.kv is None or memory.budget is None or memory.weights is None or memory.activation is None:
        return f"{_budget(tried)}: {', '.join(parts)}"
    parts.append(f"graphs and buffers {_gib(memory.budget - memory.weights - memory.activation - memory.kv)}")
    taken = f"{_budget(tried)}: {', '.join(parts)}"
    if memory.kv < 0:
        return f"{taken}, which is {_gib(-memory.kv)} GiB too much"
    return (
        f"{taken}, which leaves {_gib(memory.kv)} GiB for the KV cache, and one request of"
        f" {memory.settings.max_model_len} tokens needs {_gib(memory.kv_needed or 0)}"
    )


def _budget(tried: Trial) -> str:
    device, label = tried.question.device, tried.candidate.label if tried.candidate else "the GPU"
    doubt = tried.candidate.doubt if tried.candidate else ""
    share = round(device.memory_utilization * 100)
    return f"{label} has {_gib(device.cuda_bytes or 0)} GiB{doubt}, of which {share} % are {_gib(tried.memory.budget or 0)}"


def _gib(number: int) -> str:
    return f"{number / GIB:.2f}"


_WORDS = {
    "MaxModelLen": "maxModelLen to {}",
    "MaxPixels": "maxPixels to {}",
    "Videos": "limitsPerPrompt.video to {}",
    "MaxNumSeqs": "maxNumSeqs to {}",
    "KvCacheDtype": "kvCacheDtype to {}",
    "OnlineQuantization": "onlineQuantization to {}",
    "Quantization": "quantization to {} (with such weights)",
    "Tensor": "tensor to {}",
}


def _way_out(subject: Subject, tried: Trial) -> str:
    """The nearest changes that would make it fit: one, else one together with the largest degree or another format."""
    degrees, formats = allowed_degrees(subject), _formats(subject, tried.tensor)
    online = ["FP8"] if _possible(subject, tried.tensor, online_quantization="FP8") else []
    if words := _words(subject, changes(tried.question, degrees=degrees, formats=formats, online=online)):
        return f"set {choices(words)}"
    most = degrees[-1]
    if most > tried.tensor:
        found = changes(tried.question.with_tensor(most), formats=_formats(subject, most))
        if words := _words(subject, found):
            return f"set {_WORDS['Tensor'].format(most)}, together with {choices(words)}"
    for name in formats[:1]:
        question = tried.question.with_load(replace(tried.question.load, quantization=name))
        found = changes(question, degrees=allowed_degrees(_with_model(subject, quantization=name)))
        if words := _words(subject, found):
            return f"set {_WORDS['Quantization'].format(name)}, together with {choices(words)}"
    if other := _other_weights(subject, tried.tensor):
        return f"set {', or set '.join(other)}"
    return "none of the usual changes is enough: use larger GPUs, or a smaller model"


def _other_weights(subject: Subject, tensor: int) -> list[str]:
    """Weights in other formats, or those of a known repository, that fit at the degrees which they allow.

    Weights of 16 bit are told where nothing smaller helps: they have no groups that a degree could cut.
    """
    small = [*_other_formats(subject, tensor, PROPOSED_FORMATS), *_other_repos(subject, tensor)]
    return small or list(_other_formats(subject, tensor, ("None",)))


def _other_formats(subject: Subject, tensor: int, formats: Iterable[str]) -> Iterator[str]:
    for name in formats:
        if subject.repo or name == subject.spec.model.quantization:
            continue
        if degree := _least_degree(subject, quantization=name):
            yield f"{_WORDS['Quantization'].format(name)}{_besides(subject, tensor, degree)}"


def _other_repos(subject: Subject, tensor: int) -> Iterator[str]:
    model = subject.spec.model
    nameable = {name for method in subject.catalogue.methods for name in method.formats if name in FORMATS}
    for repo in subject.row.quantised if subject.row else ():
        if repo.repo == model.name or repo.format not in nameable:
            continue
        if degree := _least_degree(subject, name=repo.repo, quantization=repo.format):
            also = "" if repo.format == model.quantization else f" and quantization to {repo.format}"
            yield f"model.name to {repo.repo}{also}{_besides(subject, tensor, degree)}"


def _besides(subject: Subject, tensor: int, degree: int) -> str:
    """What else is to change: weights turned while loading, and the degree where it is not chosen or set already."""
    online = " without onlineQuantization" if subject.spec.model.online_quantization else ""
    keeps = subject.spec.parallelism.tensor == "Auto" or degree == tensor
    return online if keeps else f"{online} and {_WORDS['Tensor'].format(degree)}"


def _least_degree(subject: Subject, **fields: str) -> int | None:
    """The least degree at which the model fits with other weights; None when there is none, or they do not run."""
    stated = subject.spec.model.architecture
    if stated is not None:  # what it says of quantised weights is about those that are served now
        stated = stated.model_copy(update={"weight_bits": None, "weight_group_size": None})
    changed = _with_model(subject, online_quantization=None, architecture=stated, **fields)
    if any(finding.severity == "Error" for finding in quantization.check(changed)):
        return None
    for degree in allowed_degrees(changed):
        tried = decisive(trials(changed, degree)) if obstacle(changed, degree) is None else None
        if tried is not None and tried.memory.fits:
            return degree
    return None


def _words(subject: Subject, found: Iterable[Change]) -> list[str]:
    return [_WORDS[change.kind].format(change.value) for change in found if _useful(subject, change)][:MOST_PROPOSALS]


def _formats(subject: Subject, tensor: int) -> list[str]:
    """Formats that the weights could have, first those in which they are published."""
    published = {repo.format for repo in subject.row.quantised} if subject.row else set()
    ordered = sorted(PROPOSED_FORMATS, key=lambda name: name not in published)
    return [name for name in ordered if _possible(subject, tensor, quantization=name)]


def _possible(subject: Subject, tensor: int, **model: str) -> bool:
    """Whether the weights may be in another format: on every product, and at the degree."""
    if subject.spec.model.quantization != "None" or subject.spec.model.online_quantization or subject.repo:
        return False
    changed = _with_model(subject, **model)
    errors = (finding for finding in quantization.check(changed) if finding.severity == "Error")
    return next(errors, None) is None and obstacle(changed, tensor) is None


def _with_model(subject: Subject, **fields: str | Architecture | None) -> Subject:
    """The subject with other values of fields of its model."""
    model = subject.spec.model.model_copy(update=fields)
    return replace(subject, spec=subject.spec.model_copy(update={"model": model}))


def _useful(subject: Subject, change: Change) -> bool:
    """A context that does not hold the largest image would only move the trouble."""
    image = largest(subject)
    return change.kind != "MaxModelLen" or image is None or int(change.value) > image.tokens
