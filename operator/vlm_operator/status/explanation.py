"""What there is of a deployment, what the operator does next, and what it waits for: plain data, with its own sentences."""

from collections.abc import Iterable
from typing import Any

from vlm_operator.replicas.actions import Plan
from vlm_operator.replicas.facts import Decision, Facts, Replica
from vlm_operator.replicas.ownership import Ownership
from vlm_operator.replicas.times import timestamp
from vlm_operator.status.census import count
from vlm_operator.status.conditions import READY, WARM_POOL_READY, Verdict, judge


def explain(facts: Facts, decision: Decision, plan: Plan) -> dict[str, Any]:
    """The explanation; None in it is unknown, or not there. Times are as Kubernetes writes them."""
    census = count(facts, decision)
    sizes, progress = plan.sizes, plan.progress
    verdicts = judge(facts, decision, census, plan)
    gpus = {known.revision: known.gpus for known in facts.revisions}
    return {
        "name": facts.name,
        "namespace": facts.namespace,
        "generation": facts.generation,
        "observedGeneration": facts.status.get("observedGeneration"),
        "revision": census.target,
        "askedRevision": census.asked,
        "size": {
            "replicas": decision.replicas,
            "message": decision.message,
            "serving": sizes.serving if sizes is not None else None,
            "warm": sizes.warm if sizes is not None else None,
            "ceiling": sizes.ceiling if sizes is not None else None,
        },
        "conditions": [
            {"type": verdict.kind, "status": verdict.status, "reason": verdict.reason, "message": verdict.message}
            for verdict in verdicts
        ],
        "rollout": {"phase": progress.phase, "message": progress.message} if progress is not None else None,
        "replicas": [
            _replica(replica, gpus.get(replica.revision))
            for replica in sorted(facts.replicas, key=_place)
            if _is_ours(replica)
        ],
        "next": [action.sentence for action in plan.actions],
        "waitsFor": [{"reason": wait.reason, "message": wait.message} for wait in plan.waits] or _unfulfilled(verdicts),
        "nextLook": timestamp(plan.next_look) if plan.next_look is not None else None,
    }


def _unfulfilled(verdicts: Iterable[Verdict]) -> list[dict[str, str]]:
    """The condition that tells what is not as it should be, where the plan itself waits for nothing."""
    kinds = {verdict.kind: verdict for verdict in verdicts if verdict.status == "False"}
    told = [kinds[kind] for kind in (READY, WARM_POOL_READY) if kind in kinds]
    return [{"reason": verdict.reason, "message": verdict.message} for verdict in told[:1]]


def _place(replica: Replica) -> tuple[str, int]:
    return replica.revision, replica.slot


def _is_ours(replica: Replica) -> bool:
    return replica.ownership is Ownership.OURS


def _replica(replica: Replica, gpus: int | None) -> dict[str, Any]:
    phase, since = phase_of(replica)
    return {
        "name": replica.name,
        "role": replica.role or None,
        "phase": phase,
        "since": timestamp(since) if since is not None else None,
        "inFlight": replica.in_flight,
        "restarts": replica.restarts,
        "revision": replica.revision,
        "node": replica.node or None,
        "cordoned": replica.cordoned,
        "gpus": gpus,
        "trouble": {
            "reason": replica.trouble.reason,
            "message": replica.trouble.message,
            "advice": replica.trouble.advice,
        }
        if replica.trouble is not None
        else None,
    }


def phase_of(replica: Replica) -> tuple[str, float | None]:
    """In which phase of its life a replica is, and since when, where that can be told."""
    if replica.ended:
        return "Ended", None
    if replica.terminating:
        return "Terminating", None
    if not replica.scheduled:
        return "Pending", replica.created_at
    if replica.ready:
        return "Ready", replica.ready_since
    if replica.started:
        return "NotReady", replica.not_ready_since
    return "Loading", replica.not_ready_since if replica.restarts else replica.scheduled_at
