"""Sentences about decisions, with the numbers."""

from vlm_operator.scaling.decision import Candidate, Decision, Limit, Reason, Stage

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
    Reason.BLIND: "no replica can be read: {after} stay",
}


def sentence(decision: Decision) -> str:
    """What the decision is and what led to it."""
    parts = [_basis(decision), *(_limit(limit) for limit in decision.limits)]
    parts += [f"{flaw.signal} is {_words(flaw.quality)} at {flaw.count}" for flaw in decision.flaws[:3]]
    if decision.front_end_bound:
        parts.append("requests wait before engines that have room: more CPU per replica would help more")
    return f"{decision.replicas} replicas: " + "; ".join(parts)


def _basis(decision: Decision) -> str:
    for stage in decision.stages:
        if stage.name == decision.binding:
            return _stage(stage)
    for one in decision.candidates:
        if one.name == decision.binding:
            return _candidate(one)
    if not decision.stages and decision.binding == "" and decision.limits[:1] == ():
        return "nothing is measured, so that the size stays"
    return f"{decision.wanted} wanted"


def _stage(stage: Stage) -> str:
    parts = f"level {stage.level:.1f} + headroom {stage.headroom:.1f} + queue {stage.drain:.1f}"
    return f"{STAGES[stage.name]} need {stage.need:.1f} ({parts})"


def _candidate(one: Candidate) -> str:
    value = "unknown" if one.value is None else f"{one.value:.4g}"
    return f"{one.name} is {value} with a target of {one.target:.4g}, which asks for {one.replicas}"


def _limit(limit: Limit) -> str:
    return LIMITS[limit.name].format(after=limit.after)


def _words(name: str) -> str:
    """`NotANumber` as words."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()
