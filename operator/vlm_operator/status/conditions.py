"""The conditions of a deployment, each with a reason in one word and a sentence.

The first cause that applies is reported, from what the user must mend to what only takes time (`_causes`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from vlm_operator.replicas.actions import Plan
from vlm_operator.replicas.counted import counted
from vlm_operator.replicas.facts import Claim, Decision, Facts, Replica, Trouble
from vlm_operator.replicas.progress import DEADLINE_EXCEEDED, PAUSED, ROLLED_BACK
from vlm_operator.replicas.refusal import REFUSED
from vlm_operator.replicas.settings import Settings
from vlm_operator.replicas.steer import DRAINS
from vlm_operator.replicas.target import settings_of
from vlm_operator.status.census import Census, warm_and_ready

ACCEPTED = "Accepted"
AVAILABLE = "Available"
COMPLETE = "Complete"
LOADING = "Loading"
NO_REVISION = "NeverAccepted"
NO_SIGNALS = "NoSignals"
READY = "Ready"
SCALED_TO_ZERO = "ScaledToZero"
WARM_POOL_READY = "WarmPoolReady"
STUCK = frozenset({PAUSED, ROLLED_BACK, DEADLINE_EXCEEDED})
"""Phases in which a rollout does not get on by itself."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A condition without its time."""

    kind: str
    status: str
    reason: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Cause:
    """Something that keeps the deployment from being what it should be."""

    reason: str
    message: str
    brief: str = ""
    """The message for where another condition tells the whole."""


def judge(facts: Facts, decision: Decision, census: Census, plan: Plan) -> tuple[Verdict, ...]:
    """All conditions, in the order in which they are shown."""
    accepted = _accepted(facts)
    weights = tuple(_weights(facts.claim))
    causes = tuple(_causes(facts, census, plan, weights))
    settings = settings_of(facts) or Settings.defaults()
    available = _available(decision, census, causes, plan, _least(decision, settings))
    return (
        accepted,
        *weights,
        _progressing(accepted, census, causes),
        available,
        _ready(accepted, available, census, plan, causes),
        *_scaling_active(decision, settings),
        *_warm_pool(facts, census, plan, settings),
    )


def _least(decision: Decision, settings: Settings) -> int:
    """Serving replicas with which the deployment counts as available."""
    scaling = settings.scaling
    if scaling is not None and settings.active:
        return min(decision.replicas, scaling.min_replicas or 1)
    return max(min(1, decision.replicas), decision.replicas - settings.max_unavailable)


def _accepted(facts: Facts) -> Verdict:
    errors = [finding for finding in facts.findings if finding.severity == "Error"]
    if errors:
        message = " | ".join(finding.sentence() for finding in errors)
        return Verdict(kind="Accepted", status="False", reason=errors[0].reason, message=message)
    warnings = [finding.sentence() for finding in facts.findings]
    message = " | ".join(["the spec is accepted", *warnings])
    return Verdict(kind="Accepted", status="True", reason=ACCEPTED, message=message)


def _weights(claim: Claim | None) -> Iterator[Verdict]:
    if claim is None:
        return
    status, reason, message = "True", "ClaimBound", f"claim {claim.name} is bound"
    if claim.refused:
        status, reason, message = "Unknown", "ClaimUnreadable", f"claim {claim.name} could not be read: {claim.refused}"
    elif not claim.exists:
        status, reason = "False", "ClaimNotFound"
        message = f"claim {claim.name} does not exist; create it or change spec.weights.persistentVolumeClaim.claimName"
    elif claim.phase == "Pending" and claim.waits_for_consumer:
        reason, message = "WaitsForFirstConsumer", f"claim {claim.name} is bound when the first replica is scheduled"
    elif claim.phase == "Pending" and claim.class_refused:
        status, reason = "Unknown", "StorageClassUnreadable"
        message = (
            f"claim {claim.name} is Pending; whether it is bound when the first replica is scheduled is not known, since its"
            f" storage class could not be read: {claim.class_refused}"
        )
    elif claim.phase != "Bound":
        status, reason = "False", f"Claim{claim.phase or 'Pending'}"
        message = (
            f"claim {claim.name} is {claim.phase or 'Pending'}, not Bound; kubectl describe pvc {claim.name} says why"
        )
    yield Verdict(kind="WeightsReady", status=status, reason=reason, message=message)


