"""Sentences about decisions, with the numbers."""

from vlm_operator.scaling.decision import Candidate, Flaw, Limit, Reason, Stage
from vlm_operator.scaling.proposal import Proposal
from vlm_operator.scaling.signals import Quality

STAGES = {
    Reason.FRONT_END: "images to prepare",
    Reason.LANE: "prompts to work off",
    Reason.SLOTS: "running requests",
    Reason.KV_CACHE: "the KV cache",
}
LIMITS = {
    Reason.FLOOR: "minReplicas and the warm pool within it keep {after}",
    Reason.SCHEDULE: "the schedule in force keeps {after}",
    Reason.CEILING: "maxReplicas allows {after}",
    Reason.HELD: "{after} were wanted within the window",
    Reason.PACE: "the pace allows {after} for now",
    Reason.REBUILDING: "too little of the last hour is known to scale down: {after} stay",
    Reason.PARTIAL: "signals are missing, so that nothing scales down: {after} stay",
}


def sentence(
    replicas: int, proposal: Proposal, limits: tuple[Limit, ...], flaws: tuple[Flaw, ...], *, front_end_bound: bool
) -> str:
    """What the decision is and what led to it."""
    parts = [_basis(proposal), *(LIMITS[limit.name].format(after=limit.after) for limit in limits)]
    parts += [_flaw(flaw) for flaw in flaws[:3]]
    unread = (one for one in proposal.candidates if one.quality is not Quality.FINE)
    parts += [f"{one.name} is {_words(one.quality)}" for one in unread]
    if front_end_bound:
        parts.append("requests wait before engines that have room: more CPU per replica would help more")
    return f"{replicas} replicas: " + "; ".join(parts)


def _basis(proposal: Proposal) -> str:
    for stage in proposal.stages:
        if stage.name == proposal.binding:
            return _stage(stage)
    for one in proposal.candidates:
        if one.name == proposal.binding:
            return _candidate(one)
    if proposal.reason is Reason.BLIND:
        return f"no replica can be read: at least {proposal.replicas} stay"
    if proposal.reason is Reason.WARMING_UP:
        return "nothing was measured yet, so that the size stays"
    return "there is nothing to do"


def _flaw(flaw: Flaw) -> str:
    return f"{flaw.signal} is {_words(flaw.quality)}" + (f" at {flaw.count}" if flaw.count else "")


def _stage(stage: Stage) -> str:
    parts = f"level {stage.level:.1f} + headroom {stage.headroom:.1f} + queue {stage.drain:.1f}"
    return f"{STAGES[stage.name]} need {stage.need:.1f} ({parts})"


def _candidate(one: Candidate) -> str:
    value = "unknown" if one.value is None else f"{one.value:.4g}"
    return f"{one.name} is {value} with a target of {one.target:.4g}, which asks for {one.replicas}"


def _words(name: str) -> str:
    """`NotANumber` as words."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()
