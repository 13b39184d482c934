"""Leader election by a Lease: of several operators one acts, the others follow and stand ready.

No time in the record is ever compared with a clock: the clocks of machines differ and may be set back. A follower takes the
lease when it has itself seen the record unchanged for the lease's whole duration, on a clock that also runs while the
machine is suspended. The leader counts from before it sent its last renewal and stops acting earlier, at the deadline. So
two never lead at once. A call that was sent in time and arrives late remains; names and preconditions make it harmless.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from vlm_operator.api.names import LEASE_LABELS
from vlm_operator.runtime.kinds import LEASE
from vlm_operator.runtime.kube import Kube, KubeError, Object

log = logging.getLogger(__name__)

JITTER = 0.2
"""Part of the pause between tries by which it is lengthened at random, so that candidates do not ask in step."""
SOON = 0.2
"""Seconds between a renewal that was not answered and the next one."""
NEVER = float("-inf")


@dataclass(frozen=True, kw_only=True)
class Durations:
    """How long a lease holds and how it is kept: retry < deadline < lease."""

    lease_seconds: int
    """How long a follower waits for the next renewal before it takes over."""
    deadline_seconds: float
    """How long the leader acts after its last renewal. What is left of the lease is for calls under way."""
    retry_seconds: float
    """Pause between renewals, and between the looks of a follower."""


class LeaseLostError(Exception):
    """Why this process leads no longer, as a sentence for a person."""


def boot_time() -> float:
    """Seconds on a clock that nobody sets and that counts time in which the machine was suspended, where there is one."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def wall_time() -> datetime:
    """What people see in the record; nothing is decided by it."""
    return datetime.now(UTC)


