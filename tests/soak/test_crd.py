"""The CRD is not there when the operator starts, or goes while it works: in each phase of a deployment's life."""

from collections.abc import Iterator
from itertools import takewhile

import pytest

from cluster.support.operator import CRD, Object, RunningOperator
from cluster.support.reports import REPORTS
from cluster.support.story import (
    NAME,
    PHASES,
    new_namespace,
    picture,
    until_alike,
    until_finished,
    until_garbage_is_collected,
)
from controlplane import ControlPlane, wait_until
from faultproxy import FaultProxy
from installation import operator_kubeconfig

pytestmark = pytest.mark.timeout(1200)

PATIENCE = 300.0
WANTED: dict[str, Object] = {
    "create": {"replicas": 2},
    "scale": {"replicas": 3},
    "edit": {"replicas": 3, "engine": {"maxNumSeqs": 64}, "service": {"port": 9000}},
}
"""What the deployment is to be after each phase."""
WRITES_A_MINUTE = 200


@pytest.fixture(scope="module")
def proxy(bare_plane: ControlPlane) -> Iterator[FaultProxy]:
    with FaultProxy(operator_kubeconfig(bare_plane)) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def operator(bare_plane: ControlPlane, proxy: FaultProxy) -> RunningOperator:
    """An operator that has started without the CRD."""
    running = RunningOperator(bare_plane, "operator", kubeconfig=proxy.kubeconfig)
    running.launch()
    wait_until(lambda: "CustomResourceDefinition" in running.answer("/readyz")[1], "it waits", timeout_seconds=PATIENCE)
    return running


def test_it_is_not_there_at_the_start(bare_plane: ControlPlane, operator: RunningOperator) -> None:
    deployments = new_namespace(bare_plane, "early")
    bare_plane.install_crd(CRD)
    until_garbage_is_collected(bare_plane.api, "default")
    for phase, act in PHASES.items():
        act(deployments)
        until_finished(deployments, phase, timeout_seconds=PATIENCE)
    _judge(bare_plane, operator)


@pytest.mark.parametrize("phase", PHASES)
def test_it_is_deleted(
    phase: str, plane: ControlPlane, operator: RunningOperator, proxy: FaultProxy, pytestconfig: pytest.Config
) -> None:
    deployments, fresh = new_namespace(plane, phase), new_namespace(plane, f"{phase}-anew")
    until_garbage_is_collected(plane.api, "default")
    for earlier in takewhile(lambda name: name != phase, PHASES):
        PHASES[earlier](deployments)
        until_finished(deployments, earlier, timeout_seconds=PATIENCE)
    PHASES[phase](deployments)
    plane.kubectl("delete", "-f", str(CRD), "--timeout=120s", timeout=150)
    wait_until(lambda: picture(deployments) == {}, "all is gone", timeout_seconds=PATIENCE)
    plane.install_crd(CRD)
    if phase in WANTED:
        for one in (deployments, fresh):
            one.create(NAME, **WANTED[phase])
        expected = until_finished(fresh, phase, timeout_seconds=PATIENCE)
        until_alike(deployments, expected, what=f"as if made anew after {phase}", timeout_seconds=PATIENCE)
    else:
        assert picture(deployments) == {}
    _judge(plane, operator)
    busiest = proxy.busiest_minute(namespace=phase)
    assert busiest <= WRITES_A_MINUTE
    pytestconfig.stash[REPORTS].append(f"CRD deleted during {phase}: at most {busiest} writes in a minute")


def _judge(plane: ControlPlane, operator: RunningOperator) -> None:
    assert operator.name not in plane.ended_programs()
    assert "Traceback" not in operator.text()
    assert "unexpected error" not in operator.text()
