"""Why a pod does not serve, in the words of scheduler, kubelet and engine.

The first that applies wins. Reasons come before exit codes, since a server that was killed may still exit with 0; what an
engine says comes before what is known of its container.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from vlm_operator.engines.base import CONTAINER, Engine
from vlm_operator.engines.causes import GPU_LOST, HOST_OUT_OF_MEMORY, HUNG_START
from vlm_operator.engines.failures import Cause, Failure, Waiting
from vlm_operator.replicas.evidence import BY_ITSELF, IN_CREATION, End, Evidence, containers, end_of
from vlm_operator.replicas.facts import Trouble
from vlm_operator.replicas.kubelet import LOST_NODE_REASONS, NODE_LOST, of_event, of_refused_pod, of_waiting
from vlm_operator.replicas.scheduling import advice, evidence
from vlm_operator.replicas.wording import one_line, one_word

ENGINE_EXITED = Cause(
    reason="EngineExited",
    meaning="the engine ended, and neither its last words nor its log tell a cause that is known",
    seen_in="container state",
    advice="the last line of the engine is in the message; kubectl logs --previous has the rest",
    waiting=Waiting.MAY_HELP,
)
EVENTS_UNREADABLE = Cause(
    reason="EventsUnreadable",
    meaning="containers are not created for long, and the events that could tell why cannot be read",
    seen_in="answer of the API server",
    advice="kubectl describe pod has the cause",
    waiting=Waiting.MAY_HELP,
)
CAUSES = (ENGINE_EXITED, EVENTS_UNREADABLE)
KILLED = frozenset({0, 137, 143})
"""Exit codes of an engine that the kubelet ended: some still exit with 0."""
KILL_SECONDS = 120.0
"""Time between the last failure of a startup probe and the end of the container, at most."""

NOTHING = Evidence()


def trouble_of(pod: Mapping[str, Any], engine: Engine | None = None, read: Evidence = NOTHING) -> Trouble | None:
    """What keeps the pod from serving, or None when nothing is known to.

    `engine` is the one that the pod runs, where that is known: it knows its own words. `read`: what was read besides the pod.
    """
    status = pod.get("status") or {}
    if status.get("phase") in {"Failed", "Succeeded"}:
        return _ended(pod, status, engine, read)
    unscheduled = _condition(status, "PodScheduled")
    if unscheduled.get("status") == "False":
        message = unscheduled.get("message") or ""
        return _told(unscheduled.get("reason") or "Unschedulable", evidence(message), advice=advice(message))
    if _lost_its_node(status):
        return _trouble(NODE_LOST, "the node does not report that its containers run")
    for container in containers(status):
        found = _of_container(pod, container, engine, read)
        if found is not None:
            return found
    return _of_events(read)


def _of_container(
    pod: Mapping[str, Any], container: Mapping[str, Any], engine: Engine | None, read: Evidence
) -> Trouble | None:
    ours = container.get("name") == CONTAINER
    leaving = "deletionTimestamp" in (pod.get("metadata") or {})
    end = end_of(container, server=ours and not leaving)
    if end is not None:
        return _of_end(pod, end, engine if ours else None, read)
    if ours and _has_unhealthy_device(container):
        return _trouble(GPU_LOST, "a device of the pod is unhealthy, its node says")
    waiting = (container.get("state") or {}).get("waiting") or {}
    if waiting.get("reason") in IN_CREATION:
        return None
    reason, message = waiting["reason"], waiting.get("message") or ""
    cause = of_waiting(reason, message)
    return _trouble(cause, message or reason) if cause else _told(reason, message)


def _of_end(pod: Mapping[str, Any], end: End, engine: Engine | None, read: Evidence) -> Trouble:
    exited = f"the engine exited with code {end.exit_code}"
    lines = [line.strip() for line in end.message.splitlines() if line.strip()]
    last = f"{exited}: {lines[-1]}" if lines else exited
    if end.reason == "OOMKilled":
        return _trouble(HOST_OUT_OF_MEMORY, f"the engine was killed for its memory (exit code {end.exit_code})")
    if end.reason not in BY_ITSELF:
        cause = of_waiting(end.reason, end.message)
        return _trouble(cause, last) if cause else _told(end.reason, last)
    failure = _failure(engine, end, read)
    unread = f"the end of its log could not be read: {one_line(read.log_unreadable)}" if read.log_unreadable else ""
    if failure is not None:
        said = f"{exited}: {failure.evidence}" if failure.evidence else exited
        advised = _joined(failure.advice, unread)
        return Trouble(reason=failure.reason, message=one_line(said), advice=advised, waiting=failure.cause.waiting)
    if engine is not None and _hung(pod, end):
        return _trouble(HUNG_START, f"the engine was not ready after {_ran(end):.0f} s and was ended", unread)
    return _trouble(ENGINE_EXITED, last, unread)


def _failure(engine: Engine | None, end: End, read: Evidence) -> Failure | None:
    told = engine.failure(end.exit_code, end.message) if engine is not None else None
    if engine is None or (told is not None and not told.vague):
        return told
    # Words that only say that something broke do not tell more than what the probe was answered.
    return (
        read.log
        if read.log is not None and (told is None or not read.log.vague or told.cause is read.log.cause)
        else told
    )


def _ended(pod: Mapping[str, Any], status: Mapping[str, Any], engine: Engine | None, read: Evidence) -> Trouble:
    reason, message = status.get("reason"), status.get("message") or ""
    disrupted = _condition(status, "DisruptionTarget")
    if disrupted.get("status") == "True" and disrupted.get("reason") in LOST_NODE_REASONS:
        return _trouble(NODE_LOST, disrupted.get("message") or message or "the node is gone")
    if reason:
        cause = of_refused_pod(reason, message)
        return _trouble(cause, message or reason) if cause else _told(reason, message)
    for container in status.get("containerStatuses") or ():
        terminated = (container.get("state") or {}).get("terminated")
        if terminated:
            end = End(terminated=terminated, previous=False)
            return _of_end(pod, end, engine if container.get("name") == CONTAINER else None, read)
    return _told("PodEnded", f"the pod ended with phase {status.get('phase')}")


def _of_events(read: Evidence) -> Trouble | None:
    if read.events_unreadable:
        unread = f"its containers are not created, and its events could not be read: {read.events_unreadable}"
        return _trouble(EVENTS_UNREADABLE, unread)
    for event in read.events:
        cause = of_event(event.reason, event.message)
        return _trouble(cause, event.message or event.reason) if cause else _told(event.reason, event.message)
    return None


def _lost_its_node(status: Mapping[str, Any]) -> bool:
    """The cluster itself, and not the kubelet, says that a pod is not ready whose containers are."""
    ready, inside = _condition(status, "Ready"), _condition(status, "ContainersReady")
    gated = ready.get("reason") == "ReadinessGatesNotReady"
    return ready.get("status") == "False" and inside.get("status") == "True" and not gated


def _has_unhealthy_device(container: Mapping[str, Any]) -> bool:
    kinds = container.get("allocatedResourcesStatus") or ()
    return any(device.get("health") == "Unhealthy" for kind in kinds for device in kind.get("resources") or ())


def _hung(pod: Mapping[str, Any], end: End) -> bool:
    """Whether the engine was killed when its startup probe had failed for as long as it may."""
    spec = pod.get("spec") or {}
    container = next((c for c in spec.get("containers") or () if c.get("name") == CONTAINER), None) or {}
    probe = container.get("startupProbe") or {}
    allowed = probe.get("periodSeconds", 10) * probe.get("failureThreshold", 3) if probe else 0
    over = _ran(end) - allowed - probe.get("initialDelaySeconds", 0)
    # A probe's first run begins somewhere within its first period.
    return bool(probe) and end.exit_code in KILLED and -probe.get("periodSeconds", 10) <= over <= KILL_SECONDS


def _ran(end: End) -> float:
    times = [end.terminated.get(name) for name in ("startedAt", "finishedAt")]
    began, ended = (datetime.fromisoformat(time).timestamp() if time else 0.0 for time in times)
    return ended - began


def _condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return next((c for c in status.get("conditions") or () if c.get("type") == kind), {})


def _trouble(cause: Cause, message: str, also: str = "") -> Trouble:
    return Trouble(
        reason=cause.reason, message=one_line(message), advice=_joined(cause.advice, also), waiting=cause.waiting
    )


def _told(reason: str, message: str | None, *, advice: str = "") -> Trouble:
    """Trouble that is known only in the words of who reports it."""
    return Trouble(
        reason=one_word(reason), message=one_line(message or reason), advice=advice, waiting=Waiting.MAY_HELP
    )


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
