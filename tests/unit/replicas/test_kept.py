"""What is kept of objects says the same as the whole objects."""

from typing import Any

from unit.replicas.examples import NAME, OURS, UID
from unit.replicas.test_trouble import VLLM, hung
from vlm_operator.replicas.kept import kept, own_annotations
from vlm_operator.replicas.reading import read_replica
from vlm_operator.replicas.trouble import trouble_of

POD: dict[str, Any] = {
    "metadata": {
        "name": f"{NAME}-0123456789-2",
        "uid": "u",
        "resourceVersion": "7",
        "creationTimestamp": "2027-01-15T08:00:00Z",
        "labels": {"vlm.dev/role": "serving"},
        "ownerReferences": [OURS],
        "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}],
    },
    "spec": {
        "nodeName": "n",
        "containers": [{"name": "engine", "image": "i", "args": ["x"]}],
        "volumes": [{"name": "v"}],
    },
    "status": {
        "phase": "Running",
        "hostIP": "10.0.0.1",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2027-01-15T08:03:00Z"}],
        "containerStatuses": [{"name": "engine", "started": True, "ready": True, "state": {"running": {}}}],
    },
}
SERVICE: dict[str, Any] = {
    "metadata": {
        "name": NAME,
        "annotations": {"example.com/a": "1", "example.com/theirs": "2"},
        "managedFields": [
            {
                "manager": "vlm-operator",
                "fieldsV1": {"f:metadata": {"f:annotations": {".": {}, "f:example.com/a": {}}}},
            },
            {"manager": "vlm-operator", "fieldsV1": {"f:spec": {"f:ports": {}}}},
            {"manager": "kubectl", "fieldsV1": {"f:metadata": {"f:annotations": {"f:example.com/theirs": {}}}}},
        ],
    },
    "spec": {"type": "ClusterIP"},
}


def test_a_pod_reads_as_before() -> None:
    slim = kept(POD, kind="Pod")
    assert read_replica(slim, deployment=NAME, uid=UID) == read_replica(POD, deployment=NAME, uid=UID)
    assert kept(slim, kind="Pod") == slim
    assert slim["spec"] == {"nodeName": "n", "containers": [{"name": "engine", "image": "i"}]}
    assert "managedFields" not in slim["metadata"]


def test_the_operators_own_annotations_are_known_as_before() -> None:
    slim = kept(SERVICE, kind="Service")
    assert own_annotations(SERVICE["metadata"]) == own_annotations(slim["metadata"]) == {"example.com/a"}
    assert kept(slim, kind="Service") == slim
    assert slim["spec"] == SERVICE["spec"]


def test_why_a_pod_does_not_serve_is_told_as_before() -> None:
    pod = {"metadata": POD["metadata"]} | hung(137, ended="10:30:07")
    told = trouble_of(kept(pod, kind="Pod"), VLLM)
    assert told == trouble_of(pod, VLLM)
    assert told is not None
    assert told.reason == "HungStart"
