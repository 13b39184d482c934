"""One look after another at one deployment: the real parts of the runtime against a small API server in memory.

What a real API server answers is tested against one, in `tests/cluster`.
"""

import asyncio
from typing import Any

import pytest

from unit.replicas.examples import NAME, NAMESPACE
from unit.runtime.reconcile_world import KEY, House
from vlm_operator.api.names import DEPLOYMENT_LABEL, RESTARTED_AT
from vlm_operator.replicas.draining import READ_AGAIN
from vlm_operator.replicas.evaluate import Judgement, evaluate
from vlm_operator.runtime import gather, publish
from vlm_operator.runtime.kinds import (
    BUDGET,
    CLAIM,
    CONFIG_MAP,
    CONTROLLER_REVISION,
    NODE,
    POD,
    SERVICE,
    VLM_DEPLOYMENT,
    Kind,
)
from vlm_operator.runtime.kube import KubeError
from vlm_operator.runtime.reconcile import CLAIM_RECHECK, STEPS_IN_A_ROW

OVERLOADED = KubeError(429, "TooManyRequests", "slow down", retry_after=7)
NO_RIGHT = KubeError(403, "Forbidden", 'User "operator" cannot list resource "pods"')
QUOTA = KubeError(403, "Forbidden", "exceeded quota: gpus")


async def test_a_deployment_comes_up() -> None:
    house = House(replicas=2)
    assert await house.looks() is None
    assert house.condition("Ready") == "False/Loading"
    assert [name[-2:] for name in house.pods()] == ["-0", "-1"]
    house.make_ready()
    await house.look()
    assert house.condition("Ready") == "True/Ready"
    assert house.status()["servingReplicas"] == 2
    assert house.reasons() == ["ReplicaCreated", "Ready"]


async def test_while_others_wait_for_their_replicas_a_status_is_left_to_the_next_look() -> None:
    house = House()
    house.crowded = True
    assert await house.look() == 0.0
    assert len(house.pods()) == 1
    assert house.reasons() == ["ReplicaCreated"]
    assert "status" not in house.api.objects["VLMDeployment", NAME]
    assert await house.look() is None
    assert house.condition("Ready") == "False/Loading"


async def test_but_not_again_and_again() -> None:
    house = House()
    house.crowded = True
    await house.look()
    house.edit(replicas=2)
    assert await house.look() == 0.0
    assert len(house.pods()) == 2
    assert house.status()["replicas"] == 2
    house.edit(replicas=3)
    assert await house.look() == 0.0
    assert house.status()["replicas"] == 2


async def test_what_went_wrong_is_written_also_while_others_wait() -> None:
    house = House()
    house.crowded = True
    house.api.refusals["create Pod"] = QUOTA
    await house.look()
    assert house.condition("Available") == "False/AdmissionRefused"


async def test_when_nothing_changes_nothing_is_called() -> None:
    house = await House(replicas=2).settled()
    for _ in range(5):
        house.now += 60
        assert await house.looks() is None
    assert not house.api.calls


async def test_what_is_written_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[int] = []

    def counted(resource: dict[str, Any], **surroundings: Any) -> Judgement:
        judged.append(resource["metadata"]["generation"])
        return evaluate(resource, **surroundings)

    monkeypatch.setattr(gather, "evaluate", counted)
    house = await House(replicas=2).settled()
    assert judged == [1]
    house.edit(replicas=3)
    await house.settled()
    assert judged == [1, 2]
    before = set(house.pods())
    house.annotate({RESTARTED_AT: "2026-01-01T00:00:00Z"})
    await house.settled()
    assert judged == [1, 2, 2]
    assert set(house.pods()) - before


async def test_a_deployment_that_is_gone_or_goes_is_left_alone() -> None:
    house = await House().settled()
    live = house.api.objects["VLMDeployment", NAME]
    going = live | {"metadata": live["metadata"] | {"deletionTimestamp": "2027-01-15T08:00:00Z"}}
    house.api.hold(VLM_DEPLOYMENT, going, watched=True)
    assert await house.looks() is None
    house.api.lose(VLM_DEPLOYMENT, NAME)
    assert await house.looks() is None
    assert not house.api.writes()


