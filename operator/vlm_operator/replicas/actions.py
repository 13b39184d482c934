"""What a plan asks for: each action is a value with a sentence that says why."""

from dataclasses import dataclass, field
from typing import Any

from vlm_operator.engines.base import PodIdentity, Resolved
from vlm_operator.replicas.facts import Memory, Replica
from vlm_operator.replicas.progress import Progress
from vlm_operator.replicas.refusal import Refusal
from vlm_operator.replicas.sizes import Sizes


@dataclass(frozen=True, kw_only=True)
class Create:
    """POST an object other than a pod."""

    manifest: dict[str, Any]
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Repair:
    """Put back the fields that the operator owns. The patch names the object as it was seen: uid and resourceVersion."""

    kind: str
    patch: dict[str, Any]
    sentence: str


@dataclass(frozen=True, kw_only=True)
class CreatePod:
    """Render a replica from its revision and POST it."""

    identity: PodIdentity
    resolved: Resolved
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Delete:
    """DELETE exactly this object: uid and resourceVersion are preconditions."""

    kind: str
    name: str
    uid: str
    resource_version: str
    sentence: str
    grace_seconds: int | None = None
    """None: the pod's own grace period, which covers its drain."""


@dataclass(frozen=True, kw_only=True)
class SetRole:
    """PATCH the role of a replica, and with it when its drain began: exactly this pod as it was seen."""

    name: str
    role: str
    patch: dict[str, Any]
    sentence: str


Action = Create | Repair | SetRole | CreatePod | Delete


@dataclass(frozen=True, kw_only=True)
class Wait:
    """Something that the plan cannot do now, and why."""

    reason: str
    message: str
    until: float | None = None
    """When to look again; None: something will happen that is watched."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to do now, what is waited for, and what to remember."""

    actions: tuple[Action, ...] = ()
    waits: tuple[Wait, ...] = ()
    memory: Memory = field(default_factory=Memory)
    sizes: Sizes | None = None
    """How many replicas there should be; None where no revision is wanted."""
    progress: Progress | None = None
    """The rollout under way."""
    undecided: tuple[Replica, ...] = ()
    """Replicas of which some are taken out of rotation, though it is not known which of them are busy."""
    timers: tuple[float, ...] = ()
    """When something is to be decided though nothing happens."""

    @property
    def creates(self) -> bool:
        """Whether anything new is to be made."""
        return any(isinstance(action, Create | CreatePod) for action in self.actions)

    @property
    def next_look(self) -> float | None:
        """The earliest time at which something changes by itself."""
        return min((*self.timers, *(wait.until for wait in self.waits if wait.until is not None)), default=None)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of an action."""

    action: Action
    refusal: Refusal | None = None
