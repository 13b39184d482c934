"""The operator is killed before and after each of its writes in ten scenarios, and with every fault in each of them."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cluster.support.crashes import Crashes, Outcome
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


@pytest.fixture(scope="module")
def outcomes(pytestconfig: pytest.Config) -> Iterator[list[Outcome]]:
    """Those of all scenarios, which are told at the end."""
    began, found = time.monotonic(), list[Outcome]()
    yield found
    pytestconfig.stash[REPORTS].append(_row("all scenarios", found, time.monotonic() - began))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_no_crash_does_harm(
    scenario: Scenario, crashes: Crashes, outcomes: list[Outcome], pytestconfig: pytest.Config
) -> None:
    began = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = crashes.all(scenario, pool)
    outcomes.extend(found)
    pytestconfig.stash[REPORTS].append(_row(str(scenario), found, time.monotonic() - began))
    failed = [outcome.error for outcome in found if outcome.error]
    assert not failed, "\n\n".join(failed)
    assert 2 * sum(outcome.tried for outcome in found) > len(found), "most crashes never happened"


def _row(what: str, outcomes: list[Outcome], seconds: float) -> str:
    tried = [outcome for outcome in outcomes if outcome.tried]
    survived = sum(not outcome.error for outcome in tried)
    return f"{what:24} {survived:3} of {len(tried):3} crashes survived in {seconds / 60:4.1f} minutes"
