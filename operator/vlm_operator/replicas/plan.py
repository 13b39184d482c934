"""The plan for one deployment: from facts and a decision to actions. Pure; carries nothing out.

It repairs what stands around the replicas (`surroundings`), then brings the replicas nearer to the decision (`steer`).
"""

from collections.abc import Iterable
from dataclasses import replace

from vlm_operator.api.names import WARM
from vlm_operator.api.rollout import Rollout
from vlm_operator.api.scaling import WarmPool
from vlm_operator.replicas.actions import CreatePod, Outcome, Plan, Wait
from vlm_operator.replicas.draining import idle_since
from vlm_operator.replicas.facts import Decision, Facts
from vlm_operator.replicas.progress import progress_of
from vlm_operator.replicas.rollout import Rules
from vlm_operator.replicas.settings import Settings
from vlm_operator.replicas.sizes import sizes_of
from vlm_operator.replicas.slots import LONGEST_REFUSAL_DELAY, remember, settle
from vlm_operator.replicas.steer import resting, steer
from vlm_operator.replicas.surroundings import surroundings
from vlm_operator.replicas.target import settings_of, target_of


def plan(facts: Facts, decision: Decision, *, now: float) -> Plan:
    """Actions that bring the deployment one step nearer to what is wanted; none when it is there."""
    target = target_of(facts)
    if target is None:
        return Plan(memory=facts.memory)
    facts = replace(facts, replicas=tuple(sorted(facts.replicas, key=lambda replica: replica.name)))
    memory = replace(remember(facts, revision=target.revision, now=now), idle_since=idle_since(facts))
    facts = replace(facts, memory=memory)
    settings = settings_of(facts)
    in_force = settings or _as_there_is(facts)
    sizes = sizes_of(decision, in_force)
    rules = Rules.of(target, in_force)
    progress = progress_of(facts, target, sizes, rules, now=now)
    around = surroundings(facts, target, settings, sizes, verdict=progress.verdict if progress else "", now=now)
    replicas = steer(facts, target, sizes, rules, held=bool(around.waits), now=now)
    return Plan(
        actions=(*around.actions, *replicas.actions),
        waits=(*around.waits, *replicas.waits),
        memory=replace(memory, retired=replicas.retired, failures=replicas.failures, recalled=False),
        sizes=sizes,
        progress=progress,
        undecided=replicas.undecided,
        timers=(*replicas.timers, *([progress.deadline] if progress and progress.deadline else ())),
    )


def _as_there_is(facts: Facts) -> Settings:
    """Settings by what there is, where nobody knows them: warm replicas are not given up because their pool was forgotten."""
    warm = sum(replica.live and replica.role == WARM for replica in facts.replicas)
    pool = WarmPool(size=warm, mode="Standby") if warm else None
    return Settings.model_construct(warm_pool=pool, rollout=Rollout.defaults())


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
