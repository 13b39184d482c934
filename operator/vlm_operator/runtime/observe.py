"""What replicas themselves know: how busy they are while they drain, and whether those on standby are still alive.

Pods are read beside the looks, so that an engine that answers late delays nobody; each answer brings about the next look.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from vlm_operator.api.names import DRAINING, WARM
from vlm_operator.engines.base import Resolved
from vlm_operator.engines.registry import engine
from vlm_operator.replicas.draining import READ_AGAIN
from vlm_operator.replicas.facts import Facts, Replica, StoredRevision
from vlm_operator.replicas.reading import read_replica
from vlm_operator.runtime.cache import Cache, Key
from vlm_operator.runtime.kinds import ENDPOINT_SLICE
from vlm_operator.runtime.kube import Kube, KubeError
from vlm_operator.runtime.pods import Pods

log = logging.getLogger(__name__)

VERIFY_EVERY = 300.0
"""Seconds between two requests to a replica on standby."""
VERIFY_AGAIN = 30.0
"""Seconds after one that was not answered as it should be: twice in a row, and the replica is replaced."""
VERIFY_ROUND = 10.0
"""Seconds between two looks at which of them are due."""
SERVICE_NAME = "kubernetes.io/service-name"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What one read of a draining replica found."""

    routed: bool | None
    in_flight: int | None
    at: float


