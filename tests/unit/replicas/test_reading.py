"""Pods and revisions are read as they come: what is missing or odd becomes the careful value and never an error."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.replicas.examples import NAME, NAMESPACE, OLDER, OURS, UID, inputs, resolved, stored
from unit.replicas.tables import table
from vlm_operator.api.names import pod_labels
from vlm_operator.engines.registry import engine
from vlm_operator.replicas.facts import GpuNode, Replica, Trouble
from vlm_operator.replicas.ownership import Ownership
from vlm_operator.replicas.reading import epoch, read_node, read_replica, read_revision

LABELS = pod_labels(NAME, role="serving", revision="0123456789", slot=2)


def pod(*, status: Any = None, spec: Any = None, **metadata: Any) -> dict[str, Any]:
    known = {
        "name": f"{NAME}-0123456789-2",
        "namespace": NAMESPACE,
        "uid": "u",
        "resourceVersion": "7",
        "creationTimestamp": "2027-01-15T08:00:00Z",
        "labels": LABELS,
        "ownerReferences": [OURS],
    }
    given = {key: part for key, part in (known | metadata).items() if part is not None}
    return {"metadata": given, "spec": spec or {}, "status": status or {}}


def read(obj: dict[str, Any]) -> Replica | None:
    return read_replica(obj, deployment=NAME, uid=UID)


READY_STATUS = {
    "phase": "Running",
    "conditions": [
        {"type": "PodScheduled", "status": "True"},
        {"type": "Ready", "status": "True", "lastTransitionTime": "2027-01-15T08:03:00Z"},
    ],
    "containerStatuses": [
        {"name": "mesh", "started": False, "ready": True},
        {"name": "engine", "started": True, "ready": True, "state": {"running": {}}},
    ],
}
RUNNING_SPEC = {"nodeName": "n", "containers": [{"name": "mesh", "image": "mesh"}, {"name": "engine", "image": "vllm"}]}


def test_a_serving_replica() -> None:
    created = epoch("2027-01-15T08:00:00Z")
    assert created is not None
    assert read(pod(spec=RUNNING_SPEC, status=READY_STATUS)) == Replica(
        name=f"{NAME}-0123456789-2",
        uid="u",
        resource_version="7",
        slot=2,
        revision="0123456789",
        role="serving",
        ownership=Ownership.OURS,
        created_at=created,
        scheduled=True,
        started=True,
        ready=True,
        ready_since=created + 180,
        terminating=False,
        ended=False,
        labels=LABELS,
        image="vllm",
        trouble=None,
        node="n",
    )


@pytest.mark.parametrize(
    ("status", "seconds"), [("True", 60.0), ("False", None), ("nonsense", None)], ids=["a node", "no node", "nonsense"]
)
def test_when_it_got_its_node(status: str, seconds: float | None) -> None:
    placed = {"type": "PodScheduled", "status": status, "lastTransitionTime": "2027-01-15T08:01:00Z"}
    found = read(pod(status={"conditions": [placed]}))
    assert found is not None
    assert found.scheduled_at == (None if seconds is None else found.created_at + seconds)


def test_a_pod_of_which_nothing_is_known_yet_is_careful() -> None:
    found = read(pod(labels=None, ownerReferences=None, resourceVersion=None, creationTimestamp=None))
    assert found is not None
    assert (found.ownership, found.created_at, found.role) == (Ownership.FOREIGN, 0.0, "")
    assert [found.scheduled, found.started, found.ready, found.live] == [False] * 4


STATES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("not ready: no time since when", {"status": {"conditions": [
        {"type": "Ready", "status": "False", "lastTransitionTime": "2027-01-15T08:03:00Z"}]}},
     {"ready": False, "ready_since": None}),
    ("an unknown readiness (a lost node) is not ready", {"status": {"conditions": [
        {"type": "Ready", "status": "Unknown"}]}}, {"ready": False}),
    ("failed", {"status": {"phase": "Failed"}}, {"ended": True, "live": False}),
    ("succeeded", {"status": {"phase": "Succeeded"}}, {"ended": True, "live": False}),
    ("leaving", {"deletionTimestamp": "2027-01-15T08:05:00Z"}, {"terminating": True, "live": False}),
    ("of an older deployment", {"ownerReferences": [OLDER]}, {"ownership": Ownership.LEAVING, "live": False}),
    ("an orphan", {"ownerReferences": []}, {"ownership": Ownership.FOREIGN, "live": False}),
    ("its role was edited", {"labels": LABELS | {"vlm.dev/role": "mine"}}, {"role": "mine", "live": True}),
    ("its labels are gone", {"labels": None}, {"slot": 2, "revision": "0123456789", "role": ""}),
    ("its slot and revision were edited: the name decides",
     {"labels": LABELS | {"vlm.dev/slot": "9", "vlm.dev/revision": "x"}}, {"slot": 2, "revision": "0123456789"}),
    ("in trouble", {"status": {"phase": "Failed", "reason": "Evicted"}},
     {"trouble": Trouble(reason="Evicted", message="Evicted")}),
]  # fmt: skip


@table("change, expected", STATES)
def test_states_of_a_replica(change: dict[str, Any], expected: dict[str, Any]) -> None:
    found = read(pod(**change))
    assert {name: getattr(found, name) for name in expected} == expected


def test_the_engine_of_its_revision_tells_why_it_ended() -> None:
    ended = {"exitCode": 1, "reason": "Error", "message": "ValueError: No available memory for the cache blocks.\nbye"}
    status = {"containerStatuses": [{"name": "engine", "state": {"terminated": ended}}]}
    for revision, reason in (("0123456789", "KVCacheTooSmall"), ("another", "EngineExited")):
        engines = {revision: engine("vLLM")}
        found = read_replica(pod(status=status), deployment=NAME, uid=UID, engines=engines)
        assert found is not None
        assert found.trouble is not None
        assert found.trouble.reason == reason


IDENTITIES: list[tuple[str, dict[str, str], tuple[str, int] | None]] = [
    ("m-0123456789-0", {}, ("0123456789", 0)),
    ("m-0123456789-12", {}, ("0123456789", 12)),
    ("m-0123456789-x", {}, None),
    ("m-0123456789", {}, None),
    ("m-7", {}, None),
    ("n-0123456789-0", {}, None),
    ("elsewhere", {}, None),
    ("elsewhere", {"vlm.dev/slot": "3", "vlm.dev/revision": "0123456789"}, ("0123456789", 3)),
    ("elsewhere", {"vlm.dev/slot": "-3"}, None),
    ("elsewhere", {"vlm.dev/slot": "three"}, None),
]


@pytest.mark.parametrize(("name", "labels", "identity"), IDENTITIES)
def test_revision_and_slot(name: str, labels: dict[str, str], identity: tuple[str, int] | None) -> None:
    found = read(pod(name=name, labels=labels))
    assert (None if found is None else (found.revision, found.slot)) == identity


times = st.integers(0, 2**32).map(
    lambda seconds: datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
)
texts = st.text(max_size=8)


def fields(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=optional)


exits = st.fixed_dictionaries({"exitCode": st.integers(0, 255)}, optional={"reason": texts, "message": texts})
states = fields(waiting=fields(reason=texts, message=texts), running=st.just({}), terminated=exits)
containers = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["engine", "mesh"]), "ready": st.booleans()},
        optional={"started": st.none() | st.booleans(), "state": states, "lastState": states},
    ),
    max_size=3,
)
conditions = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["Ready", "PodScheduled", "Initialized", ""]),
            "status": st.sampled_from(["True", "False", "Unknown"]),
        },
        optional={"reason": texts, "message": texts, "lastTransitionTime": st.none() | times},
    ),
    max_size=3,
)
pods = st.builds(
    pod,
    name=st.sampled_from([f"{NAME}-0123456789-2", f"{NAME}-0", "other"])
    | st.from_regex(r"m(-[a-z0-9]{1,5}){0,3}", fullmatch=True),
    labels=st.none() | st.dictionaries(st.sampled_from(list(LABELS)), st.from_regex(r"[a-z0-9]{0,4}", fullmatch=True)),
    ownerReferences=st.none() | st.lists(st.sampled_from([OURS, OLDER]), max_size=2),
    deletionTimestamp=st.none() | times,
    creationTimestamp=times,
    spec=st.none() | fields(nodeName=texts, containers=st.lists(fields(name=texts, image=texts), max_size=2)),
    status=st.none()
    | fields(
        phase=st.sampled_from(["Pending", "Running", "Failed", "Succeeded", "Unknown"]),
        reason=texts,
        message=texts,
        conditions=st.none() | conditions,
        containerStatuses=st.none() | containers,
        initContainerStatuses=st.none() | containers,
    ),
)


@settings(max_examples=100)
@given(pods)
def test_no_pod_that_an_api_server_may_hold_is_too_odd(obj: dict[str, Any]) -> None:
    found = read(obj)
    if found is not None:
        assert found.slot >= 0
        assert found.ready or found.ready_since is None
        assert found.trouble is None or (found.trouble.reason.isascii() and found.trouble.reason.isalnum())


def test_a_stored_revision_is_read_back() -> None:
    known = stored(number=4)
    assert read_revision(known.live, deployment=NAME, uid=UID) == known


@pytest.mark.parametrize(
    "change",
    [
        {"data": None},
        {"data": {}},
        {"data": {"resolved": "x"}},
        {"data": {"resolved": resolved().model_dump(by_alias=True) | {"fieldOfALaterVersion": 1}}},
        {"metadata": stored().live["metadata"] | {"ownerReferences": [OLDER]}},
        {"metadata": stored().live["metadata"] | {"ownerReferences": []}},
    ],
    ids=["no data", "empty data", "odd data", "data of a later version", "leaving", "an orphan"],
)
def test_a_revision_that_is_not_ours_or_not_readable_is_none(change: dict[str, Any]) -> None:
    assert read_revision({**stored().live, **change}, deployment=NAME, uid=UID) is None


@pytest.mark.parametrize(
    "annotations", [None, {}, {"vlm.dev/settings": "x"}, {"vlm.dev/settings": '{"service": {"port": 0}}'}], ids=str
)
def test_settings_that_cannot_be_read_are_none(annotations: dict[str, str] | None) -> None:
    live = stored(annotations=annotations).live
    found = read_revision(live, deployment=NAME, uid=UID)
    assert found is not None
    assert found.settings is None


def test_a_replica_has_as_many_gpus_as_its_degrees_multiply_to() -> None:
    assert stored(inputs(parallelism={"tensor": 2, "pipeline": 3, "data": 4})).gpus == 24


def test_a_node_and_what_pods_can_have_of_it() -> None:
    node = {
        "metadata": {"name": "a", "labels": {"nvidia.com/gpu.product": "NVIDIA-L4"}},
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "4", "vendor.com/nic": "0"}},
    }
    assert read_node(node) == GpuNode(product="NVIDIA-L4", resources={"nvidia.com/gpu": 4})
    assert read_node({"metadata": {}, "status": {"allocatable": {"cpu": "8"}}}) is None
    assert read_node({"metadata": {}}) is None
