"""Whether the GPUs can run the stored format of the weights, and whether it can be shared among them."""

from collections.abc import Iterator

from vlm_operator.api.findings import Finding, Severity
from vlm_operator.sizing.catalogue.rows import GpuRow, QuantisedRepo, QuantizationRow
from vlm_operator.sizing.engine_facts import Readings, Version
from vlm_operator.sizing.subject import UNSOURCED, Product, Subject, gpu_doubt
from vlm_operator.sizing.versions import Capability, parse_capability, parse_version

QUANTIZATION_UNSUPPORTED = "QuantizationUnsupported"
"""A GPU is too old for the format of the weights."""
QUANTIZATION_UNCERTAIN = "QuantizationUncertain"
"""It is not known whether a GPU runs the format of the weights."""
QUANTIZATION_NOT_NATIVE = "QuantizationNotNative"
"""A GPU stores the format but does not compute in it."""
QUANTIZATION_MISMATCH = "QuantizationMismatch"
"""The named repository holds another format than the spec says."""
REPOSITORY_UNKNOWN = "QuantizedRepositoryUnknown"
"""No repository with the weights of the model in this format is known."""

USUAL_GROUP = 128
"""Weights that share a scale in nearly all published AWQ and GPTQ checkpoints."""
GROUPED = frozenset({"AWQ", "GPTQ", "INT4"})
"""Formats with groups of weights."""


def stored_format(subject: Subject) -> str:
    """The format of the weights in the GPU's memory: that of the named repository, else that of the spec."""
    model = subject.spec.model
    if subject.repo is not None:
        return subject.repo.format
    return model.online_quantization or model.quantization


def group_size(subject: Subject) -> int | None:
    """Weights that share a scale; None for a format without groups."""
    stored = stored_format(subject)
    if stored not in GROUPED:
        return None
    stated = subject.architecture.weight_group_size if subject.architecture else None
    known = [repository.group_size for repository in _published(subject) if repository.group_size]
    return stated or (known[0] if known else USUAL_GROUP)


def stated_bits(subject: Subject) -> int | None:
    """Bits of a quantised weight as the spec states them; None where it does not, or the weights have 16."""
    sizes = subject.architecture
    return sizes.weight_bits if sizes and stored_format(subject) != "None" else None


def mlp_groups(subject: Subject, width: int, degree: int) -> str | None:
    """How a share of the MLP would cut a group of quantised weights; None when it does not.

    At degree 1 the checkpoint itself is the proof that its groups fit.
    """
    return None if degree == 1 else _cut(subject, "the width of its MLP", width, degree)


def expert_groups(subject: Subject, width: int, degree: int) -> str | None:
    """The same for an expert, where vLLM has a slower kernel that copes."""
    return None if degree == 1 else _cut(subject, "the width of an expert", width, degree)


def padded_repo(subject: Subject, degree: int) -> QuantisedRepo | None:
    """A repository in the stored format whose MLP is padded so that the degree does not cut a group."""
    step = (group_size(subject) or 1) * degree
    return next(
        (repo for repo in _published(subject) if repo.intermediate_size and not repo.intermediate_size % step), None
    )


def _cut(subject: Subject, what: str, width: int, degree: int) -> str | None:
    group = group_size(subject)
    if group is None or width % (group * degree) == 0:
        return None
    share = f"{width / degree:g}"
    return (
        f"{width} as {what}, and a share of {width} / {degree} = {share} is no multiple of"
        f" the {group} weights that have one scale in {stored_format(subject)}"
    )


def check(subject: Subject) -> Iterator[Finding]:
    """What does not go with the format of the weights."""
    yield from _format_is_right(subject)
    method, readings = _method(subject), subject.engine.readings
    if method is not None and readings is not None:
        for product in subject.products:
            yield from _runs(subject, product, method, readings)


