"""How long nobody leads when the leader goes, by the way in which it goes, with the default times of the lease."""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from bench.table import Row
from cluster.support.operator import CRD, RunningOperator
from controlplane import ControlPlane, wait_until
from faultproxy import FaultProxy
from installation import NAMESPACE, operator_kubeconfig

PATIENCE = 120.0


class Candidate:
    """An operator that stands for election, with a connection of its own that can be cut."""

    def __init__(self, plane: ControlPlane, name: str) -> None:
        self._plane = plane
        self.proxy = FaultProxy(operator_kubeconfig(plane)).__enter__()
        arguments = ("--leader-elect", f"--leader-elect-namespace={NAMESPACE}")
        self.operator = RunningOperator(plane, name, arguments, kubeconfig=self.proxy.kubeconfig)
        self.operator.launch()
        wait_until(lambda: self.operator.answer("/readyz")[0] == 200, f"{name} is ready", timeout_seconds=PATIENCE)

    def leads(self) -> bool:
        """Whether it acts."""
        return "vlm_operator_leader 1.0" in self.operator.answer("/metrics")[1]

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._plane.signal_program(self.operator.name, number)

    def end(self) -> None:
        """End what is left of it."""
        self.operator.stop()
        self.proxy.__exit__(None, None, None)


WAYS: dict[str, tuple[Callable[[Candidate], None], str]] = {
    "after a clean exit (SIGTERM)": (lambda leader: leader.signal(signal.SIGTERM), "<= 3 s"),
    "after kill -9": (lambda leader: leader.signal(signal.SIGKILL), "<= 18 s"),
    "while the leader stands still (SIGSTOP)": (lambda leader: leader.signal(signal.SIGSTOP), "<= 18 s"),
    "while the leader alone cannot reach the API server": (lambda leader: leader.proxy.stop(), "<= 18 s"),
}
"""How a leader goes, and how long the next one may take: the lease, a pause, and the reading of the lists."""


def measure(quick: bool) -> list[Row]:  # the one switch of every measurement
    """The time from the leader's end until the next one acts."""
    rounds = 1 if quick else 5
    with ControlPlane() as plane:
        plane.install_crd(CRD)
        return [_row(plane, way, rounds=rounds) for way in WAYS]


def _row(plane: ControlPlane, way: str, *, rounds: int) -> Row:
    go, aim = WAYS[way]
    seconds = []
    for _ in range(rounds):
        with _pair(plane) as (leader, follower):
            started = time.perf_counter()
            go(leader)
            wait_until(follower.leads, "the next one leads", timeout_seconds=PATIENCE, every_seconds=0.02)
            seconds.append(time.perf_counter() - started)
        print(f"  {way}: {seconds[-1]:.1f} s", file=sys.stderr, flush=True)
    return Row(what=f"takeover {way}", ours=f"{min(seconds):.1f} to {max(seconds):.1f} s", aim=aim)


_serial = count(1)


@contextmanager
def _pair(plane: ControlPlane) -> Iterator[tuple[Candidate, Candidate]]:
    """A leader and a follower that is ready."""
    leader = Candidate(plane, f"candidate-{next(_serial)}")
    wait_until(leader.leads, "the first leads", timeout_seconds=PATIENCE)
    follower = Candidate(plane, f"candidate-{next(_serial)}")
    yield leader, follower
    for candidate in (follower, leader):
        candidate.end()
