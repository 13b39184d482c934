"""What more is read of a pod: a log where the engine did not tell why it ended, events where it gets no containers."""

from datetime import UTC, datetime
from typing import Any

import pytest

from unit.replicas.tables import table
from vlm_operator.engines import registry
from vlm_operator.replicas.evidence import (
    STILL_UNSCHEDULED_AFTER,
    STUCK_AFTER,
    LogWanted,
    in_creation,
    is_long_without_a_node,
    is_stuck,
    read_events,
    wanted_log,
)

VLLM = registry.engine("vLLM")
NOT_STARTED = "RuntimeError: Engine core initialization failed. See root cause above."
SCHEDULED_AT = datetime(2026, 11, 30, 10, 0, tzinfo=UTC).timestamp()


def pod(*containers: dict[str, Any], phase: str = "Running", leaving: bool = False, **status: Any) -> dict[str, Any]:
    metadata = {"name": "m", "creationTimestamp": "2026-11-30T09:00:00Z"}
    if leaving:
        metadata["deletionTimestamp"] = "2026-11-30T10:00:00Z"
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-30T10:00:00Z"}
    told = {"phase": phase, "containerStatuses": list(containers), "conditions": [scheduled]}
    return {"metadata": metadata, "spec": {"nodeName": "n"}, "status": told | status}


def ended(message: str = "", code: int = 1, reason: str = "Error", *, again: str = "") -> dict[str, Any]:
    """The engine's container after its end, or after it was started `again` (`running`, `waiting`)."""
    terminated = {"terminated": {"exitCode": code, "reason": reason, "message": message}}
    if not again:
        return {"name": "engine", "restartCount": 0, "state": terminated}
    now = {"running": {"running": {}}, "waiting": {"waiting": {"reason": "CrashLoopBackOff"}}}[again]
    return {"name": "engine", "restartCount": 3, "state": now, "lastState": terminated}


LOGS: list[tuple[str, dict[str, Any], LogWanted | None]] = [
    ("it did not tell", pod(ended(NOT_STARTED)), LogWanted(previous=False, restarts=0, exit_code=1)),
    ("it said nothing", pod(ended()), LogWanted(previous=False, restarts=0, exit_code=1)),
    ("it waits for its next try", pod(ended(again="waiting")), LogWanted(previous=True, restarts=3, exit_code=1)),
    ("it loads again", pod(ended(again="running")), LogWanted(previous=True, restarts=3, exit_code=1)),
    ("it ended with its pod", pod(ended(), phase="Failed"), LogWanted(previous=False, restarts=0, exit_code=1)),
    ("it ended nicely", pod(ended(code=0, reason="Completed")), LogWanted(previous=False, restarts=0, exit_code=0)),
    (
        "its answer was wrong, and why is not known",
        pod(ended("the engine failed a small request with 500: x", 137)),
        LogWanted(previous=False, restarts=0, exit_code=137),
    ),
    ("it told", pod(ended("vllm: error: unrecognized arguments: --x", 2)), None),
    ("it was killed for its memory", pod(ended(code=137, reason="OOMKilled")), None),
    ("it never was", pod(ended("no such file", 128, "StartError")), None),
    ("it runs", pod({"name": "engine", "state": {"running": {}}}), None),
    ("it serves again", pod(ended(again="running") | {"ready": True}), None),
    ("another container ended", pod(ended() | {"name": "logs"}), None),
    ("its node refused it", pod(phase="Failed", reason="Evicted"), None),
    ("it leaves", pod(ended(), leaving=True), None),
]


@table("pod, wanted", LOGS)
def test_which_log_is_read(pod: dict[str, Any], wanted: LogWanted | None) -> None:
    assert wanted_log(pod, VLLM) == wanted


