"""Why a pod does not serve, in the words of scheduler, kubelet and engine.

The first that applies wins; container states come before exit codes, since a server that was killed may still exit with 0.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from vlm_operator.engines.base import CONTAINER, Engine
from vlm_operator.replicas.facts import Trouble
from vlm_operator.replicas.scheduling import advice, evidence

MESSAGE_LENGTH = 300
REASON_LENGTH = 128


def trouble_of(pod: Mapping[str, Any], engine: Engine | None = None) -> Trouble | None:
    """What keeps the pod from serving, or None when nothing is known to.

    `engine` is the one that the pod runs, where that is known: it knows its own words.
    """
    status = pod.get("status") or {}
    if status.get("phase") in {"Failed", "Succeeded"}:
        return _ended(status, engine)
    unscheduled = _condition(status, "PodScheduled")
    if unscheduled.get("status") == "False":
        return _unscheduled(unscheduled.get("reason") or "Unschedulable", unscheduled.get("message") or "")
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        found = _of_container(container, engine)
        if found is not None:
            return found
    return None


def _unscheduled(reason: str, message: str) -> Trouble:
    return replace(_trouble(reason, evidence(message)), advice=advice(message))


def _of_container(container: Mapping[str, Any], engine: Engine | None) -> Trouble | None:
    engine = engine if container.get("name") == CONTAINER else None
    state, last = container.get("state") or {}, (container.get("lastState") or {}).get("terminated") or {}
    waiting, terminated = state.get("waiting") or {}, state.get("terminated") or {}
    if terminated and (terminated.get("exitCode") or terminated.get("reason") == "OOMKilled"):
        return _of_exit(terminated, engine)
    if waiting.get("reason") in {None, "ContainerCreating", "PodInitializing"}:
        return _of_exit(last, engine) if last and not container.get("ready") else None
    if waiting["reason"] == "CrashLoopBackOff" and last:
        return _of_exit(last, engine)
    return _trouble(waiting["reason"], waiting.get("message"))


def _of_exit(terminated: Mapping[str, Any], engine: Engine | None) -> Trouble:
    reason, code = terminated.get("reason") or "Error", terminated.get("exitCode")
    text = str(terminated.get("message") or "")
    failure = engine.failure(code, text) if engine is not None and reason == "Error" else None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    evidence = failure.evidence if failure else lines[-1] if lines else ""
    known = failure.reason if failure else "EngineExited" if reason == "Error" else reason
    told = _trouble(known, f"the engine exited with code {code}" + (f": {evidence}" if evidence else ""))
    return replace(told, advice=failure.advice) if failure else told


def _ended(status: Mapping[str, Any], engine: Engine | None) -> Trouble:
    if status.get("reason"):
        return _trouble(status["reason"], status.get("message"))
    for container in status.get("containerStatuses") or ():
        terminated = (container.get("state") or {}).get("terminated")
        if terminated:
            return _of_exit(terminated, engine if container.get("name") == CONTAINER else None)
    return _trouble("PodEnded", f"the pod ended with phase {status.get('phase')}")


def _condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return next((c for c in status.get("conditions") or () if c.get("type") == kind), {})


def _trouble(reason: str, message: str | None) -> Trouble:
    # Of what an engine writes last, a log and a terminal get the words only.
    text = " ".join("".join(sign if sign.isprintable() else " " for sign in str(message or reason)).split())
    cut = text if len(text) <= MESSAGE_LENGTH else text[: MESSAGE_LENGTH - 1] + "…"
    return Trouble(reason=_one_word(reason), message=cut)


def _one_word(reason: str) -> str:
    """A reason that a condition may have. Kubelets also say `OutOfnvidia.com/gpu`, container runtimes `seccomp killed`."""
    parts = re.findall(r"[A-Za-z0-9]+", reason)
    word = "".join(part[0].upper() + part[1:] for part in parts).lstrip("0123456789")
    return word[:REASON_LENGTH] or "Unknown"
