"""vLLM as an engine: the questions of `engines.base.Engine`, each answered by a module of this package."""

from functools import cache
from pathlib import Path
from typing import Any

from vlm_operator.api.findings import Finding
from vlm_operator.engines.base import PodIdentity, PodInputs, Resolved
from vlm_operator.engines.drain import Draining
from vlm_operator.engines.failures import Failure
from vlm_operator.engines.metrics import Metrics
from vlm_operator.engines.question import Question
from vlm_operator.engines.vllm.arguments import arguments
from vlm_operator.engines.vllm.checks import check
from vlm_operator.engines.vllm.failures import failure
from vlm_operator.engines.vllm.observing import drain, metrics, question
from vlm_operator.engines.vllm.resources import memory_request
from vlm_operator.engines.vllm.sizing import engine_facts
from vlm_operator.engines.vllm.versions import image_of, version_of
from vlm_operator.sizing.engine_facts import EngineFacts

VERIFICATION_SCRIPT = "verify_engine.py"
DRAINING_SCRIPT = "vlm_draining.py"


class Vllm:
    """The engine vLLM. Without state."""

    template = "vllm/pod.yaml.j2"

    def version(self, inputs: PodInputs) -> str:
        """The given version, else the newest that is known."""
        return version_of(inputs.engine)

    def check(self, inputs: PodInputs, *, having: tuple[str, ...] | None = None) -> tuple[Finding, ...]:
        """What is wrong with the inputs, before anything is created."""
        return check(inputs, having=having)

    def sizing(self, inputs: PodInputs) -> EngineFacts:
        """What the sizing must know about this version and these arguments."""
        return engine_facts(inputs)

    def resolve(self, inputs: PodInputs, *, tensor_parallel: int | None = None) -> Resolved:
        """Choose version and image and spell the arguments."""
        given = inputs.parallelism.tensor
        tensor = given if isinstance(given, int) else tensor_parallel
        if tensor is None:
            raise ValueError("the tensor-parallel degree must be known before arguments are spelled")
        return Resolved(
            inputs=inputs,
            engine_version=version_of(inputs.engine),
            image=image_of(inputs.engine),
            tensor_parallel=tensor,
            host_memory=memory_request(inputs, tensor_parallel=tensor),
            args=arguments(inputs, tensor_parallel=tensor),
        )

    def render_pod(self, resolved: Resolved, identity: PodIdentity) -> dict[str, Any]:
        """The manifest of a pod."""
        from vlm_operator.engines.vllm import pod  # noqa: PLC0415 # a spec is judged quickly without a template engine

        return pod.render_pod(self.template, resolved, identity)

    def scripts(self) -> dict[str, str]:
        """What runs inside the engine's container: the verification, by the startup probe, and the middleware."""
        return {name: _script(name) for name in (VERIFICATION_SCRIPT, DRAINING_SCRIPT)}

    def metrics(self, version: str) -> Metrics:
        """What a version calls its own metrics."""
        return metrics(version)

    def drain(self, version: str) -> Draining:
        """How a replica of a version comes to an end."""
        return drain(version)

    def question(self, version: str, *, model: str) -> Question:  # noqa: ARG002 # the same in all versions
        """The smallest request."""
        return question(model)

    def failure(self, exit_code: int | None, text: str) -> Failure | None:
        """Why its container ended."""
        return failure(exit_code, text)


@cache
def _script(name: str) -> str:
    return (Path(__file__).parent / "scripts" / name).read_text(encoding="utf-8")
