"""The work queue: no key twice, none by two workers, nothing forgotten, and a failing key waits longer each time.

Time is that of `SteppedLoop`, which jumps to the next timer instead of waiting for it.
"""

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest

from vlm_operator.runtime.queue import FIRST_BACKOFF, LONGEST_BACKOFF, WorkQueue

Log = list[tuple[float, str]]
Handler = Callable[[str], Awaitable[float | None]]


class _NoWaiting(selectors.DefaultSelector):
    """Never blocks; tells the loop's clock how long it would have."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise AssertionError("everything waits for something that will never happen")
        self.now += max(timeout, 0.0)
        return super().select(0)


class SteppedLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer."""

    def __init__(self) -> None:
        self._stepped = _NoWaiting()
        super().__init__(self._stepped)

    def time(self) -> float:
        return self._stepped.now


def run(story: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=SteppedLoop) as runner:
        runner.run(story)


class Workshop:
    """A queue with workers, and a log of what they began and when."""

    def __init__(
        self, *, workers: int = 1, handle: Handler | None = None, jitter: float = 1.0, hold: float = 0.0
    ) -> None:
        self.queue: WorkQueue[str] = WorkQueue(jitter=lambda: jitter)
        self.log: Log = []
        self.errors: list[tuple[str, str]] = []
        self._handle = handle
        self._hold = hold
        self._workers = workers

    async def __aenter__(self) -> "Workshop":
        self._tasks = [
            asyncio.create_task(self.queue.work(self._look, on_error=self._complain)) for _ in range(self._workers)
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _look(self, key: str) -> float | None:
        self.log.append((asyncio.get_running_loop().time(), key))
        return await self._handle(key) if self._handle else None

    def _complain(self, key: str, error: Exception) -> float:
        self.errors.append((key, str(error)))
        return self._hold

    def keys(self) -> list[str]:
        return [key for _, key in self.log]

    def times(self, key: str) -> list[float]:
        return [round(at, 3) for at, other in self.log if other == key]


def test_keys_are_worked_on_in_the_order_of_their_coming_and_once() -> None:
    async def story() -> None:
        async with Workshop() as shop:
            for key in "abacab":
                shop.queue.add(key)
            await asyncio.sleep(1)
            assert shop.keys() == ["a", "b", "c"]
            shop.queue.add("b")
            await asyncio.sleep(1)
            assert shop.keys() == ["a", "b", "c", "b"]

    run(story())


def test_what_cannot_wait_goes_first_and_once() -> None:
    async def story() -> None:
        async with Workshop() as shop:
            for key in "abc":
                shop.queue.add(key)
            for key in "cdc":
                shop.queue.add(key, first=True)
            assert len(shop.queue) == 4
            await asyncio.sleep(1)
            assert shop.keys() == ["c", "d", "a", "b"]
            shop.queue.add("c")
            await asyncio.sleep(1)
            assert shop.keys()[4:] == ["c"]

    run(story())


def test_what_cannot_wait_goes_first_also_after_it_was_at_work() -> None:
    async def slowly(_: str) -> None:
        await asyncio.sleep(10)

    async def story() -> None:
        async with Workshop(handle=slowly) as shop:
            shop.queue.add("a")
            await asyncio.sleep(1)
            for key in "bc":
                shop.queue.add(key)
            shop.queue.add("a", first=True)
            shop.queue.add("a")
            await asyncio.sleep(100)
            assert shop.keys() == ["a", "a", "b", "c"]

    run(story())


def test_what_cannot_wait_waits_out_its_backoff() -> None:
    async def fails(_: str) -> float | None:
        raise OSError("no")

    async def story() -> None:
        async with Workshop(handle=fails, hold=50.0) as shop:
            shop.queue.add("a")
            await asyncio.sleep(1)
            shop.queue.add("a", first=True)
            await asyncio.sleep(45)
            assert shop.times("a") == [0]

    run(story())


def test_one_key_is_never_with_two_workers_and_different_keys_are() -> None:
    at_work: list[str] = []
    together: set[tuple[str, ...]] = set()

    async def slowly(key: str) -> None:
        assert key not in at_work
        at_work.append(key)
        together.add(tuple(sorted(at_work)))
        await asyncio.sleep(10)
        at_work.remove(key)

    async def story() -> None:
        async with Workshop(workers=3, handle=slowly) as shop:
            for _ in range(8):
                for key in "ab":
                    shop.queue.add(key)
                await asyncio.sleep(3)
            await asyncio.sleep(100)
            assert ("a", "b") in together
            assert shop.keys().count("a") == shop.keys().count("b") == 4

    run(story())


def test_a_key_touched_while_at_work_is_worked_on_once_more() -> None:
    async def slowly(_: str) -> None:
        await asyncio.sleep(10)

    async def story() -> None:
        async with Workshop(handle=slowly) as shop:
            shop.queue.add("a")
            await asyncio.sleep(1)
            for _ in range(3):
                shop.queue.add("a")
            await asyncio.sleep(100)
            assert shop.times("a") == [0, 10]

    run(story())


def test_a_key_comes_back_when_it_asked_to_and_not_otherwise() -> None:
    async def soon(key: str) -> float | None:
        return 30.0 if key == "a" else None

    async def story() -> None:
        async with Workshop(handle=soon) as shop:
            shop.queue.add("a")
            shop.queue.add("b")
            await asyncio.sleep(95)
            assert shop.times("a") == [0, 30, 60, 90]
            assert shop.times("b") == [0]

    run(story())


def test_a_later_wish_replaces_an_earlier_one() -> None:
    async def story() -> None:
        async with Workshop() as shop:
            shop.queue.add_later("a", 10)
            shop.queue.add_later("a", 20)
            shop.queue.add_later("b", 10)
            shop.queue.forget_timer("b")
            shop.queue.add_later("c", -1)
            await asyncio.sleep(100)
            assert shop.log == [(0, "c"), (20, "a")]

    run(story())


def test_a_look_in_between_renews_the_wish() -> None:
    """When the key was looked at for another reason, the last look decides when to look again."""
    wishes = iter([10.0, None, None])

    async def wish(_: str) -> float | None:
        return next(wishes)

    async def story() -> None:
        async with Workshop(handle=wish) as shop:
            shop.queue.add("a")
            await asyncio.sleep(5)
            shop.queue.add("a")
            await asyncio.sleep(100)
            assert shop.times("a") == [0, 5]

    run(story())


@pytest.mark.parametrize(("jitter", "share"), [(0.0, 0.5), (0.5, 0.75), (1.0, 1.0)])
def test_a_failing_key_waits_longer_each_time_up_to_a_ceiling(jitter: float, share: float) -> None:
    async def fail(_: str) -> float | None:
        raise RuntimeError("no")

    async def story() -> None:
        async with Workshop(handle=fail, jitter=jitter) as shop:
            shop.queue.add("a")
            await asyncio.sleep(400)
            times = shop.times("a")
            gaps = [round((b - a) / share, 1) for a, b in pairwise(times)]
            doubling = [min(FIRST_BACKOFF * 2**n, LONGEST_BACKOFF) for n in range(len(gaps))]
            assert gaps == pytest.approx(doubling, abs=0.1)
            assert gaps[-1] == LONGEST_BACKOFF
            assert shop.errors == [("a", "no")] * len(times)

    run(story())


def test_success_ends_the_backoff() -> None:
    answers = iter([RuntimeError("no"), RuntimeError("no"), None, RuntimeError("no"), None])

    async def sometimes(_: str) -> float | None:
        answer = next(answers)
        if answer is not None:
            raise answer
        return None

    async def story() -> None:
        async with Workshop(handle=sometimes) as shop:
            shop.queue.add("a")
            await asyncio.sleep(10)
            shop.queue.add("a")
            await asyncio.sleep(10)
            assert shop.times("a") == [0, 0.25, 0.75, 10, 10.25]

    run(story())


def test_news_during_a_failure_does_not_defeat_the_backoff() -> None:
    async def fail_slowly(_: str) -> float | None:
        await asyncio.sleep(1)
        raise RuntimeError("no")

    async def story() -> None:
        async with Workshop(handle=fail_slowly) as shop:
            shop.queue.add("a")
            for _ in range(10):
                await asyncio.sleep(0.1)
                shop.queue.add("a")
            await asyncio.sleep(0.24)
            assert shop.times("a") == [0]
            await asyncio.sleep(0.1)
            assert shop.times("a") == [0, 1.25]

    run(story())


@pytest.mark.parametrize(("hold", "times"), [(0.0, [0, 0.1]), (7.0, [0, 7]), (0.1, [0, 0.25])])
def test_a_key_that_is_held_does_not_come_before_its_time_whatever_news_there_is(
    hold: float, times: list[float]
) -> None:
    async def fail(_: str) -> float | None:
        raise RuntimeError("no")

    async def story() -> None:
        async with Workshop(handle=fail, hold=hold) as shop:
            shop.queue.add("a")
            for _ in range(10):
                await asyncio.sleep(0.1)
                shop.queue.add("a")
            await asyncio.sleep(10)
            assert shop.times("a")[:2] == times

    run(story())


def test_a_key_that_was_held_is_as_any_other_afterwards() -> None:
    answers = iter([RuntimeError("no"), None, None])

    async def once(_: str) -> float | None:
        answer = next(answers)
        if answer is not None:
            raise answer
        return None

    async def story() -> None:
        async with Workshop(handle=once, hold=3.0) as shop:
            shop.queue.add("a")
            await asyncio.sleep(10)
            shop.queue.add("a")
            await asyncio.sleep(10)
            assert shop.times("a") == [0, 3, 10]

    run(story())


def test_the_trouble_of_one_key_does_not_stop_the_others() -> None:
    async def fail_a(key: str) -> float | None:
        if key == "a":
            raise RuntimeError("no")
        return None

    async def story() -> None:
        async with Workshop(handle=fail_a) as shop:
            for key in "abc":
                shop.queue.add(key)
            await asyncio.sleep(0.1)
            assert shop.keys() == ["a", "b", "c"]

    run(story())


def test_the_age_is_that_of_the_key_that_waits_longest() -> None:
    async def story() -> None:
        queue: WorkQueue[str] = WorkQueue()
        assert queue.oldest_age() == 0
        queue.add("a")
        await asyncio.sleep(5)
        queue.add("b")
        queue.add("a")
        await asyncio.sleep(5)
        assert queue.oldest_age() == 10

    run(story())


def test_what_is_at_work_or_wanted_later_does_not_age() -> None:
    async def slowly(_: str) -> None:
        await asyncio.sleep(1000)

    async def story() -> None:
        async with Workshop(handle=slowly) as shop:
            shop.queue.add("a")
            shop.queue.add_later("b", 500)
            await asyncio.sleep(100)
            assert shop.queue.oldest_age() == 0

    run(story())


def test_many_keys_and_few_workers_forget_nothing() -> None:
    async def briefly(_: str) -> None:
        await asyncio.sleep(0.01)

    async def story() -> None:
        async with Workshop(workers=4, handle=briefly) as shop:
            keys = [str(number) for number in range(200)]
            for key in keys:
                shop.queue.add(key)
            await asyncio.sleep(10)
            assert sorted(shop.keys()) == sorted(keys)

    run(story())
