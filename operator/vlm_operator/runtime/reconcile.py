"""One look at one deployment: the story of the operator, top to bottom."""

import time
from collections.abc import Callable
from dataclasses import replace

from vlm_operator.replicas.actions import Outcome, Plan
from vlm_operator.replicas.facts import Facts, Memory
from vlm_operator.replicas.plan import carried_out, plan
from vlm_operator.replicas.recall import recall
from vlm_operator.replicas.size import decide_size
from vlm_operator.runtime.apply import Applier
from vlm_operator.runtime.cache import Key
from vlm_operator.runtime.gather import Gatherer
from vlm_operator.runtime.kube import KubeError
from vlm_operator.runtime.publish import Publisher
from vlm_operator.status.events import deeds, turns
from vlm_operator.status.summary import summarise

CLAIM_RECHECK = 15.0
"""Seconds between looks at a claim that is not ready: claims are not watched."""

NAMESPACE_RECHECK = 30.0
"""Seconds between looks at a deployment whose namespace is being deleted; it normally goes with it before."""


class Reconciler:
    """Brings deployments one step nearer to what is wanted."""

    def __init__(
        self, gatherer: Gatherer, applier: Applier, publisher: Publisher, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._gatherer = gatherer
        self._applier = applier
        self._publisher = publisher
        self._clock = clock
        self._memories: dict[Key, tuple[str, Memory]] = {}

    async def reconcile(self, key: Key) -> float | None:
        """One step; returns the seconds until the next look, or None when only an event can bring news."""
        facts = await self._gather(key)
        if facts is None:
            self._memories.pop(key, None)
            return None
        now = self._clock()

        decision = decide_size(facts)
        made = plan(facts, decision, now=now)
        outcomes = await self._applier.apply(key, made.actions)
        done = carried_out(made, outcomes, now=now)
        self._memories[key] = (facts.uid, done.memory)
        # What was done is told before anything else can fail: no later look knows of it. A condition is told once its
        # status is written, and so is found again by the next look where that fails.
        await self._publisher.tell(facts, deeds(outcomes, known=facts.memory, memory=done.memory), now=now)

        after = await self._gather(key) if made.actions else replace(facts, memory=done.memory)
        if after is not None and after.uid == facts.uid:
            status = summarise(after, decision, done, now=now)
            await self._publisher.write(key, status)
            await self._publisher.tell(after, turns(before=facts.status, after=status), now=now)
        return _next_look(facts, done, outcomes, now=now)

    async def _gather(self, key: Key) -> Facts | None:
        uid, memory = self._memories.get(key, ("", Memory()))
        try:
            facts = await self._gatherer.gather(key, expected=memory.expected)
        except KubeError as error:
            if error.refusal.lacks_permission:
                await self._publisher.give_up(key, error.refusal, now=self._clock())
            raise
        if facts is None:
            return None
        return replace(facts, memory=memory if uid == facts.uid else recall(facts.status))


def _next_look(facts: Facts, done: Plan, outcomes: tuple[Outcome, ...], *, now: float) -> float | None:
    """Seconds until the next look. What the API server could not do for now is raised, for the queue to back off."""
    refusals = [outcome.refusal for outcome in outcomes if outcome.refusal is not None]
    for refusal in refusals:
        if refusal.passing:
            raise KubeError(refusal.code, "NotDone", refusal.message)
    if any(refusal.namespace_ends for refusal in refusals):
        return NAMESPACE_RECHECK
    if any(not refusal.by_admission for refusal in refusals):
        # The world was not as it was seen; it has been read again.
        return 0.0
    looks = [done.next_look - now] if done.next_look is not None else []
    if facts.claim is not None and facts.claim.phase != "Bound":
        looks.append(CLAIM_RECHECK)
    return min(looks, default=None)
