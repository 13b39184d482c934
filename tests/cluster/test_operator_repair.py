"""What somebody else edits or deletes comes back; what somebody else owns is never touched."""

import pytest

from cluster.support.operator import Deployments, Object, manifest
from controlplane import ApiError, wait_until
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.engines.base import PodInputs
from vlm_operator.replicas.revision import revision_of

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

FOREIGN_SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "qwen", "annotations": {"owner": "somebody else"}},
    "spec": {"selector": {"app": "other"}, "ports": [{"port": 80}]},
}
REVISIONS = "/apis/apps/v1"


@pytest.fixture
def ready(deployments: Deployments) -> Deployments:
    """A namespace with a ready deployment."""
    deployments.create(replicas=2)
    deployments.until_ready()
    return deployments


def test_a_deleted_replica_is_replaced(ready: Deployments) -> None:
    name, pod = min(ready.pods().items())
    ready.api.delete(ready.core("pods", name), {"gracePeriodSeconds": 0})
    ready.until_pods(lambda pods: len(pods) == 2 and pod["metadata"]["uid"] not in _uids(pods), "are two again")
    ready.until_ready()


def test_a_replica_that_takes_long_to_leave_is_replaced_at_once(ready: Deployments) -> None:
    name = min(ready.pods())
    ready.annotate_pod(name, end_after="60s")
    ready.api.delete(ready.core("pods", name), {"gracePeriodSeconds": 120})
    pods = ready.until_pods(lambda pods: len(pods) == 2 and name not in pods, "are two others")
    assert name in ready.children("pods")
    assert name not in pods
    ready.until_ready()


def test_an_ended_replica_is_removed_and_replaced(ready: Deployments) -> None:
    name, pod = min(ready.pods().items())
    ready.annotate_pod(name, fault="evict", message="The node was low on resource: memory.")
    ready.until_pods(lambda pods: pod["metadata"]["uid"] not in _uids(pods), "are without it")
    ready.until_ready()

    def told() -> bool:
        return any(e["reason"] == "Evicted" and "low on resource" in e["note"] for e in ready.events())

    wait_until(told, "the event says why")


def test_an_edited_service_is_repaired(ready: Deployments) -> None:
    path = ready.core("services", "qwen")
    spec = {"selector": {"strange": "label", "vlm.dev/role": "warm"}, "ports": [{"port": 9999, "targetPort": 1}]}
    ready.api.merge_patch(
        path, {"spec": spec, "metadata": {"labels": {"vlm.dev/deployment": "another", "mine": "kept"}}}
    )

    def repaired() -> bool:
        service = ready.api.get(path)
        selector = {"vlm.dev/deployment": "qwen", "vlm.dev/role": "serving"}
        ports = [port["port"] for port in service["spec"]["ports"]]
        labels = service["metadata"]["labels"]
        return (
            service["spec"]["selector"] == selector and ports == [8000] and labels.get("vlm.dev/deployment") == "qwen"
        )

    wait_until(repaired, "the Service is as before")
    assert ready.api.get(path)["metadata"]["labels"]["mine"] == "kept"


@pytest.mark.parametrize(
    ("kind", "group", "name"),
    [
        ("services", "/api/v1", "qwen"),
        ("configmaps", "/api/v1", "qwen-engine-scripts"),
        ("controllerrevisions", REVISIONS, "qwen-{revision}"),
    ],
)
def test_a_deleted_child_comes_back(ready: Deployments, kind: str, group: str, name: str) -> None:
    path = f"{group}/namespaces/{ready.namespace}/{kind}/{name.format(revision=ready.revision())}"
    before = ready.api.get(path)["metadata"]["uid"]
    pods = set(ready.pods())
    ready.api.delete(path)
    wait_until(lambda: ready.api.get(path)["metadata"]["uid"] != before, "it is there again")
    ready.until_ready()
    assert set(ready.pods()) == pods


def test_edited_scripts_are_repaired(ready: Deployments) -> None:
    path = ready.core("configmaps", "qwen-engine-scripts")
    before = ready.api.get(path)["data"]
    ready.api.merge_patch(path, {"data": dict.fromkeys(before, "exit 0")})
    wait_until(lambda: ready.api.get(path)["data"] == before, "the scripts are as before")


