"""What the operator asks replicas themselves, and what it makes of the answers."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from unit.replicas.examples import NAME, NAMESPACE
from unit.runtime.reconcile_world import KEY, House
from vlm_operator.runtime import observe
from vlm_operator.runtime.kinds import ENDPOINT_SLICE, VLM_DEPLOYMENT
from vlm_operator.runtime.kube import KubeError

STANDBY = {"size": 1, "mode": "Standby"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads follow each other at once; the house's own clock says how much time has passed."""
    monkeypatch.setattr(observe, "READ_AGAIN", 0.01)
    monkeypatch.setattr(observe, "VERIFY_ROUND", 0.01)


def pods(house: House) -> dict[str, str]:
    """Roles by the names of pods."""
    return {name: house.api.objects["Pod", name]["metadata"]["labels"]["vlm.dev/role"] for name in house.pods()}


def address(house: House, name: str) -> str:
    return str(house.api.objects["Pod", name]["status"]["podIP"])


def route(house: House, *names: str) -> None:
    """The endpoints of the Service name these pods."""
    uids = [house.api.objects["Pod", name]["metadata"]["uid"] for name in names]
    endpoints = [{"targetRef": {"kind": "Pod", "uid": uid}} for uid in uids]
    metadata = {"name": "m-x", "namespace": NAMESPACE}
    house.api.hold(ENDPOINT_SLICE, {"metadata": metadata, "endpoints": endpoints})


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 -- nothing tells when it does
            await asyncio.sleep(0.01)


async def read_again(house: House, seconds: float = 3.0) -> None:
    """Time passes in which draining replicas are read."""
    house.now += seconds
    house.woken.clear()
    await until(lambda: len(house.woken) >= 2)
    await house.look()


async def shrunk(**sections: Any) -> tuple[House, str]:
    """A house in which one of two replicas has begun to drain."""
    house = await House(replicas=2, **sections).settled()
    house.edit(replicas=1, **sections)
    await house.look()
    (name,) = (name for name, role in pods(house).items() if role == "draining")
    return house, name


async def test_a_replica_goes_when_it_is_out_of_the_endpoints_and_idle_twice() -> None:
    house, name = await shrunk()
    route(house, name)
    house.engines.busy[address(house, name)] = 0
    await read_again(house)
    assert "clients are still sent to it" in house.condition_message("Progressing")
    route(house)
    await read_again(house)
    assert name in house.pods(), "it was read once"
    await read_again(house)
    assert name not in house.pods()


async def test_requests_in_flight_are_waited_for_until_the_time_is_over() -> None:
    house, name = await shrunk(drain={"timeout": "60s"})
    house.engines.busy[address(house, name)] = 3
    for _ in range(3):
        await read_again(house)
    assert "it has requests in flight" in house.condition_message("Progressing")
    house.now += 60
    await house.look()
    assert name not in house.pods()
    assert any("its drain timed out: 3 requests in flight" in event["note"] for event in house.api.events)


@pytest.mark.parametrize("unknown", ["work", "endpoints"])
async def test_what_cannot_be_read_is_busy(unknown: str) -> None:
    house, name = await shrunk()
    if unknown == "work":
        house.engines.busy[address(house, name)] = None
    else:
        house.api.refusals["list"] = KubeError(500, "Internal", "no")
    for _ in range(4):
        await read_again(house)
    assert name in house.pods()


async def test_the_idlest_is_taken_out() -> None:
    house = await House(replicas=3).settled()
    busy = house.pods()
    house.engines.busy |= {address(house, name): load for name, load in zip(busy, (4, 1, 7), strict=True)}
    house.edit(replicas=2)
    await house.look()
    assert pods(house) == {busy[0]: "serving", busy[1]: "draining", busy[2]: "serving"}


async def test_one_that_is_needed_again_is_not_read_any_more() -> None:
    house, name = await shrunk()
    house.edit(replicas=2)
    await house.look()
    assert pods(house)[name] == "serving"
    await asyncio.sleep(0.05)
    house.engines.asked.clear()
    await asyncio.sleep(0.05)
    assert house.engines.asked == []


async def test_a_replica_on_standby_that_fails_twice_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "VERIFY_EVERY", 1)
    monkeypatch.setattr(observe, "VERIFY_AGAIN", 0.01)
    house = await House(replicas=1, warmPool=STANDBY).settled()
    (warm,) = (name for name, role in pods(house).items() if role == "warm")
    asking = asyncio.create_task(house.observer.verify())
    await until(lambda: address(house, warm) in house.engines.asked)
    await house.look()
    assert warm in house.pods(), "it answers"
    house.engines.dead[address(house, warm)] = "answered with 500"
    await until(lambda: bool(house.woken))
    asking.cancel()
    await house.look()
    assert warm not in house.pods()
    assert house.status()["failures"][0]["reason"] == "VerificationFailed"
    assert house.condition("Available") == "True/Available"


async def test_serving_replicas_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "VERIFY_EVERY", 1)
    house = await House(replicas=1, warmPool=STANDBY).settled()
    asking = asyncio.create_task(house.observer.verify())
    await asyncio.sleep(0.1)
    asking.cancel()
    (serving,) = (name for name, role in pods(house).items() if role == "serving")
    assert address(house, serving) not in house.engines.asked


async def test_a_deployment_that_is_gone_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "VERIFY_EVERY", 1)
    house = await House(replicas=1, warmPool=STANDBY).settled()
    house.cache.remove(VLM_DEPLOYMENT, house.api.objects["VLMDeployment", NAME], certain=True)
    await house.look()
    asking = asyncio.create_task(house.observer.verify())
    await asyncio.sleep(0.05)
    asking.cancel()
    assert house.engines.asked == []


async def test_what_the_engine_made_of_its_memory_stands_beside_the_estimate() -> None:
    house = House()
    house.engines.cache_tokens = 131072
    await house.settled()
    assert house.woken == [KEY], "its answer brought about a look"
    await house.looks()
    revision = house.status()["updatedRevision"]
    assert house.status()["sizing"] == {"reportedKvCacheTokens": 131072, "reportedRevision": revision}
    house.engines.cache_tokens = 1
    house.start()
    await house.looks()
    await asyncio.sleep(0)
    assert house.woken == [], "the status has it"
    house.edit(model={"name": "org/model", "maxModelLen": 4096})
    await house.looks()
    assert "reportedKvCacheTokens" not in house.status().get("sizing", {}), "another revision may get another size"


async def test_an_engine_that_does_not_tell_its_cache_is_asked_once() -> None:
    house = await House().settled()
    asked = house.engines.asked_for_cache
    await house.looks()
    await asyncio.sleep(0)
    assert (house.engines.asked_for_cache, house.woken) == (asked, [])
    assert asked == 1
