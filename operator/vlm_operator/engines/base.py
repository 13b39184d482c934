"""The interface of an engine and the values that pass through it. What it tells of a running one is in modules of their own."""

from dataclasses import dataclass
from typing import Any, Protocol

from vlm_operator.api.base import ApiModel
from vlm_operator.api.engine import Engine as EngineSpec
from vlm_operator.api.findings import Finding
from vlm_operator.api.hardware import Gpu, Parallelism
from vlm_operator.api.model import Model
from vlm_operator.api.multimodal import Multimodal
from vlm_operator.api.names import SLOT_LABEL
from vlm_operator.api.pod_template import PodTemplate
from vlm_operator.api.spec import Drain, VLMDeploymentSpec
from vlm_operator.api.weights import Weights
from vlm_operator.engines.drain import Draining
from vlm_operator.engines.failures import Failure
from vlm_operator.engines.metrics import Metrics
from vlm_operator.engines.question import Question
from vlm_operator.sizing.engine_facts import EngineFacts

HTTP_PORT = 8000
"""Port of the engine inside the pod."""
CONTAINER = "engine"
"""Name of the engine's container, at which the operator looks."""


class PodInputs(ApiModel):
    """The parts of a spec that shape a pod. A change in one of them makes a new revision; nothing else does."""

    model: Model
    weights: Weights
    engine: EngineSpec
    parallelism: Parallelism
    gpu: Gpu
    multimodal: Multimodal
    drain: Drain
    pod_template: PodTemplate | None = None
    restarted_at: str | None = None
    """Value of the annotation `vlm.dev/restarted-at`: a restart on demand."""

    @classmethod
    def of(cls, spec: VLMDeploymentSpec, *, restarted_at: str | None = None) -> "PodInputs":
        """The inputs of a spec."""
        shared = {name: getattr(spec, name) for name in cls.model_fields if name != "restarted_at"}
        return cls.model_construct(**shared, restarted_at=restarted_at)


class Resolved(ApiModel):
    """A revision as it is stored: the inputs and everything that the operator chose for them.

    Every pod of the revision is rendered from this value, so that an operator with other defaults neither restarts pods
    nor mixes versions within a revision.
    """

    inputs: PodInputs
    engine_version: str
    image: str
    tensor_parallel: int
    host_memory: str
    """Memory that the pod requests where the inputs do not say, as a quantity (`16Gi`)."""
    args: list[str]
    """Arguments of the engine's server, without the program's name."""


@dataclass(frozen=True, kw_only=True)
class PodIdentity:
    """Which pod of which deployment is rendered."""

    deployment: str
    namespace: str
    uid: str
    """Uid of the VLMDeployment, its owner."""
    revision: str
    slot: int
    role: str

    @property
    def name(self) -> str:
        """Name of the pod: `<deployment>-<revision>-<slot>`."""
        return f"{self.deployment}-{self.revision}-{self.slot}"


def sibling(pod: dict[str, Any], identity: PodIdentity) -> dict[str, Any]:
    """The pod of another slot of the same revision and role: it differs in name and slot alone."""
    metadata = pod["metadata"]
    labels = metadata["labels"] | {SLOT_LABEL: str(identity.slot)}
    return pod | {"metadata": metadata | {"name": identity.name, "labels": labels}}


class Engine(Protocol):
    """What the operator needs to know about an engine. `version` is always one that `version()` gives."""

    @property
    def template(self) -> str:
        """The template of its pods, as a path below `templates/`."""
        ...

    def version(self, inputs: PodInputs) -> str:
        """The version of the engine that the inputs ask for (`0.33`)."""
        ...

    def check(self, inputs: PodInputs, *, having: tuple[str, ...] | None = None) -> tuple[Finding, ...]:
        """What is wrong with the inputs for this engine, before anything is created.

        `having` are the supported versions with the model's class, oldest first; None when that is not known.
        """
        ...

    def sizing(self, inputs: PodInputs) -> EngineFacts:
        """What the sizing must know about the engine in this version and with these arguments."""
        ...

    def resolve(self, inputs: PodInputs, *, tensor_parallel: int | None = None) -> Resolved:
        """Choose what the inputs leave open (version, image) and spell the arguments.

        `tensor_parallel` is the degree for Auto. Raises ValueError where it is needed and None.
        """
        ...

    def render_pod(self, resolved: Resolved, identity: PodIdentity) -> dict[str, Any]:
        """The manifest of a pod, probes included. For other slots of the same revision and role see `sibling`."""
        ...

    def scripts(self) -> dict[str, str]:
        """Files that the pods mount from the deployment's ConfigMap, by name."""
        ...

    def metrics(self, version: str) -> Metrics:
        """What a version calls its own metrics."""
        ...

    def drain(self, version: str) -> Draining:
        """How a replica of a version comes to an end."""
        ...

    def question(self, version: str, *, model: str) -> Question:
        """The smallest request for a model by its first served name, text alone."""
        ...

    def failure(self, exit_code: int | None, text: str) -> Failure | None:
        """Why its container ended, by the termination message or the end of its log; None when that is not known."""
        ...
