"""The conditions of a deployment, each with a reason in one word and a sentence.

The first cause that applies is reported, from what the user must mend to what only takes time (`_causes`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from vlm_operator.replicas.actions import Wait
from vlm_operator.replicas.counted import counted
from vlm_operator.replicas.facts import Claim, Decision, Facts, Replica, Trouble
from vlm_operator.replicas.refusal import REFUSED
from vlm_operator.status.census import Census

ACCEPTED = "Accepted"
AVAILABLE = "Available"
COMPLETE = "Complete"
LOADING = "Loading"
NO_REVISION = "NeverAccepted"
READY = "Ready"
ROLLING_OUT = "RollingOut"
SCALED_TO_ZERO = "ScaledToZero"


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


def judge(facts: Facts, decision: Decision, census: Census, waits: tuple[Wait, ...]) -> tuple[Verdict, ...]:
    """All conditions, in the order in which they are shown."""
    accepted = _accepted(facts)
    weights = tuple(_weights(facts.claim))
    causes = tuple(_causes(facts, census, waits, weights))
    available = _available(decision, census, causes)
    return (
        accepted,
        *weights,
        _progressing(accepted, census, causes),
        available,
        _ready(accepted, available, census, causes),
    )


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


def _causes(facts: Facts, census: Census, waits: tuple[Wait, ...], weights: tuple[Verdict, ...]) -> Iterator[Cause]:
    yield from (Cause(reason=wait.reason, message=wait.message) for wait in waits)
    if census.target is None:
        yield Cause(reason=NO_REVISION, message=_why_no_revision(census))
    waiting = [replica for replica in census.current if not replica.ready]
    troubled = [(replica, replica.trouble) for replica in waiting if replica.trouble is not None]
    if troubled:
        yield _trouble(facts, troubled, census)
    elif len(census.current_ready) < census.wanted:
        # Until the scheduler says it of a replica.
        yield from (Cause(reason=claim.reason, message=claim.message) for claim in weights if claim.status == "False")
    if census.outdated:
        message = (
            f"{len(census.current_ready)} of {census.wanted} replicas run revision {census.target} and are ready; "
            f"{len(census.outdated)} of an older revision still run"
        )
        yield Cause(reason=ROLLING_OUT, message=message)
    if len(census.current_ready) < census.wanted:
        message = f"{len(census.current_ready)} of {census.wanted} replicas are ready, {len(waiting)} loading"
        yield Cause(reason=LOADING, message=message)


def _why_no_revision(census: Census) -> str:
    if census.live:
        return "the revision that was accepted is not stored any more, so nothing is replaced until a spec is accepted"
    return "no spec was accepted yet, so there is nothing to run"


def _trouble(facts: Facts, troubled: list[tuple[Replica, Trouble]], census: Census) -> Cause:
    """The trouble of most replicas."""
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
        brief=f"{len(alike)} of {census.wanted} replicas are held up; condition {READY} has the cause",
    )


def _available(decision: Decision, census: Census, causes: tuple[Cause, ...]) -> Verdict:
    serving = f"{len(census.serving)} of {decision.replicas} replicas serve"
    taken = next((cause for cause in causes if cause.reason.endswith("NameTaken")), None)
    if taken is not None:
        return Verdict(kind=AVAILABLE, status="False", reason=taken.reason, message=taken.message)
    if decision.replicas == 0 and census.target is not None:
        message = f"{decision.message}: everything is turned off"
        return Verdict(kind=AVAILABLE, status="True", reason=SCALED_TO_ZERO, message=message)
    if census.target is not None and len(census.serving) >= decision.replicas:
        return Verdict(kind=AVAILABLE, status="True", reason=AVAILABLE, message=serving)
    cause = causes[0] if causes else Cause(reason=LOADING, message=serving)
    message = serving if cause.reason == LOADING else f"{serving}: {cause.message}"
    return Verdict(kind=AVAILABLE, status="False", reason=cause.reason, message=message)


def _progressing(accepted: Verdict, census: Census, causes: tuple[Cause, ...]) -> Verdict:
    if accepted.status == "False":
        kept = f"; revision {census.target} is kept" if census.target else ""
        message = f"the spec is refused{kept}"
        return Verdict(kind="Progressing", status="False", reason=accepted.reason, message=message)
    if not causes:
        return Verdict(kind="Progressing", status="False", reason=COMPLETE, message="everything is as it should be")
    cause = causes[0]
    stuck = cause.reason.endswith("NameTaken") or cause.reason in REFUSED
    status, message = "False" if stuck else "True", cause.brief or cause.message
    return Verdict(kind="Progressing", status=status, reason=cause.reason, message=message)


def _ready(accepted: Verdict, available: Verdict, census: Census, causes: tuple[Cause, ...]) -> Verdict:
    if accepted.status == "False":
        return Verdict(kind=READY, status="False", reason=accepted.reason, message=accepted.message)
    if available.status == "False":
        return Verdict(kind=READY, status="False", reason=available.reason, message=available.message)
    if census.outdated:
        cause = causes[0]
        return Verdict(kind=READY, status="False", reason=cause.reason, message=cause.message)
    if available.reason == SCALED_TO_ZERO:
        return Verdict(kind=READY, status="True", reason=SCALED_TO_ZERO, message=available.message)
    message = f"{len(census.serving)} of {census.wanted} replicas serve revision {census.target}"
    return Verdict(kind=READY, status="True", reason=READY, message=message)
