"""The work queue: which deployment is looked at next.

A key is queued at most once, worked on by one worker at a time, and queued again when it was touched meanwhile. Failed
keys come back with exponential backoff and jitter, others at the time that their last look asked for. Keys that cannot wait
go before all others.
"""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from vlm_operator.runtime import telemetry

K = TypeVar("K", bound=Hashable)

FIRST_BACKOFF, LONGEST_BACKOFF = 0.25, 60.0
"""Seconds until a failed key is tried again."""


class WorkQueue(Generic[K]):
    """Keys to be worked on."""

    def __init__(self, *, jitter: Callable[[], float] = random.random) -> None:
        self._first: deque[K] = deque()
        self._order: deque[K] = deque()
        """What is not queued any more was taken by way of the other, and is passed over."""
        self._queued: dict[K, float] = {}
        self._working: set[K] = set()
        self._touched: dict[K, bool] = {}
        """Whether it cannot wait."""
        self._failures: dict[K, int] = {}
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._held: set[K] = set()
        self._something = asyncio.Event()
        self._jitter = jitter

    def __len__(self) -> int:
        """How many keys wait."""
        return len(self._queued)

    def add(self, key: K, *, first: bool = False) -> None:
        """Queue a key now, before all others where it cannot wait; one that is held comes at its time."""
        if key in self._working:
            self._touched[key] = first or self._touched.get(key, False)
        elif key not in self._held and (first or key not in self._queued):
            self._queued.setdefault(key, asyncio.get_running_loop().time())
            (self._first if first else self._order).append(key)
            self._something.set()
        telemetry.QUEUE_DEPTH.set(len(self._queued))

    def add_later(self, key: K, seconds: float) -> None:
        """Queue a key after some time; replaces an earlier wish for the same key."""
        self.forget_timer(key)
        self._timers[key] = asyncio.get_running_loop().call_later(max(0.0, seconds), self._due, key)

    def forget_timer(self, key: K) -> None:
        """Drop the wish for a later look."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def oldest_age(self) -> float:
        """Seconds that the longest-waiting key has waited."""
        now = asyncio.get_running_loop().time()
        return max((now - since for since in self._queued.values()), default=0.0)

    async def work(
        self, handle: Callable[[K], Awaitable[float | None]], *, on_error: Callable[[K, Exception], float]
    ) -> None:
        """Be one worker, for ever. `handle` returns the seconds until it wants to see the key again, or None.

        `on_error` returns the seconds for which the key is held at least, whatever comes meanwhile; 0: news may bring it.
        """
        while True:
            key = await self._take()
            try:
                later = await handle(key)
                self._failures.pop(key, None)
            except Exception as error:  # noqa: BLE001 # one key's trouble must not stop the others
                hold = on_error(key, error)
                later = max(hold, self._backoff(key))
                # The retry covers whatever came meanwhile; coming back at once would defeat the backoff.
                self._touched.pop(key, None)
                if hold:
                    self._held.add(key)
            finally:
                self._working.discard(key)
            self._come_back(key, later)

    def _come_back(self, key: K, later: float | None) -> None:
        if later is None:
            self.forget_timer(key)
        else:
            self.add_later(key, later)
        first = self._touched.pop(key, None)
        if first is not None:
            self.add(key, first=first)

    async def _take(self) -> K:
        while (key := self._next()) is None:
            self._something.clear()
            await self._something.wait()
        del self._queued[key]
        self._working.add(key)
        telemetry.QUEUE_DEPTH.set(len(self._queued))
        return key

    def _next(self) -> K | None:
        while order := self._first or self._order:
            key = order.popleft()
            if key in self._queued:
                return key
        return None

    def _due(self, key: K) -> None:
        self._timers.pop(key, None)
        self._held.discard(key)
        self.add(key)

    def _backoff(self, key: K) -> float:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        longest: float = min(FIRST_BACKOFF * 2 ** min(failures, 16), LONGEST_BACKOFF)
        return longest * (0.5 + self._jitter() / 2)