async def test_a_pod_that_the_cache_does_not_show_is_found_by_its_name_and_not_read_again() -> None:
    house = await House().settled()
    (name,) = house.pods()
    house.cache.remove(POD, house.api.objects["Pod", name])
    house.start()
    with pytest.raises(KubeError, match="already exists"):
        await house.look()
    assert await house.looks() is None
    assert house.pods() == [name]
    house.api.calls.clear()
    await house.look()
    assert not house.api.calls


async def test_a_replica_whose_label_somebody_takes_away_has_not_failed_and_gets_it_back() -> None:
    """To a watch by label it looks like a deletion."""
    house = await House(replicas=2).settled()
    name, uids = house.pods()[0], house.uids()
    pod = house.api.objects["Pod", name]
    bare = {key: value for key, value in pod["metadata"]["labels"].items() if key != DEPLOYMENT_LABEL}
    house.api.hold(POD, pod | {"metadata": pod["metadata"] | {"labels": bare}}, watched=True)
    house.api.events.clear()

    assert await house.looks() is None
    assert house.uids() == uids
    assert house.api.objects["Pod", name]["metadata"]["labels"] == pod["metadata"]["labels"]
    assert house.reasons() == ["Repaired"]
    assert "failures" not in house.status()
    assert house.api.writes() == {"change Pod": 1}
    house.api.calls.clear()
    await house.look()
    assert not house.api.calls


async def test_a_replica_that_is_gone_is_looked_for_once_and_has_failed() -> None:
    house = await House(replicas=2).settled()
    name = house.pods()[0]
    house.api.lose(POD, name)
    await house.look()
    assert house.api.calls["get"] == 2, "the replica, and the deployment with which it may have gone"
    assert [failure["reason"] for failure in house.status()["failures"]] == ["PodVanished"]
    assert name in house.pods()
    await house.look()
    assert house.api.calls["get"] == 2


async def test_whether_a_replica_is_gone_is_not_judged_while_it_cannot_be_read() -> None:
    house = await House().settled()
    house.cache.remove(POD, house.api.objects["Pod", house.pods()[0]])
    house.api.refusals["get"] = OVERLOADED
    with pytest.raises(KubeError, match="slow down"):
        await house.look()
    house.api.refusals.clear()
    await house.look()
    assert not house.api.writes()


async def test_a_strangers_service_is_reported_watched_over_and_never_touched() -> None:
    house = House()
    service = house.api.hold(SERVICE, {"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": {}})
    with pytest.raises(KubeError, match="already exists"):
        await house.look()
    assert await house.looks() == 10.0
    assert house.condition("Available") == "False/ServiceNameTaken"
    assert house.pods() == []
    assert house.api.objects["Service", NAME] == service

    house.api.lose(SERVICE, NAME, watched=False)
    assert await house.looks() is None
    assert len(house.pods()) == 1
    assert house.condition("Available") == "False/Loading"


