"""The operator is killed before and after each of its writes in ten scenarios, and with every fault in each of them."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cluster.support.crashes import Crashes
from cluster.support.operator import CRD
from cluster.support.reports import REPORTS
from cluster.support.scenarios import SCENARIOS, TIMING, Scenario, shared_nodes
from controlplane import ControlPlane

pytestmark = pytest.mark.timeout(7200)

AT_ONCE = 4
"""Stories that are told at the same time."""
PATIENCE = 240.0
"""Seconds for one step of a story."""


@pytest.fixture(scope="module")
def crashes(pytestconfig: pytest.Config) -> Iterator[Crashes]:
    with ControlPlane(timing=TIMING) as plane:
        plane.install_crd(CRD)
        plane.add_gpu_nodes(*shared_nodes())
        yield Crashes(plane, seed=pytestconfig.option.fault_seed, patience_seconds=PATIENCE)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_no_crash_does_harm(scenario: Scenario, crashes: Crashes, pytestconfig: pytest.Config) -> None:
    began = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        outcomes = crashes.all(scenario, pool)
    tried = [outcome for outcome in outcomes if outcome.tried]
    failed = [outcome for outcome in outcomes if outcome.error]
    survived = len(tried) - len(failed)
    took = time.monotonic() - began
    pytestconfig.stash[REPORTS].append(
        f"{scenario!s:24} {survived:3} of {len(tried):3} crashes survived, {took:4.0f} s"
    )
    assert not failed, "\n\n".join(outcome.error for outcome in failed)
