"""The `spec` of a VLMDeployment, top level."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from vlm_operator.api.base import ApiModel, Rule
from vlm_operator.api.engine import Engine
from vlm_operator.api.hardware import Gpu, Parallelism
from vlm_operator.api.model import Model
from vlm_operator.api.multimodal import Multimodal
from vlm_operator.api.pod_template import AnnotationText, PodTemplate, not_reserved
from vlm_operator.api.rollout import Rollout
from vlm_operator.api.scalars import LabelKey, duration
from vlm_operator.api.scaling import Count, Scaling, WarmPool
from vlm_operator.api.weights import Weights


class Drain(ApiModel):
    """How replicas leave."""

    timeout: duration("0s", "24h") = "5m"  # type: ignore[valid-type] # the function returns a type
    """Longest time that a leaving replica may take to finish its requests. Default: 5m."""


class Service(ApiModel):
    """The Service through which clients reach the serving replicas. It is named like the deployment."""

    type: Literal["ClusterIP"] = "ClusterIP"
    """Kind of Service. Default: ClusterIP; put an Ingress or Gateway route in front of it for clients outside the
    cluster."""
    port: Annotated[int, Field(ge=1, le=65535)] = 8000
    """Port of the Service. Default: 8000."""
    annotations: Annotated[dict[LabelKey, AnnotationText], Field(max_length=32)] = Field(default_factory=dict)
    """Annotations of the Service."""

    rules: ClassVar[tuple[Rule, ...]] = (not_reserved("annotations"),)


def _pool_fits(spec: Any) -> bool:
    if spec.scaling is None or spec.warm_pool is None:
        return True
    return bool((spec.scaling.min_replicas or 1) + spec.warm_pool.size <= spec.scaling.max_replicas)


def _gpus_left_to_parallelism(spec: Any) -> bool:
    if spec.pod_template is None or spec.pod_template.resources is None:
        return True
    resources = spec.pod_template.resources
    return spec.gpu.resource_name not in resources.requests.keys() | resources.limits.keys()


class VLMDeploymentSpec(ApiModel):
    """What is wanted: a model, its weights, the GPUs it runs on and how many replicas there are."""

    model: Model
    """The model to serve."""
    weights: Weights
    """Where the weights of the model lie."""
    engine: Engine = Field(default_factory=Engine.defaults)
    """The inference engine."""
    parallelism: Parallelism = Field(default_factory=Parallelism.defaults)
    """How one replica is spread over GPUs."""
    gpu: Gpu = Field(default_factory=Gpu.defaults)
    """Which GPUs a replica asks for."""
    multimodal: Multimodal = Field(default_factory=Multimodal.defaults)
    """How images and videos are taken in."""
    checks: Literal["Enforce", "Warn"] | None = None
    """What a finding of the sizing does: refuse the new revision (Enforce), or warn (Warn). Default: Enforce."""
    replicas: Count = 1
    """Number of serving replicas without scaling or in Advisory mode, the starting number in Active mode. 0 turns
    everything off. Default: 1."""
    scaling: Scaling | None = None
    """Scaling by the operator. Default: none, the number is `replicas`."""
    warm_pool: WarmPool | None = None
    """Replicas that are loaded before they are needed."""
    rollout: Rollout | None = None
    """How a new revision replaces the old one."""
    drain: Drain = Field(default_factory=Drain.defaults)
    """How replicas leave."""
    pod_disruption_budget: Literal["Managed", "None"] | None = None
    """Whether the operator keeps a PodDisruptionBudget. Default: Managed."""
    service: Service = Field(default_factory=Service.defaults)
    """The Service in front of the replicas."""
    pod_template: PodTemplate | None = None
    """What the replicas' pods have beyond what the operator gives them."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=(
                "!has(self.scaling) || !has(self.warmPool) || self.warmPool.size +"
                " (has(self.scaling.minReplicas) ? self.scaling.minReplicas : 1) <= self.scaling.maxReplicas"
            ),
            message="scaling.minReplicas (default 1) plus warmPool.size must not be greater than scaling.maxReplicas",
            holds=_pool_fits,
            field_path=".warmPool.size",
        ),
        Rule(
            cel=(
                "!has(self.podTemplate) || !has(self.podTemplate.resources)"
                " || !(has(self.podTemplate.resources.requests)"
                " && self.gpu.resourceName in self.podTemplate.resources.requests"
                " || has(self.podTemplate.resources.limits)"
                " && self.gpu.resourceName in self.podTemplate.resources.limits)"
            ),
            message="podTemplate.resources must not name the GPU resource: parallelism decides the number of GPUs",
            holds=_gpus_left_to_parallelism,
            field_path=".podTemplate.resources",
        ),
    )
