"""Every fault between the operator and the API server in every phase of a deployment's life, in real time."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from cluster.support.faults import STOPPED, Cell, matrix
from cluster.support.reports import REPORTS
from cluster.support.stories import Report, Stories
from cluster.support.story import PHASES
from controlplane import ControlPlane

pytestmark = pytest.mark.timeout(7200)

AT_ONCE = 6
"""Stories that are told at the same time."""
PATIENCE = 600.0
"""Seconds for one phase of a story."""
CELLS = matrix(real_time=True)


@pytest.fixture(scope="module")
def stories(plane: ControlPlane, pytestconfig: pytest.Config) -> Stories:
    return Stories(plane, seed=pytestconfig.option.fault_seed, patience_seconds=PATIENCE)


@pytest.fixture(scope="module")
def told(stories: Stories, request: pytest.FixtureRequest) -> Iterator[Mapping[str, Future[Report]]]:
    """The stories of all cells that are asked for."""
    asked = [item.callspec.params["cell"] for item in request.session.items if item.fspath == request.fspath]
    with ThreadPoolExecutor(AT_ONCE + 1) as pool:
        plain = pool.submit(stories.undisturbed)
        yield {str(cell): pool.submit(stories.disturbed, cell) for cell in asked if cell in CELLS}
        plain.result()


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_the_end_is_the_same(cell: Cell, told: Mapping[str, Future[Report]], pytestconfig: pytest.Config) -> None:
    pytestconfig.stash[REPORTS].append(str(told[str(cell)].result()))


@pytest.mark.forbidden  # an API server that has just started refuses everybody until it knows the roles
@pytest.mark.parametrize("cell", [Cell(STOPPED, phase) for phase in PHASES], ids=str)
def test_the_end_is_the_same_though_the_api_server_was_stopped(
    cell: Cell, stories: Stories, told: Mapping[str, Future[Report]], pytestconfig: pytest.Config
) -> None:
    for other in told.values():
        other.exception()  # none is being told any more
    pytestconfig.stash[REPORTS].append(str(stories.disturbed(cell)))
