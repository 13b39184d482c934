"""A release's life on a real API server: installed, upgraded, rolled back, uninstalled, installed again, and adopted."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from chart.helm import CHART, CRD, NAME, SAMPLE, Release, container, parsed
from controlplane import ControlPlane, wait_until

pytestmark = pytest.mark.cluster


def older_chart(folder: Path) -> Path:
    """A chart as of an earlier version, whose CRD lacks a column and a field."""
    chart = folder / "older"
    shutil.copytree(CHART, chart)
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    (chart / "Chart.yaml").write_text(yaml.safe_dump(about | {"version": "0.0.1", "appVersion": "0.0.1"}))
    file = chart / "files/crd.yaml"
    lines = [line for line in file.read_text().splitlines() if "name: Warm" not in line]
    file.write_text("\n".join(lines))
    return chart


def columns(plane: ControlPlane) -> list[str]:
    (version,) = plane.api.get(CRD)["spec"]["versions"]
    return [column["name"] for column in version["additionalPrinterColumns"]]


def verbs_of(plane: ControlPlane, role: str) -> set[str]:
    """What a role of the cluster allows with VLMDeployments."""
    rules = plane.api.get(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{role}")["rules"]
    return {verb for rule in rules if "vlmdeployments" in rule.get("resources", ()) for verb in rule["verbs"]}


def test_a_release_lives_and_what_users_made_outlives_it(release: Release, tmp_path: Path) -> None:
    plane, older = release.plane, older_chart(tmp_path)
    release.run("install", older, "--wait")
    assert len(release.until_two_pods()) == 2
    assert "Warm" not in columns(plane)
    for role, verb in (("view", "get"), ("edit", "create"), ("admin", "create")):
        wait_until(lambda role=role, verb=verb: verb in verbs_of(plane, role), f"{role} may {verb} VLMDeployments")
    assert "create" not in verbs_of(plane, "view")
    plane.kubectl("apply", "--namespace", release.namespace, "-f", str(SAMPLE))
    mine = release.uid_of_the_sample()

    first = release.pods()
    release.run("upgrade", older, "--wait")
    assert release.pods() == first, "an upgrade that changes nothing restarts nothing"

    release.run("upgrade", CHART, "--set=log.level=debug", "--wait")
    second = release.until_two_pods()
    assert not second & first, "a change of the configuration restarts the operators"
    assert container(release.deployment)["image"].endswith(":0.1.0")
    assert "--log-level=debug" in container(release.deployment)["args"]
    assert "Warm" in columns(plane), "the CRD is upgraded with the release"

    release.run("rollback", "1", "--wait")
    assert not release.until_two_pods() & second
    assert container(release.deployment)["image"].endswith(":0.0.1")
    assert "Warm" not in columns(plane)

    said = release.run("uninstall", "--wait")
    assert "[CustomResourceDefinition] vlmdeployments.vlm.dev" in said
    assert release.uid_of_the_sample() == mine
    left = plane.kubectl("get", "all,sa,roles,rolebindings,cm,pdb", "--namespace", release.namespace, "-o", "name")
    assert sorted(left.split()) == ["configmap/kube-root-ca.crt", "serviceaccount/default"]
    for kind in ("clusterroles", "clusterrolebindings"):
        assert NAME not in plane.kubectl("get", kind, "-o", "name")

    release.run("install", CHART, "--wait")
    assert "Warm" in columns(plane)
    assert release.uid_of_the_sample() == mine
    # What the chart says is what the API server keeps. Otherwise Argo CD would see a difference for ever.
    made = parsed(release.helm("get", "manifest", NAME, "--namespace", release.namespace))
    assert {"Deployment", "CustomResourceDefinition", "ClusterRole"} <= {wanted["kind"] for wanted in made}
    assert [found for wanted in made for found in differences(wanted, release.live(wanted))] == []


def test_a_crd_that_kubectl_has_installed_is_taken_over_with_what_users_made(release: Release, tmp_path: Path) -> None:
    plane = release.plane
    plane.kubectl("apply", "-f", str(older_chart(tmp_path) / "files/crd.yaml"))
    wait_until(lambda: plane.api.answers("/apis/vlm.dev/v1alpha1/vlmdeployments"), "the resource is served")
    plane.kubectl("apply", "--namespace", release.namespace, "-f", str(SAMPLE))
    mine = release.uid_of_the_sample()
    refused = release.helm.run("install", NAME, CHART, "--namespace", release.namespace)
    assert "exists and cannot be imported into the current release" in refused.stderr
    release.run("install", CHART, "--take-ownership", "--force-conflicts", "--wait")
    assert "Warm" in columns(plane)
    release.run("upgrade", CHART, "--wait")
    assert release.uid_of_the_sample() == mine


def differences(wanted: Any, live: Any, place: str = "") -> Iterator[str]:
    """Where `live` does not hold what is wanted; what it holds besides does not count."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        for key, value in wanted.items():
            yield from differences(value, live.get(key), f"{place}.{key}")
    elif isinstance(wanted, list) and isinstance(live, list) and len(wanted) == len(live):
        for number, (value, other) in enumerate(zip(wanted, live, strict=True)):
            yield from differences(value, other, f"{place}[{number}]")
    elif wanted != live:
        yield f"{place}: {wanted!r} became {live!r}"
