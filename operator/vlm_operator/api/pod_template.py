"""The part of a pod that a user may shape: a typed, safe subset of the pod template.

What could widen a pod's rights (host namespaces, host paths, privileges, capabilities, root) has no field here.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from vlm_operator.api.base import ApiModel, Rule, no_items
from vlm_operator.api.lists import ATOMIC, MAP_BY_NAME
from vlm_operator.api.scalars import LabelKey, LabelValue, ObjectName, Quantity, quantity_value

RESERVED_PREFIXES = ("vlm.dev/", "app.kubernetes.io/", "kubernetes.io/", "argocd.argoproj.io/")
PROFILE_PREFIXES = (
    "container.apparmor.security.beta.kubernetes.io/",
    "container.seccomp.security.alpha.kubernetes.io/",
    "seccomp.security.alpha.kubernetes.io/",
)
"""Annotations by which older Kubernetes takes profiles; the API server still turns that of AppArmor into its field."""

AnnotationText = Annotated[str, StringConstraints(max_length=4096)]
Labels = Annotated[dict[LabelKey, LabelValue], Field(max_length=32)]
Weight = Annotated[int, Field(ge=1, le=100)]
UserId = Annotated[int, Field(ge=1, le=2_147_483_647)]


def no_key_starts_with(prefixes: tuple[str, ...], *, field: str, message: str) -> Rule:
    """A rule about the keys of a map, whose name in JSON is that in Python."""
    starts = " || ".join(f"key.startsWith('{prefix}')" for prefix in prefixes)
    return Rule(
        cel=f"!has(self.{field}) || !self.{field}.exists(key, {starts})",
        message=message,
        holds=lambda owner: not any(key.startswith(prefixes) for key in getattr(owner, field)),
        field_path=f".{field}",
    )


def not_reserved(field: str) -> Rule:
    """The rule that keeps users from the keys of others."""
    message = f"keys must not start with {', '.join(RESERVED_PREFIXES)}: they are not for users"
    return no_key_starts_with(RESERVED_PREFIXES, field=field, message=message)


class PodMetadata(ApiModel):
    """Labels and annotations of the replicas."""

    labels: Labels = Field(default_factory=dict)
    """Further labels."""
    annotations: Annotated[dict[LabelKey, AnnotationText], Field(max_length=32)] = Field(default_factory=dict)
    """Further annotations."""

    rules: ClassVar[tuple[Rule, ...]] = (
        not_reserved("labels"),
        not_reserved("annotations"),
        no_key_starts_with(
            PROFILE_PREFIXES,
            field="annotations",
            message="AppArmor and seccomp profiles cannot be chosen: the replicas have those of the container runtime",
        ),
    )


class Toleration(ApiModel):
    """A taint that the replicas tolerate."""

    key: LabelKey | None = None
    """Key of the taint. Without it operator must be Exists, and every taint is tolerated."""
    operator: Literal["Exists", "Equal"] | None = None
    """How value is compared. Default: Equal."""
    value: LabelValue | None = None
    """Value of the taint."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint. Default: every effect."""
    toleration_seconds: Annotated[int, Field(ge=0, le=604_800)] | None = None
    """How long a NoExecute taint is tolerated, in seconds. Default: for ever."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.key) || (has(self.operator) && self.operator == 'Exists')",
            message="a toleration without a key needs operator: Exists",
            holds=lambda t: t.key is not None or t.operator == "Exists",
        ),
        Rule(
            cel="!has(self.operator) || self.operator != 'Exists' || !has(self.value) || self.value == ''",
            message="a toleration with operator Exists takes no value",
            holds=lambda t: t.operator != "Exists" or not t.value,
        ),
        Rule(
            cel="!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
            message="tolerationSeconds goes only with effect: NoExecute",
            holds=lambda t: t.toleration_seconds is None or t.effect == "NoExecute",
        ),
    )


class NodeRequirement(ApiModel):
    """One requirement on a node's labels."""

    key: LabelKey
    """Label of the node."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    """How the values are compared."""
    values: Annotated[list[LabelValue], Field(max_length=64), ATOMIC] = Field(default_factory=no_items)
    """Values to compare with: some for In and NotIn, none for Exists and DoesNotExist, one whole number for Gt and
    Lt."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=(
                "(self.operator in ['Exists', 'DoesNotExist']) ? (!has(self.values) || self.values.size() == 0) :"
                " (self.operator in ['In', 'NotIn']) ? (has(self.values) && self.values.size() > 0) :"
                " (has(self.values) && self.values.size() == 1 && self.values[0].matches('^-?[0-9]{1,18}$'))"
            ),
            message="In and NotIn need values, Exists and DoesNotExist take none, Gt and Lt take one whole number",
            holds=lambda r: _values_fit(r.operator, r.values),
        ),
    )


