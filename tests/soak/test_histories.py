"""Two hundred random histories: the cluster in memory, which all properties rest on, agrees with the real API server."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from chance import seeds
from cluster.support.reports import REPORTS
from cluster.support.worlds import replay
from controlplane import ControlPlane

pytestmark = pytest.mark.timeout(7200)

HISTORIES = 200
EVENTS = 8
AT_ONCE = 4
"""Each has an operator of its own."""
PATIENCE = 600.0
"""Seconds for one event."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", seeds(metafunc.config, HISTORIES))


@pytest.fixture(scope="module")
def replayed(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Mapping[int, Future[str]]]:
    """The ends of all histories that are asked for."""
    wanted = [item.callspec.params["seed"] for item in request.session.items if item.fspath == request.fspath]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {s: pool.submit(replay, plane, s, events=EVENTS, patience_seconds=PATIENCE) for s in wanted}


def test_memory_and_api_server_agree_after_each_event(
    seed: int, replayed: Mapping[int, Future[str]], pytestconfig: pytest.Config
) -> None:
    pytestconfig.stash[REPORTS].append(replayed[seed].result())
