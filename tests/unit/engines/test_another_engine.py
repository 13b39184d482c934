"""A second engine needs nothing but its place in the registry: no other part of the operator asks which one it is."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

import vlm_operator
from unit.engines.toy_engine import Toy
from unit.replicas.examples import raw_spec
from vlm_operator.engines import registry
from vlm_operator.replicas.offline import Imagined, imagine
from vlm_operator.replicas.trouble import trouble_of
from vlm_operator.sizing.catalogue.loading import builtin

ROOT = Path(vlm_operator.__file__).parent
LLAMA_VISION = "meta-llama/Llama-3.2-11B-Vision-Instruct"


@pytest.fixture(autouse=True)
def _the_toy_is_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the one name that the resource knows so far."""
    monkeypatch.setattr(registry, "_ENGINES", {"vLLM": Toy()})


def imagined(**sections: Any) -> Imagined:
    resource = {"metadata": {"name": "m", "namespace": "models"}, "spec": raw_spec(**sections)}
    return imagine(resource, uid="u-1", catalogue=builtin())


def test_its_pods_are_planned_and_rendered() -> None:
    found = imagined(replicas=2, engine={"args": ["--anything", "goes"]})
    assert not found.refused
    pods = [manifest for manifest in found.objects if manifest["kind"] == "Pod"]
    assert [pod["spec"]["containers"][0]["command"] for pod in pods] == [["toy"], ["toy"]]
    assert pods[0]["spec"]["containers"][0]["args"] == ["--model", "/weights", "--anything", "goes"]
    assert {manifest["kind"] for manifest in found.objects} == {
        "Service",
        "ConfigMap",
        "ControllerRevision",
        "Pod",
        "PodDisruptionBudget",
    }


QUESTIONS: list[dict[str, Any]] = [
    {},
    {"model": {"name": LLAMA_VISION}, "gpu": {"products": ["NVIDIA-H100-80GB-HBM3"]}},
    {"engine": {"version": "0.9"}, "model": {"name": LLAMA_VISION}},
    {
        "model": {"name": "Qwen/Qwen2.5-VL-72B-Instruct-AWQ", "quantization": "AWQ"},
        "gpu": {"products": ["Tesla-V100-SXM2-32GB"]},
    },
    {
        "model": {"name": "HuggingFaceTB/SmolVLM2-256M-Video-Instruct"},
        "multimodal": {"encoderParallelism": "Data"},
        "parallelism": {"tensor": 3},
    },
    {
        "model": {"name": "google/gemma-3-4b-it"},
        "engine": {"maxNumBatchedTokens": 64},
        "gpu": {"products": ["NVIDIA-L4"]},
    },
]


@pytest.mark.parametrize("sections", QUESTIONS, ids=str)
def test_nothing_that_is_said_or_made_is_about_vllm(sections: dict[str, Any]) -> None:
    found = imagined(**sections)
    told = " ".join(finding.sentence() for finding in found.findings)
    assert "vllm" not in told.lower()
    made = json.dumps([manifest for manifest in found.objects if manifest["kind"] != "ControllerRevision"])
    assert "vllm" not in made.lower()


def test_no_registry_of_another_engine_holds_for_it() -> None:
    reasons = {finding.reason for finding in imagined(model={"name": LLAMA_VISION}).findings}
    assert not reasons & {
        "ArchitectureNotInVersion",
        "ArchitectureVersionUncertain",
        "QuantizationUnsupported",
        "GpuNotInBuild",
    }


def test_its_sizes_are_checked_all_the_same() -> None:
    found = imagined(model={"name": "Qwen/Qwen2.5-VL-7B-Instruct"}, parallelism={"tensor": 3})
    assert "TensorParallelHeads" in {finding.reason for finding in found.findings}


def test_it_knows_its_own_last_words() -> None:
    ended = {"exitCode": 1, "reason": "Error", "message": "toy: broken wheel\nbye"}
    pod = {"status": {"containerStatuses": [{"name": "engine", "state": {"terminated": ended}}]}}
    found = trouble_of(pod, registry.engine("vLLM"))
    assert found is not None
    assert (found.reason, found.message, found.advice) == (
        "ToyBroken",
        "the engine exited with code 1: toy: broken wheel",
        "mend the toy",
    )


def test_nothing_outside_asks_which_engine_it_is() -> None:
    """The name stands where the resource lists its engines and where they are registered, and with the engine itself."""
    own = {ROOT / "api" / "engine.py", ROOT / "engines" / "registry.py", *(ROOT / "engines" / "vllm").rglob("*.py")}
    for path in sorted(set(ROOT.rglob("*.py")) - own):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.lower() == "vllm"
            assert not named or path.name == "rows.py", f"{path}:{getattr(node, 'lineno', 0)}"
