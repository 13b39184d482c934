"""vLLM as an engine: the four questions of `engines.base.Engine`, each answered by a module of this package."""

from functools import cache
from importlib.resources import files
from typing import Any

from vlm_operator.api.findings import Finding
from vlm_operator.engines.base import PodIdentity, PodInputs, Resolved
from vlm_operator.engines.vllm.arguments import arguments
from vlm_operator.engines.vllm.checks import check
from vlm_operator.engines.vllm.resources import memory_request
from vlm_operator.engines.vllm.versions import image_of, version_of

VERIFICATION_SCRIPT = "verify_engine.py"


class Vllm:
    """The engine vLLM. Without state."""

    def check(self, inputs: PodInputs) -> tuple[Finding, ...]:
        """What is wrong with the inputs, before anything is created."""
        return check(inputs)

    def version(self, inputs: PodInputs) -> str:
        """The given version, else the newest that is known."""
        return version_of(inputs.engine)

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

        return pod.render_pod(resolved, identity)

    def scripts(self) -> dict[str, str]:
        """The verification script, which the startup probe runs inside the engine's container."""
        return {VERIFICATION_SCRIPT: _script(VERIFICATION_SCRIPT)}


@cache
def _script(name: str) -> str:
    return (files("vlm_operator.engines.vllm") / "scripts" / name).read_text(encoding="utf-8")
