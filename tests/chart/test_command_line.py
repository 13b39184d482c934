"""The operator as the chart runs it: with the arguments, the files and the rights that a release gives, and no others."""

from pathlib import Path

import pytest
import yaml

from chart.helm import CHART, ROOT, Object, Release, container
from cluster.support.operator import Deployments, RunningOperator
from controlplane import AuditTrail, ControlPlane
from controlplane.kubeconfig import write_token_kubeconfig

pytestmark = pytest.mark.cluster

MOUNTS = "/etc/vlm-operator"
FULL = "second"
"""The name of all that the release makes, its Lease included; not that of the default Lease."""


def mounted(release: Release, deployment: Object, folder: Path) -> dict[str, str]:
    """The ConfigMaps that the pod mounts, as folders; by the paths where it has them."""
    sources = {v["name"]: v["configMap"]["name"] for v in deployment["spec"]["template"]["spec"].get("volumes", ())}
    places = {}
    for mount in container(deployment).get("volumeMounts", ()):
        place = folder / mount["name"]
        place.mkdir()
        for name, text in release.get(f"/api/v1 configmaps/{sources[mount['name']]}")["data"].items():
            (place / name).write_text(text)
        places[mount["mountPath"]] = str(place)
    return places


def test_the_operator_serves_with_the_roles_of_a_namespaced_release(
    plane: ControlPlane, release: Release, tmp_path: Path
) -> None:
    team = f"{release.namespace}-team"
    plane.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team}})
    values = {
        "fullnameOverride": FULL,
        "rbac": {"scope": "Namespaced"},
        "namespaces": [team],
        "catalogue": {"files": {"ours.yaml": catalogue_of_the_docs()}},
        "templates": {"files": {"vllm-pod.yaml.j2": builtin_template()}},
        "extraArgs": ["--workers=2"],
    }
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    release.run("install", CHART, "--values", file, "--wait")

    deployment = release.get(f"/apis/apps/v1 deployments/{FULL}")
    verb, *arguments = container(deployment)["args"]
    assert verb == "run"
    places = mounted(release, deployment, tmp_path)
    assert set(places) == {f"{MOUNTS}/catalogue", f"{MOUNTS}/templates"}
    for path, folder in places.items():
        arguments = [argument.replace(path, folder) for argument in arguments]
    token = plane.kubectl("create", "token", FULL, "--namespace", release.namespace).strip()
    account = write_token_kubeconfig(tmp_path / "account.kubeconfig", like=plane.kubeconfig, user=FULL, token=token)
    arguments.append(f"--leader-elect-namespace={release.namespace}")
    operator = RunningOperator(plane, "chart-operator", tuple(arguments), kubeconfig=account).start()
    try:
        plane.bound_claim(team, "models")
        work = Deployments(control_plane=plane, namespace=team)
        work.create()
        work.until_ready()
    finally:
        operator.stop()
    said = operator.text()
    assert "the catalogue has" in said
    assert "the template vllm/pod.yaml.j2 is overridden by" in said
    assert "gave the lease" in said
    assert release.get(f"/apis/coordination.k8s.io/v1 leases/{FULL}")
    me = f"system:serviceaccount:{release.namespace}:{FULL}"
    calls = [call for call in AuditTrail(plane.audit_log).news() if call.user == me]
    assert any(call.verb == "create" and call.resource == "pods" for call in calls)
    refused = {call.resource for call in calls if not call.allowed}
    rules = yaml.safe_load((CHART / "files/permissions.yaml").read_text())
    assert refused <= {resource for rule in rules["cluster"] for resource in rule["resources"]}
    plane.api.delete(f"/api/v1/namespaces/{team}")


def catalogue_of_the_docs() -> str:
    text = (ROOT / "docs/admin.md").read_text()
    document = yaml.safe_load(text.split("```yaml\n", 1)[1].split("```", 1)[0])
    return str(document["data"]["ours.yaml"])


def builtin_template() -> str:
    return (ROOT / "operator/vlm_operator/engines/templates/vllm/pod.yaml.j2").read_text()
