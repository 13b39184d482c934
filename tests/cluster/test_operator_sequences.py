"""A few random sequences of edits, and a few random histories, in each case many at once.

Hundreds are in `tests/soak`; on a cluster in memory they are in `tests/unit/replicas`.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from random import Random

import pytest

from cluster.support.edited import carry_out, namespaces_of
from cluster.support.operator import CRD, RunningOperator
from cluster.support.reports import REPORTS
from cluster.support.worlds import replay
from controlplane import ControlPlane, Timing, l4

pytestmark = pytest.mark.cluster

SEQUENCES, HISTORIES = 6, 4
EVENTS = 3
PATIENCE = 180.0
"""Seconds for one edit or event."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chance = Random(metafunc.config.option.fault_seed)
    for argument, count in (("edited", SEQUENCES), ("replayed", HISTORIES)):
        if argument in metafunc.fixturenames:
            metafunc.parametrize(argument, sorted(chance.sample(range(1_000_000), count)))


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane of this module's own, whose pods become ready soon."""
    soon = {"sim.vlm.dev/ready-after": "500ms"}
    with ControlPlane(timing=Timing()) as cluster:
        cluster.install_crd(CRD)
        cluster.add_gpu_nodes(*(l4(f"gpu-{number}", gpus=8, labels=soon) for number in range(12)))
        yield cluster


def _seeds(request: pytest.FixtureRequest, argument: str) -> list[int]:
    """The seeds of the tests that are asked for."""
    items = (item for item in request.session.items if item.fspath == request.fspath)
    return [item.callspec.params[argument] for item in items if argument in item.callspec.params]


def _at_once(seeds: list[int], work: Callable[[int], str]) -> Iterator[Mapping[int, Future[str]]]:
    with ThreadPoolExecutor(len(seeds)) as pool:
        yield {seed: pool.submit(work, seed) for seed in seeds}


@pytest.fixture(scope="module")
def sequences(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Mapping[int, Future[str]]]:
    seeds = _seeds(request, "edited")
    served = tuple(f"--namespace={name}" for seed in seeds for name in namespaces_of(seed))
    RunningOperator(plane, "edits", served).start()
    yield from _at_once(seeds, partial(carry_out, plane, patience_seconds=PATIENCE))


@pytest.fixture(scope="module")
def histories(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Mapping[int, Future[str]]]:
    seeds = _seeds(request, "replayed")
    yield from _at_once(seeds, partial(replay, plane, events=EVENTS, patience_seconds=PATIENCE))


def test_edits_end_like_a_new_resource(
    edited: int, sequences: Mapping[int, Future[str]], pytestconfig: pytest.Config
) -> None:
    pytestconfig.stash[REPORTS].append(sequences[edited].result())


def test_memory_and_api_server_agree_after_each_event(
    replayed: int, histories: Mapping[int, Future[str]], pytestconfig: pytest.Config
) -> None:
    pytestconfig.stash[REPORTS].append(histories[replayed].result())
