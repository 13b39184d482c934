"""What is judged: every sample and every golden resource, as the command line that the operator makes of it."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from controlplane.errors import ControlPlaneError
from engine_check.configs import config_of
from vllm_args.environment import CPU_RELEASE, cache_folder, run
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.engines.base import PodInputs
from vlm_operator.engines.registry import engine
from vlm_operator.engines.vllm.arguments import MODEL_PATH
from vlm_operator.engines.vllm.versions import minor_version
from vlm_operator.sizing.catalogue.loading import builtin

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "manifests" / "samples", ROOT / "tests" / "unit" / "engines" / "golden")
CPU_VERSION = minor_version(CPU_RELEASE)
JUDGE = Path(__file__).with_name("judge.py")

Resource = dict[str, Any]


class JudgeError(ControlPlaneError):
    """The judge itself failed; no command line was judged."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A command line to judge, with the files of the model where the configuration is to be made as well."""

    name: str
    words: list[str]
    files: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How far a command line came."""

    stage: str
    error: str | None


def resources() -> dict[str, Resource]:
    """The samples and the golden resources, by name."""
    return {
        path.stem: document for folder in FOLDERS for path in sorted(folder.glob("*.yaml")) for document in _of(path)
    }


def _of(path: Path) -> Iterator[Resource]:
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        if isinstance(document, dict) and document.get("kind") == "VLMDeployment":
            yield document


def inputs_of(resource: Resource, *, version: str | None = None) -> PodInputs:
    """The inputs of a resource, under another version of the engine if one is given."""
    inputs = PodInputs.of(VLMDeploymentSpec.model_validate(resource["spec"]))
    if version is None:
        return inputs
    return inputs.model_copy(update={"engine": inputs.engine.model_copy(update={"version": version})})


def words_of(inputs: PodInputs, *, tensor_parallel: int = 1) -> list[str]:
    """What stands after `vllm serve`; the degree counts where the resource leaves it open."""
    return engine(inputs.engine.type).resolve(inputs, tensor_parallel=tensor_parallel).args


def is_refused(inputs: PodInputs) -> bool:
    """Whether the operator would not start it in the first place."""
    return any(finding.severity == "Error" for finding in engine(inputs.engine.type).check(inputs))


@cache
def files_of(model: str, *, quantization: str = "None") -> dict[str, Any] | None:
    """The files of a model of the catalogue; None where `config.json` cannot be made."""
    match = builtin().model(model)
    if match is None or match.architecture is None:
        return None
    config = config_of(match.architecture, quantization=quantization)
    return config and {"config.json": config}


def with_degree(model: str, tensor_parallel: int) -> Case | None:
    """A model of the catalogue on several GPUs; None where `config.json` cannot be made."""
    files = files_of(model)
    words = [MODEL_PATH, "--tensor-parallel-size", str(tensor_parallel), "--distributed-executor-backend", "mp"]
    return Case(name=f"{model} on {tensor_parallel}", words=words, files=files) if files else None


def judge(cases: Iterable[Case], *, release: str = CPU_RELEASE) -> dict[str, Verdict]:
    """What the vLLM of a release says about each case, by name. Raises JudgeError when it does not get that far."""
    asked = [{"name": case.name, "words": case.words, "model": case.files} for case in cases]
    done = run(JUDGE, str(cache_folder() / "models"), release=release, stdin=json.dumps(asked))
    try:
        answers = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise JudgeError(f"vLLM {release} cannot be asked:\n{done.stderr[-2000:]}") from error
    return {name: Verdict(**answer) for name, answer in answers.items()}
