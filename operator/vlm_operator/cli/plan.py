"""`kubectl vlm plan`: the verdict on a VLMDeployment with its arithmetic."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from vlm_operator.api.findings import Finding
from vlm_operator.replicas.evaluate import Judgement, evaluate, findings_that_count
from vlm_operator.sizing.catalogue.loading import Catalogue
from vlm_operator.sizing.fit import Question, concurrency, largest_max_model_len
from vlm_operator.sizing.memory import Memory

if TYPE_CHECKING:  # most answers need neither
    from vlm_operator.cli.changes import Change
    from vlm_operator.cli.config import Config

_GIB = 2**30
_BAR = 40
"""Characters of a bar that stands for the whole GPU."""
TEXT_TOKENS = 1024
"""Prompt and answer of a request with one image whose number at once is told."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The whole answer about one resource."""

    name: str
    findings: tuple[Finding, ...]
    judged: Judgement
    config: "Config | None"
    changes: "tuple[Change, ...] | None"
    """None when there is nothing to compare, or the spec cannot be read."""

    @property
    def accepted(self) -> bool:
        """Whether the operator would accept the spec."""
        return not any(finding.severity == "Error" for finding in self.findings)


def answer(
    resource: dict[str, Any], *, config: "Config | None", old: dict[str, Any] | None, catalogue: Catalogue
) -> Answer:
    """Judge a resource. A config.json takes the place of its spec.model.architecture."""
    if config is not None:
        resource = config.put_into(resource)
    judged = evaluate(resource, catalogue=catalogue)
    return Answer(
        name=str(resource["metadata"]["name"]),
        findings=findings_that_count(judged) + (config.findings_beside(judged) if config else ()),
        judged=judged,
        config=config,
        changes=None if old is None or judged.spec is None else _changes(evaluate(old, catalogue=catalogue), judged),
    )


def _changes(old: Judgement, new: Judgement) -> "tuple[Change, ...]":
    from vlm_operator.cli.changes import changes  # noqa: PLC0415 # only needed here

    return changes(old, new)


def as_data(answer: Answer) -> dict[str, Any]:
    """The answer as plain data; None is unknown."""
    sized = answer.judged.assessment
    spec = answer.judged.spec
    data: dict[str, Any] = {
        "name": answer.name,
        "accepted": answer.accepted,
        "findings": [
            {name: getattr(finding, name) for name in ("reason", "severity", "field", "message", "advice")}
            for finding in answer.findings
        ],
        "gpu": sized.gpu if sized else None,
        "memory": _as_gib(sized.memory if sized else None),
        "memoryByGpu": {gpu: _as_gib(memory) for gpu, memory in (sized.memory_by_gpu if sized else {}).items()},
        "maxModelLen": sized.memory.settings.max_model_len if sized and sized.memory else None,
        "largestMaxModelLen": largest_max_model_len(sized.question) if sized and sized.question else None,
        "maxNumSeqs": sized.memory.settings.max_num_seqs if sized and sized.memory else None,
        "tensorParallel": sized.tensor_parallel if sized else None,
        "gpusPerReplica": sized.gpus_per_replica if sized else None,
        "replicas": spec.replicas if spec else None,
        "imageTokens": dict(sized.image_tokens) if sized else {},
        "maxConcurrency": sized.max_concurrency if sized else None,
        "imageConcurrency": _with_one_image(sized.question, sized.image_tokens) if sized and sized.question else {},
    }
    if answer.changes is not None:
        data["restarts"] = any(change.restarts for change in answer.changes)
        data["changes"] = [
            {"field": change.field, "old": change.old, "new": change.new, "restarts": change.restarts}
            for change in answer.changes
        ]
    if answer.config is not None:
        data |= answer.config.as_spec()
    return data


def _as_gib(memory: Memory | None) -> dict[str, Any]:
    return {
        "gpuGiB": _gib(memory.gpu if memory else None),
        "weightsGiB": _gib(memory.weights if memory else None),
        "kvGiB": _gib(memory.kv if memory else None),
        "kvTokens": memory.kv_tokens if memory else None,
        "activationGiB": _gib(memory.activation if memory else None),
        "otherGiB": _gib(memory.other + memory.graphs if memory else None),
        "fits": memory.fits if memory else None,
        "limit": memory.limit if memory else None,
    }


def _with_one_image(question: Question, tokens: Mapping[str, int | None]) -> dict[str, int | None]:
    """Requests at once with an image of each size and `TEXT_TOKENS` of text, rounded down."""

    def at_once(image: int | None) -> int | None:
        number = None if image is None else concurrency(question, tokens=image + TEXT_TOKENS)
        return None if number is None else int(number)

    return {size: at_once(image) for size, image in tokens.items()}


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
            *_block(answer.config.as_spec()),
        ]
    lines += ["", *_memory(data), *_other_gpus(data), "", *_facts(data)]
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


def _other_gpus(data: dict[str, Any]) -> list[str]:
    """A line for each further GPU that is allowed and known."""
    others = {gpu: memory for gpu, memory in data["memoryByGpu"].items() if gpu != data["gpu"]}
    lines = [
        f"  {gpu}: {_or_unknown(memory['gpuGiB'])} GiB, KV cache {_or_unknown(memory['kvGiB'])} GiB for "
        f"{_or_unknown(memory['kvTokens'])} tokens per replica"
        for gpu, memory in others.items()
    ]
    return ["On the other GPUs:", *lines] if lines else []


def _facts(data: dict[str, Any]) -> list[str]:
    gpus, replicas = data["gpusPerReplica"], data["replicas"]
    total = "?" if gpus is None or replicas is None else gpus * replicas
    tokens, requests = (
        ", ".join(f"{size}: {_or_unknown(number)}" for size, number in data[key].items()) or "?"
        for key in ("imageTokens", "imageConcurrency")
    )
    return [
        f"Tensor-parallel degree: {_or_unknown(data['tensorParallel'])}",
        f"Pods: {_or_unknown(replicas)} with {_or_unknown(gpus)} GPUs each, {total} GPUs in all",
        f"KV cache: {_or_unknown(data['memory']['kvTokens'])} tokens per replica",
        f"Largest maxModelLen that fits: {_or_unknown(data['largestMaxModelLen'])}",
        f"Requests of {_or_unknown(data['maxModelLen'])} tokens at once: {_or_unknown(data['maxConcurrency'])} per replica",
        f"Tokens of an image: {tokens}",
        f"Requests with one image and {TEXT_TOKENS} tokens of text at once: {requests}",
    ]


def _changed(found: "tuple[Change, ...]") -> list[str]:
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


def _gib(number: int | None) -> float | None:
    return None if number is None else round(number / _GIB, 3)


def _or_unknown(value: Any) -> Any:
    return "?" if value is None else value
