"""A log is read once for each end of an engine, events once a minute, a few at a time; what cannot be read is said."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from unit.runtime.reconcile_world import KEY, House
from vlm_operator.engines import registry
from vlm_operator.replicas.evidence import STILL_UNSCHEDULED_AFTER, STUCK_AFTER
from vlm_operator.runtime import telemetry
from vlm_operator.runtime.evidence import READ_AGAIN, READS_AT_ONCE, STUCK_READ, EvidenceReader
from vlm_operator.runtime.kinds import POD
from vlm_operator.runtime.kube import Kube, KubeError
from vlm_operator.runtime.reconcile import CREATION_RECHECK

VLLM = registry.engine("vLLM")
DIED = "RuntimeError: Engine core initialization failed. See root cause above."
LOG = (
    f"(EngineCore pid=8) ERROR 11-30 10:00:00 [core.py:1] ValueError: No available memory for the cache blocks.\n{DIED}"
)
NO_ROUTE = KubeError(500, "InternalError", "dial tcp 10.0.0.9:10250: connect: no route to host")
FORBIDDEN = KubeError(403, "Forbidden", 'User "u" cannot get resource "pods/log" in API group "" in the namespace "n"')


@dataclass
class Asked:
    """A connection that answers about pods, and counts."""

    log: str | KubeError = LOG
    events: tuple[dict[str, Any], ...] = ()
    calls: list[tuple[str, bool]] = field(default_factory=list)
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    """Set: it answers."""

    def __post_init__(self) -> None:
        self.answers.set()

    async def log_tail(self, *, namespace: str, pod: str, container: str, previous: bool) -> str:
        assert (namespace, container) == ("n", "engine")
        self.calls.append((pod, previous))
        await self.answers.wait()
        if isinstance(self.log, KubeError):
            raise self.log
        return self.log

    async def events_about(self, *, namespace: str, uid: str) -> list[dict[str, Any]]:
        assert namespace == "n"
        self.calls.append((uid, False))
        return list(self.events)


@dataclass
class Room:
    """A reader, its clock and what it asks."""

    asked: Asked = field(default_factory=Asked)
    now: float = 1_764_496_800.0  # 2025-11-30T10:00:00Z
    again: asyncio.Queue[Any] = field(default_factory=asyncio.Queue)
    """Deployments that are to be looked at again."""

    def __post_init__(self) -> None:
        self.reader = EvidenceReader(
            cast("Kube", self.asked), look_again=self.again.put_nowait, clock=lambda: self.now, patience=0.05
        )

    async def read(self, *pods: dict[str, Any]) -> dict[str, Any]:
        return dict(await self.reader.read(KEY, [(pod, VLLM) for pod in pods]))


def crashed(restarts: int = 1, *, name: str = "m-0") -> dict[str, Any]:
    ended = {"terminated": {"exitCode": 1, "reason": "Error", "message": DIED}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    engine = {"name": "engine", "restartCount": restarts, "state": waiting, "lastState": ended}
    metadata = {"name": name, "namespace": "n", "uid": f"uid-{name}"}
    return {
        "metadata": metadata,
        "spec": {"nodeName": "x"},
        "status": {"phase": "Running", "containerStatuses": [engine]},
    }


def creating(name: str = "m-0") -> dict[str, Any]:
    engine = {"name": "engine", "state": {"waiting": {"reason": "ContainerCreating"}}}
    metadata = {"name": name, "namespace": "n", "uid": f"uid-{name}", "creationTimestamp": "2025-11-30T10:00:00Z"}
    return {
        "metadata": metadata,
        "spec": {"nodeName": "x"},
        "status": {"phase": "Pending", "containerStatuses": [engine]},
    }


async def test_a_log_is_read_once_for_each_end() -> None:
    room = Room()
    for restarts in (1, 1, 2, 2):
        found = await room.read(crashed(restarts))
        assert found["uid-m-0"].log.reason == "KVCacheTooSmall"
        room.now += 10 * READ_AGAIN
    assert room.asked.calls == [("m-0", True), ("m-0", True)]


@pytest.mark.parametrize("error", [NO_ROUTE, FORBIDDEN], ids=lambda error: error.reason)
async def test_what_cannot_be_read_is_said_and_tried_again_later(error: KubeError) -> None:
    room = Room(Asked(log=error))
    for _ in range(3):
        found = await room.read(crashed())
        assert error.message in found["uid-m-0"].log_unreadable
        room.now += READ_AGAIN / 4
    assert len(room.asked.calls) == 1
    room.now += READ_AGAIN
    room.asked.log = LOG
    assert (await room.read(crashed()))["uid-m-0"].log is not None
    assert len(room.asked.calls) == 2


async def test_events_are_asked_for_once_a_minute_and_only_when_creation_takes_long() -> None:
    room = Room(Asked(events=({"type": "Warning", "reason": "FailedMount", "note": "no such volume"},)))
    assert await room.read(creating()) == {}
    room.now += STUCK_AFTER
    for _ in range(3):
        found = await room.read(creating())
        assert [event.reason for event in found["uid-m-0"].events] == ["FailedMount"]
    assert len(room.asked.calls) == 1
    room.now += READ_AGAIN
    await room.read(creating())
    assert len(room.asked.calls) == 2


async def test_of_many_pods_some_are_read_at_each_look() -> None:
    room, pods = Room(), [crashed(name=f"m-{slot}") for slot in range(READS_AT_ONCE + 2)]
    assert len(await room.read(*pods)) == READS_AT_ONCE
    assert room.again.get_nowait() == KEY
    assert len(await room.read(*pods)) == READS_AT_ONCE + 2
    assert room.again.empty()
    assert len(room.asked.calls) == READS_AT_ONCE + 2


async def test_a_node_that_does_not_answer_holds_nothing_up_and_what_it_says_later_is_looked_at() -> None:
    room = Room()
    await room.read(crashed(1))
    room.asked.answers.clear()
    room.asked.log = DIED
    for _ in range(2):
        # Until there is news, what was known counts.
        assert (await room.read(crashed(2)))["uid-m-0"].log.reason == "KVCacheTooSmall"
    assert len(room.asked.calls) == 2
    room.asked.answers.set()
    assert await room.again.get() == KEY
    assert (await room.read(crashed(2)))["uid-m-0"].log.reason == "EngineDied"


async def test_what_is_not_wanted_any_more_is_not_waited_for() -> None:
    room = Room()
    room.asked.answers.clear()
    assert await room.read(crashed()) == {}
    assert await room.read() == {}
    room.asked.answers.set()
    await asyncio.sleep(0)
    assert room.again.empty()


async def test_pods_that_are_gone_or_run_again_are_forgotten() -> None:
    room = Room()
    await room.read(crashed())
    assert await room.read() == {}
    await room.read(crashed())
    room.reader.forget(KEY)
    await room.read(crashed())
    assert len(room.asked.calls) == 3


def hold(house: House, *, status: dict[str, Any]) -> str:
    """Give the only replica a node and a status; returns its name."""
    (name,) = house.pods()
    pod = house.api.objects["Pod", name]
    house.api.hold(POD, pod | {"spec": pod["spec"] | {"nodeName": "x"}, "status": status}, watched=True)
    return name


def told() -> float:
    """Warnings with the reason so far, as the metric has it."""
    return telemetry.REGISTRY.get_sample_value("vlm_operator_warnings_total", {"reason": "KVCacheTooSmall"}) or 0.0


async def test_a_condition_an_event_and_a_metric_say_what_the_log_says() -> None:
    before = told()
    house = House(replicas=1)
    await house.look()
    house.api.logs = {house.pods()[0]: LOG}
    hold(house, status=crashed()["status"])
    await house.look()
    assert house.condition("Ready") == "False/KVCacheTooSmall"
    assert "KVCacheTooSmall" in house.reasons()
    assert told() == before + house.reasons().count("KVCacheTooSmall")


async def test_a_condition_says_that_the_log_could_not_be_read() -> None:
    house = House(replicas=1)
    await house.look()
    house.api.refusals = {"log_tail": NO_ROUTE}
    hold(house, status=crashed()["status"])
    await house.look()
    assert house.condition("Ready") == "False/EngineDied"
    (message,) = {c["message"] for c in house.status()["conditions"] if c["type"] == "Ready"}
    assert "the end of its log could not be read: dial tcp 10.0.0.9:10250: connect: no route to host" in message


async def test_a_replica_in_creation_is_looked_at_again_and_its_events_are_told() -> None:
    house = House(replicas=1)
    await house.look()
    hold(house, status=creating()["status"])
    assert await house.look() == CREATION_RECHECK
    assert house.condition("Ready") == "False/Loading"
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    name = hold(house, status=creating()["status"] | {"conditions": [scheduled]})
    uid = house.api.objects["Pod", name]["metadata"]["uid"]
    house.api.events.append(
        {"type": "Warning", "reason": "FailedMount", "note": "no such volume", "regarding": {"uid": uid}}
    )
    await house.look()
    assert house.condition("Ready") == "False/MountFailed"


async def test_of_many_pods_without_containers_a_few_are_asked_for_one_after_the_other() -> None:
    room, pods = Room(), [creating(f"m-{number}") for number in range(6)]
    room.now += STUCK_AFTER
    asked: list[set[str]] = []
    for _ in range(3):
        for _ in range(4):
            await room.read(*pods)
        asked.append({uid for uid, _ in room.asked.calls})
        room.asked.calls.clear()
        room.now += READ_AGAIN
    assert [len(uids) for uids in asked] == [STUCK_READ] * 3
    assert set.union(*asked) == {f"uid-m-{number}" for number in range(6)}


async def test_what_was_read_of_a_pod_counts_until_its_turn_comes_again() -> None:
    warning = {"type": "Warning", "reason": "FailedMount", "note": "no such share", "eventTime": "2025-11-30T10:01:00Z"}
    room, pods = Room(Asked(events=(warning,))), [creating(f"m-{number}") for number in range(5)]
    room.now += STUCK_AFTER
    for known in (2, 4, 5, 5):
        found = await room.read(*pods)
        assert len(found) == known
        room.now += READ_AGAIN
    counts = Counter(uid for uid, _ in room.asked.calls)
    assert sorted(counts.values()) == [1, 1, 2, 2, 2]


async def test_events_of_a_pod_that_is_held_up_no_more_are_forgotten() -> None:
    room, pod = Room(), creating()
    room.now += STUCK_AFTER
    assert await room.read(pod)
    running = {"phase": "Running", "containerStatuses": [{"name": "engine", "state": {"running": {}}}]}
    assert await room.read(pod | {"status": running}) == {}


async def test_whether_a_node_comes_is_read_of_pods_that_wait_long_for_one() -> None:
    scale_up = {"type": "Normal", "reason": "TriggeredScaleUp", "note": "pod triggered scale-up"}
    room, pod = Room(Asked(events=(scale_up,))), creating()
    pod["spec"] = {}
    assert await room.read(pod) == {}
    room.now += STILL_UNSCHEDULED_AFTER
    (found,) = (await room.read(pod)).values()
    assert found.node_is_added is True
