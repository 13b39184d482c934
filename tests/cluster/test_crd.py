"""The real API server and the types agree on what a VLMDeployment is, case by case.

The cases are tables, `crd/accepted.yaml` and `crd/refused.yaml`; the types are held to them in `unit/api/test_resource`.
"""

import contextlib
import json
from typing import Any

import pytest
import yaml

from cluster.crd.cases import ACCEPTED, MINIMAL, REFUSED, Case, manifest
from cluster.crd.server import CRD_FILE, CRD_NAME, Server
from controlplane import ControlPlane, ControlPlaneError, wait_until

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def server(control_plane: ControlPlane) -> Server:
    control_plane.install_crd(CRD_FILE)
    return Server(control_plane, "default")


def object_of(case: Case) -> dict[str, Any]:
    made = manifest(case.spec)
    made["metadata"] |= case.metadata
    return made


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.name)
def test_the_server_accepts(server: Server, case: Case) -> None:
    assert server.judge(object_of(case)).complaints == ()


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_the_server_refuses_and_blames_the_field(server: Server, case: Case) -> None:
    verdict = server.judge(object_of(case))
    assert not verdict.accepted
    # A value of the wrong kind is told twice, the second time without its field.
    assert {complaint.field for complaint in verdict.complaints} - {"<nil>"} == {case.field}, verdict
    assert any(case.message in complaint.message for complaint in verdict.complaints), verdict


@pytest.mark.usefixtures("server")
def test_unknown_fields_are_dropped_where_a_client_does_not_have_them_refused(
    control_plane: ControlPlane,
) -> None:
    path = "/apis/vlm.dev/v1alpha1/namespaces/default/vlmdeployments?dryRun=All&fieldValidation=Ignore"
    unknown = [case for case in REFUSED if case.message == "unknown field"]
    for case in unknown:
        stored = control_plane.api.post(path, object_of(case))
        assert f'"{case.field.rpartition(".")[2]}":' not in json.dumps(stored["spec"]), case.name
    assert len(unknown) > 40


def test_defaults_are_written_into_stored_objects(server: Server) -> None:
    assert server.judge(manifest(MINIMAL)).stored["spec"] == {
        "model": {"name": "llava", "quantization": "None", "kvCacheDtype": "Auto", "trustRemoteCode": False},
        "weights": {"persistentVolumeClaim": {"claimName": "models", "path": ""}},
        "engine": {"type": "vLLM", "startupTimeout": "30m", "verification": "Request"},
        "parallelism": {"tensor": 1, "pipeline": 1, "data": 1},
        "gpu": {"resourceName": "nvidia.com/gpu", "memoryUtilization": 92},
        "multimodal": {"encoderParallelism": "Weights"},
        "replicas": 1,
        "drain": {"timeout": "5m"},
        "service": {"type": "ClusterIP", "port": 8000},
    }


@pytest.mark.usefixtures("server")
def test_the_stored_definition_is_the_one_in_the_file(control_plane: ControlPlane) -> None:
    stored = json.loads(control_plane.kubectl("get", "crd", CRD_NAME, "-o", "json"))
    wanted = yaml.safe_load(CRD_FILE.read_text())
    (stored_version,), (wanted_version,) = stored["spec"]["versions"], wanted["spec"]["versions"]
    assert stored_version["schema"] == wanted_version["schema"]
    assert stored_version["subresources"] == wanted_version["subresources"]
    assert stored_version["additionalPrinterColumns"] == wanted_version["additionalPrinterColumns"]
    assert stored["spec"]["names"] == wanted["spec"]["names"]


@pytest.mark.usefixtures("server")
def test_the_definition_is_served_without_complaints(control_plane: ControlPlane) -> None:
    conditions = json.loads(control_plane.kubectl("get", "crd", CRD_NAME, "-o", "json"))["status"]["conditions"]
    told = {condition["type"]: condition["status"] for condition in conditions}
    assert told["Established"] == told["NamesAccepted"] == "True"
    assert told.get("NonStructuralSchema", "False") == "False"


@pytest.mark.usefixtures("server")
def test_explain_reads_well(control_plane: ControlPlane) -> None:
    def explained() -> str:
        with contextlib.suppress(ControlPlaneError):  # the API server publishes its documents a little later
            return control_plane.kubectl("explain", "vlmdeployment.spec.scaling")
        return ""

    words = " ".join(wait_until(explained, "the resource is documented").split())
    assert "DESCRIPTION: Scaling by the operator." in words
    assert "targets <Object> Not supported yet. Wanted values per serving replica." in words
    assert "maxReplicas <integer> -required- Most pods of the deployment: loading, serving, warm and draining" in words
    assert "mode <string> enum: Active, Advisory Act on decisions (Active), or only report them (Advisory)." in words


@pytest.mark.usefixtures("server")
def test_a_deployment_is_listed_with_its_columns_and_scaled(control_plane: ControlPlane, namespace: str) -> None:
    kubectl = control_plane.kubectl
    kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(manifest(MINIMAL)))
    ready = {
        "type": "Ready",
        "status": "False",
        "reason": "Progressing",
        "message": "1 of 2 replicas serve.",
        "lastTransitionTime": "2026-11-30T00:00:00Z",
        "observedGeneration": 1,
    }
    counts = {"replicas": 2, "servingReplicas": 1, "warmReplicas": 0, "desiredReplicas": 2, "gpus": 4}
    status = {"conditions": [ready], **counts, "selector": "vlm.dev/deployment=llava,vlm.dev/role=serving"}
    patch = json.dumps({"status": status})
    kubectl("patch", "vlmd/llava", "-n", namespace, "--subresource=status", "--type=merge", "-p", patch)

    header, row = kubectl("get", "vlmd", "-n", namespace).splitlines()
    assert header.split() == ["NAME", "MODEL", "READY", "SERVING", "WARM", "DESIRED", "GPUS", "REASON", "AGE"]
    assert row.split()[:-1] == ["llava", "llava", "False", "1", "0", "2", "4", "Progressing"]
    assert "llava" in kubectl("get", "vlm", "-n", namespace), "the category lists it"

    kubectl("scale", "vlmd/llava", "-n", namespace, "--replicas=3")
    scale = json.loads(kubectl("get", "vlmd/llava", "-n", namespace, "--subresource=scale", "-o", "json"))
    assert scale["spec"]["replicas"] == 3
    assert scale["status"] == {"replicas": 2, "selector": status["selector"]}
