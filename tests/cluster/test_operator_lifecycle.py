"""From a VLMDeployment to ready replicas and back, on the real API server."""

import json
import re

import pytest

from cluster.support.operator import Deployments, RunningOperator
from controlplane import ControlPlane, wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

CHILDREN = (
    ("pods", "/api/v1"),
    ("services", "/api/v1"),
    ("configmaps", "/api/v1"),
    ("controllerrevisions", "/apis/apps/v1"),
)


def test_a_deployment_becomes_ready_and_says_so(deployments: Deployments) -> None:
    deployments.create(replicas=2, parallelism={"tensor": 2})
    deployments.until_ready()
    status = deployments.status()
    assert (status["replicas"], status["readyReplicas"], status["servingReplicas"], status["desiredReplicas"]) == (
        2,
        2,
        2,
        2,
    )
    assert status["gpus"] == 4
    assert status["currentRevision"] == status["updatedRevision"]
    assert status["selector"] == "vlm.dev/deployment=qwen,vlm.dev/role=serving"
    conditions = {condition["type"]: condition for condition in status["conditions"]}
    assert {kind: c["status"] for kind, c in conditions.items()} == {
        "Accepted": "True",
        "WeightsReady": "True",
        "Progressing": "False",
        "Available": "True",
        "Ready": "True",
    }
    assert set(deployments.pods()) == {f"qwen-{status['updatedRevision']}-{slot}" for slot in (0, 1)}


def test_clients_reach_the_ready_replicas_through_the_service(deployments: Deployments) -> None:
    deployments.create(service={"port": 80, "annotations": {"example.com/team": "vision"}})
    deployments.until_ready()
    service = deployments.api.get(deployments.core("services", "qwen"))
    assert service["spec"]["type"] == "ClusterIP"
    assert [(port["port"], port["targetPort"]) for port in service["spec"]["ports"]] == [(80, 8000)]
    assert service["metadata"]["annotations"]["example.com/team"] == "vision"
    (pod,) = deployments.pods().values()

    def addresses() -> list[str]:
        path = f"/apis/discovery.k8s.io/v1/namespaces/{deployments.namespace}/endpointslices"
        slices = deployments.api.get(f"{path}?labelSelector=kubernetes.io/service-name=qwen")["items"]
        return [e["addresses"][0] for s in slices for e in s.get("endpoints") or () if e["conditions"]["ready"]]

    wait_until(lambda: addresses() == [pod["status"]["podIP"]], "the Service leads to the replica")


def test_kubectl_speaks_of_it(control_plane: ControlPlane, deployments: Deployments) -> None:
    deployments.create()
    place = ("-n", deployments.namespace)
    assert "condition met" in control_plane.kubectl(
        "wait", *place, "--for=condition=Ready", "vlmd/qwen", "--timeout=60s"
    )
    header, row = control_plane.kubectl("get", "vlmd", *place).splitlines()
    assert header.split() == ["NAME", "MODEL", "READY", "SERVING", "WARM", "DESIRED", "GPUS", "REASON", "AGE"]
    assert row.split()[:4] == ["qwen", "Qwen/Qwen2.5-VL-7B-Instruct", "True", "1"]
    described = control_plane.kubectl("describe", "vlmd", "qwen", *place)
    assert "ReplicaCreated" in described
    assert "Ready" in described
    control_plane.kubectl("scale", "vlmd", "qwen", "--replicas=3", *place)
    deployments.until_ready()
    assert len(deployments.ready_pods()) == 3
    explained = control_plane.kubectl("explain", "vlmdeployment.spec.drain.timeout")
    assert "requests" in explained


def test_scaling_down_takes_the_youngest_and_zero_takes_all(deployments: Deployments) -> None:
    deployments.create(replicas=3)
    deployments.until_ready()
    revision = deployments.revision()
    deployments.patch(replicas=1)
    deployments.until_pods(lambda pods: set(pods) == {f"qwen-{revision}-0"}, "are only the first")
    deployments.patch(replicas=0)
    deployments.until("Available", "True", reason="ScaledToZero")
    deployments.until_pods(lambda pods: not pods, "are gone")
    assert deployments.condition("Ready")["status"] == "True"
    deployments.patch(replicas=1)
    deployments.until_ready()


def test_a_changed_spec_replaces_one_replica_at_a_time(deployments: Deployments) -> None:
    deployments.create(replicas=3)
    deployments.until_ready()
    old = deployments.revision()
    fewest, most = 3, 3
    deployments.patch(model={"maxModelLen": 4096})

    def rolled_out() -> bool:
        nonlocal fewest, most
        fewest = min(fewest, len(deployments.ready_pods()))
        most = max(most, len(deployments.pods()))
        return deployments.condition("Ready").get("status") == "True" and deployments.revision() != old

    wait_until(rolled_out, "the new revision is rolled out", timeout_seconds=60)
    assert fewest == 3
    assert most == 4
    new = deployments.revision()
    assert all(name.startswith(f"qwen-{new}-") for name in deployments.pods())
    stored = deployments.children("controllerrevisions", group="/apis/apps/v1")
    assert {f"qwen-{old}", f"qwen-{new}"} == set(stored)
    arguments = stored[f"qwen-{new}"]["data"]["resolved"]["args"]
    assert arguments[arguments.index("--max-model-len") + 1] == "4096"


