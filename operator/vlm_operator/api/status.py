"""The `status` of a VLMDeployment. The operator alone writes it."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from vlm_operator.api import patterns
from vlm_operator.api.base import ApiModel, no_items
from vlm_operator.api.lists import ATOMIC, MAP_BY_TYPE
from vlm_operator.api.scalars import matching

Text = Annotated[str, StringConstraints(max_length=1024)]
Word = Annotated[str, StringConstraints(max_length=256)]
Time = Annotated[str, StringConstraints(max_length=64), Field(json_schema_extra={"format": "date-time"})]
Number = Annotated[int, Field(ge=0, le=1_000_000)]


class Condition(ApiModel):
    """One aspect of the deployment."""

    type: Annotated[str, matching(patterns.CAMEL_CASE, max_length=64)]
    """Name of the aspect."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    reason: Annotated[str, matching(patterns.CAMEL_CASE, max_length=128)]
    """Why, in one word."""
    message: Annotated[str, StringConstraints(max_length=4096)]
    """Why, in a sentence."""
    last_transition_time: Time
    """When the status last changed."""
    observed_generation: Annotated[int, Field(ge=0)]
    """The generation of the spec that this was judged by."""


class Failure(ApiModel):
    """A slot whose replicas keep failing."""

    slot: Number
    """Number of the slot, the last part of the pod's name."""
    revision: Word | None = None
    """Revision of the replicas that failed."""
    reason: Word
    """Why its last replica failed."""
    message: Text | None = None
    """The evidence."""
    count: Number
    """Failures in a row."""
    next_retry: Time | None = None
    """When the next replica is created."""
    permanent: bool | None = None
    """Waiting cannot mend the cause: something has to be changed first."""


class ScalingInput(ApiModel):
    """One signal behind a decision."""

    name: Word
    """Name of the signal."""
    value: Word | None = None
    """Its value, absent when it could not be read."""
    age_seconds: Number | None = None
    """Age of the value."""


class ScalingLearned(ApiModel):
    """What was learned about this deployment."""

    start_seconds: Number | None = None
    """Time from creation to serving."""
    capacity_per_replica: Word | None = None
    """Requests per second that one replica sustains."""


class ScalingStatus(ApiModel):
    """The last decision on the number of replicas."""

    desired: Number
    """Wanted replicas, also in Advisory mode."""
    reason: Word
    """What decided, in one word."""
    message: Text
    """What decided, in a sentence."""
    inputs: Annotated[list[ScalingInput], Field(max_length=16), ATOMIC] = Field(default_factory=no_items)
    """The signals behind it."""
    last_scale_time: Time | None = None
    """When the size in force last changed."""
    starting_replicas: Number | None = None
    """spec.replicas when scaling took over."""
    learned: ScalingLearned | None = None
    """What was learned."""


class RolloutStatus(ApiModel):
    """A rollout under way."""

    phase: Word
    """What it is doing."""
    message: Text | None = None
    """What it waits for."""
    updated: Number = 0
    """Replicas of the new revision."""
    ready: Number = 0
    """Ready replicas of the new revision."""
    last_progress_time: Time | None = None
    """When it last got on: spec.rollout.progressDeadline runs from here."""
    waiting_since: Time | None = None
    """Since when its time stands still, because it waits for GPUs or is paused."""


class WeightsStatus(ApiModel):
    """What is known about the weights."""

    claim_name: Word | None = None
    """The claim that holds them."""
    phase: Word | None = None
    """Phase of the claim."""


class SizingStatus(ApiModel):
    """The arithmetic of the current revision, per GPU."""

    weights_gi_b: Word | None = Field(default=None, alias="weightsGiB")
    """Memory of the weights."""
    kv_cache_gi_b: Word | None = Field(default=None, alias="kvCacheGiB")
    """Memory left for the KV cache."""
    kv_cache_tokens: Annotated[int, Field(ge=0)] | None = None
    """Tokens that fit into the KV cache of a replica."""
    reported_kv_cache_tokens: Annotated[int, Field(ge=0)] | None = None
    """The same as the first ready replica of the revision says itself."""
    reported_revision: Word | None = None
    """The revision of that replica."""


class VLMDeploymentStatus(ApiModel):
    """What is."""

    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """The generation of the spec that this status describes."""
    selector: Annotated[str, StringConstraints(max_length=512)] | None = None
    """Label selector of the serving replicas, for the scale subresource."""
    replicas: Number | None = None
    """Live pods with the role serving."""
    ready_replicas: Number | None = None
    """Ready pods of every role."""
    serving_replicas: Number | None = None
    """Ready pods with the role serving."""
    warm_replicas: Number | None = None
    """Ready pods beyond the serving ones that are needed."""
    draining_replicas: Number | None = None
    """Pods that finish their requests before they go."""
    desired_replicas: Number | None = None
    """The size in force."""
    gpus: Number | None = None
    """GPUs held by the pods of the deployment."""
    current_revision: Word | None = None
    """The revision that is fully rolled out."""
    updated_revision: Word | None = None
    """The revision that is wanted."""
    conditions: Annotated[list[Condition], Field(max_length=16), MAP_BY_TYPE] = Field(default_factory=no_items)
    """Accepted, WeightsReady, Progressing, Available, Ready; ScalingActive and WarmPoolReady where configured."""
    rollout: RolloutStatus | None = None
    """A rollout under way."""
    scaling: ScalingStatus | None = None
    """The last decision on the number of replicas."""
    failures: Annotated[list[Failure], Field(max_length=8), ATOMIC] = Field(default_factory=no_items)
    """Slots whose replicas keep failing, the worst first."""
    weights: WeightsStatus | None = None
    """What is known about the weights."""
    sizing: SizingStatus | None = None
    """The arithmetic of the current revision."""
