"""A sample of faults between the operator and the API server. All of them, in every phase, are in `tests/soak`."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from cluster.support.faults import Cell, sample
from cluster.support.operator import CRD
from cluster.support.reports import REPORTS
from cluster.support.stories import Report, Stories
from controlplane import ControlPlane, Timing, l4

pytestmark = pytest.mark.cluster

CELLS = 8
PATIENCE = 120.0
"""Seconds for one phase of a story."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "cell" in metafunc.fixturenames:
        metafunc.parametrize("cell", sample(CELLS, seed=metafunc.config.option.fault_seed), ids=str)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane of this module's own, whose pods become ready at once."""
    quick = {"sim.vlm.dev/ready-after": "300ms"}
    with ControlPlane(timing=Timing()) as cluster:
        cluster.install_crd(CRD)
        cluster.add_gpu_nodes(*(l4(f"gpu-{number}", gpus=8, labels=quick) for number in range(5)))
        yield cluster


@pytest.fixture(scope="module")
def told(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Mapping[str, Future[Report]]]:
    """The stories of all cells that are asked for, told at once."""
    cells = [item.callspec.params["cell"] for item in request.session.items if item.fspath == request.fspath]
    stories = Stories(plane, seed=request.config.option.fault_seed, patience_seconds=PATIENCE)
    with ThreadPoolExecutor(len(cells) + 1) as pool:
        pool.submit(stories.undisturbed)
        yield {str(cell): pool.submit(stories.disturbed, cell) for cell in cells}


def test_the_end_is_the_same(cell: Cell, told: Mapping[str, Future[Report]], pytestconfig: pytest.Config) -> None:
    pytestconfig.stash[REPORTS].append(str(told[str(cell)].result()))