def test_labels_of_a_replica_are_repaired(ready: Deployments) -> None:
    name = min(ready.pods())
    path = ready.core("pods", name)
    before = ready.api.get(path)["metadata"]
    for labels in (
        {"vlm.dev/role": "warm"},
        {"vlm.dev/role": None},
        {"vlm.dev/deployment": None},
        {"vlm.dev/deployment": "another", "vlm.dev/slot": "7", "vlm.dev/revision": "0"},
    ):
        ready.api.merge_patch(path, {"metadata": {"labels": labels}})
        wait_until(lambda: ready.api.get(path)["metadata"]["labels"] == before["labels"], f"{labels} are repaired")
    assert ready.api.get(path)["metadata"]["uid"] == before["uid"]
    assert len(ready.pods()) == 2


def test_a_changed_image_of_a_replica_is_put_back(ready: Deployments) -> None:
    path = ready.core("pods", min(ready.pods()))
    pod = ready.api.get(path)
    image = pod["spec"]["containers"][0]["image"]
    containers = [pod["spec"]["containers"][0] | {"image": "example/other:1"}]
    ready.api.merge_patch(path, {"spec": {"containers": containers}})
    wait_until(lambda: ready.api.get(path)["spec"]["containers"][0]["image"] == image, "the image is as before")


def test_an_annotation_taken_out_of_the_spec_leaves_the_service(deployments: Deployments) -> None:
    deployments.create(service={"annotations": {"example.com/a": "1", "example.com/b": "2"}})
    deployments.until_ready()
    path = deployments.core("services", "qwen")
    deployments.api.merge_patch(path, {"metadata": {"annotations": {"example.com/theirs": "3"}}})
    deployments.patch(service={"annotations": {"example.com/a": None}})
    left = {"example.com/b": "2", "example.com/theirs": "3"}
    wait_until(lambda: deployments.api.get(path)["metadata"].get("annotations") == left, "only ours is gone")


def test_an_edited_status_is_written_again(ready: Deployments) -> None:
    path = f"/apis/vlm.dev/v1alpha1/namespaces/{ready.namespace}/vlmdeployments/qwen/status"
    ready.api.merge_patch(path, {"status": {"servingReplicas": 77, "conditions": []}})
    ready.until_ready()
    assert ready.status()["servingReplicas"] == 2


def test_a_service_of_somebody_else_is_left_alone(deployments: Deployments) -> None:
    deployments.api.post(deployments.core("services"), FOREIGN_SERVICE)
    before = deployments.api.get(deployments.core("services", "qwen"))
    deployments.create()
    taken = deployments.until("Available", "False", reason="ServiceNameTaken")
    assert f"kubectl delete service qwen -n {deployments.namespace}" in taken["message"]
    assert deployments.api.get(deployments.core("services", "qwen")) == before
    assert not deployments.pods()
    deployments.api.delete(deployments.core("services", "qwen"))
    deployments.until_ready()


@pytest.mark.parametrize("name", ["qwen-engine-scripts"])
def test_a_config_map_of_somebody_else_is_left_alone(deployments: Deployments, name: str) -> None:
    foreign = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}}
    deployments.api.post(deployments.core("configmaps"), foreign)
    deployments.create()
    deployments.until("Available", "False", reason="ConfigMapNameTaken")
    assert deployments.api.get(deployments.core("configmaps", name))["data"] == {"a": "b"}
    deployments.api.delete(deployments.core("configmaps", name))
    deployments.until_ready()


def test_a_controller_revision_of_somebody_else_is_left_alone(deployments: Deployments) -> None:
    revisions = f"{REVISIONS}/namespaces/{deployments.namespace}/controllerrevisions"
    name = f"qwen-{revision_of(PodInputs.of(VLMDeploymentSpec.model_validate(manifest('qwen')['spec'])))}"
    foreign = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": name}}
    deployments.api.post(revisions, foreign | {"revision": 7, "data": {"a": "b"}})
    deployments.create()
    taken = deployments.until("Available", "False", reason="ControllerRevisionNameTaken")
    assert f"kubectl delete controllerrevision {name} -n {deployments.namespace}" in taken["message"]
    assert deployments.api.get(f"{revisions}/{name}")["data"] == {"a": "b"}
    assert not deployments.pods()
    deployments.api.delete(f"{revisions}/{name}")
    deployments.merge("qwen", {"metadata": {"annotations": {"look": "again"}}})
    deployments.until_ready()


