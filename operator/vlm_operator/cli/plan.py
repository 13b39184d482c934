"""`kubectl vlm plan`: the verdict on a VLMDeployment with its arithmetic."""

import contextlib
import json
import re
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import ValidationError

from vlm_operator.api import API_VERSION, KIND
from vlm_operator.api.architecture import Architecture
from vlm_operator.api.findings import Finding
from vlm_operator.api.patterns import MODEL_NAME
from vlm_operator.cli.changes import Change, changes
from vlm_operator.replicas.evaluate import Judgement, evaluate, findings_that_count
from vlm_operator.runtime.files import UnusableInputError
from vlm_operator.sizing.catalogue.loading import Catalogue
from vlm_operator.sizing.config_section import INVALID_CONFIG
from vlm_operator.sizing.quantization import QUANTIZATION_MISMATCH

_GIB = 2**30
_BAR = 40
"""Characters of a bar that stands for the whole GPU."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a config.json says."""

    architecture: Architecture
    quantization: str
    """How the weights are stored, as spec.model.quantization has it."""
    name: str
    """Name of the model, a stand-in where it does not say."""
    findings: tuple[Finding, ...]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The whole answer about one resource."""

    name: str
    findings: tuple[Finding, ...]
    judged: Judgement
    config: Config | None
    changes: tuple[Change, ...] | None
    """None when there is nothing to compare with."""

    @property
    def accepted(self) -> bool:
        """Whether the operator would accept the spec."""
        return not any(finding.severity == "Error" for finding in self.findings)


def read_config_file(data: Any, filename: str) -> Config:
    """Read a Hugging Face config.json. Raises UnusableInputError with all that is wrong."""
    from vlm_operator.sizing.config_json import read_config, read_stored_format  # noqa: PLC0415 # only needed here

    architecture, findings = read_config(data)
    if architecture is None:
        told = "; ".join(finding.sentence() for finding in findings)
        raise UnusableInputError(
            f"{'standard input' if filename == '-' else filename} does not describe a model: {told}"
        )
    stored = read_stored_format(data)
    if stored is not None and stored.format is None:
        findings = (*findings, _unnamed(stored.method))
    if stored is not None and stored.format is not None:
        more = {"weightBits": stored.bits, "weightGroupSize": stored.group_size}
        architecture = _valid(architecture, more)
    given = data.get("_name_or_path") if isinstance(data, dict) else None
    name = given if isinstance(given, str) and re.fullmatch(MODEL_NAME.regex, given) else "model"
    return Config(
        architecture=architecture,
        quantization=(stored.format if stored else None) or "None",
        name=name,
        findings=findings,
    )


def resource_of(config: Config | None) -> dict[str, Any]:
    """The smallest VLMDeployment of a model, for a config.json that comes alone."""
    model = {"name": config.name, "quantization": config.quantization} if config else {"name": "model"}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "model"},
        "spec": {"model": model, "weights": {"persistentVolumeClaim": {"claimName": "models"}}},
    }


def answer(
    resource: dict[str, Any], *, config: Config | None, old: dict[str, Any] | None, catalogue: Catalogue
) -> Answer:
    """Judge a resource. A config.json takes the place of its spec.model.architecture."""
    if config is not None:
        resource = _with_config(resource, config)
    judged = evaluate(resource, catalogue=catalogue)
    findings = findings_that_count(judged) + (_about(config, judged) if config else ())
    return Answer(
        name=str(resource["metadata"]["name"]),
        findings=findings,
        judged=judged,
        config=config,
        changes=changes(evaluate(old, catalogue=catalogue), judged) if old is not None else None,
    )


def _with_config(resource: dict[str, Any], config: Config) -> dict[str, Any]:
    spec = resource.get("spec")
    model = spec.get("model") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(model, dict):
        return resource
    return resource | {"spec": spec | {"model": model | {"architecture": _plain(config.architecture)}}}


def _about(config: Config, judged: Judgement) -> tuple[Finding, ...]:
    """What the file says, and where the spec does not agree with it."""
    given = judged.spec.model.quantization if judged.spec else config.quantization
    if given == config.quantization:
        return config.findings
    mismatch = Finding(
        reason=QUANTIZATION_MISMATCH,
        severity="Warning",
        field="spec.model.quantization",
        message=f"is {given}, but the config.json says that the weights are stored as {config.quantization}",
        advice=f"set it to {config.quantization}",
    )
    return (mismatch, *config.findings)


def _unnamed(method: str) -> Finding:
    return Finding(
        reason=INVALID_CONFIG,
        severity="Warning",
        field="quantization_config.quant_method",
        message=f"is {method[:40]!r}, which spec.model.quantization has no name for: the weights are counted as 16 bit",
    )


def _valid(architecture: Architecture, more: dict[str, int | None]) -> Architecture:
    """The sizes with what else is known, as far as it is possible at all."""
    for name, value in more.items():
        with contextlib.suppress(ValidationError):
            architecture = Architecture.model_validate(architecture.model_dump() | {name: value})
    return architecture


def as_data(answer: Answer) -> dict[str, Any]:
    """The answer as plain data; None is unknown."""
    sized = answer.judged.assessment
    memory = sized.memory if sized else None
    spec = answer.judged.spec
    data: dict[str, Any] = {
        "name": answer.name,
        "accepted": answer.accepted,
        "findings": [
            {name: getattr(finding, name) for name in ("reason", "severity", "field", "message", "advice")}
            for finding in answer.findings
        ],
        "gpu": sized.gpu if sized else None,
        "memory": {
            "gpuGiB": _gib(memory.gpu if memory else None),
            "weightsGiB": _gib(memory.weights if memory else None),
            "kvGiB": _gib(memory.kv if memory else None),
            "kvTokens": memory.kv_tokens if memory else None,
            "activationGiB": _gib(memory.activation if memory else None),
            "otherGiB": _gib(memory.other + memory.graphs if memory else None),
            "fits": memory.fits if memory else None,
            "limit": memory.limit if memory else None,
        },
        "maxModelLen": memory.settings.max_model_len if memory else None,
        "maxNumSeqs": memory.settings.max_num_seqs if memory else None,
        "tensorParallel": sized.tensor_parallel if sized else None,
        "gpusPerReplica": sized.gpus_per_replica if sized else None,
        "replicas": spec.replicas if spec else None,
        "imageTokens": dict(sized.image_tokens) if sized else {},
        "maxConcurrency": sized.max_concurrency if sized else None,
    }
    if answer.changes is not None:
        data["restarts"] = any(change.restarts for change in answer.changes)
        data["changes"] = [
            {"field": change.field, "old": change.old, "new": change.new, "restarts": change.restarts}
            for change in answer.changes
        ]
    if answer.config is not None:
        data["quantization"] = answer.config.quantization
        data["architecture"] = _plain(answer.config.architecture)
    return data


def shown(answer: Answer, output: str) -> str:
    """The answer as text (`table`), JSON or YAML."""
    data = as_data(answer)
    if output == "json":
        return json.dumps(data, indent=2) + "\n"
    if output == "yaml":
        return yaml.safe_dump(data, sort_keys=False, width=120)
    return "\n".join(_lines(answer, data)) + "\n"


def _lines(answer: Answer, data: dict[str, Any]) -> list[str]:
    lines = [f"{answer.name}: {'accepted' if answer.accepted else 'refused'}"]
    lines += [f"  {finding.severity}: {finding.sentence()} ({finding.reason})" for finding in answer.findings]
    if answer.config is not None:
        lines += [
            "",
            "Paste this into spec.model:",
            *_block({name: data[name] for name in ("quantization", "architecture")}),
        ]
    lines += ["", *_memory(data), "", *_facts(data)]
    if answer.changes is not None:
        lines += ["", *_changed(answer.changes)]
    return lines


def _memory(data: dict[str, Any]) -> list[str]:
    memory, gpu = data["memory"], data["gpu"] or "the GPU"
    total = memory["gpuGiB"]
    if memory["weightsGiB"] is None and total is None:
        return ["Memory: unknown"]
    fits = {True: "fits", False: "does not fit", None: "unknown whether it fits"}[memory["fits"]]
    size = "of unknown size" if total is None else f"{total:.2f} GiB as CUDA reports"
    lines = [f"Memory of the fullest GPU ({gpu}, {size}): {fits}"]
    parts = (("weights", "weightsGiB"), ("activation", "activationGiB"), ("other", "otherGiB"), ("KV cache", "kvGiB"))
    for name, key in parts:
        value = memory[key]
        number = "      ?    " if value is None else f"{value:7.2f} GiB"
        bar = "" if value is None or not total else "#" * max(0, min(_BAR, round(value / total * _BAR)))
        lines.append(f"  {name:<11}{number}  {bar}".rstrip())
    return lines


def _facts(data: dict[str, Any]) -> list[str]:
    gpus, replicas = data["gpusPerReplica"], data["replicas"]
    total = "?" if gpus is None or replicas is None else gpus * replicas
    tokens = ", ".join(f"{size}: {_or_unknown(number)}" for size, number in data["imageTokens"].items())
    return [
        f"Tensor-parallel degree: {_or_unknown(data['tensorParallel'])}",
        f"Pods: {_or_unknown(replicas)} with {_or_unknown(gpus)} GPUs each, {total} GPUs in all",
        f"KV cache: {_or_unknown(data['memory']['kvTokens'])} tokens per replica",
        f"Requests of {_or_unknown(data['maxModelLen'])} tokens at once: {_or_unknown(data['maxConcurrency'])} per replica",
        f"Tokens of an image: {tokens or '?'}",
    ]


def _changed(found: tuple[Change, ...]) -> list[str]:
    if not found:
        return ["Nothing changed."]
    restarts = any(change.restarts for change in found)
    lines = ["All replicas are replaced, one after the other:" if restarts else "No replica restarts:"]
    for change in found:
        effect = "restarts" if change.restarts else "no restart"
        lines.append(f"  {change.field}: {json.dumps(change.old)} -> {json.dumps(change.new)} ({effect})")
    return lines


def _block(value: dict[str, Any]) -> list[str]:
    return ["  " + line for line in yaml.safe_dump(value, sort_keys=False, width=120).splitlines()]


def _plain(architecture: Architecture) -> dict[str, Any]:
    return architecture.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def _gib(number: int | None) -> float | None:
    return None if number is None else round(number / _GIB, 3)


def _or_unknown(value: Any) -> Any:
    return "?" if value is None else value