def test_going_back_to_an_earlier_spec_reuses_its_revision(deployments: Deployments) -> None:
    nasty = "é😀\u2028\x7f<&> {{ x }} '\"\n\t- 1e3"
    deployments.create(engine={"env": [{"name": "NASTY", "value": nasty}]})
    deployments.until_ready()
    (pod,) = deployments.pods().values()
    assert {"name": "NASTY", "value": nasty} in pod["spec"]["containers"][0]["env"]
    first = deployments.revision()
    deployments.patch(model={"maxModelLen": 4096})
    deployments.until_ready()
    deployments.patch(model={"maxModelLen": None})
    deployments.until_ready()
    assert deployments.revision() == first
    stored = deployments.children("controllerrevisions", group="/apis/apps/v1")
    assert stored[f"qwen-{first}"]["revision"] == 3


def test_the_restart_annotation_replaces_the_replicas(deployments: Deployments) -> None:
    deployments.create()
    deployments.until_ready()
    before = set(deployments.pods())
    deployments.merge("qwen", {"metadata": {"annotations": {"vlm.dev/restarted-at": "2026-11-30T10:00:00Z"}}})
    deployments.until_pods(lambda pods: len(pods) == 1 and not before & set(pods), "were replaced")
    deployments.until_ready()


@pytest.mark.parametrize(
    "edit",
    [
        {"replicas": 1, "service": {"port": 9000}},
        {"engine": {"startupTimeout": "1800s"}, "drain": {"timeout": "300s"}},
        {"model": {"name": "Qwen/Qwen2.5-VL-7B-Instruct", "quantization": "AWQ", "kvCacheDtype": "Auto"}},
    ],
    ids=["what is outside the pod", "another spelling", "a default made explicit"],
)
def test_what_needs_no_restart_restarts_nothing(deployments: Deployments, edit: dict[str, object]) -> None:
    deployments.create()
    deployments.until_ready()
    before = {name: pod["metadata"]["uid"] for name, pod in deployments.pods().items()}
    deployments.patch(**edit)
    deployments.until_ready()
    assert {name: pod["metadata"]["uid"] for name, pod in deployments.pods().items()} == before


def test_deleting_it_leaves_nothing(deployments: Deployments) -> None:
    deployments.create(replicas=2)
    deployments.until_ready()
    deployments.delete()
    for kind, group in CHILDREN:
        wait_until(lambda: not deployments.children(kind, group=group), f"no {kind} are left")  # noqa: B023 # ends in the loop


def test_deleting_it_while_it_is_being_created_leaves_nothing(deployments: Deployments) -> None:
    for number in range(8):
        deployments.create(f"brief-{number}", replicas=2)
        deployments.delete(f"brief-{number}")
    for number in range(8):
        name = f"brief-{number}"
        wait_until(lambda: not deployments.children("pods", name), "no pods are left")  # noqa: B023 # ends in the loop
        wait_until(lambda: not deployments.children("services", name), "no Services are left")  # noqa: B023 # ends in the loop


def test_events_tell_each_change_once(deployments: Deployments) -> None:
    deployments.create()
    deployments.until_ready()
    deployments.patch(service={"port": 9000})
    deployments.until_ready()

    def reasons() -> list[str]:
        return sorted(event["reason"] for event in deployments.events())

    wait_until(lambda: "Ready" in reasons(), "the event Ready is there")
    assert reasons().count("ReplicaCreated") == 1
    assert reasons().count("Ready") == 1
    assert "Available" not in reasons()


def test_nothing_is_written_when_nothing_changes(operator: RunningOperator, deployments: Deployments) -> None:
    deployments.create(replicas=2)
    deployments.until_ready()
    deployments.until("Progressing", "False")
    deployments.annotate_pod(next(iter(deployments.pods())), note="touched")
    before = _versions(deployments)
    looks = _looks(operator)
    deployments.merge("qwen", {"metadata": {"annotations": {"example.com/note": "touched"}}})
    wait_until(lambda: _looks(operator) > looks, "the operator has looked again")
    assert _versions(deployments) == before


def _versions(deployments: Deployments) -> dict[str, str]:
    """The versions of everything that the operator writes, and the status itself."""
    found = {"status": json.dumps(deployments.status()), "events": str(len(deployments.events()))}
    for kind, group in CHILDREN:
        children = deployments.children(kind, group=group).items()
        found |= {f"{kind}/{name}": child["metadata"]["resourceVersion"] for name, child in children}
    return found


def _looks(operator: RunningOperator) -> float:
    found = re.search(r'vlm_operator_reconciles_total\{result="ok"\} ([0-9.e+]+)', operator.answer("/metrics")[1])
    return float(found[1]) if found else 0.0
