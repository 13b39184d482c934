"""A few random sequences of edits. Many are in `tests/soak`, and on a cluster in memory in `tests/unit/replicas`."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from random import Random

import pytest

from cluster.support.edited import carry_out, namespaces_of
from cluster.support.operator import CRD, RunningOperator
from cluster.support.reports import REPORTS
from controlplane import ControlPlane, Timing, l4

pytestmark = pytest.mark.cluster

SEQUENCES = 6
PATIENCE = 180.0
"""Seconds for one edit that is waited for."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        chance = Random(metafunc.config.option.fault_seed)
        metafunc.parametrize("seed", sorted(chance.sample(range(1_000_000), SEQUENCES)))


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane of this module's own, whose pods become ready soon."""
    soon = {"sim.vlm.dev/ready-after": "500ms"}
    with ControlPlane(timing=Timing()) as cluster:
        cluster.install_crd(CRD)
        cluster.add_gpu_nodes(*(l4(f"gpu-{number}", gpus=8, labels=soon) for number in range(12)))
        yield cluster


@pytest.fixture(scope="module")
def ended(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[Mapping[int, Future[str]]]:
    """The ends of all sequences that are asked for, carried out at once."""
    seeds = [item.callspec.params["seed"] for item in request.session.items if item.fspath == request.fspath]
    RunningOperator(plane, "edits", tuple(f"--namespace={name}" for s in seeds for name in namespaces_of(s))).start()
    with ThreadPoolExecutor(len(seeds)) as pool:
        yield {seed: pool.submit(carry_out, plane, seed, patience_seconds=PATIENCE) for seed in seeds}


def test_the_end_is_that_of_a_new_resource(
    seed: int, ended: Mapping[int, Future[str]], pytestconfig: pytest.Config
) -> None:
    pytestconfig.stash[REPORTS].append(ended[seed].result())
