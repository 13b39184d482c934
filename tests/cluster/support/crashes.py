"""Operators killed at each of their writes, before it or after it, and what must be true of each of these stories.

A story has an operator, a proxy, an observer and a namespace of its own, so that many can be told at once. It ends as the
same story does whose operator is not killed.
"""

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from cluster.support.faults import NOTHING, Fault, faults
from cluster.support.invariants import Bounds
from cluster.support.observer import Observer
from cluster.support.operator import Deployments, Object, RunningOperator
from cluster.support.scenarios import Scenario, has_settled, own_nodes, settle_on
from cluster.support.story import NAME, Teller, new_namespace, picture, until_alike
from controlplane import wait_until
from faultproxy import WRITES, Call, Crash, FaultProxy, Rule
from vlm_operator.runtime.kinds import WATCHED

T = TypeVar("T")

WRITTEN = frozenset(kind.plural for kind in WATCHED)
"""What the operator writes, besides Events and its Lease."""
LOOK_SECONDS = 0.1
"""Between looks whether the operator still runs."""
QUIET_SECONDS = 3.0
"""Without a write, after which all is over."""
COMPARED: Mapping[str, Any] = {"without": ("failures", "lastProgressTime", "waitingSince"), "slots": False}
"""An operator that was away has not seen who failed, or when; and who gets which place depends on who is ready first."""
LONG = 300
"""Seconds between full lists, where no fault needs them to be mended."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """When the operator is killed."""

    write: int
    """The how manieth of its writes; 0: when somebody acts."""
    after: bool

    def __str__(self) -> str:
        side = "after" if self.after else "before"
        return f"{side} write {self.write}" if self.write else f"{side} it begins"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A crash in a scenario, and what goes wrong while another operator takes over."""

    scenario: Scenario
    point: Point
    fault: Fault = NOTHING

    def __str__(self) -> str:
        fault = "" if self.fault is NOTHING else f", then {self.fault.name}"
        return f"{self.scenario}, killed {self.point}{fault}"


