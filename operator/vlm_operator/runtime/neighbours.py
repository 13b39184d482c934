"""The look-out for other installations: of those that serve the same namespace one acts, the one whose Lease is older.

Another one lives as long as its Lease is renewed, which is seen on our own clock; as in `lease`, clocks are not compared.
Which is older is told by the API server alone. So a Lease that somebody makes up, in a namespace where they may, holds back
no installation that was there before.

The younger one acts for `ACTS_SECONDS` after the beginning of a look that showed no older one, and its last call has ended
by `CLEARED_SECONDS`. The older one takes its Lease first, and then waits for those younger ones that hold theirs: until they
have given them back, or for `CLEARED_SECONDS`, in which they have seen it. So two that see each other never both act.

An operator without a Lease is seen by nobody and gives way to everybody.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from vlm_operator.runtime.installations import (
    Installation,
    Place,
    Rank,
    covers,
    deployment_of,
    in_words,
    overlap,
    read_installation,
)
from vlm_operator.runtime.kinds import LEASE
from vlm_operator.runtime.kube import Kube, KubeError
from vlm_operator.runtime.lease import JITTER, NEVER, Lease, boot_time

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
"""Pause between looks."""
SOON_SECONDS = 1.0
"""Pause after a look that failed, and while younger ones have to notice us."""
ACTS_SECONDS = 15.0
CLEARED_SECONDS = 20.0
"""All installations must have the same two."""
RIGHTS_SECONDS = 300.0
"""Pause between questions where Leases may be listed."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Another installation whose Lease is held, and since when, on our own clock."""

    installation: Installation
    since: float
    renewed_at: float

    def lives(self, now: float) -> bool:
        """Whether its holder may still act."""
        return now < self.renewed_at + self.installation.lasts