def test_a_replica_without_its_owner_reference_is_let_go_and_replaced(ready: Deployments) -> None:
    name = min(ready.pods())
    before = ready.api.merge_patch(ready.core("pods", name), {"metadata": {"ownerReferences": None}})
    ready.until_pods(lambda pods: len(pods) == 3, "are three, of which two belong to it")
    ready.until_ready()
    wait_until(lambda: ready.status()["servingReplicas"] == 2, "two serve")
    after = ready.api.get(ready.core("pods", name))
    for field in ("uid", "labels", "annotations"):
        assert after["metadata"].get(field) == before["metadata"].get(field)
    assert "deletionTimestamp" not in after["metadata"]


def test_a_service_without_its_owner_reference_is_left_alone_until_it_is_removed(ready: Deployments) -> None:
    path, pods = ready.core("services", "qwen"), set(ready.pods())
    uid = ready.api.merge_patch(path, {"metadata": {"ownerReferences": None}})["metadata"]["uid"]
    taken = ready.until("Available", "False", reason="ServiceNameTaken")
    assert f"kubectl delete service qwen -n {ready.namespace}" in taken["message"]
    ready.api.delete(path)
    ready.until_ready()
    assert ready.api.get(path)["metadata"]["uid"] != uid
    assert set(ready.pods()) == pods


def test_a_pod_of_somebody_else_keeps_its_name(ready: Deployments) -> None:
    revision = ready.revision()
    stranger = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"qwen-{revision}-2"},
        "spec": {"containers": [{"name": "other", "image": "other:1"}]},
    }
    ready.api.post(ready.core("pods"), stranger)
    uid = ready.api.get(ready.core("pods", f"qwen-{revision}-2"))["metadata"]["uid"]
    ready.patch(replicas=3)
    ready.until_pods(lambda pods: f"qwen-{revision}-3" in pods, "include slot 3")
    ready.until_ready()
    assert ready.api.get(ready.core("pods", f"qwen-{revision}-2"))["metadata"]["uid"] == uid


def test_deleted_and_created_again_at_once(deployments: Deployments) -> None:
    deployments.create(replicas=2)
    deployments.until_ready()
    old = {pod["metadata"]["uid"] for pod in deployments.pods().values()}
    for _ in range(3):
        deployments.delete()
        wait_until(lambda: _created(deployments), "the name is free again", every_seconds=0.01)
    deployments.until_ready(timeout_seconds=60)
    owner = deployments.get()["metadata"]["uid"]
    pods = deployments.until_pods(
        lambda pods: len(pods) == 2 and all(p["metadata"]["ownerReferences"][0]["uid"] == owner for p in pods.values()),
        "are its own",
    )
    assert not old & {pod["metadata"]["uid"] for pod in pods.values()}


def _created(deployments: Deployments) -> bool:
    try:
        deployments.create(replicas=2)
    except ApiError as error:
        if error.status == 409:
            return False
        raise
    return True


def test_orphans_are_left_alone_until_they_are_removed(deployments: Deployments) -> None:
    deployments.create(replicas=2)
    deployments.until_ready()
    deployments.delete(cascade="Orphan")
    wait_until(lambda: not _owned(deployments), "the children are orphans")
    orphans = {name: pod["metadata"]["uid"] for name, pod in deployments.children("pods").items()}
    wait_until(lambda: _created(deployments), "the name is free again")
    taken = deployments.until("Available", "False", reason="ServiceNameTaken")
    kinds = "pods,services,configmaps,controllerrevisions,poddisruptionbudgets"
    command = f"kubectl delete {kinds} -n {deployments.namespace} -l vlm.dev/deployment=qwen"
    assert command in taken["message"]
    assert {name: pod["metadata"]["uid"] for name, pod in deployments.children("pods").items()} == orphans
    deployments.control_plane.kubectl(*command.removeprefix("kubectl ").split(), "--grace-period=1")
    deployments.until_ready(timeout_seconds=60)
    assert len(deployments.ready_pods()) == 2


def _owned(deployments: Deployments) -> bool:
    return any(pod["metadata"].get("ownerReferences") for pod in deployments.children("pods").values())


def _uids(pods: dict[str, Object]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods.values()}
