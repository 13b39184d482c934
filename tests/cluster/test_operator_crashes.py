"""A sample of crashes of the operator in the middle of its work. All of them, in all scenarios, are in `tests/soak`."""

import random
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from cluster.support.crashes import Crashes, Outcome
from cluster.support.operator import CRD
from cluster.support.reports import REPORTS
from cluster.support.scenarios import SCENARIOS, TIMING, Scenario, shared_nodes
from controlplane import ControlPlane

pytestmark = pytest.mark.cluster

SIZE = 4
PATIENCE = 120.0
"""Seconds for one step of a story."""
QUICK = [scenario for scenario in SCENARIOS if not scenario.own_nodes and not scenario.deletes]
"""Those in which the cluster itself has nothing to notice, which takes it half a minute."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "scenario" in metafunc.fixturenames:
        sample = random.Random(metafunc.config.option.fault_seed).sample(QUICK, SIZE)
        metafunc.parametrize("scenario", sample, ids=str)


@pytest.fixture(scope="module")
def told(request: pytest.FixtureRequest) -> Iterator[Mapping[str, Future[Outcome]]]:
    """One story with a crash, and the same without, of all scenarios that are asked for, told at once."""
    scenarios = [item.callspec.params["scenario"] for item in request.session.items if item.fspath == request.fspath]
    with ControlPlane(timing=TIMING) as plane, ThreadPoolExecutor(SIZE) as pool:
        plane.install_crd(CRD)
        plane.add_gpu_nodes(*shared_nodes())
        crashes = Crashes(plane, seed=request.config.option.fault_seed, patience_seconds=PATIENCE)
        yield {str(scenario): pool.submit(crashes.one, scenario) for scenario in scenarios}


def test_no_crash_does_harm(
    scenario: Scenario, told: Mapping[str, Future[Outcome]], pytestconfig: pytest.Config
) -> None:
    outcome = told[str(scenario)].result()
    assert not outcome.error, outcome.error
    pytestconfig.stash[REPORTS].append(f"{outcome.cell}: {'survived' if outcome.tried else 'it had no such write'}")