class Observer:
    """Reads pods and endpoints; never writes. `wake` has the deployment looked at again."""

    def __init__(
        self,
        kube: Kube,
        pods: Pods,
        cache: Cache,
        wake: Callable[[Key], None],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._kube = kube
        self._pods = pods
        self._cache = cache
        self._wake = wake
        self._clock = clock
        self._beside: set[asyncio.Task[None]] = set()
        self._reads: dict[str, asyncio.Task[None]] = {}
        self._readings: dict[str, Reading] = {}
        self._standing_by: dict[Key, list[tuple[Replica, StoredRevision]]] = {}
        self._asked: dict[str, float] = {}
        self._doubted: set[str] = set()
        self._sick: dict[str, str] = {}
        self._told: dict[Key, str] = {}
        self._cache_tokens: dict[Key, dict[str, int]] = {}
        self._asked_for_cache: dict[Key, set[str]] = {}

    def complete(self, key: Key, facts: Facts) -> Facts:
        """The facts with what is known of the replicas' own words. From now on those that drain or stand by are asked."""
        revisions = {known.revision: known for known in facts.revisions}
        for replica in facts.replicas:
            if replica.live and replica.role == DRAINING and not replica.loading:
                self._read(key, replica, facts.revisions)
        standing_by = [r for r in facts.replicas if r.live and r.ready and r.role == WARM and r.revision in revisions]
        self._ask_for_cache(key, facts, revisions)
        self._standing_by[key] = [(replica, revisions[replica.revision]) for replica in standing_by]
        return replace(
            facts,
            replicas=tuple(map(self._completed, facts.replicas)),
            reported_kv_tokens=self._cache_tokens.get(key, {}),
        )

    def forget(self, key: Key) -> None:
        """Ask no replica of a deployment that is gone."""
        for known in (self._standing_by, self._told, self._cache_tokens, self._asked_for_cache):
            known.pop(key, None)

    async def work(self, facts: Facts, replicas: Iterable[Replica]) -> Facts:
        """The facts with the work in flight of some replicas, read now."""
        asked = {replica.uid: replica for replica in replicas}
        found = await asyncio.gather(*(self._in_flight(replica, facts.revisions) for replica in asked.values()))
        known = dict(zip(asked, found, strict=True))
        return replace(
            facts, replicas=tuple(replace(r, in_flight=known.get(r.uid, r.in_flight)) for r in facts.replicas)
        )

    async def verify(self) -> None:
        """Ask replicas on standby, for ever: each every five minutes, and not all at once."""
        while True:
            there = [(key, *found) for key, standing_by in self._standing_by.items() for found in standing_by]
            uids = {replica.uid for _, replica, _ in there}
            self._asked = {uid: at for uid, at in self._asked.items() if uid in uids}
            self._sick = {uid: words for uid, words in self._sick.items() if uid in uids}
            self._doubted &= uids
            await asyncio.gather(*(self._verify(*one) for one in there if self._due(one[1].uid)))
            await asyncio.sleep(VERIFY_ROUND)

    def _due(self, uid: str) -> bool:
        """Whether a replica is to be asked now. The first time is spread by its uid."""
        now = time.monotonic()
        asked = self._asked.setdefault(uid, now - crc32(uid.encode()) % int(VERIFY_EVERY))
        return now - asked >= (VERIFY_AGAIN if uid in self._doubted else VERIFY_EVERY)

    def _ask_for_cache(self, key: Key, facts: Facts, revisions: Mapping[str, StoredRevision]) -> None:
        """Ask the first ready replica of each revision for its KV cache, unless the status has it."""
        told = {name: tokens for name, tokens in self._cache_tokens.get(key, {}).items() if name in revisions}
        self._cache_tokens[key] = told
        known = {(facts.status.get("sizing") or {}).get("reportedRevision"), *told}
        asked = self._asked_for_cache.setdefault(key, set())
        asked &= {replica.uid for replica in facts.replicas}
        for replica in facts.replicas:
            unknown = replica.revision in revisions and replica.revision not in known
            if unknown and replica.live and replica.ready and replica.uid not in asked:
                known.add(replica.revision)
                asked.add(replica.uid)
                self._start(self._learn_cache(key, replica, revisions[replica.revision]))

    async def _learn_cache(self, key: Key, replica: Replica, revision: StoredRevision) -> None:
        tokens = await self._pods.kv_cache_tokens(replica.address, **served_by(revision.resolved))
        if tokens is not None and key in self._asked_for_cache:
            self._cache_tokens.setdefault(key, {})[replica.revision] = tokens
            self._wake(key)

    def _completed(self, replica: Replica) -> Replica:
        if replica.uid in self._sick and replica.role == WARM:
            return replace(replica, sick=self._sick[replica.uid])
        reading = self._readings.get(replica.uid)
        if reading is None or replica.role != DRAINING:
            return replica
        return replace(replica, routed=reading.routed, in_flight=reading.in_flight, read_at=reading.at)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside."""
        task = asyncio.get_running_loop().create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    def _read(self, key: Key, replica: Replica, revisions: tuple[StoredRevision, ...]) -> None:
        if replica.uid not in self._reads:
            task = asyncio.get_running_loop().create_task(self._follow(key, replica, revisions))
            self._reads[replica.uid] = task
            task.add_done_callback(lambda _: self._forget(replica.uid))

    def _forget(self, uid: str) -> None:
        self._reads.pop(uid, None)
        self._readings.pop(uid, None)

    async def _follow(self, key: Key, replica: Replica, revisions: tuple[StoredRevision, ...]) -> None:
        """Read a draining replica until it does not drain any more."""
        while self._drains(key, replica):
            routed = await self._routed(key, replica)
            in_flight = await self._in_flight(replica, revisions) if routed is False else None
            self._readings[replica.uid] = Reading(routed=routed, in_flight=in_flight, at=self._clock())
            self._wake(key)
            await asyncio.sleep(READ_AGAIN)

    def _drains(self, key: Key, replica: Replica) -> bool:
        pod = self._cache.children(key).get(("Pod", replica.name))
        found = read_replica(pod, deployment=key[1], uid="") if pod is not None else None
        return found is not None and found.uid == replica.uid and found.role == DRAINING and not found.terminating

    async def _routed(self, key: Key, replica: Replica) -> bool | None:
        """Whether the endpoints of the Service still name the pod; None when they cannot be read."""
        try:
            slices = await endpoint_slices(self._kube, key)
        except KubeError as error:
            if self._told.get(key) != error.message:
                log.warning("%s/%s: the endpoints of its Service cannot be read: %s", *key, error)
            self._told[key] = error.message
            return None
        self._told.pop(key, None)
        return replica.uid in routed_uids(slices)

    async def _in_flight(self, replica: Replica, revisions: tuple[StoredRevision, ...]) -> int | None:
        revision = next((known for known in revisions if known.revision == replica.revision), None)
        if revision is None or not replica.address:
            return None
        work = await self._pods.work(replica.address, **served_by(revision.resolved))
        return work.in_flight

    async def _verify(self, key: Key, replica: Replica, revision: StoredRevision) -> None:
        by_request = revision.resolved.inputs.engine.verification != "Health"
        verdict = await self._pods.verify(replica.address, **served_by(revision.resolved), by_request=by_request)
        self._asked[replica.uid] = time.monotonic()
        if verdict.alive is None:
            log.info("%s/%s: replica %s on standby %s", *key, replica.name, verdict.message)
            return
        if verdict.alive:
            self._doubted.discard(replica.uid)
            self._sick.pop(replica.uid, None)
            return
        log.warning("%s/%s: replica %s on standby %s", *key, replica.name, verdict.message)
        if replica.uid in self._doubted:
            self._sick[replica.uid] = verdict.message
            self._wake(key)
        self._doubted.add(replica.uid)


async def endpoint_slices(kube: Kube, key: Key) -> list[dict[str, Any]]:
    """The EndpointSlices of the deployment's Service."""
    slices, _ = await kube.list(ENDPOINT_SLICE, namespace=key[0], selector=f"{SERVICE_NAME}={key[1]}")
    return slices


def routed_uids(slices: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The uids of the pods to which EndpointSlices lead."""
    endpoints = (endpoint for found in slices for endpoint in found.get("endpoints") or ())
    return frozenset((endpoint.get("targetRef") or {}).get("uid", "") for endpoint in endpoints)


def served_by(resolved: Resolved) -> dict[str, Any]:
    """Whom the pods of a revision are asked as."""
    kind = resolved.inputs.engine.type
    return {"engine": engine(kind), "version": resolved.engine_version, "model": resolved.inputs.model.name}
