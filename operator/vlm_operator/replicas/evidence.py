"""What more is to be read of a pod that does not serve than the pod itself, and what was read."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from vlm_operator.engines.base import CONTAINER, Engine
from vlm_operator.engines.failures import Failure

STUCK_AFTER = 60.0
"""Seconds for which containers may be in creation before the events of the pod are asked why."""
BY_ITSELF = frozenset({"Error", "Completed"})
"""Reasons of containers that ended by themselves, or by a signal of the kubelet: only their words tell more."""
STILL_UNSCHEDULED_AFTER = 240.0
"""Seconds without a node before the events of a pod are asked whether one is being added for it."""
NODE_IS_ADDED = frozenset({"TriggeredScaleUp", "Nominated"})
"""Reasons of events by which Cluster Autoscaler and Karpenter say so."""
IN_CREATION = frozenset({None, "ContainerCreating", "PodInitializing"})


@dataclass(frozen=True, kw_only=True)
class PodEvent:
    """A warning about a pod."""

    reason: str
    message: str
    at: str
    """When it was seen last, as a Kubernetes timestamp."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What was read of one pod."""

    log: Failure | None = None
    """What the end of the engine's log tells."""
    log_unreadable: str = ""
    """Why that could not be read."""
    events: tuple[PodEvent, ...] = ()
    events_unreadable: str = ""
    node_is_added: bool | None = None
    """A node is on its way for it; None: nothing was read of that yet."""


@dataclass(frozen=True, kw_only=True)
class End:
    """How a container ended last."""

    terminated: Mapping[str, Any]
    previous: bool
    """It has been started again since, or will be."""

    @property
    def reason(self) -> str:
        """The kubelet's word for it."""
        return self.terminated.get("reason") or "Error"

    @property
    def exit_code(self) -> int | None:
        """The exit code."""
        return self.terminated.get("exitCode")

    @property
    def message(self) -> str:
        """The termination message: the last 2048 bytes of the log, unless the container left another."""
        return str(self.terminated.get("message") or "")


@dataclass(frozen=True, kw_only=True)
class LogWanted:
    """The log of an engine that ended and did not tell why in its termination message."""

    previous: bool
    restarts: int
    """How often the container was started again: for each there is a log of its own."""
    exit_code: int | None


def end_of(container: Mapping[str, Any], *, server: bool) -> End | None:
    """How a container ended that is not ready; None for one that has not ended, or may. A `server` may not."""
    state, last = container.get("state") or {}, (container.get("lastState") or {}).get("terminated")
    terminated, waiting = state.get("terminated"), (state.get("waiting") or {}).get("reason")
    if terminated:
        failed = server or terminated.get("exitCode") or terminated.get("reason") == "OOMKilled"
        return End(terminated=terminated, previous=False) if failed else None
    if last and not container.get("ready") and waiting in {*IN_CREATION, "CrashLoopBackOff"}:
        return End(terminated=last, previous=True)
    return None


def wanted_log(pod: Mapping[str, Any], engine: Engine) -> LogWanted | None:
    """The log that may tell why the engine of a pod ended; None when nothing is to be learned from one."""
    status = pod.get("status") or {}
    if "deletionTimestamp" in pod["metadata"] or status.get("reason"):
        return None
    container = next((c for c in containers(status) if c.get("name") == CONTAINER), None) or {}
    end = end_of(container, server=True)
    if end is None or end.reason not in BY_ITSELF:
        return None
    told = engine.failure(end.exit_code, end.message)
    if told is not None and not told.vague:
        return None
    return LogWanted(previous=end.previous, restarts=container.get("restartCount") or 0, exit_code=end.exit_code)


def in_creation(pod: Mapping[str, Any]) -> bool:
    """Whether a pod has a node, and no container yet."""
    status = pod.get("status") or {}
    if "deletionTimestamp" in pod["metadata"] or not (pod.get("spec") or {}).get("nodeName"):
        return False
    if status.get("phase", "Pending") != "Pending":
        return False
    return all(_waits_for_creation(container) for container in containers(status))


def is_stuck(pod: Mapping[str, Any], *, now: float) -> bool:
    """Whether a pod has been in creation for so long that its events should tell why."""
    if not in_creation(pod):
        return False
    conditions = (pod.get("status") or {}).get("conditions") or ()
    since = next((c.get("lastTransitionTime") for c in conditions if c.get("type") == "PodScheduled"), None)
    since = since or pod["metadata"].get("creationTimestamp")
    return since is not None and now - datetime.fromisoformat(since).timestamp() >= STUCK_AFTER


def is_long_without_a_node(pod: Mapping[str, Any], *, now: float) -> bool:
    """Whether a pod has waited for so long that its events should tell whether a node is being added."""
    if "deletionTimestamp" in pod["metadata"] or (pod.get("spec") or {}).get("nodeName"):
        return False
    since = pod["metadata"].get("creationTimestamp")
    return since is not None and now - datetime.fromisoformat(since).timestamp() >= STILL_UNSCHEDULED_AFTER


def read_events(events: Iterable[Mapping[str, Any]]) -> Evidence:
    """What the events about a pod tell: warnings, the latest first."""
    known = list(events)
    warnings = (_event(event) for event in known if event.get("type") == "Warning")
    return Evidence(
        events=tuple(sorted(warnings, key=lambda event: event.at, reverse=True)),
        node_is_added=any(event.get("reason") in NODE_IS_ADDED for event in known),
    )


def containers(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The states of all containers, in the order in which they start."""
    yield from status.get("initContainerStatuses") or ()
    yield from status.get("containerStatuses") or ()


def _waits_for_creation(container: Mapping[str, Any]) -> bool:
    state = container.get("state") or {}
    return not state.keys() - {"waiting"} and (state.get("waiting") or {}).get("reason") in IN_CREATION


def _event(event: Mapping[str, Any]) -> PodEvent:
    seen = (event.get("series") or {}).get("lastObservedTime") or event.get("deprecatedLastTimestamp")
    return PodEvent(
        reason=event.get("reason") or "Unknown",
        message=event.get("note") or "",
        at=seen or event.get("eventTime") or (event.get("metadata") or {}).get("creationTimestamp") or "",
    )
