"""Reads what pods do not tell themselves: how a failed engine's log ends, and the events of a pod without node or containers.

Each log once, events once a minute, a few at a time. A look at a deployment waits a moment for what it wants to know, and is
taken again when that comes later: a node that does not answer holds up nothing but a better word.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from vlm_operator.engines.base import CONTAINER, Engine
from vlm_operator.replicas.evidence import (
    Evidence,
    LogWanted,
    is_long_without_a_node,
    is_stuck,
    read_events,
    wanted_log,
)
from vlm_operator.runtime.cache import Key
from vlm_operator.runtime.kube import Kube, KubeError

READ_AGAIN = 60.0
"""Seconds until events are read again, and what could not be read."""
STUCK_READ = 2
"""Pods without a node or containers of one deployment whose events are read at the same time: for each the API server goes
through all events of the namespace, and what holds up one mostly holds up all."""
READS_AT_ONCE = 4
"""Pods of one deployment of which something is read at the same time; the others have their turn after them."""
PATIENCE = 0.3
"""Seconds that a look waits. Most logs are there in a tenth of that."""

Object = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """What is read, or was read, of one pod."""

    wanted: LogWanted | None
    """The log; None for events."""
    began_at: float
    task: asyncio.Task[Evidence]
    before: Evidence | None
    """What was known before, which counts until there is something new."""

    @property
    def found(self) -> Evidence | None:
        return self.task.result() if self.task.done() else self.before

    def is_fresh(self, *, now: float) -> bool:
        """Whether there is nothing to be read anew."""
        if not self.task.done():
            return True
        final = self.wanted is not None and not self.task.result().log_unreadable
        return final or now - self.began_at < READ_AGAIN


class EvidenceReader:
    """Remembers, for each deployment, what it read of the pods that are still there.

    `look_again` is called with a deployment of which something has been read since the last look at it.
    """

    def __init__(
        self,
        kube: Kube,
        *,
        look_again: Callable[[Key], None],
        clock: Callable[[], float] = time.time,
        patience: float = PATIENCE,
    ) -> None:
        self._kube = kube
        self._look_again = look_again
        self._clock = clock
        self._patience = patience
        self._readings: dict[Key, dict[str, _Reading]] = {}

    async def read(self, key: Key, pods: Iterable[tuple[Object, Engine]]) -> Mapping[str, Evidence]:
        """What is known of the pods by now, by their uids."""
        now = self._clock()
        known = self._readings.pop(key, {})
        wanted = {pod["metadata"]["uid"]: (pod, engine, wanted_log(pod, engine)) for pod, engine in pods}
        stuck = {uid for uid, (pod, _, log) in wanted.items() if log is None and _is_held_up(pod, now=now)}
        of_use = {uid for uid, (_, _, log) in wanted.items() if log is not None} | stuck
        kept = {uid: one for uid, one in known.items() if uid in of_use and one.wanted == wanted[uid][2]}
        fresh = {uid for uid, one in kept.items() if one.is_fresh(now=now)}
        room = READS_AT_ONCE - sum(not one.task.done() for one in kept.values())
        logs = [uid for uid in of_use - stuck - fresh if wanted[uid][2] is not None]
        missing = [*sorted(logs), *_next_stuck(stuck, kept, fresh)]
        for uid in missing[:room]:
            pod, engine, log = wanted[uid]
            task = asyncio.create_task(self._one(pod, engine, log))
            before = known[uid].found if uid in known else None
            kept[uid] = _Reading(wanted=log, began_at=now, task=task, before=before)
        for uid in known.keys() - kept.keys():
            known[uid].task.cancel()
        if kept:
            self._readings[key] = kept
        late = await self._wait(key, [one.task for one in kept.values() if not one.task.done()])
        if missing[room:] and not late:
            self._look_again(key)
        return {uid: found for uid, one in kept.items() if (found := one.found) is not None}

    def forget(self, key: Key) -> None:
        """Forget a deployment that is gone."""
        for reading in self._readings.pop(key, {}).values():
            reading.task.cancel()

    async def _wait(self, key: Key, tasks: list[asyncio.Task[Evidence]]) -> bool:
        """Wait a moment; whether something is still to come, for which there will be another look."""
        if not tasks:
            return False
        _, late = await asyncio.wait(tasks, timeout=self._patience)
        for task in late:
            task.add_done_callback(lambda done: None if done.cancelled() else self._look_again(key))
        return bool(late)

    async def _one(self, pod: Object, engine: Engine, wanted: LogWanted | None) -> Evidence:
        metadata = pod["metadata"]
        namespace = metadata["namespace"]
        try:
            if wanted is None:
                return read_events(await self._kube.events_about(namespace=namespace, uid=metadata["uid"]))
            text = await self._kube.log_tail(
                namespace=namespace, pod=metadata["name"], container=CONTAINER, previous=wanted.previous
            )
            return Evidence(log=engine.failure(wanted.exit_code, text))
        except KubeError as error:
            why = error.refusal.sentence
            return (
                Evidence(events_unreadable=why, node_is_added=False) if wanted is None else Evidence(log_unreadable=why)
            )


def _is_held_up(pod: Object, *, now: float) -> bool:
    return is_stuck(pod, now=now) or is_long_without_a_node(pod, now=now)


def _next_stuck(stuck: set[str], kept: Mapping[str, _Reading], fresh: set[str]) -> list[str]:
    """Of the pods that are held up those whose events are read next: the ones of which the least is known.

    What was read of the others counts until their turn comes again.
    """
    room = STUCK_READ - sum(kept[uid].wanted is None for uid in fresh)
    due = sorted((kept[uid].began_at if uid in kept else 0.0, uid) for uid in stuck - fresh)
    return [uid for _, uid in due[: max(0, room)]]