def _causes(facts: Facts, census: Census, plan: Plan, weights: tuple[Verdict, ...]) -> Iterator[Cause]:
    progress = plan.progress
    if progress is not None and progress.phase in STUCK:
        yield Cause(reason=progress.phase, message=progress.message)
    yield from (Cause(reason=wait.reason, message=wait.message) for wait in plan.waits if wait.reason != DRAINS)
    if census.target is None:
        yield Cause(reason=NO_REVISION, message=_why_no_revision(census))
    waiting = [replica for replica in census.current if not replica.ready]
    troubled = [(replica, replica.trouble) for replica in waiting if replica.trouble is not None]
    if troubled:
        yield _trouble(facts, troubled, census, plan)
    elif len(census.current_ready) < census.wanted:
        # Until the scheduler says it of a replica.
        yield from (Cause(reason=claim.reason, message=claim.message) for claim in weights if claim.status == "False")
    if progress is not None and census.outdated:
        message = f"{progress.message}; {len(census.outdated)} of an older revision still run"
        yield Cause(reason=progress.phase, message=message)
    total = plan.sizes.total if plan.sizes is not None else census.wanted
    if len(census.current_ready) < total:
        stalled = sum(replica.started for replica in waiting)
        message = f"{len(census.current_ready)} of {total} replicas are ready, {len(waiting) - stalled} loading"
        message += f", {stalled} not ready any more" if stalled else ""
        yield Cause(reason=LOADING, message=message)
    yield from (Cause(reason=wait.reason, message=wait.message) for wait in plan.waits if wait.reason == DRAINS)


def _why_no_revision(census: Census) -> str:
    if census.live:
        return "the revision that was accepted is not stored any more, so nothing is replaced until a spec is accepted"
    return "no spec was accepted yet, so there is nothing to run"


def _trouble(facts: Facts, troubled: list[tuple[Replica, Trouble]], census: Census, plan: Plan) -> Cause:
    """The trouble of most replicas. Where only the pool lacks some, its condition has the whole."""
    total = plan.sizes.total if plan.sizes is not None else census.wanted
    short = plan.progress is not None or len(census.serving) < _in_rotation(census, plan)
    told_by = READY if short else WARM_POOL_READY
    by_reason: dict[str, list[tuple[Replica, Trouble]]] = {}
    for replica, trouble in troubled:
        by_reason.setdefault(trouble.reason, []).append((replica, trouble))
    reason, alike = max(by_reason.items(), key=lambda item: (len(item[1]), item[0]))
    example, trouble = min(alike, key=lambda pair: pair[0].slot)
    others = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
    advice = "".join(f"; {part}" for part in (trouble.advice, counted(facts, example)) if part)
    return Cause(
        reason=reason,
        message=f"{trouble.message} ({example.name}{others}){advice}",
        brief=f"{len(alike)} of {total} replicas are held up; condition {told_by} has the cause",
    )


def _available(decision: Decision, census: Census, causes: tuple[Cause, ...], plan: Plan, least: int) -> Verdict:
    serving = f"{len(census.serving)} of {_in_rotation(census, plan)} replicas serve"
    taken = next((cause for cause in causes if cause.reason.endswith("NameTaken")), None)
    if taken is not None:
        return Verdict(kind=AVAILABLE, status="False", reason=taken.reason, message=taken.message)
    if decision.replicas == 0 and census.target is not None:
        message = f"{decision.message}: everything is turned off"
        return Verdict(kind=AVAILABLE, status="True", reason=SCALED_TO_ZERO, message=message)
    if census.target is not None and len(census.serving) >= least:
        return Verdict(kind=AVAILABLE, status="True", reason=AVAILABLE, message=serving)
    cause = causes[0] if causes else Cause(reason=LOADING, message=serving)
    message = serving if cause.reason == LOADING else f"{serving}: {cause.message}"
    return Verdict(kind=AVAILABLE, status="False", reason=cause.reason, message=message)


