"""One control plane for all cluster tests of a run, and a fresh namespace for each."""

import itertools
import os
from collections.abc import Generator, Iterator

import pytest

from cluster.support.operator import CRD, Deployments, RunningOperator, judge_calls
from controlplane import ControlPlane, Timing, a100, ensure_tools, h100, l4

_serial = itertools.count(1)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the programs before the first test: on a new machine that takes longer than any test may."""
    wanted = any(item.get_closest_marker("cluster") for item in session.items)
    if not wanted or session.config.option.collectonly:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    if capture is None:
        ensure_tools()
        return
    with capture.global_and_fixture_disabled():
        ensure_tools()


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """A running control plane with nodes gpu-h100 (8 GPUs), gpu-a100 (8) and gpu-l4 (4).

    It notices the loss of a node after 8 s. Tests share it: what they change outside their namespace they change back.
    """
    with ControlPlane(timing=Timing(node_monitor_grace_seconds=8, node_eviction_seconds=20)) as cluster:
        cluster.add_gpu_nodes(h100("gpu-h100"), a100("gpu-a100"), l4("gpu-l4", gpus=4))
        yield cluster


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """The name of a fresh namespace. Afterwards its pods, and with them their GPUs, are given back at once."""
    name = f"test-{os.getpid()}-{next(_serial)}"
    control_plane.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    control_plane.api.delete(f"/api/v1/namespaces/{name}")
    control_plane.api.delete(f"/api/v1/namespaces/{name}/pods", {"gracePeriodSeconds": 0})


@pytest.fixture(scope="session")
def operator(control_plane: ControlPlane) -> RunningOperator:
    """An operator that serves all namespaces of the shared control plane."""
    control_plane.install_crd(CRD)
    return RunningOperator(control_plane, "vlm-operator").start()


@pytest.fixture(autouse=True)
def permitted(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test during which an operator asked for what it has no right to."""
    yield
    judge_calls(request.node)


@pytest.fixture
def deployments(control_plane: ControlPlane, namespace: str) -> Deployments:
    """The VLMDeployments of a fresh namespace, with a claim `models` that is Bound."""
    control_plane.bound_claim(namespace, "models")
    return Deployments(control_plane=control_plane, namespace=namespace)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the operator said during a test that failed."""
    report = yield
    running = getattr(item, "funcargs", {}).get("operator")
    if report.when == "call" and report.failed and isinstance(running, RunningOperator):
        report.sections.append(("the operator's last words", "\n".join(running.text().splitlines()[-80:])))
    return report
