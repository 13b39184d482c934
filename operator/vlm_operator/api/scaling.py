"""How many replicas there are, how they are kept warm and how a new revision reaches them."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from vlm_operator.api import patterns
from vlm_operator.api.base import ApiModel, Rule, no_items
from vlm_operator.api.lists import ATOMIC, MAP_BY_NAME
from vlm_operator.api.scalars import DnsLabel, Quantity, matching

MAX_REPLICAS = 1000

Count = Annotated[int, Field(ge=0, le=MAX_REPLICAS)]
PositiveCount = Annotated[int, Field(ge=1, le=MAX_REPLICAS)]
Percent = Annotated[int, Field(ge=1, le=100)]
PerReplica = Annotated[int, Field(ge=1, le=1_000_000)]


class CustomTarget(ApiModel):
    """A target on a metric of your own."""

    name: DnsLabel
    """Name shown in decisions."""
    query: Annotated[str, StringConstraints(min_length=1, max_length=2048)]
    """PromQL that returns one number for the deployment."""
    target: Quantity
    """Wanted value per serving replica."""


class Targets(ApiModel):
    """Wanted values per ready serving replica."""

    queue_depth: PerReplica | None = None
    """Waiting requests."""
    running_requests: PerReplica | None = None
    """Running requests."""
    gpu_utilization: Percent | None = None
    """GPU utilisation in percent. It saturates with a single request, so it rarely makes a good target alone."""
    kv_cache_utilization: Percent | None = None
    """Used share of the KV cache in percent."""
    custom: Annotated[list[CustomTarget], Field(max_length=8), MAP_BY_NAME] = Field(default_factory=no_items)
    """Metrics of your own."""


class ScalingPolicyRule(ApiModel):
    """One limit on the pace of scaling, as in autoscaling/v2."""

    type: Literal["Pods", "Percent"]
    """Unit of value."""
    value: Annotated[int, Field(ge=1, le=10_000)]
    """Largest change within periodSeconds."""
    period_seconds: Annotated[int, Field(ge=1, le=1800)]
    """Window in seconds."""


class ScalingRules(ApiModel):
    """Pace of scaling in one direction, as in autoscaling/v2."""

    stabilization_window_seconds: Annotated[int, Field(ge=0, le=3600)] | None = None
    """Seconds over which the safest of past recommendations wins."""
    select_policy: Literal["Max", "Min", "Disabled"] | None = None
    """Which of the policies wins."""
    policies: Annotated[list[ScalingPolicyRule], Field(max_length=16), ATOMIC] = Field(default_factory=no_items)
    """Limits on the pace."""
    tolerance: Quantity | None = None
    """Relative deviation that is ignored, for example 0.1."""


class Behavior(ApiModel):
    """Pace of scaling, with the fields of autoscaling/v2."""

    scale_up: ScalingRules | None = None
    """Pace of scaling up."""
    scale_down: ScalingRules | None = None
    """Pace of scaling down."""


class Schedule(ApiModel):
    """A floor under the replicas from a point in time until the next schedule fires."""

    schedule: Annotated[str, matching(patterns.CRON, max_length=128)]
    """Cron expression with five fields."""
    time_zone: Annotated[str, matching(patterns.TIME_ZONE, max_length=64)] | None = None
    """IANA time zone (`Europe/Berlin`). Default: UTC."""
    min_replicas: Count
    """Floor from then on."""


class Scaling(ApiModel):
    """Scaling by the operator."""

    mode: Literal["Active", "Advisory"] | None = None
    """Act on decisions (Active), or only report them (Advisory). Default: Active."""
    policy: Literal["WorkBased", "Targets"] | None = None
    """WorkBased estimates the work and takes the targets as further candidates; Targets is the arithmetic of the
    Horizontal Pod Autoscaler on the given targets. Default: WorkBased."""
    min_replicas: PositiveCount | None = None
    """Fewest serving replicas. Default: 1."""
    max_replicas: PositiveCount
    """Most pods of the deployment: loading, serving, warm and draining together."""
    targets: Targets | None = None
    """Wanted values per serving replica."""
    behavior: Behavior | None = None
    """Pace of scaling."""
    schedules: Annotated[list[Schedule], Field(max_length=32), ATOMIC] = Field(default_factory=no_items)
    """Floors by time of day."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",
            message="minReplicas must not be greater than maxReplicas",
            holds=lambda s: (s.min_replicas or 1) <= s.max_replicas,
            field_path=".minReplicas",
            values=("min_replicas", "max_replicas"),
        ),
    )


class WarmPool(ApiModel):
    """Replicas that are loaded before they are needed."""

    size: Count
    """Number of warm replicas."""
    mode: Literal["InRotation", "Standby"] | None = None
    """Warm replicas serve with the others (InRotation), or wait without traffic (Standby). Default: InRotation."""