def _in_rotation(census: Census, plan: Plan) -> int:
    """How many replicas should serve."""
    return plan.sizes.serving if plan.sizes is not None else census.wanted


def _progressing(accepted: Verdict, census: Census, causes: tuple[Cause, ...]) -> Verdict:
    if accepted.status == "False":
        kept = f"; revision {census.target} is kept" if census.target else ""
        message = f"the spec is refused{kept}"
        return Verdict(kind="Progressing", status="False", reason=accepted.reason, message=message)
    if not causes:
        return Verdict(kind="Progressing", status="False", reason=COMPLETE, message="everything is as it should be")
    cause = causes[0]
    stuck = cause.reason.endswith("NameTaken") or cause.reason in REFUSED | STUCK
    status, message = "False" if stuck else "True", cause.brief or cause.message
    return Verdict(kind="Progressing", status=status, reason=cause.reason, message=message)


def _ready(accepted: Verdict, available: Verdict, census: Census, plan: Plan, causes: tuple[Cause, ...]) -> Verdict:
    if accepted.status == "False":
        return Verdict(kind=READY, status="False", reason=accepted.reason, message=accepted.message)
    if available.status == "False":
        return Verdict(kind=READY, status="False", reason=available.reason, message=available.message)
    if plan.progress is not None and causes:
        cause = causes[0]
        return Verdict(kind=READY, status="False", reason=cause.reason, message=cause.message)
    if available.reason == SCALED_TO_ZERO:
        return Verdict(kind=READY, status="True", reason=SCALED_TO_ZERO, message=available.message)
    message = f"{len(census.serving)} of {_in_rotation(census, plan)} replicas serve revision {census.target}"
    return Verdict(kind=READY, status="True", reason=READY, message=message)


def _scaling_active(decision: Decision, settings: Settings) -> Iterator[Verdict]:
    if settings.scaling is not None:
        message = f"no signal is read, so nothing is scaled: {decision.message}"
        yield Verdict(kind="ScalingActive", status="False", reason=NO_SIGNALS, message=message)


def _warm_pool(facts: Facts, census: Census, plan: Plan, settings: Settings) -> Iterator[Verdict]:
    """Whether the pool is full, and what is missing in the words of whoever says so."""
    sizes = plan.sizes
    if not settings.pool_size or sizes is None:
        return
    kind = WARM_POOL_READY
    if sizes.total == 0:
        yield Verdict(kind=kind, status="False", reason=SCALED_TO_ZERO, message="everything is turned off")
        return
    wanted = sizes.warm if settings.standby else sizes.serving - sizes.needed
    ready = warm_and_ready(census, sizes, settings)
    counts = f"{ready} of {settings.pool_size} warm replicas are ready"
    if wanted < settings.pool_size:
        message = f"{counts}: spec.scaling.maxReplicas leaves room for {wanted}, serving replicas come first"
        yield Verdict(kind=kind, status="False", reason="CeilingReached", message=message)
    elif ready >= wanted:
        yield Verdict(kind=kind, status="True", reason=READY, message=counts)
    else:
        troubled = [(r, r.trouble) for r in census.live if not r.ready and r.trouble is not None]
        cause = (
            _trouble(facts, troubled, census, plan) if troubled else Cause(reason=LOADING, message="they are loading")
        )
        yield Verdict(kind=kind, status="False", reason=cause.reason, message=f"{counts}: {cause.message}")
