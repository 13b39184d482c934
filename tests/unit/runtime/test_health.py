"""/healthz tests progress: each thing that can stand still is noticed."""

import asyncio

import pytest

from vlm_operator.runtime.health import LAG_ALLOWED, STUCK_AFTER, SYNC_MISSED, Health

RESYNC = 300.0
STALE = SYNC_MISSED * RESYNC + 60


class Clock:
    """The time of the event loop, as the test wants it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: self.now)


@pytest.mark.parametrize(("waited", "complains"), [(0.0, False), (STUCK_AFTER, False), (STUCK_AFTER + 1, True)])
async def test_a_deployment_that_nobody_takes_from_the_queue(waited: float, complains: bool) -> None:
    health = Health(oldest_in_queue=lambda: waited, resync_seconds=RESYNC)
    assert bool(health.complaints()) is complains


@pytest.mark.parametrize(("age", "complains"), [(0.0, False), (STALE, False), (STALE + 1, True)])
async def test_full_lists_that_fail(age: float, complains: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    health = Health(oldest_in_queue=lambda: 0.0, resync_seconds=RESYNC)
    clock = Clock(monkeypatch)
    health.synced()
    clock.now += age
    assert bool(health.complaints()) is complains
    health.synced()
    assert health.complaints() == []


async def test_before_the_first_list_it_is_alive_but_not_ready() -> None:
    health = Health(oldest_in_queue=lambda: 0.0, resync_seconds=RESYNC)
    assert health.complaints() == []
    assert health.waiting_for == "the first full list"


async def test_it_is_not_ready_while_it_may_list_nothing() -> None:
    health = Health(oldest_in_queue=lambda: 0.0, resync_seconds=RESYNC)
    health.synced(lacking="pods is forbidden")
    assert health.unready() == "waiting for a permission: pods is forbidden"
    health.synced()
    assert health.unready() == ""


async def test_a_follower_is_ready_unless_something_keeps_it_from_its_work() -> None:
    troubles = ["stands by for another one", "the lease cannot be had"]
    health = Health(
        oldest_in_queue=lambda: 0.0, resync_seconds=RESYNC, troubles=(lambda: troubles[0], lambda: troubles[1])
    )
    assert health.unready() == "waiting for the first full list"
    health.synced()
    assert health.unready() == "stands by for another one; the lease cannot be had"
    troubles[0] = ""
    assert health.unready() == "the lease cannot be had"
    troubles[1] = ""
    assert health.unready() == ""


async def test_an_event_loop_that_is_held_up(monkeypatch: pytest.MonkeyPatch) -> None:
    health = Health(oldest_in_queue=lambda: 0.0, resync_seconds=RESYNC)
    clock = Clock(monkeypatch)
    rounds = 0

    async def held_up(seconds: float) -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 2:
            raise asyncio.CancelledError
        clock.now += seconds + LAG_ALLOWED + 1

    monkeypatch.setattr(asyncio, "sleep", held_up)
    with pytest.raises(asyncio.CancelledError):
        await health.measure_lag()
    assert "the event loop is 31 s behind" in health.complaints()[0]
