"""A look from outside: what the operator would see and do, with what may be read."""

from typing import Any, cast

import pytest

from unit.replicas.examples import NAME, NAMESPACE
from unit.runtime.reconcile_world import KEY, House
from vlm_operator.runtime.files import UnusableInputError
from vlm_operator.runtime.kinds import NODE, POD, SERVICE, VLM_DEPLOYMENT
from vlm_operator.runtime.kube import Kube, KubeError
from vlm_operator.runtime.survey import survey
from vlm_operator.sizing.catalogue.loading import builtin
from vlm_operator.status.explanation import explain

NO_RIGHT = KubeError(403, "Forbidden", 'User "ann" cannot list resource "pods" in API group ""')


async def explained(house: House) -> tuple[dict[str, Any], tuple[str, ...]]:
    found = await survey(cast("Kube", house.api), KEY, builtin(), now=house.now)
    assert found.facts is not None
    assert found.decision is not None
    assert found.plan is not None
    return explain(found.facts, found.decision, found.plan), found.unread


def busy(house: House, pod: str, requests: int) -> None:
    """A pod tells of its requests."""
    label = 'model_name="org/model"'
    house.api.pages[pod, "/metrics"] = "".join(
        f"# TYPE vllm:{name} gauge\nvllm:{name}{{{label}}} {value}\n"
        for name, value in (("num_requests_running", requests), ("num_requests_waiting", 0))
    )
    house.api.pages[pod, "/load"] = f'{{"server_load": {requests}}}'


async def test_a_deployment_at_rest_is_told_as_its_status_tells_it() -> None:
    house = await House(replicas=2).settled()
    told, unread = await explained(house)
    assert [(replica["role"], replica["phase"], replica["gpus"]) for replica in told["replicas"]] == [
        ("serving", "Ready", 1),
        ("serving", "Ready", 1),
    ]
    assert told["conditions"] == [
        {name: condition[name] for name in ("type", "status", "reason", "message")}
        for condition in house.status()["conditions"]
    ]
    assert (told["next"], told["waitsFor"], told["rollout"]) == ([], [], None)
    assert house.api.writes() == {}
    assert any("requests in flight of m-" in sentence for sentence in unread), "nobody answers there"


async def test_what_is_done_next_is_told_before_it_is_done() -> None:
    house = await House(replicas=2).settled()
    house.edit(replicas=3)
    told, _ = await explained(house)
    assert told["next"] == [*told["next"][:-1], f"create replica {house.pods()[0][:-2]}-2"]
    await house.looks()
    assert (await explained(house))[0]["next"] == []


async def test_what_is_not_there_yet_is_waited_for() -> None:
    house = House(replicas=2)
    await house.looks()
    told, _ = await explained(house)
    assert told["waitsFor"] == [{"reason": "Loading", "message": "0 of 2 replicas serve"}]
    house.make_ready()
    await house.looks()
    assert (await explained(house))[0]["waitsFor"] == []


async def test_requests_in_flight_are_read_through_the_api_server() -> None:
    house = await House(replicas=2).settled()
    first, second = house.pods()
    busy(house, first, 3)
    busy(house, second, 0)
    told, unread = await explained(house)
    assert [replica["inFlight"] for replica in told["replicas"]] == [3, 0]
    assert not unread
    house.edit(replicas=1)
    assert (await explained(house))[0]["next"][-1].startswith(f"drain replica {second}: ")


async def test_somebody_elses_service_is_found_where_the_operator_will_meet_it() -> None:
    house = House()
    house.api.hold(SERVICE, {"metadata": {"name": NAME, "namespace": NAMESPACE}})
    told, _ = await explained(house)
    assert [wait["reason"] for wait in told["waitsFor"]] == ["ServiceNameTaken"]
    assert not [sentence for sentence in told["next"] if "replica" in sentence]


async def test_what_need_not_be_known_may_stay_unread() -> None:
    house = await House().settled()
    house.api.refused_kinds = {NODE.kind: NO_RIGHT, "EndpointSlice": NO_RIGHT}
    told, unread = await explained(house)
    assert told["next"] == []
    assert [sentence.partition(" cannot")[0] for sentence in unread] == [
        "nodes",
        f"requests in flight of {house.pods()[0]}",
        "where clients are sent",
    ]


async def test_without_what_must_be_known_nothing_is_told() -> None:
    house = await House().settled()
    house.api.refused_kinds = {POD.kind: NO_RIGHT}
    with pytest.raises(
        UnusableInputError, match=r"cannot be read: .*cannot list resource \"pods\".*; ask for the perm"
    ):
        await explained(house)


async def test_a_deployment_that_is_not_there_is_told_with_the_way_out() -> None:
    house = House()
    house.api.lose(VLM_DEPLOYMENT, NAME)
    with pytest.raises(UnusableInputError, match="there is no VLMDeployment m in namespace models; kubectl get vlmd"):
        await explained(house)


async def test_for_one_that_is_being_deleted_nothing_is_planned() -> None:
    house = await House().settled()
    live = house.api.objects["VLMDeployment", NAME]
    gone = live["metadata"] | {"deletionTimestamp": "2027-01-15T08:00:00Z"}
    house.api.hold(VLM_DEPLOYMENT, live | {"metadata": gone}, watched=True)
    found = await survey(cast("Kube", house.api), KEY, builtin(), now=house.now)
    assert (found.facts, found.plan) == (None, None)