@dataclass(frozen=True, kw_only=True)
class Plain:
    """How a scenario goes when nobody is killed."""

    picture: Object
    writes: int


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a cell."""

    cell: Cell
    tried: bool
    """The operator was killed: else it had no such write to make this time."""
    error: str = ""


def points(writes: int) -> list[Point]:
    """Before and after each of so many writes, and before and after what makes them."""
    return [Point(write=write, after=after) for write in range(writes + 1) for after in (False, True)]


def matrix(scenario: Scenario, writes: int, *, seed: int) -> list[Cell]:
    """Every point alone, and every fault at some point."""
    dice = random.Random(f"{seed} {scenario}")
    alone = [Cell(scenario=scenario, point=point) for point in points(writes)]
    faulty = [
        Cell(scenario=scenario, point=dice.choice(points(writes)), fault=fault) for fault in faults(real_time=False)
    ]
    return alone + faulty


class Crashes(Teller):
    """Tells stories with a crash."""

    def undisturbed(self, scenario: Scenario) -> Plain:
        """How it goes when nobody is killed. Raises AssertionError where that breaks a promise."""
        with self._telling(Cell(scenario=scenario, point=Point(write=0, after=False))) as telling:
            begun = len(telling.writes)
            telling.act()
            return Plain(picture=telling.until_over(), writes=len(telling.writes) - begun)

    def crashed(self, cell: Cell, plain: Plain) -> Outcome:
        """Tell a story with a crash."""
        try:
            with self._telling(cell) as telling:
                telling.act_and_crash()
                telling.until_alike(plain.picture)
        except Exception as error:  # noqa: BLE001 # whatever it is, it belongs to the cell
            return Outcome(
                cell=cell, tried=True, error="\n".join([f"{cell}: {error}", *getattr(error, "__notes__", ())])
            )
        return Outcome(cell=cell, tried=telling.killed)

    def all(self, scenario: Scenario, pool: Executor) -> list[Outcome]:
        """The whole matrix of a scenario."""
        plain = self.undisturbed(scenario)
        cells = matrix(scenario, plain.writes, seed=self._seed)
        return list(pool.map(lambda cell: self.crashed(cell, plain), cells))

    def one(self, scenario: Scenario) -> Outcome:
        """A cell of a scenario, by chance."""
        plain = self.undisturbed(scenario)
        cells = matrix(scenario, plain.writes, seed=self._seed)
        return self.crashed(random.Random(f"{scenario} {self._seed}").choice(cells), plain)

    @contextmanager
    def _telling(self, cell: Cell) -> Iterator["Telling"]:
        scenario, namespace = cell.scenario, f"crash-{next(self._serial)}"
        deployments = new_namespace(self._plane, namespace)
        spec = settle_on(self._plane, scenario, namespace)
        with ExitStack() as stack:
            stack.callback(self._clear, scenario, namespace)
            observer = stack.enter_context(Observer(deployments))
            proxy = stack.enter_context(FaultProxy(self._kubeconfig, seed=self._seed))
            telling = Telling(cell, deployments, observer, proxy, patience_seconds=self._patience)
            stack.callback(telling.end)
            try:
                telling.settle(spec if scenario.before is not None else None)
                if scenario.deletes:
                    self._collector.wait()
                yield telling
                telling.judge()
            except BaseException as error:
                error.add_note(telling.last_words())
                raise

    def _clear(self, scenario: Scenario, namespace: str) -> None:
        """Give the GPUs back at once."""
        self._plane.api.delete(f"/api/v1/namespaces/{namespace}")
        self._plane.api.delete(f"/api/v1/namespaces/{namespace}/pods", {"gracePeriodSeconds": 0})
        for node in own_nodes(namespace) if scenario.own_nodes else ():
            self._plane.api.delete(f"/api/v1/nodes/{node.name}")


class Telling:
    """One story as it is told. Its operator is started again whenever it has ended, as a kubelet does."""

    def __init__(
        self, cell: Cell, deployments: Deployments, observer: Observer, proxy: FaultProxy, *, patience_seconds: float
    ) -> None:
        self._cell = cell
        self._plane = deployments.control_plane
        self._deployments = deployments
        self._observer = observer
        self._proxy = proxy
        self._patience = patience_seconds
        self._lives: list[RunningOperator] = []
        self._killed = self._over = False
        self._moved_at = 0.0
        """When something was last known to go on, on the monotonic clock."""
        self._keeper = threading.Thread(target=self._keep, daemon=True)

    def settle(self, spec: Mapping[str, Any] | None) -> None:
        """Start the operator, and bring the deployment to where the scenario begins."""
        self._launch()
        self._keeper.start()
        self._until(self._is_ready, "the operator is ready")
        self._observer.expect(Bounds(serving=0, live=self._cell.scenario.bounds.live))
        if spec is not None:
            self._deployments.create(NAME, **spec)
            self._until(lambda: has_settled(self._deployments) and self._is_quiet(), "it has settled")
        self._observer.expect(self._cell.scenario.bounds)

    def act(self) -> None:
        """What happens in the scenario."""
        self._cell.scenario.act(self._deployments, self._observer)
        self._moved_at = time.monotonic()

    def act_and_crash(self) -> None:
        """The same, with the operator killed at its point."""
        point = self._cell.point
        rule = Rule(
            Crash(self._kill, after=point.after), verbs=WRITES, resources=WRITTEN, skip=point.write - 1, times=1
        )
        if point.write:
            self._proxy.inject(rule)
        elif not point.after:
            self._kill()
        self.act()
        if not point.write and point.after:
            self._kill()

    def until_over(self) -> Object:
        """Wait for the end of a story without a crash; returns the picture that it leaves."""
        self._until(lambda: self._cell.scenario.is_over(self._deployments) and self._is_quiet(), "it is over")
        found = self._until(lambda: (picture(self._deployments, **COMPARED),), "nothing leaves any more")[0]
        assert found is not None
        return found

    def until_alike(self, expected: Object) -> None:
        """Wait for the end of a story with a crash: it is the same, and then nothing is written any more."""
        what = f"{self._cell}: all is as without a crash"
        self._until(self._is_quiet, "nothing is written any more")
        until_alike(self._deployments, expected, what=what, timeout_seconds=self._patience, **COMPARED)
        self._until(self._is_quiet, "nothing is written any more")
        until_alike(self._deployments, expected, what=f"{what}, and stays so", timeout_seconds=0, **COMPARED)

    def judge(self) -> None:
        """Raise AssertionError where something was seen that should never have been."""
        assert not self._observer.violations, "; ".join(self._observer.violations)
        for life in self._lives:
            assert "Traceback" not in life.text()
            assert "unexpected error" not in life.text()
        ended = self._plane.ended_programs()
        by_itself = [life.name for life in self._lives if ended.get(life.name, 0) not in {0, -signal.SIGKILL}]
        assert not by_itself or self._cell.fault is not NOTHING, f"{by_itself} ended by itself"

    @property
    def writes(self) -> list[Call]:
        """What the operator wrote so far, or tried to."""
        return [call for call in self._proxy.writes() if call.target.resource in WRITTEN]

    @property
    def killed(self) -> bool:
        """Whether the operator was killed."""
        return self._killed

    def last_words(self) -> str:
        """What was seen, what was written, and the ends of the logs, for an error."""
        writes = [f"{call.target.verb} {call.target.resource} {call.target.name}: {call.code}" for call in self.writes]
        logs = [line for life in self._lives for line in (f"-- {life.name}", *life.text().splitlines()[-40:])]
        return "\n".join(["-- seen", *self._observer.history[-100:], "-- written", *writes[-60:], *logs])

    def end(self) -> None:
        """End the operator."""
        self._over = True
        if self._keeper.is_alive():
            self._keeper.join()
        for life in self._lives[-1:]:
            life.stop()

    def _kill(self) -> None:
        """Kill the operator, and let the fault of the cell strike the next one."""
        self._plane.signal_program(self._lives[-1].name, signal.SIGKILL)
        self._killed = True
        for rule in self._cell.fault.rules:
            self._proxy.inject(rule)

    def _keep(self) -> None:
        away = self._cell.fault.away
        while not self._over:
            time.sleep(LOOK_SECONDS)
            if self._lives[-1].name in self._plane.ended_programs():
                self._launch()
            if away and self._killed and self._is_ready():
                away = False
                self._proxy.stop()
                time.sleep(self._cell.fault.seconds)
                self._proxy.resume()

    def _launch(self) -> None:
        resync = LONG if self._cell.fault is NOTHING else self._cell.fault.resync_seconds
        namespace = self._deployments.namespace
        arguments = (f"--namespace={namespace}", f"--resync-seconds={resync}")
        name = f"{namespace}-{len(self._lives) + 1}"
        life = RunningOperator(self._plane, name, arguments, kubeconfig=self._proxy.kubeconfig)
        life.launch()
        self._lives.append(life)

    def _is_ready(self) -> bool:
        return self._lives[-1].answer("/readyz")[0] == 200

    def _is_quiet(self) -> bool:
        if not self._is_ready():
            self._moved_at = time.monotonic()
        last = max([self._moved_at, *(call.at for call in self.writes[-1:])])
        return time.monotonic() - last >= QUIET_SECONDS

    def _until(self, look: Callable[[], T], what: str) -> T:
        told = f"{self._cell}: {what}"
        return wait_until(look, told, timeout_seconds=self._patience, every_seconds=0.25)
