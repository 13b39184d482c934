"""Two hundred random sequences of edits on the real API server: the end of each is that of a new resource."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from chance import seeds
from cluster.support.edited import carry_out
from cluster.support.operator import RunningOperator
from cluster.support.reports import REPORTS
from controlplane import ControlPlane

pytestmark = pytest.mark.timeout(7200)

SEQUENCES = 200
AT_ONCE = 6
PATIENCE = 600.0
"""Seconds for one edit that is waited for."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", seeds(metafunc.config, SEQUENCES))


@pytest.fixture(scope="module")
def ended(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Mapping[int, Future[str]]]:
    """The ends of all sequences that are asked for."""
    wanted = [item.callspec.params["seed"] for item in request.session.items if item.fspath == request.fspath]
    RunningOperator(plane, "edits").start()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {seed: pool.submit(carry_out, plane, seed, patience_seconds=PATIENCE) for seed in wanted}


def test_the_end_is_that_of_a_new_resource(
    seed: int, ended: Mapping[int, Future[str]], pytestconfig: pytest.Config
) -> None:
    pytestconfig.stash[REPORTS].append(ended[seed].result())