class Neighbours:
    """Whether this process may act, by its own Lease, if there is one, and by those of other installations."""

    def __init__(
        self,
        kube: Kube,
        *,
        namespaces: Iterable[str],
        lease: Lease | None,
        clock: Callable[[], float] = boot_time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._kube = kube
        self._serves = frozenset(namespaces)
        self._lease = lease
        self._clock = clock
        self._jitter = jitter
        self._places: list[str | None] = []
        self._asked_at = NEVER
        self._seen: dict[Place, Seen] = {}
        self._older: list[Installation] = []
        self._younger: list[Installation] = []
        self._looked_at = NEVER
        self._acquired_at: float | None = None
        self._hurry_seconds: float | None = None
        """Until the next look, when that cannot wait."""
        self._led_by_stranger = ""
        """What is wrong when our Lease is held by another installation."""
        self._said: set[str] = set()
        self.no_older = asyncio.Event()
        """Our own Lease may be taken."""
        self.may_act = asyncio.Event()
        """Our own Lease is held, if there is one, and those that are younger know it."""
        self.trouble = ""
        """Why nothing may be done, as a sentence; empty when there is no reason."""

    def time_left(self) -> float:
        """Seconds in which a call that is sent now must have ended; 0 when this process must send none."""
        age = self._clock() - self._looked_at
        left = CLEARED_SECONDS - age if age < ACTS_SECONDS and not self._older and self.may_act.is_set() else 0.0
        return left if self._lease is None else min(left, self._lease.time_left())

    async def watch(self) -> None:
        """Look again and again. Ends when an older installation has come: then everything must begin anew."""
        while True:
            await self._try()
            if self._older and self.no_older.is_set():
                return
            await self._pause()

    async def look(self) -> None:
        """Look once, and judge by it. Raises `KubeError`."""
        began = self._clock()
        acquired = self._lease is not None and self._lease.acquired.is_set()
        if acquired and self._acquired_at is None:
            self._acquired_at = began
        there = await self._list()
        rank = await self._our_rank(there)
        now = self._clock()
        self._take_in(there, now)
        others = [s.installation for s in self._seen.values() if s.lives(now)]
        others = [other for other in others if overlap(other.serves, self._serves)]
        self._older = [other for other in others if rank is None or other.rank < rank]
        self._younger = [other for other in others if other not in self._older]
        self._looked_at = began
        if self._older:
            return
        self.no_older.set()
        noticed = self._acquired_at is not None and now - self._acquired_at >= CLEARED_SECONDS
        if self._lease is None or (acquired and (noticed or not self._younger)):
            self.may_act.set()

    async def _try(self) -> None:
        """Look in time. A look without an answer must leave time for another one before this process stops acting."""
        failure, soon = "", SOON_SECONDS
        try:
            async with asyncio.timeout(ACTS_SECONDS / 2):
                await self.look()
        except TimeoutError:
            failure = "the API server did not answer in time"
        except KubeError as error:
            failure, soon = str(error), max(soon, min(error.retry_after, ACTS_SECONDS / 2))
        self._hurry_seconds = soon if failure or self._younger_must_notice() else None
        if failure and self._clock() - self._looked_at < ACTS_SECONDS:
            log.info("a look for other installations failed: %s", failure)
        else:
            self._report(f"no word about other installations: {failure}" if failure else self._in_the_way())
        self._say_who_is_deaf()

    def _report(self, trouble: str) -> None:
        if trouble and trouble != self.trouble:
            log.warning("%s", trouble)
        self.trouble = trouble

    async def _pause(self) -> None:
        """Wait for the next look: a while, or until our own Lease is ours. As long as is asked for, if one more fits in."""
        pause = self._hurry_seconds or LOOK_SECONDS * (1 + JITTER * self._jitter())
        if self._lease is None or self._acquired_at is not None:
            await asyncio.sleep(pause)
            return
        try:
            async with asyncio.timeout(pause):
                await self._lease.acquired.wait()
        except TimeoutError:
            return

    def _in_the_way(self) -> str:
        if self._older:
            rule = "two must not serve the same namespace: remove one, or give each its own with --namespace"
            return f"does nothing and stands by for {self._older[0]} too; {rule}"
        if self._younger_must_notice():
            return f"waits up to {CLEARED_SECONDS:.0f} s for {self._younger[0]} too, to give way: it is younger"
        return self._led_by_stranger

    def _younger_must_notice(self) -> bool:
        return bool(self._younger) and self._acquired_at is not None and not self.may_act.is_set()

    async def _list(self) -> list[Installation]:
        if self._clock() - self._asked_at >= RIGHTS_SECONDS:
            self._places, self._asked_at = await self._where_to_look(), self._clock()
        found: list[Installation] = []
        for namespace in self._places:
            try:
                found += map(read_installation, (await self._kube.list(LEASE, namespace=namespace))[0])
            except KubeError as error:
                if error.code != 403:
                    raise
                self._asked_at = NEVER  # the right was taken away
        return found

    async def _where_to_look(self) -> list[str | None]:
        """Where this process may list Leases: everywhere, else of the namespaces that matter to it those where it may."""
        if await self._kube.may_list(LEASE, namespace=None):
            return [None]
        ours = {self._lease.place[0]} if self._lease is not None else set()
        may = {place: await self._kube.may_list(LEASE, namespace=place) for place in sorted(self._serves | ours)}
        for place in self._serves or {""}:
            if not may.get(place):
                where = place or "all namespaces"
                self._say_once(f"{where}: other installations are not seen there: give list leases to the operator")
        return [place for place, allowed in may.items() if allowed]

    async def _our_rank(self, there: Iterable[Installation]) -> Rank | None:
        """Our own place in the order; None without a Lease that was ever taken, which makes us the youngest."""
        self._led_by_stranger = ""
        if self._lease is None:
            return None
        place = self._lease.place
        ours = next((one for one in there if one.place == place), None) or await self._read(place)
        if ours is None:
            return None
        if ours.holder not in {"", self._lease.identity} and ours.serves != self._serves:
            self._judge_leader(ours, self._lease.identity)
        return ours.rank

    def _judge_leader(self, ours: Installation, identity: str) -> None:
        """Tell that the leader serves something else: it may be the old version of us, which goes, or a stranger, which stays.

        A pod that is not ready would hold up the first case, since the old version goes when the new one is ready.
        """
        said = f"{ours}, is led by {ours.holder}, and this process serves {in_words(self._serves)}"
        way_out = "if these are two installations, set --leader-elect-name for one of them"
        if deployment_of(ours.holder) == deployment_of(identity) or covers(ours.serves, self._serves):
            self._say_once(f"{said}: {way_out}")
        else:
            self._led_by_stranger = f"{said}, so that it does nothing: {way_out}"

    async def _read(self, place: Place) -> Installation | None:
        try:
            live = await self._kube.get(LEASE, namespace=place[0], name=place[1])
        except KubeError as error:
            if error.code != 403:
                raise
            return None
        return read_installation(live) if live is not None else None

    def _take_in(self, there: Iterable[Installation], now: float) -> None:
        """Note who lives. A Lease that was deleted binds as long as if it were there: its holder may not know yet."""
        ours = self._lease.place if self._lease is not None else None
        held = {one.place: one for one in there if one.holder and one.place != ours}
        free = {one.place for one in there if not one.holder}
        deleted = {place: seen for place, seen in self._seen.items() if place not in free and seen.lives(now)}
        self._seen = deleted | {place: self._now_seen(one, now) for place, one in held.items()}

    def _now_seen(self, one: Installation, now: float) -> Seen:
        known = self._seen.get(one.place)
        if known is None:
            return Seen(installation=one, since=now, renewed_at=now)
        same = known.installation.version == one.version
        return Seen(installation=one, since=known.since, renewed_at=known.renewed_at if same else now)

    def _say_who_is_deaf(self) -> None:
        """Tell of those that are younger and had the time to give way."""
        for one in self._younger if self.may_act.is_set() else ():
            if self._clock() - self._seen[one.place].since >= CLEARED_SECONDS:
                self._say_once(f"acts beside {one} too: it is younger and does not give way; it may not see our lease")

    def _say_once(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            log.warning("%s", sentence)
