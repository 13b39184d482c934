"""The plan for one deployment: from facts and a decision to actions. Pure; carries nothing out.

It repairs what stands around the replicas (`surroundings`), then brings the replicas nearer to the decision (`steer`).
"""

from collections.abc import Iterable
from dataclasses import replace

from vlm_operator.replicas.actions import CreatePod, Outcome, Plan, Wait
from vlm_operator.replicas.facts import Decision, Facts
from vlm_operator.replicas.slots import LONGEST_REFUSAL_DELAY, remember, settle
from vlm_operator.replicas.steer import resting, steer
from vlm_operator.replicas.surroundings import surroundings
from vlm_operator.replicas.target import target_of


def plan(facts: Facts, decision: Decision, *, now: float) -> Plan:
    """Actions that bring the deployment one step nearer to what is wanted; none when it is there."""
    target = target_of(facts)
    if target is None:
        return Plan(memory=facts.memory)
    facts = replace(facts, replicas=tuple(sorted(facts.replicas, key=lambda replica: replica.name)))
    memory = remember(facts, revision=target.revision, now=now)
    facts = replace(facts, memory=memory)
    around = surroundings(facts, target, now=now)
    replicas = steer(facts, target, decision, held=bool(around.waits), now=now)
    return Plan(
        actions=(*around.actions, *replicas.actions),
        waits=(*around.waits, *replicas.waits),
        memory=replace(memory, retired=replicas.retired, failures=replicas.failures),
    )


def carried_out(made: Plan, outcomes: Iterable[Outcome], *, now: float) -> Plan:
    """The plan after its actions were tried: what was refused becomes a wait, and is remembered."""
    tried = tuple(outcomes)
    memory = settle(made.memory, tried, now=now)
    slots = {outcome.action.identity.slot for outcome in refused(tried) if isinstance(outcome.action, CreatePod)}
    waits = [resting(failure) for failure in memory.failures if failure.slot in slots]
    for outcome in refused(tried):
        if not isinstance(outcome.action, CreatePod) and outcome.refusal is not None:
            message = f"{outcome.action.sentence}: {outcome.refusal.sentence}"
            waits.append(Wait(reason=outcome.refusal.reason, message=message, until=now + LONGEST_REFUSAL_DELAY))
    return replace(made, waits=(*made.waits, *waits), memory=memory)


def refused(outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """Outcomes whose object the API server did not admit."""
    return tuple(outcome for outcome in outcomes if outcome.refusal is not None and outcome.refusal.by_admission)