class Lease:
    """One candidate for the lease. `identity` must be that of no other process, not even of an earlier one of this pod."""

    def __init__(
        self,
        kube: Kube,
        *,
        namespace: str,
        name: str,
        identity: str,
        durations: Durations,
        annotations: Mapping[str, str],
        clock: Callable[[], float] = boot_time,
        wall: Callable[[], datetime] = wall_time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._kube = kube
        self.place = namespace, name
        """Namespace and name of the record."""
        self.identity = identity
        self._durations = durations
        self._marks = {"labels": LEASE_LABELS, "annotations": dict(annotations)}
        self._clock = clock
        self._wall = wall
        self._jitter = jitter
        self._metadata: Object | None = None
        self._spec: Object = {}
        self._spec_version = ""
        self._spec_since = NEVER
        self._up_to_date = False
        self._unsure = False
        """The last write has not been answered."""
        self._renewed_at = NEVER
        self._asked_to_wait = 0.0
        self._unanswered = False
        self.acquired = asyncio.Event()
        self.trouble = ""
        """Why the last try failed, as part of a sentence; empty when it did not."""

    def __str__(self) -> str:
        return f"lease {'/'.join(self.place)}"

    def time_left(self) -> float:
        """Seconds in which a call that is sent now must have ended; 0 when this process must send none."""
        age = self._clock() - self._renewed_at
        return self._durations.lease_seconds - age if age < self._durations.deadline_seconds else 0.0

    async def hold(self) -> None:
        """Become the leader and stay it. Ends only with `LeaseLostError`."""
        await self._try()
        while not self.acquired.is_set():
            await asyncio.sleep(self._pause())
            await self._try()
        log.info("leads as %s by the %s", self.identity, self)
        while self.time_left():
            await asyncio.sleep(self._pause())
            await self._try()
        raise LeaseLostError(f"the {self} is lost: {self._why_lost()}")

    async def release(self) -> None:
        """Give the lease back, if this process may hold it, for a successor to take at once. Nothing may act any longer."""
        if not self.time_left() and not self._unsure:
            return
        try:
            async with asyncio.timeout(self._durations.deadline_seconds / 2):
                given_back = await self.give_back()
        except (KubeError, TimeoutError) as error:
            log.warning("the %s could not be given back: %s", self, str(error) or "no answer in time")
        else:
            if given_back:
                log.info("gave the %s back", self)

    async def give_back(self) -> bool:
        """Lead no longer, then say so in the record if it is ours, and return whether it was. Raises `KubeError`."""
        self._renewed_at = NEVER
        if not self._up_to_date:
            self._observe(await self._read())
        ours = self._holder == self.identity
        if ours:
            await self._write({"holderIdentity": "", "leaseDurationSeconds": 1})
        return ours

    async def attempt(self) -> None:
        """Renew the lease when it is ours, take it when it is free. Raises `KubeError`; 409: somebody was quicker.

        A lease that has lapsed stays lost, though it may be free again: others may have led meanwhile.
        """
        if not self._up_to_date:
            self._observe(await self._read())
        if self._lapsed or self._free_in() > 0:
            return
        spec = {"holderIdentity": self.identity, "leaseDurationSeconds": self._durations.lease_seconds}
        if self._holder != self.identity:
            transitions = self._spec.get("leaseTransitions", 0) + 1 if self._spec else 0
            spec |= {"acquireTime": _micro_time(self._wall()), "leaseTransitions": transitions}
        # Until it is answered nobody knows what a write did, and others count from any moment after it was sent.
        self._up_to_date, self._unsure, sent_at = False, True, self._clock()
        written = await self._write(spec)
        self._up_to_date, self._renewed_at = True, sent_at
        self._observe(written)
        self.acquired.set()

    async def _try(self) -> None:
        """Attempt it in time. A call without an answer must leave time for another one before the deadline."""
        trouble, self._asked_to_wait, self._unanswered = "", 0.0, False
        try:
            async with asyncio.timeout(self._durations.deadline_seconds / 2):
                await self.attempt()
        except TimeoutError:
            trouble, self._unanswered = "the API server did not answer in time", True
        except KubeError as error:
            trouble = "" if error.code == 409 else self._in_words(error)
            self._asked_to_wait = error.retry_after
        if self._lapsed and not trouble:
            # What went wrong before is why.
            return
        if trouble and trouble != self.trouble:
            log.warning("the %s cannot be had for now: %s", self, trouble)
        self.trouble = trouble

    def _pause(self) -> float:
        """Seconds until the next try. A leader that is asked to wait does so only while one more try fits into the deadline."""
        if self._unanswered and self.acquired.is_set():
            # That try took half of the deadline; the next one needs the other half.
            return SOON
        wait = min(self._asked_to_wait, self._durations.deadline_seconds / 2)
        pause = max(self._durations.retry_seconds * (1 + JITTER * self._jitter()), wait)
        free_in = self._free_in()
        return min(pause, free_in) if free_in > 0 else pause

    def _free_in(self) -> float:
        """Seconds until the lease may be taken. A record that was deleted binds as long as if it were there."""
        if self._holder in {"", self.identity}:
            return 0.0
        lasts: float = self._spec.get("leaseDurationSeconds") or self._durations.lease_seconds
        return max(0.0, self._spec_since + lasts - self._clock())

    @property
    def _lapsed(self) -> bool:
        return self.acquired.is_set() and not self.time_left()

    @property
    def _holder(self) -> str:
        return self._spec.get("holderIdentity") or ""

    def _observe(self, live: Object | None) -> None:
        """Take in the record as it was answered. It was written before now, so that its time runs from now at the latest."""
        self._unsure = False
        self._metadata = live["metadata"] if live is not None else None
        if live is not None and live["metadata"]["resourceVersion"] != self._spec_version:
            # Not the spec is compared: with clocks that are set back it may look again as it did before.
            self._spec_version, self._spec = live["metadata"]["resourceVersion"], live.get("spec") or {}
            self._spec_since = self._clock()
        if self._holder != self.identity:
            self._up_to_date, self._renewed_at = False, NEVER

    async def _read(self) -> Object | None:
        return await self._kube.get(LEASE, namespace=self.place[0], name=self.place[1])

    async def _write(self, spec: Object) -> Object:
        now = self._wall()
        if _micro_time(now) == self._spec.get("renewTime"):
            # A write that changes nothing makes no new version, so that no follower would see the renewal.
            now += timedelta(microseconds=1)
        spec = spec | {"renewTime": _micro_time(now)}
        metadata = {"namespace": self.place[0], "name": self.place[1]} | self._marks
        if self._metadata is None:
            return await self._create(metadata, spec)
        seen = {field: self._metadata[field] for field in ("uid", "resourceVersion")}
        return await self._kube.change(LEASE, {"metadata": metadata | seen, "spec": spec})

    async def _create(self, metadata: Object, spec: Object) -> Object:
        manifest = {"apiVersion": "coordination.k8s.io/v1", "kind": LEASE.kind, "metadata": metadata, "spec": spec}
        try:
            return await self._kube.create(LEASE, manifest)
        except KubeError as error:
            if error.code != 404:
                raise
            way_out = "create it, or correct --leader-elect-namespace"
            raise KubeError(404, error.reason, f"there is no namespace {self.place[0]}; {way_out}") from error

    def _in_words(self, error: KubeError) -> str:
        """A refusal for lack of a permission is also all that is told of a namespace that is not there."""
        if not error.refusal.lacks_permission:
            return str(error)
        way_out = f"or correct --leader-elect-namespace {self.place[0]} and --leader-elect-name {self.place[1]}"
        return f"{error.refusal.sentence}, {way_out}"

    def _why_lost(self) -> str:
        if self._holder != self.identity:
            return f"{self._holder or 'nobody'} holds it now"
        last = self.trouble or "this process stood still"
        return f"it was not renewed for {self._durations.deadline_seconds:g} s: {last}"


def _micro_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
