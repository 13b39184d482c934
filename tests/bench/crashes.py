"""The operator is killed once in each scenario, before or after one of its writes, while an observer looks on."""

from concurrent.futures import ThreadPoolExecutor

from bench.table import Row
from cluster.support.crashes import Crashes
from cluster.support.operator import CRD
from cluster.support.scenarios import SCENARIOS, TIMING, shared_nodes
from controlplane import ControlPlane

AT_ONCE = 4
PATIENCE = 240.0
"""Seconds for one step of a story."""


def measure(quick: bool) -> list[Row]:  # the one switch of every measurement
    """How many crashes were survived: the end is that of the same story without one, and no promise was broken."""
    scenarios = SCENARIOS[:2] if quick else SCENARIOS
    with ControlPlane(timing=TIMING) as plane, ThreadPoolExecutor(AT_ONCE) as pool:
        plane.install_crd(CRD)
        plane.add_gpu_nodes(*shared_nodes())
        crashes = Crashes(plane, seed=1, patience_seconds=PATIENCE)
        found = [outcome for outcome in pool.map(crashes.one, scenarios) if outcome.tried]
    survived = sum(not outcome.error for outcome in found)
    what = f"crash points survived, one in each of {len(scenarios)} scenarios (`make soak` tries all)"
    return [Row(what=what, ours=f"{survived} of {len(found)}", ratio=survived / len(found), aim="1")]