def _format_is_right(subject: Subject) -> Iterator[Finding]:
    repo, said = subject.repo, subject.spec.model.quantization
    if repo is not None and repo.format != said:
        doubt = " (unsourced)" if repo.mark == UNSOURCED else ""
        nameable = any(repo.format in method.formats for method in subject.catalogue.methods)
        other = "name the repository whose weights you serve"
        yield Finding(
            reason=QUANTIZATION_MISMATCH,
            severity="Warning" if doubt else "Error",
            field="spec.model.quantization",
            message=f"quantization is {said}, but {repo.repo} holds {repo.format}{doubt}",
            advice=f"set quantization to {repo.format}, or {other}" if nameable else other,
        )
    elif said != "None" and subject.row is not None and not _published(subject):
        group = f"; groups of {USUAL_GROUP} weights are assumed" if said in GROUPED else ""
        yield Finding(
            reason=REPOSITORY_UNKNOWN,
            severity="Warning",
            field="spec.model.quantization",
            message=f"no repository with {said} weights of {subject.row.hf_id} is known{group}",
            advice="make sure that the weights are stored in this format",
        )


def _published(subject: Subject) -> tuple[QuantisedRepo, ...]:
    """Repositories with the weights of the model in the format of the spec."""
    if subject.repo is not None:
        return (subject.repo,)
    known = subject.row.quantised if subject.row else []
    return tuple(repository for repository in known if repository.format == stored_format(subject))


def _method(subject: Subject) -> QuantizationRow | None:
    """The engine's method for the format; the first of several, which differ in bits alone."""
    stored = stored_format(subject)
    return next((method for method in subject.catalogue.methods if stored in method.formats), None)


def _runs(subject: Subject, product: Product, method: QuantizationRow, readings: Readings) -> Iterator[Finding]:
    if product.row is None or product.row.capability is None:
        return
    capability = parse_capability(product.row.capability)
    if capability is None:
        yield from _elsewhere(subject, product, product.row, method)
        return
    certain, possible = _minimums(parse_version(subject.engine.version), method, readings)
    stored, engine = stored_format(subject), subject.engine
    has = f"{product.row.name} has compute capability {product.row.capability}{gpu_doubt(product.row, 'capability')}"
    advice = f"remove {product.label}, or use weights in another format"
    if possible is not None and capability < possible:
        message = f"{has}, and {stored} needs {_shown(possible)} in {engine.name} {engine.version}"
        yield _finding(product, QUANTIZATION_UNSUPPORTED, "Error", message, advice)
    elif certain is not None and capability < certain:
        message = f"{has}, and {stored} needs {_shown(certain)} in some versions of {engine.name}; {engine.version} was not read"
        yield _finding(product, QUANTIZATION_UNCERTAIN, "Warning", message, advice)
    elif method.supported_on and product.row.capability not in method.supported_on:
        message = f"{has}, and whether {engine.name} runs {stored} there was not verified"
        yield _finding(product, QUANTIZATION_UNCERTAIN, "Warning", message, advice)
    elif (native := parse_capability(method.native_from)) is not None and capability < native:
        message = f"{has}, and {stored} is computed natively from {_shown(native)} on: here it saves memory, not time"
        yield _finding(product, QUANTIZATION_NOT_NATIVE, "Warning", message, "expect the speed of 16 bit weights")


def _elsewhere(subject: Subject, product: Product, row: GpuRow, method: QuantizationRow) -> Iterator[Finding]:
    """GPUs without a compute capability, which other makers number otherwise."""
    if row.capability not in (method.supported_on or ()):
        stored = stored_format(subject)
        message = f"whether {subject.engine.name} runs {stored} on {row.name} ({row.capability}) is not known"
        yield _finding(product, QUANTIZATION_UNCERTAIN, "Warning", message, "try it with one replica first")


def _minimums(
    version: Version, method: QuantizationRow, readings: Readings
) -> tuple[Capability | None, Capability | None]:
    """From which capability on the version certainly runs the format, and from which on it possibly does.

    The two differ for versions between those whose minimums were read.
    """
    old, new = parse_capability(method.legacy_min_capability), parse_capability(method.min_capability)
    if version >= readings.newest or old is None or new is None:
        return new, new
    return (old, old) if version <= readings.legacy else (max(old, new), min(old, new))


def _shown(capability: Capability) -> str:
    return f"compute capability {capability[0]}.{capability[1]}"


def _finding(product: Product, reason: str, severity: Severity, message: str, advice: str) -> Finding:
    return Finding(reason=reason, severity=severity, field=product.field, message=message, advice=advice)