async def test_also_when_it_is_labelled_as_another_deployments() -> None:
    house = House()
    labels = {"vlm.dev/deployment": "other"}
    house.api.hold(
        SERVICE, {"metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels}, "spec": {}}, watched=True
    )
    with pytest.raises(KubeError, match="already exists"):
        await house.look()
    assert await house.looks() == 10.0
    assert house.condition("Available") == "False/ServiceNameTaken"


async def test_an_overloaded_api_server_is_left_to_the_queue_to_try_again() -> None:
    house = House(replicas=2)
    house.api.refusals["create Pod"] = OVERLOADED
    with pytest.raises(KubeError, match="slow down") as raised:
        await house.look()
    assert raised.value.retry_after == 7
    assert house.condition("Available") == "False/Loading", "the status is written all the same"
    house.api.refusals.clear()
    assert await house.looks() is None
    assert len(house.pods()) == 2


@pytest.mark.parametrize("code", [404, 409, 410])
async def test_what_is_refused_without_a_reason_that_can_be_seen_is_left_to_the_queue_too(code: int) -> None:
    """Trying again at once could go on for ever: a webhook may refuse with any code."""
    house = House()
    house.api.refusals["create Pod"] = KubeError(code, "Refused", "no")
    for _ in range(3):
        with pytest.raises(KubeError, match="no"):
            await house.look()


async def test_what_cannot_be_read_again_after_a_conflict_waits_as_the_api_server_asks() -> None:
    house = House()
    await house.reconciler._gatherer.gather(KEY)  # the claim has been read
    house.api.refusals = {"create Pod": KubeError(409, "AlreadyExists", "it exists"), "get": OVERLOADED}
    with pytest.raises(KubeError, match="slow down") as raised:
        await house.look()
    assert raised.value.retry_after == 7


async def test_nothing_is_made_anew_for_a_deployment_whose_deletion_is_still_to_be_told() -> None:
    house = await House(replicas=2).settled()
    house.api.lose(VLM_DEPLOYMENT, NAME, watched=False)
    house.api.lose(SERVICE, NAME)
    house.api.lose(POD, house.pods()[0])
    assert await house.look() == 0.0
    assert await house.looks() is None
    assert not house.api.writes()


async def test_nor_for_one_whose_deletion_is_told_while_it_is_being_read() -> None:
    house = await House(replicas=2).settled()
    gone = house.api.objects["VLMDeployment", NAME]
    house.api.lose(VLM_DEPLOYMENT, NAME, watched=False)
    house.api.lose(SERVICE, NAME)
    read = house.api.get

    async def read_while_it_is_told(kind: Kind, **place: Any) -> Any:
        if kind is VLM_DEPLOYMENT:
            house.cache.remove(VLM_DEPLOYMENT, gone)
        return await read(kind, **place)

    house.api.get = read_while_it_is_told  # type: ignore[method-assign]
    assert await house.look() == 0.0
    assert not house.api.writes()


async def test_an_edit_that_the_watch_keeps_back_is_read_where_the_status_meets_it() -> None:
    house = await House(replicas=2).settled()
    house.edit(replicas=1, watched=False)
    house.fail(house.pods()[1])
    with pytest.raises(KubeError, match="differs"):
        await house.look()
    await house.look()
    assert len(house.pods()) == 1
    assert house.status()["observedGeneration"] == 2


async def test_a_deployment_that_is_gone_when_its_status_is_written_is_forgotten() -> None:
    house = await House().settled()
    house.api.lose(VLM_DEPLOYMENT, NAME, watched=False)
    house.fail(house.pods()[0])
    with pytest.raises(KubeError, match="not found"):
        await house.look()
    assert await house.looks() is None


async def test_a_store_of_events_that_does_not_answer_holds_up_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(publish, "EVENT_SECONDS", 0.01)
    house = House()
    house.api.silent.add("create Event")
    await asyncio.wait_for(house.look(), 10)
    assert house.condition("Available") == "False/Loading"
    assert "event ReplicaCreated not recorded: no answer in time" in caplog.text


async def test_what_was_done_is_told_once_though_the_status_is_refused() -> None:
    house = await House(replicas=2).settled()
    house.api.lose(POD, house.pods()[0])
    house.api.events.clear()
    house.api.refusals["patch_status"] = KubeError(409, "Conflict", "the resourceVersion differs")
    with pytest.raises(KubeError, match="differs"):
        await house.look()
    assert house.reasons() == ["ReplicaCreated", "PodVanished"]
    house.api.refusals.clear()
    await house.look()
    assert house.reasons() == ["ReplicaCreated", "PodVanished", "Loading"]


async def test_what_admission_refuses_is_told_and_rests() -> None:
    house = House(replicas=2)
    house.api.refusals["create Pod"] = QUOTA
    assert await house.looks() == 5.0
    assert house.condition("Available") == "False/AdmissionRefused"
    assert [(f["slot"], f["count"]) for f in house.status()["failures"]] == [(0, 1), (1, 1)]
    house.now += 2
    assert await house.look() == 3.0
    assert house.api.calls["create Pod"] == 2

    house.api.refusals.clear()
    house.now += 3
    await house.look()
    await house.look()
    assert len(house.pods()) == 2
    assert "failures" not in house.status()


async def test_no_replica_is_created_while_what_it_needs_is_refused() -> None:
    house = House()
    house.api.refusals["create ConfigMap"] = QUOTA
    assert await house.looks() == 60.0
    assert house.pods() == []
    assert "create ConfigMap m-engine-scripts: exceeded quota: gpus" in house.status()["conditions"][2]["message"]


async def test_a_change_that_is_refused_is_told() -> None:
    house = await House().settled()
    house.api.refusals["change Service"] = KubeError(422, "Invalid", "the port is bad")
    house.edit(service={"port": 80})
    assert await house.looks() == 60.0
    assert house.condition("Progressing") == "False/AdmissionRefused"


async def test_facts_that_must_not_be_read_leave_everything_as_it_is_and_are_told() -> None:
    house = await House(replicas=2).settled()
    before = house.status()
    house.gatherer.unlisted = {NAMESPACE: NO_RIGHT}
    house.edit(replicas=5)
    with pytest.raises(KubeError, match="cannot list"):
        await house.look()
    with pytest.raises(KubeError, match="cannot list"):
        await house.look()
    assert house.api.writes() == {"patch_status": 1}
    assert house.condition("Ready") == "Unknown/PermissionMissing"
    assert house.condition("Available") == "True/Available"
    assert {key: value for key, value in house.status().items() if key not in {"conditions", "observedGeneration"}} == {
        key: value for key, value in before.items() if key not in {"conditions", "observedGeneration"}
    }
    house.gatherer.unlisted = {}
    await house.look()
    assert len(house.pods()) == 5


async def test_a_stranger_that_must_not_be_looked_at_is_waited_for() -> None:
    house = House(replicas=1)
    house.api.hold(SERVICE, {"metadata": {"name": NAME, "namespace": NAMESPACE}})
    house.api.refusals["get"] = NO_RIGHT
    assert await house.look() == 0.0, "no look at the claim is allowed either"
    assert house.condition("Progressing") == "False/PermissionMissing"
    assert house.pods() == []
    house.api.refusals["get"] = OVERLOADED
    with pytest.raises(KubeError, match="slow down"):
        await house.look()


async def test_a_new_deployment_of_the_name_starts_without_the_old_ones_memory() -> None:
    house = House(replicas=1)
    house.api.refusals["create Pod"] = QUOTA
    await house.look()
    house.api.refusals.clear()
    assert await house.looks() == 5.0
    for kind in (BUDGET, CONFIG_MAP, CONTROLLER_REVISION, SERVICE, VLM_DEPLOYMENT):
        for held, name in list(house.api.objects):
            if held == kind.kind:
                house.api.lose(kind, name)
    house.create(replicas=1)
    assert await house.looks() is None
    assert len(house.pods()) == 1


async def test_a_claim_that_is_not_ready_is_looked_at_again() -> None:
    house = House()
    house.api.lose(CLAIM, "models", watched=False)
    assert await house.looks() == CLAIM_RECHECK
    assert house.condition("WeightsReady") == "False/ClaimNotFound"


@pytest.mark.parametrize("code", [0, 429, 500, 503])
async def test_a_claim_that_cannot_be_read_for_now_is_not_judged(code: int) -> None:
    house = House()
    house.api.refusals["get"] = KubeError(code, "Trouble", "no answer for now")
    with pytest.raises(KubeError, match="no answer"):
        await house.look()
    assert not house.api.writes()
    house.api.refusals["get"] = KubeError(403, "Forbidden", "claims are none of your business")
    await house.look()
    assert house.condition("WeightsReady") == "Unknown/ClaimUnreadable"


async def test_a_refused_spec_changes_nothing_but_the_status() -> None:
    house = await House(replicas=2).settled()
    house.edit(replicas=0, engine={"version": "0.1"}, scaling={"maxReplicas": 3})
    await house.look()
    assert len(house.pods()) == 2
    assert house.api.writes() == {"patch_status": 1}
    assert house.condition("Accepted").startswith("False/")
    assert house.status()["desiredReplicas"] == 2


async def test_a_service_comes_back_as_it_was_accepted_though_the_spec_is_refused_and_the_operator_new() -> None:
    house = await House(service={"port": 80}).settled()
    house.edit(service={"port": 90}, engine={"version": "0.1"})
    await house.look()
    house.start()
    house.api.lose(SERVICE, NAME)
    await house.look()
    assert house.condition("Accepted").startswith("False/")
    assert house.api.objects["Service", NAME]["spec"]["ports"][0]["port"] == 80


async def test_events_are_about_the_deployment_and_have_names_of_their_own() -> None:
    house = await House().settled()
    event = house.api.events[0]
    assert event["regarding"] == {
        "apiVersion": "vlm.dev/v1alpha1",
        "kind": "VLMDeployment",
        "name": NAME,
        "namespace": NAMESPACE,
        "uid": house.api.objects["VLMDeployment", NAME]["metadata"]["uid"],
    }
    names = [e["metadata"]["name"] for e in house.api.events]
    assert len(set(names)) == len(names)
    assert event["eventTime"] == "2027-01-15T08:00:00.000000Z"


async def test_what_the_operator_did_is_followed_by_the_next_step_without_any_news() -> None:
    house = await House(replicas=2).settled()
    house.edit(replicas=1)
    assert await house.look() == 0.0
    assert await house.looks() == READ_AGAIN


async def test_what_is_undone_again_and_again_is_not_hurried() -> None:
    house = await House().settled()
    for _ in range(STEPS_IN_A_ROW):
        house.edit_child(SERVICE, {"ports": []})
        assert await house.look() == 0.0
    house.edit_child(SERVICE, {"ports": []})
    assert await house.look() is None
    assert await house.look() is None
    house.edit_child(SERVICE, {"ports": []})
    assert await house.look() == 0.0


async def test_a_second_budget_is_warned_of_once_and_stops_nothing() -> None:
    house = House()
    theirs = {"metadata": {"name": "theirs", "namespace": NAMESPACE}, "spec": {"selector": {}}}
    house.api.hold(BUDGET, theirs)
    await house.settled()
    await house.looks()
    assert house.condition("Accepted") == "True/Accepted"
    assert "PodDisruptionBudget theirs selects replicas" in house.condition_message("Accepted")
    assert house.reasons().count("BudgetsOverlap") == 1
    house.start()
    await house.looks()
    assert house.reasons().count("BudgetsOverlap") == 1
    assert house.condition("Ready") == "True/Ready"


async def test_a_second_budget_with_our_label_is_warned_of() -> None:
    house = House()
    labels = {DEPLOYMENT_LABEL: NAME}
    theirs = {"metadata": {"name": "copy", "namespace": NAMESPACE, "labels": labels}, "spec": {"selector": {}}}
    house.api.hold(BUDGET, theirs, watched=True)
    await house.settled()
    assert "PodDisruptionBudget copy selects replicas" in house.condition_message("Accepted")


async def test_a_replica_that_comes_to_a_node_that_is_cordoned_already_is_left_there() -> None:
    house = await House(replicas=1, warmPool={"size": 1, "mode": "Standby"}).settled()
    node = house.api.hold(NODE, {"metadata": {"name": "n"}, "spec": {"unschedulable": True}})
    assert await house.gatherer.follow_cordons() == {KEY}
    assert await house.gatherer.follow_cordons() == set(), "it is no news any more"
    first = set(house.uids())
    for _ in range(6):
        await house.looks()
        house.make_ready()
    assert len(first & set(house.uids())) == 1, "the one on standby was replaced, the other drains"
    second = house.uids()
    for _ in range(6):
        await house.looks()
        house.make_ready()
    assert house.uids() == second, "the one that came to the same node is not"
    house.api.lose(NODE, node["metadata"]["name"], watched=False)
    assert await house.gatherer.follow_cordons() == {KEY}