def _values_fit(operator: str, values: list[str]) -> bool:
    if operator in {"Exists", "DoesNotExist"}:
        return not values
    if operator in {"In", "NotIn"}:
        return bool(values)
    return len(values) == 1 and values[0].removeprefix("-").isdecimal() and len(values[0].removeprefix("-")) <= 18


class NodeSelectorTerm(ApiModel):
    """Requirements that must all hold."""

    match_expressions: Annotated[list[NodeRequirement], Field(min_length=1, max_length=16), ATOMIC]
    """The requirements."""


class NodeSelector(ApiModel):
    """Terms of which one must hold."""

    node_selector_terms: Annotated[list[NodeSelectorTerm], Field(min_length=1, max_length=8), ATOMIC]
    """The terms."""


class PreferredNodes(ApiModel):
    """A preference among nodes."""

    weight: Weight
    """Weight of the preference."""
    preference: NodeSelectorTerm
    """The preferred nodes."""


class NodeAffinity(ApiModel):
    """Nodes on which replicas may or should run."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    """Nodes on which replicas may run."""
    preferred_during_scheduling_ignored_during_execution: Annotated[
        list[PreferredNodes], Field(max_length=16), ATOMIC
    ] = Field(default_factory=no_items)
    """Nodes on which replicas should run."""


class LabelRequirement(ApiModel):
    """One requirement on a pod's labels."""

    key: LabelKey
    """Label of the pod."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How the values are compared."""
    values: Annotated[list[LabelValue], Field(max_length=64), ATOMIC] = Field(default_factory=no_items)
    """Values to compare with: some for In and NotIn, none for Exists and DoesNotExist."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=(
                "(self.operator in ['In', 'NotIn']) ? (has(self.values) && self.values.size() > 0)"
                " : (!has(self.values) || self.values.size() == 0)"
            ),
            message="In and NotIn need values, Exists and DoesNotExist take none",
            holds=lambda r: _values_fit(r.operator, r.values),
        ),
    )


class LabelSelector(ApiModel):
    """Selects pods by their labels."""

    match_labels: Labels = Field(default_factory=dict)
    """Labels that the pods must have."""
    match_expressions: Annotated[list[LabelRequirement], Field(max_length=16), ATOMIC] = Field(default_factory=no_items)
    """Further requirements."""


class PodAffinityTerm(ApiModel):
    """Pods to be near to or away from."""

    label_selector: LabelSelector
    """The pods, in the namespace of the deployment."""
    topology_key: LabelKey
    """Node label that says what counts as the same place."""


class PreferredPods(ApiModel):
    """A preference about other pods."""

    weight: Weight
    """Weight of the preference."""
    pod_affinity_term: PodAffinityTerm
    """The pods."""


class PodAffinity(ApiModel):
    """Nearness to other pods, or distance from them."""

    required_during_scheduling_ignored_during_execution: Annotated[
        list[PodAffinityTerm], Field(max_length=16), ATOMIC
    ] = Field(default_factory=no_items)
    """Must hold."""
    preferred_during_scheduling_ignored_during_execution: Annotated[
        list[PreferredPods], Field(max_length=16), ATOMIC
    ] = Field(default_factory=no_items)
    """Should hold."""


class Affinity(ApiModel):
    """Where replicas run in relation to nodes and other pods."""

    node_affinity: NodeAffinity | None = None
    """In relation to nodes. It holds together with gpu.products."""
    pod_affinity: PodAffinity | None = None
    """Near to pods."""
    pod_anti_affinity: PodAffinity | None = None
    """Away from pods."""


class TopologySpreadConstraint(ApiModel):
    """How replicas are spread. Without labelSelector the replicas of this deployment are meant."""

    max_skew: Annotated[int, Field(ge=1, le=1000)]
    """Largest difference between two places."""
    topology_key: LabelKey
    """Node label that says what counts as the same place."""
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    """What happens when the spread cannot be kept."""
    label_selector: LabelSelector | None = None
    """The pods that are counted."""


class LocalObjectReference(ApiModel):
    """An object in the namespace of the deployment."""

    name: ObjectName
    """Its name."""


class PodSecurityContext(ApiModel):
    """User and groups of the replicas; everything else stays as the restricted Pod Security Standard wants it."""

    run_as_user: UserId | None = None
    """User id. Default: 10001."""
    run_as_group: UserId | None = None
    """Group id. Default: 10001."""
    fs_group: UserId | None = None
    """Group that owns mounted volumes. Default: 10001."""
    fs_group_change_policy: Literal["OnRootMismatch", "Always"] | None = None
    """When the ownership of volumes is changed. Default: OnRootMismatch, since weights are large."""
    supplemental_groups: Annotated[list[UserId], Field(max_length=16), ATOMIC] = Field(default_factory=no_items)
    """Further groups."""


ResourceMap = Annotated[dict[LabelKey, Quantity], Field(max_length=16)]


STANDARD_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_STANDARD_CEL = f"[{', '.join(repr(name) for name in STANDARD_RESOURCES)}]"


def _only_standard(resources: "Resources") -> bool:
    return resources.requests.keys() <= set(STANDARD_RESOURCES)


def _limits_exist(resources: "Resources") -> bool:
    return all(name in STANDARD_RESOURCES or name.startswith("hugepages-") or "/" in name for name in resources.limits)


def _requests_within_limits(resources: "Resources") -> bool:
    shared = resources.requests.keys() & resources.limits.keys()
    return all(quantity_value(resources.requests[name]) <= quantity_value(resources.limits[name]) for name in shared)


class Resources(ApiModel):
    """CPU, memory and other resources of the engine container, without GPUs: parallelism decides those."""

    requests: ResourceMap = Field(default_factory=dict)
    """What is reserved on the node."""
    limits: ResourceMap = Field(default_factory=dict)
    """What must not be exceeded."""

    rules: ClassVar[tuple[Rule, ...]] = (
        # Kubernetes wants equal requests and limits of devices and huge pages, and copies a limit that stands alone.
        Rule(
            cel=f"!has(self.requests) || self.requests.all(name, name in {_STANDARD_CEL})",
            message="requests are for cpu, memory and ephemeral-storage; set anything else in limits alone",
            holds=_only_standard,
            field_path=".requests",
        ),
        Rule(
            cel=(
                f"!has(self.limits) || self.limits.all(name, name in {_STANDARD_CEL}"
                " || name.startsWith('hugepages-') || name.contains('/'))"
            ),
            message="a resource is cpu, memory, ephemeral-storage, hugepages-... or has a domain (example.com/device)",
            holds=_limits_exist,
            field_path=".limits",
        ),
        # Over the three names, not over the map: its values could be 3 MB each, says the cost estimate before 1.34.
        Rule(
            cel=(
                f"!has(self.requests) || !has(self.limits) || {_STANDARD_CEL}.all(name,"
                " !(name in self.requests) || !isQuantity(string(self.requests[name]))"
                " || !(name in self.limits) || !isQuantity(string(self.limits[name]))"
                " || quantity(string(self.requests[name])).compareTo(quantity(string(self.limits[name]))) <= 0)"
            ),
            message="a request must not be greater than its limit",
            holds=_requests_within_limits,
        ),
    )


class CompileCache(ApiModel):
    """Where compiled kernels are kept, so that the next replica starts faster."""

    claim_name: ObjectName | None = None
    """A claim shared by the replicas."""


class PodTemplate(ApiModel):
    """What the replicas' pods have beyond what the operator gives them."""

    metadata: PodMetadata | None = None
    """Labels and annotations."""
    node_selector: Labels = Field(default_factory=dict)
    """Labels that the node must have."""
    tolerations: Annotated[list[Toleration], Field(max_length=32), ATOMIC] = Field(default_factory=no_items)
    """Taints that the replicas tolerate."""
    affinity: Affinity | None = None
    """Where replicas run in relation to nodes and other pods."""
    topology_spread_constraints: Annotated[list[TopologySpreadConstraint], Field(max_length=8), ATOMIC] = Field(
        default_factory=no_items
    )
    """How replicas are spread. Default: softly over nodes."""
    priority_class_name: ObjectName | None = None
    """Priority of the replicas."""
    runtime_class_name: ObjectName | None = None
    """Container runtime of the replicas, where the GPU runtime is not the default."""
    image_pull_secrets: Annotated[list[LocalObjectReference], Field(max_length=16), MAP_BY_NAME] = Field(
        default_factory=no_items
    )
    """Secrets with registry credentials."""
    security_context: PodSecurityContext | None = None
    """User and groups."""
    service_account_name: ObjectName | None = None
    """ServiceAccount of the replicas. Its token is not mounted. Default: default."""
    resources: Resources | None = None
    """CPU, memory and other resources of the engine container. Default: requests of 4 CPUs and 16Gi of memory per
    GPU."""
    compile_cache: CompileCache | None = None
    """Where compiled kernels are kept."""
