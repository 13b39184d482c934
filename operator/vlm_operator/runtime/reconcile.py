"""One look at one deployment: the story of the operator, top to bottom."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from vlm_operator.replicas.actions import Outcome, Plan
from vlm_operator.replicas.facts import Facts, Memory
from vlm_operator.replicas.plan import carried_out, plan
from vlm_operator.replicas.recall import recall
from vlm_operator.replicas.size import decide_size
from vlm_operator.runtime.apply import Applier
from vlm_operator.runtime.cache import Key
from vlm_operator.runtime.gather import Gatherer
from vlm_operator.runtime.kube import NOT_DONE, KubeError
from vlm_operator.runtime.observe import Observer
from vlm_operator.runtime.publish import Publisher
from vlm_operator.status.events import deeds, turns, warnings
from vlm_operator.status.summary import summarise

T = TypeVar("T")

CLAIM_RECHECK = 15.0
"""Seconds between looks at a claim that is not ready: claims are not watched."""

CREATION_RECHECK = 60.0
"""Seconds between looks at a replica whose containers are being created: its events are not watched."""

NAMESPACE_RECHECK = 30.0
"""Seconds between looks at a deployment whose namespace is being deleted; it normally goes with it before."""

STEPS_IN_A_ROW = 8
"""Looks that follow each other at once, each of which did something. More than a step to the next wait never needs."""


class Reconciler:
    """Brings deployments one step nearer to what is wanted. `crowded` tells whether others wait for their look."""

    def __init__(
        self,
        gatherer: Gatherer,
        observer: Observer,
        applier: Applier,
        publisher: Publisher,
        *,
        crowded: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._gatherer = gatherer
        self._observer = observer
        self._applier = applier
        self._publisher = publisher
        self._clock = clock
        self._crowded = crowded
        self._memories: dict[Key, tuple[str, Memory]] = {}
        self._unwritten: set[Key] = set()
        """Deployments whose last look left the status to the next one."""
        self._steps: dict[Key, int] = {}
        """How many looks in a row did something."""

    async def reconcile(self, key: Key) -> float | None:
        """One step; returns the seconds until the next look, or None when only an event can bring news."""
        facts = await self._gather(key)
        if facts is None:
            self._memories.pop(key, None)
            self._unwritten.discard(key)
            self._steps.pop(key, None)
            self._observer.forget(key)
            return None
        now = self._clock()

        decision = decide_size(facts)
        made = plan(facts, decision, now=now)
        if made.undecided:
            facts = await self._observer.work(facts, made.undecided)
            made = plan(facts, decision, now=now)
        if facts.memory.revision and made.creates:
            # What is missing may have gone with the deployment, whose own event may be late.
            live = await self._told(key, self._gatherer.read_again(key))
            if not _is_as_seen(live, facts):
                return 0.0
        outcomes = await self._applier.apply(key, made.actions)
        done = carried_out(made, outcomes, now=now)
        self._memories[key] = (facts.uid, done.memory)
        # What was done is told before anything else can fail: no later look knows of it. A condition is told once its
        # status is written, and so is found again by the next look where that fails.
        await self._publisher.tell(facts, deeds(outcomes, known=facts.memory, memory=done.memory), now=now)

        if self._gives_way(key, outcomes):
            return 0.0
        after = await self._gather(key) if made.actions else replace(facts, memory=done.memory)
        if after is not None and after.uid == facts.uid:
            status = summarise(after, decision, done, now=now)
            await self._write(key, status)
            news = (
                *turns(before=facts.status, after=status),
                *warnings(after.findings, before=facts.status, after=status),
            )
            await self._publisher.tell(after, news, now=now)
        later = _next_look(facts, done, outcomes, now=now)
        return 0.0 if self._took_a_step(key, outcomes) else later

    def _took_a_step(self, key: Key, outcomes: tuple[Outcome, ...]) -> bool:
        """Whether the next step may follow at once: the watches bring no news of the operator's own writes.

        What is done over and over is done in vain, as where an admission webhook undoes it: that is not hurried.
        """
        done = any(outcome.refusal is None for outcome in outcomes)
        self._steps[key] = self._steps.get(key, 0) + 1 if done else 0
        return 0 < self._steps[key] <= STEPS_IN_A_ROW

    def _gives_way(self, key: Key, outcomes: tuple[Outcome, ...]) -> bool:
        """Whether others get their pods before this status is written: once in a row, and where all was done."""
        done = bool(outcomes) and all(outcome.refusal is None for outcome in outcomes)
        gives_way = done and key not in self._unwritten and self._crowded()
        (self._unwritten.add if gives_way else self._unwritten.discard)(key)
        return gives_way

    async def _write(self, key: Key, status: Mapping[str, Any]) -> None:
        """Write the status. A deployment that is not as it was seen is read anew, for the next look."""
        try:
            await self._publisher.write(key, status)
        except KubeError as error:
            if error.code == 409 or error.not_found:
                await self._gatherer.read_again(key)
            raise

    async def _gather(self, key: Key) -> Facts | None:
        uid, memory = self._memories.get(key, ("", Memory()))
        facts = await self._told(key, self._gatherer.gather(key, expected=memory.expected))
        if facts is None:
            return None
        facts = replace(facts, memory=memory if uid == facts.uid else recall(facts.status))
        return self._observer.complete(key, facts)

    async def _told(self, key: Key, reading: Awaitable[T]) -> T:
        """Read; where a permission for it is missing, say so in the status."""
        try:
            return await reading
        except KubeError as error:
            if error.refusal.lacks_permission:
                await self._publisher.give_up(key, error.refusal, now=self._clock())
            raise


def _is_as_seen(live: Mapping[str, Any] | None, facts: Facts) -> bool:
    """Whether a deployment is still there and wants what the facts say."""
    metadata = live["metadata"] if live is not None else {}
    same = (metadata.get("uid"), metadata.get("generation")) == (facts.uid, facts.generation)
    return same and "deletionTimestamp" not in metadata


def _next_look(facts: Facts, done: Plan, outcomes: tuple[Outcome, ...], *, now: float) -> float | None:
    """Seconds until the next look. What was not done, and may be done a little later, is raised for the queue to back off."""
    refusals = [outcome.refusal for outcome in outcomes if outcome.refusal is not None]
    passing = [refusal for refusal in refusals if refusal.passing]
    if not passing and any(refusal.namespace_ends for refusal in refusals):
        return NAMESPACE_RECHECK
    # Where the world was not as it was seen, it has been read again.
    again = passing or [refusal for refusal in refusals if not refusal.by_admission]
    if again:
        wait = max(refusal.retry_after for refusal in again)
        raise KubeError(again[0].code, NOT_DONE, again[0].message, retry_after=wait)
    looks = [done.next_look - now] if done.next_look is not None else []
    if facts.claim is not None and facts.claim.phase != "Bound":
        looks.append(CLAIM_RECHECK)
    if any(replica.in_creation for replica in facts.replicas):
        looks.append(CREATION_RECHECK)
    return min(looks, default=None)
