"""The whole status of a deployment as it is written to the API server."""

from collections.abc import Mapping
from typing import Any

from vlm_operator.api.names import SERVING, serving_selector
from vlm_operator.replicas.actions import Plan
from vlm_operator.replicas.facts import Claim, Decision, Facts, SlotFailure
from vlm_operator.replicas.progress import Progress, is_available
from vlm_operator.replicas.refusal import Refusal
from vlm_operator.replicas.size import starting_size
from vlm_operator.replicas.target import settings_of, target_of
from vlm_operator.replicas.times import timestamp
from vlm_operator.status.census import Census, count, warm_and_ready
from vlm_operator.status.conditions import READY, Verdict, judge

FAILURES_SHOWN = 8
CONDITION_TEXT, TEXT = 4096, 1024
"""Bounds of the schema, in characters."""


def summarise(facts: Facts, decision: Decision, plan: Plan, *, now: float) -> dict[str, Any]:
    """The status that describes the facts. Equal facts give an equal status, whatever the time."""
    census = count(facts, decision)
    verdicts = judge(facts, decision, census, plan)
    known = {condition["type"]: condition for condition in facts.status.get("conditions") or ()}
    status: dict[str, Any] = {
        "observedGeneration": facts.generation,
        "selector": ",".join(f"{key}={value}" for key, value in serving_selector(facts.name).items()),
        "replicas": sum(replica.role == SERVING for replica in census.live),
        "readyReplicas": sum(replica.ready for replica in census.live),
        "servingReplicas": len(census.serving),
        "warmReplicas": _warm(facts, census, plan),
        "drainingReplicas": len(census.draining),
        "desiredReplicas": decision.replicas,
        "gpus": census.gpus,
        "currentRevision": _current_revision(facts, census, plan),
        "updatedRevision": census.asked,
        "conditions": [_condition(verdict, known.get(verdict.kind), facts.generation, now=now) for verdict in verdicts],
        "rollout": _rollout(plan.progress) if plan.progress else None,
        "scaling": _scaling(facts, decision, now=now),
        "failures": [_failure(failure, plan.memory.revision) for failure in _worst(plan.memory.failures)],
        "weights": _weights(facts.claim) if facts.claim else None,
        "sizing": _sizing(facts, census),
    }
    return {key: value for key, value in status.items() if value not in (None, [])}


def unknown(resource: Mapping[str, Any], refusal: Refusal, *, now: float) -> dict[str, Any]:
    """The status of a deployment that cannot be looked at: as it was, but nobody knows whether it is Ready."""
    status, generation = resource.get("status") or {}, resource["metadata"]["generation"]
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    verdict = Verdict(kind=READY, status="Unknown", reason=refusal.reason, message=refusal.sentence)
    conditions[READY] = _condition(verdict, conditions.get(READY), generation, now=now)
    return {**status, "observedGeneration": generation, "conditions": list(conditions.values())}


def _current_revision(facts: Facts, census: Census, plan: Plan) -> str | None:
    """The revision that was rolled out last: all replicas ran it once, and served."""
    target = target_of(facts)
    if target is not None and plan.sizes is not None and is_available(facts, target, plan.sizes):
        return census.target
    return facts.status.get("currentRevision")


def _condition(verdict: Verdict, known: Mapping[str, Any] | None, generation: int, *, now: float) -> dict[str, Any]:
    unchanged = known is not None and known.get("status") == verdict.status
    return {
        "type": verdict.kind,
        "status": verdict.status,
        "reason": verdict.reason,
        "message": shortened(verdict.message, CONDITION_TEXT),
        "lastTransitionTime": known["lastTransitionTime"] if unchanged and known is not None else timestamp(now),
        "observedGeneration": generation,
    }


def _weights(claim: Claim) -> dict[str, str]:
    return {"claimName": claim.name, "phase": claim.phase or ("Unknown" if claim.refused else "NotFound")}


def _sizing(facts: Facts, census: Census) -> Mapping[str, Any] | None:
    """The arithmetic of what runs: while a spec is refused, that of the one before."""
    if not facts.accepted:
        return facts.status.get("sizing")
    memory = facts.assessment.memory if facts.assessment else None
    sizing: dict[str, Any] = {}
    if memory is not None:
        sizing |= {
            "weightsGiB": _gib(memory.weights),
            "kvCacheGiB": _gib(memory.kv),
            "kvCacheTokens": memory.kv_tokens,
        }
    told = facts.status.get("sizing") or {}
    known = {told.get("reportedRevision"): told.get("reportedKvCacheTokens")} | dict(facts.reported_kv_tokens)
    if census.target is not None and known.get(census.target) is not None:
        sizing |= {"reportedKvCacheTokens": known[census.target], "reportedRevision": census.target}
    return {key: value for key, value in sizing.items() if value is not None} or None


def _warm(facts: Facts, census: Census, plan: Plan) -> int | None:
    settings = settings_of(facts)
    if settings is None or not settings.pool_size or plan.sizes is None:
        return None
    return warm_and_ready(census, plan.sizes, settings)


def _rollout(progress: Progress) -> dict[str, Any]:
    status = {
        "phase": progress.phase,
        "message": shortened(progress.message, TEXT),
        "updated": progress.updated,
        "ready": progress.ready,
        "lastProgressTime": timestamp(progress.since),
        "waitingSince": timestamp(progress.waiting_since) if progress.waiting_since is not None else None,
    }
    return {key: value for key, value in status.items() if value is not None}


def _scaling(facts: Facts, decision: Decision, *, now: float) -> dict[str, Any] | None:
    """The decision, where scaling is asked for. While everything is turned off nothing is remembered of it."""
    if not facts.accepted or facts.spec is None:
        return facts.status.get("scaling")
    scaling = facts.spec.scaling
    if scaling is None or decision.replicas == 0:
        return None
    known = facts.status.get("scaling") or {}
    before = facts.status.get("desiredReplicas")
    scaled = before is not None and before != decision.replicas
    last = timestamp(now) if scaled else known.get("lastScaleTime")
    status = {
        "desired": decision.replicas,
        "reason": decision.reason,
        "message": decision.message,
        "lastScaleTime": last,
        "startingReplicas": starting_size(facts) if scaling.mode != "Advisory" else None,
    }
    return {key: value for key, value in status.items() if value is not None}


def _gib(number: int | None) -> str | None:
    return None if number is None else f"{number / 2**30:.2f}"


def _worst(failures: tuple[SlotFailure, ...]) -> list[SlotFailure]:
    return sorted(failures, key=lambda failure: (-failure.count, failure.slot))[:FAILURES_SHOWN]


def _failure(failure: SlotFailure, revision: str) -> dict[str, Any]:
    return {
        "slot": failure.slot,
        "revision": revision,
        "reason": failure.reason,
        "message": shortened(failure.message, TEXT),
        "count": failure.count,
        "nextRetry": timestamp(failure.next_retry),
        **({"permanent": True} if failure.permanent else {}),
    }


def shortened(text: str, length: int) -> str:
    """The text, cut to `length` characters with a mark where it was longer."""
    return text if len(text) <= length else text[: length - 1] + "…"
