"""What a plan asks for: each action is a value with a sentence that says why."""

from dataclasses import dataclass, field
from typing import Any

from vlm_operator.engines.base import PodIdentity, Resolved
from vlm_operator.replicas.facts import Memory


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


Action = Create | Repair | CreatePod | Delete


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

    @property
    def next_look(self) -> float | None:
        """The earliest time at which a wait ends by itself."""
        return min((wait.until for wait in self.waits if wait.until is not None), default=None)


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """The API server's no."""

    code: int
    message: str

    @property
    def by_admission(self) -> bool:
        """Whether the object itself was refused (quota, LimitRange, Pod Security, webhook, validation).

        Trying again at once is useless then. A missing permission answers 403 as well and is no different.
        """
        return self.code in {400, 403, 422} and not self.namespace_ends

    @property
    def namespace_ends(self) -> bool:
        """Whether the namespace is being deleted, and everything in it with it."""
        return self.code == 403 and "because it is being terminated" in self.message

    @property
    def passing(self) -> bool:
        """Whether the same call may succeed a little later: no answer, overload, an error of the server."""
        return self.code in {0, 429} or self.code >= 500


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of an action."""

    action: Action
    refusal: Refusal | None = None
