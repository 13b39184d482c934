"""Specs as a user writes them, and what the built-in catalogue makes of them."""

from typing import Any

from vlm_operator.api.findings import Finding
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.engines.base import PodInputs
from vlm_operator.engines.registry import engine
from vlm_operator.sizing.catalogue.loading import Catalogue, builtin
from vlm_operator.sizing.engine_facts import EngineFacts
from vlm_operator.sizing.subject import Subject

QWEN_7B = "Qwen/Qwen2.5-VL-7B-Instruct"
QWEN_3B = "Qwen/Qwen2.5-VL-3B-Instruct"
QWEN_72B = "Qwen/Qwen2.5-VL-72B-Instruct"
QWEN3_30B = "Qwen/Qwen3-VL-30B-A3B-Instruct"
LLAMA_VISION = "meta-llama/Llama-3.2-11B-Vision-Instruct"
SMOLVLM = "HuggingFaceTB/SmolVLM2-256M-Video-Instruct"
INTERNVL_78B = "OpenGVLab/InternVL3-78B"

WEIGHTS = {"persistentVolumeClaim": {"claimName": "models"}}
STATED = {
    "name": "OtherForConditionalGeneration",
    "layers": 28,
    "hiddenSize": 3584,
    "attentionHeads": 28,
    "keyValueHeads": 4,
    "intermediateSize": 18944,
    "vocabularySize": 152064,
    "maxContext": 32768,
}
"""Sizes as a user states them, those of a model of 7B."""


def spec(name: str = QWEN_7B, *, model: dict[str, Any] | None = None, **sections: Any) -> VLMDeploymentSpec:
    return VLMDeploymentSpec.model_validate({"model": {"name": name, **(model or {})}, "weights": WEIGHTS, **sections})


def subject(
    name: str = QWEN_7B,
    *,
    version: str = "0.33",
    catalogue: Catalogue | None = None,
    gpus_per_node: int | None = None,
    **sections: Any,
) -> Subject:
    of = spec(name, **sections)
    return Subject(of, catalogue or builtin(), vllm(of, version), gpus_per_node)


def vllm(of: VLMDeploymentSpec, version: str = "0.33") -> EngineFacts:
    """What a version of vLLM tells of itself for a spec."""
    inputs = PodInputs.of(of)
    return engine("vLLM").sizing(
        inputs.model_copy(update={"engine": inputs.engine.model_copy(update={"version": version})})
    )


def sentences(findings: Any) -> list[str]:
    return [f"{finding.severity} {finding.reason} {finding.sentence()}" for finding in findings]


def only(findings: Any, reason: str) -> Finding:
    """The one finding with this reason."""
    (found,) = [finding for finding in findings if finding.reason == reason]
    return found