CREATING = {"name": "engine", "state": {"waiting": {"reason": "ContainerCreating"}}}
INITIALISING = {"name": "engine", "state": {"waiting": {"reason": "PodInitializing"}}}
CREATIONS: list[tuple[str, dict[str, Any], bool]] = [
    ("its container is being created", pod(CREATING, phase="Pending"), True),
    ("its node has not looked at it yet", pod(phase="Pending"), True),
    (
        "its init container is being created",
        pod(INITIALISING, phase="Pending", initContainerStatuses=[CREATING | {"name": "mesh"}]),
        True,
    ),
    (
        "its init container runs",
        pod(INITIALISING, phase="Pending", initContainerStatuses=[{"name": "mesh", "state": {"running": {}}}]),
        False,
    ),
    ("it has no node", pod(phase="Pending") | {"spec": {}}, False),
    (
        "its image is pulled in vain",
        pod({"name": "engine", "state": {"waiting": {"reason": "ImagePullBackOff"}}}, phase="Pending"),
        False,
    ),
    ("it runs", pod({"name": "engine", "state": {"running": {}}}), False),
    ("it leaves", pod(CREATING, phase="Pending", leaving=True), False),
]


@table("pod, expected", CREATIONS)
def test_which_pods_are_in_creation(pod: dict[str, Any], expected: bool) -> None:
    assert in_creation(pod) is expected
    assert is_stuck(pod, now=SCHEDULED_AT + STUCK_AFTER) is expected
    assert not is_stuck(pod, now=SCHEDULED_AT + STUCK_AFTER - 1)


def test_a_pod_that_was_never_scheduled_by_a_scheduler_counts_from_its_birth() -> None:
    bound = pod(CREATING, phase="Pending", conditions=[])
    assert is_stuck(bound, now=SCHEDULED_AT - 3600 + STUCK_AFTER)
    assert not is_stuck(bound, now=SCHEDULED_AT - 3600)


def test_the_latest_event_comes_first_however_its_time_is_written() -> None:
    events: list[dict[str, Any]] = [
        {"reason": "A", "note": "a", "eventTime": "2026-11-30T10:00:01.000000Z"},
        {"reason": "B", "note": "b", "deprecatedLastTimestamp": "2026-11-30T10:00:03Z"},
        {"reason": "C", "series": {"lastObservedTime": "2026-11-30T10:00:02.000000Z"}},
        {"metadata": {"creationTimestamp": "2026-11-30T10:00:00Z"}},
    ]
    events = [event | {"type": "Warning"} for event in events]
    assert [(event.reason, event.message) for event in read_events(events).events] == [
        ("B", "b"),
        ("C", ""),
        ("A", "a"),
        ("Unknown", ""),
    ]


@pytest.mark.parametrize(
    ("reason", "added"), [("TriggeredScaleUp", True), ("Nominated", True), ("NotTriggerScaleUp", False)]
)
def test_an_autoscaler_says_whether_a_node_comes(reason: str, added: bool) -> None:
    events = [{"type": "Normal", "reason": reason}, {"type": "Warning", "reason": "FailedScheduling"}]
    found = read_events(events)
    assert found.node_is_added is added
    assert [event.reason for event in found.events] == ["FailedScheduling"], "what is normal is no trouble"


def test_a_pod_is_long_without_a_node() -> None:
    born = {"metadata": {"creationTimestamp": "2026-11-30T10:00:00Z"}, "spec": {}}
    birth = datetime.fromisoformat("2026-11-30T10:00:00Z").timestamp()
    assert is_long_without_a_node(born, now=birth + STILL_UNSCHEDULED_AFTER)
    assert not is_long_without_a_node(born, now=birth + STILL_UNSCHEDULED_AFTER - 1)
    assert not is_long_without_a_node(born | {"spec": {"nodeName": "n"}}, now=birth + 3600)
    leaving = born["metadata"] | {"deletionTimestamp": "2026-11-30T10:01:00Z"}
    assert not is_long_without_a_node({"metadata": leaving}, now=birth + 3600)
