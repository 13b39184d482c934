"""What is known about a deployment and its replicas at one moment. Frozen values; times are seconds since the epoch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vlm_operator.api.findings import Finding
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.engines.base import PodInputs, Resolved
from vlm_operator.engines.failures import Waiting
from vlm_operator.replicas.ownership import Ownership
from vlm_operator.replicas.settings import Settings
from vlm_operator.sizing.assess import Assessment

WAITING_FOR_GPU = "WaitingForGPU"
"""No node has the GPUs for one replica more than wanted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trouble:
    """Why a replica does not serve, in the words of whoever refused it."""

    reason: str
    message: str
    advice: str = ""
    """What to do about it, where that can be told."""
    waiting: Waiting = Waiting.MAY_HELP
    """Whether it may pass though nobody changes anything."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Replica:
    """One pod."""

    name: str
    uid: str
    resource_version: str
    slot: int
    revision: str
    role: str
    ownership: Ownership
    created_at: float
    scheduled: bool
    started: bool
    """The engine has been verified since its container last started."""
    ready: bool
    ready_since: float | None
    terminating: bool
    ended: bool
    """Its containers will not run again: the pod failed, was evicted, or finished."""
    labels: Mapping[str, str]
    image: str
    trouble: Trouble | None
    restarts: int = 0
    """How often its engine was started again on the GPU that it has."""
    scheduled_at: float | None = None
    """When it got its node."""
    not_ready_since: float | None = None
    drain_started_at: float | None = None
    """Since when it finishes its requests; None where its role is another."""
    gone_by: float | None = None
    """When a terminating one has ended at the latest, if its node lives."""
    node: str = ""
    cordoned: bool = False
    """Its node is to be emptied: it takes no new pods."""
    address: str = ""
    """IP address of the pod."""
    routed: bool | None = None
    """Whether clients are still sent to it; None: not known."""
    in_flight: int | None = None
    """Requests that it works on or holds, as it said itself; None: not known, which is to be taken for busy."""
    read_at: float | None = None
    """When it said so."""
    sick: str = ""
    """What it did when it was asked on standby, if it did not answer as it should."""
    node_is_added: bool | None = None
    """It has no node, and an autoscaler has said that one comes for it; None: that is not known yet."""
    in_creation: bool = False
    """It has a node, and no container yet. What holds that up stands in its events, which are not watched."""

    @property
    def live(self) -> bool:
        """Ours, and neither leaving nor ended."""
        return self.ownership is Ownership.OURS and not self.terminating and not self.ended

    @property
    def loading(self) -> bool:
        """It has not answered since its engine last started, and so holds no requests."""
        return not self.ready and not self.started

    @property
    def over(self) -> bool:
        """Ours, ended, and there until somebody deletes it."""
        return self.ownership is Ownership.OURS and not self.terminating and self.ended


@dataclass(frozen=True, kw_only=True)
class StoredRevision:
    """A ControllerRevision of this deployment."""

    name: str
    revision: str
    number: int
    """Place in the history: the greater, the later it was wanted."""
    resolved: Resolved
    settings: Settings | None
    """What else was wanted when the revision was last accepted; None when that cannot be read."""
    live: Mapping[str, Any]
    available: bool = False
    """All replicas ran it once, and served."""
    failed: str = ""
    """Why its rollout was given up."""

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        parallelism = self.resolved.inputs.parallelism
        return self.resolved.tensor_parallel * parallelism.pipeline * parallelism.data


@dataclass(frozen=True, kw_only=True)
class GpuNode:
    """A node with extended resources."""

    product: str
    """Its label for the GPU product; empty where it has none."""
    resources: Mapping[str, int]
    """How many of each extended resource pods can have on it."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The PersistentVolumeClaim that holds the weights."""

    name: str
    exists: bool
    phase: str = ""
    access_modes: tuple[str, ...] = ()
    waits_for_consumer: bool = False
    """Unbound because its storage class binds when the first pod is scheduled."""
    refused: str = ""
    """Why the claim could not be read."""
    class_refused: str = ""
    """Why the storage class of an unbound claim could not be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SlotFailure:
    """Replicas of one slot that failed in a row."""

    slot: int
    reason: str
    message: str
    count: int
    next_retry: float
    permanent: bool = False
    """Waiting cannot mend the cause."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """A live replica at the last look, remembered so that its disappearance is noticed."""

    name: str
    uid: str
    slot: int
    created_at: float
    restarts: int = 0
    """Restarts of its engine until it was last ready, or until it was first seen."""


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What is remembered between two looks at a deployment. Losing it costs at most one early retry per slot."""

    revision: str = ""
    """The wanted revision that the failures belong to: a new one starts without them."""
    failures: tuple[SlotFailure, ...] = ()
    seen: tuple[Seen, ...] = ()
    retired: frozenset[str] = frozenset()
    """Uids of replicas that the operator itself deleted at the last look."""
    recalled: bool = False
    """It is what another operator left in the status; this one has not looked yet."""
    idle_since: Mapping[str, float] = field(default_factory=dict)
    """Since when replicas that finish their requests were read and had none, by uid."""

    @property
    def expected(self) -> tuple[Seen, ...]:
        """Replicas that should still be there: the operator itself removed none of them."""
        return tuple(seen for seen in self.seen if seen.uid not in self.retired)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything that a decision about one deployment may rest on."""

    name: str
    namespace: str
    uid: str
    generation: int
    spec: VLMDeploymentSpec | None
    """None when it could not be read; the findings say why."""
    inputs: PodInputs | None
    findings: tuple[Finding, ...]
    assessment: Assessment | None = None
    """What the sizing says of the spec."""
    replicas: tuple[Replica, ...] = ()
    revisions: tuple[StoredRevision, ...] = ()
    objects: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    """Live objects by (kind, name): Services, ConfigMaps and ControllerRevisions of ours or under a name that we need."""
    claim: Claim | None = None
    reported_kv_tokens: Mapping[str, int] = field(default_factory=dict)
    """Tokens that fit into the KV cache of a replica, by revisions of which one said so itself."""
    memory: Memory = field(default_factory=Memory)
    status: Mapping[str, Any] = field(default_factory=dict)
    """The status as last written."""

    @property
    def accepted(self) -> bool:
        """Whether the spec may be applied."""
        return self.spec is not None and not any(finding.severity == "Error" for finding in self.findings)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The size: how many replicas carry the load, or under work-based scaling in rotation how many there are; and why."""

    replicas: int
    reason: str
    message: str
