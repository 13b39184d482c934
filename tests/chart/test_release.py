"""A release's life on a real API server: installed, upgraded, rolled back, uninstalled, installed again, and adopted."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from chart.helm import CHART, CRD, NAME, ROOT, Release, container, parsed
from controlplane import ControlPlane

pytestmark = pytest.mark.cluster

SAMPLE = ROOT / "manifests/samples/qwen2.5-vl-7b-awq.yaml"


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


def test_a_release_lives_and_what_users_made_outlives_it(release: Release, tmp_path: Path) -> None:
    plane, older = release.plane, older_chart(tmp_path)
    release.run("install", older, "--wait")
    assert len(release.until_two_pods()) == 2
    assert "Warm" not in columns(plane)
    plane.kubectl("apply", "--namespace", release.namespace, "-f", str(SAMPLE))
    mine = release.get("/apis/vlm.dev/v1alpha1 vlmdeployments/qwen25-vl-7b")["metadata"]["uid"]

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
    assert release.get("/apis/vlm.dev/v1alpha1 vlmdeployments/qwen25-vl-7b")["metadata"]["uid"] == mine
    left = plane.kubectl("get", "all,sa,roles,rolebindings,cm,pdb", "--namespace", release.namespace, "-o", "name")
    assert sorted(left.split()) == ["configmap/kube-root-ca.crt", "serviceaccount/default"]
    for kind in ("clusterroles", "clusterrolebindings"):
        assert NAME not in plane.kubectl("get", kind, "-o", "name")

    release.run("install", CHART, "--wait")
    assert "Warm" in columns(plane)
    assert release.get("/apis/vlm.dev/v1alpha1 vlmdeployments/qwen25-vl-7b")["metadata"]["uid"] == mine


def test_what_the_api_server_keeps_is_what_the_chart_says(release: Release) -> None:
    """Otherwise tools that compare, like Argo CD, would see a difference for ever."""
    release.run("install", CHART, "--wait")
    for wanted in parsed(release.run("get", "manifest")):
        path = ["get", wanted["kind"], wanted["metadata"]["name"], "--output=yaml"]
        (live,) = parsed(release.plane.kubectl(*path, "--namespace", release.namespace))
        assert list(differences(wanted, live)) == []


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


def test_files_in_the_values_restart_the_operators_when_they_change(release: Release) -> None:
    release.run("install", CHART, "--wait", r"--set=catalogue.files.a\.yaml=models: []")
    first = release.until_two_pods()
    release.run("upgrade", CHART, "--wait", r"--set=catalogue.files.a\.yaml=gpus: []")
    assert not release.until_two_pods() & first
    assert release.get(f"/api/v1 configmaps/{NAME}-catalogue")["data"] == {"a.yaml": "gpus: []"}
