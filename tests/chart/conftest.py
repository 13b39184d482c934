"""Helm, a control plane of the chart's own on which it may install and delete CRDs, and restricted namespaces."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from chart.helm import CRD, NAME, Helm, Release
from controlplane import ControlPlane, ensure_tools, l4, wait_until
from controlplane.tools import HELM

_serial = itertools.count(1)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the programs before the first test: on a new machine that takes longer than any test may."""
    here = Path(__file__).parent
    if session.config.option.collectonly or not any(here in item.path.parents for item in session.items):
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    assert capture
    with capture.global_and_fixture_disabled():
        ensure_tools()
        ensure_tools([HELM])


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    """A control plane with one node that pods find."""
    with ControlPlane() as cluster:
        cluster.add_gpu_nodes(l4("gpu-l4", gpus=4))
        yield cluster


@pytest.fixture(scope="session")
def helm(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm as administrator of the control plane."""
    return Helm(program=ensure_tools([HELM])["helm"], home=tmp_path_factory.mktemp("helm"), kubeconfig=plane.kubeconfig)


@pytest.fixture
def namespace(plane: ControlPlane) -> Iterator[str]:
    """The name of a fresh namespace that admits only restricted pods."""
    name = f"chart-{next(_serial)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    plane.api.post("/api/v1/namespaces", space)
    yield name
    plane.api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def release(plane: ControlPlane, helm: Helm, namespace: str) -> Iterator[Release]:
    """A release that is not installed yet. Nothing of it is left for the next test."""
    yield Release(plane, helm, namespace)
    helm.run("uninstall", NAME, "--namespace", namespace, "--wait")
    plane.kubectl("delete", "crd", "vlmdeployments.vlm.dev", "--ignore-not-found")
    wait_until(lambda: not plane.api.answers(CRD), "the CRD is gone")
