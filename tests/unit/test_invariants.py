"""What the observer of crashes calls a violation, and what not."""

from typing import Any

import pytest

from cluster.support.invariants import Bounds, Invariants


def pod(slot: int = 0, *, role: str = "serving", ready: bool = True, leaving: bool = False, **more: Any) -> Any:
    metadata: dict[str, Any] = {
        "name": f"qwen-a-{slot}{more.get('suffix', '')}",
        "uid": f"uid-{slot}{more.get('suffix', '')}",
        "labels": {
            "vlm.dev/deployment": "qwen",
            "vlm.dev/role": role,
            "vlm.dev/revision": more.get("revision", "a"),
            "vlm.dev/slot": str(slot),
        },
    }
    if leaving:
        metadata["deletionTimestamp"] = "2026-11-30T12:00:00Z"
    condition = {"type": "Ready", "status": str(ready)}
    status = {"phase": more.get("phase", "Running"), "conditions": [condition], "podIP": "198.18.0.5"}
    return {"metadata": metadata, "spec": {"nodeName": "gpu-0"}, "status": status}


def endpoints(*names: str, ready: bool = True) -> Any:
    found = [{"targetRef": {"name": name}, "conditions": {"ready": ready}} for name in names]
    return {"metadata": {"name": "qwen-x"}, "endpoints": found}


@pytest.fixture
def seen() -> Invariants:
    invariants = Invariants()
    invariants.bounds = Bounds(serving=1, live=2)
    return invariants


def test_two_live_pods_of_one_slot_are_a_violation(seen: Invariants) -> None:
    seen.pod("ADDED", pod(0))
    seen.pod("ADDED", pod(0, suffix="x"))
    assert seen.violations == ["qwen-a-0 and qwen-a-0x hold the same slot"]


@pytest.mark.parametrize("other", [pod(0, suffix="x", leaving=True), pod(0, suffix="x", revision="b"), pod(1)])
def test_one_that_leaves_and_one_of_another_revision_are_none(seen: Invariants, other: Any) -> None:
    seen.pod("ADDED", pod(0))
    seen.pod("ADDED", other)
    assert not seen.violations


def test_more_live_pods_than_allowed_are_a_violation(seen: Invariants) -> None:
    for slot in range(3):
        seen.pod("ADDED", pod(slot))
    assert seen.violations == ["3 live pods, 2 are allowed"]


@pytest.mark.parametrize("third", [pod(2, leaving=True), pod(2, phase="Failed")])
def test_what_leaves_or_has_ended_does_not_live(seen: Invariants, third: Any) -> None:
    for one in (pod(0), pod(1), third):
        seen.pod("ADDED", one)
    assert not seen.violations


def test_what_is_on_a_lost_node_does_not_live(seen: Invariants) -> None:
    seen.excused.add("gpu-0")
    for slot in range(3):
        seen.pod("ADDED", pod(slot))
    assert not seen.violations


def test_fewer_ready_endpoints_than_promised_are_a_violation(seen: Invariants) -> None:
    seen.endpoints("ADDED", endpoints("qwen-a-0"))
    assert not seen.violations
    seen.endpoints("MODIFIED", endpoints("qwen-a-0", ready=False))
    assert seen.violations == ["0 ready endpoints, 1 are promised"]


@pytest.mark.parametrize("event", ["MODIFIED", "DELETED"])
def test_to_delete_a_pod_with_work_in_flight_is_a_violation(seen: Invariants, event: str) -> None:
    seen.pod("ADDED", pod(0))
    seen.pod("MODIFIED", pod(0, role="draining"))
    assert seen.drains("uid-0")
    seen.pod(event, pod(0, role="draining", leaving=event == "MODIFIED"))
    assert seen.violations == ["qwen-a-0 is deleted with work in flight"]


@pytest.mark.parametrize("who", ["qwen-a-0", "qwen", "gpu-0"])
def test_to_delete_one_that_is_excused_is_none(seen: Invariants, who: str) -> None:
    seen.pod("ADDED", pod(0))
    seen.excused.add(who)
    seen.pod("DELETED", pod(0))
    assert not seen.violations


def test_to_delete_one_whose_work_is_done_or_that_never_had_any_is_none(seen: Invariants) -> None:
    seen.pod("ADDED", pod(0, role="warm"))
    seen.pod("DELETED", pod(0, role="warm"))
    seen.pod("ADDED", pod(1))
    seen.pod("MODIFIED", pod(1, role="draining"))
    seen.busy.clear()
    seen.pod("MODIFIED", pod(1, role="draining", leaving=True))
    assert not seen.violations
