"""Stories told with one fault in one of their phases, and what must be true of each.

A story has an operator, a proxy and a namespace of its own, so that many can be told at once. What it leaves behind at the end
of each phase must be what the story without a fault leaves behind.
"""

import threading
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass

from cluster.support.faults import NOTHING, WRITING, Cell, Fault
from cluster.support.operator import Deployments, Object, RunningOperator
from cluster.support.story import PHASES, PODS_AT_MOST, Teller, new_namespace, until_alike, until_finished
from controlplane import ControlPlane, wait_until
from faultproxy import WRITES, Answer, Call, EventFault, FaultProxy

WRITES_AT_MOST = 3
"""Times as many writes as without a fault."""


@dataclass(frozen=True)
class Report:
    """What the operator did, as the proxy has seen it."""

    cell: Cell
    pods_created: int
    writes: int
    busiest_minute: int

    def __str__(self) -> str:
        return f"{self.cell!s:42} {self.writes:4} writes, at most {self.busiest_minute:3} in a minute"


class Stories(Teller):
    """Tells stories with a fault."""

    def __init__(self, plane: ControlPlane, *, seed: int, patience_seconds: float) -> None:
        super().__init__(plane, seed=seed, patience_seconds=patience_seconds)
        self._pictures: dict[str, Future[Object]] = {phase: Future() for phase in PHASES}
        self._plain: Future[Report] = Future()

    def undisturbed(self) -> Report:
        """Tell the story that the others are compared with; they wait for it, phase by phase."""
        try:
            report = self._tell(Cell(NOTHING, "create"))
        except BaseException as error:
            for future in (*self._pictures.values(), self._plain):
                if not future.done():
                    future.set_exception(error)
            raise
        self._plain.set_result(report)
        return report

    def disturbed(self, cell: Cell) -> Report:
        """Tell a story with a fault. Raises AssertionError where it ends otherwise, or takes too many writes."""
        report, plain = self._tell(cell), self._plain.result()
        assert report.pods_created == plain.pods_created, f"{cell}: {report.pods_created} pods were created"
        assert report.writes <= WRITES_AT_MOST * plain.writes, report
        return report

    def _tell(self, cell: Cell) -> Report:
        namespace = f"story-{next(self._serial)}"
        new_namespace(self._plane, namespace)
        with FaultProxy(self._kubeconfig, seed=self._seed) as proxy:
            arguments = (f"--namespace={namespace}", f"--resync-seconds={cell.fault.resync_seconds}")
            operator = RunningOperator(self._plane, namespace, arguments, kubeconfig=proxy.kubeconfig)
            telling = Telling(self._plane, cell, proxy, operator, patience_seconds=self._patience)
            operator.launch()
            try:
                for phase, picture in self._pictures.items():
                    if phase == "delete":
                        self._collector.wait()
                    telling.play(phase, picture)
                telling.judge()
            except BaseException as error:
                error.add_note(telling.last_words())
                raise
            finally:
                operator.stop()
            return telling.report()


class Telling:
    """One story as it is told."""

    def __init__(
        self,
        plane: ControlPlane,
        cell: Cell,
        proxy: FaultProxy,
        operator: RunningOperator,
        *,
        patience_seconds: float,
    ) -> None:
        self._plane = plane
        self._cell = cell
        self._proxy = proxy
        self._operator = operator
        self._patience = patience_seconds
        self._deployments = Deployments(control_plane=plane, namespace=operator.name)
        self._begun: dict[str, int] = {}
        """Calls before each phase."""

    def play(self, phase: str, picture: "Future[Object]") -> None:
        """Play a phase, with its fault if it has one, until it has left what it must leave."""
        wait_until(lambda: self._operator.answer("/readyz")[0] == 200, "it is ready", timeout_seconds=self._patience)
        fault = self._cell.fault if phase == self._cell.phase else NOTHING
        self._begun[phase] = len(self._proxy.calls)
        with ExitStack() as stack:
            injections = [stack.enter_context(self._proxy.inject(rule)) for rule in fault.rules]
            PHASES[phase](self._deployments)
            if fault.away or fault.stopped:
                self._wait_for_a_write(phase)
            if fault.seconds:
                self._last(fault)
            else:
                self._finish(phase, picture)
        for injection in injections:
            # When a deployment is deleted, the operator may have nothing to call for.
            expected = phase in WRITING or isinstance(injection.rule.fault, EventFault)
            assert injection.hits or not expected, f"{fault.name} struck nothing: {injection.rule}"
        self._finish(phase, picture)

    def judge(self) -> None:
        """Raise AssertionError where the operator did not behave, whatever it left behind."""
        assert self._operator.name not in self._plane.ended_programs(), "the operator has ended"
        log = self._operator.text()
        assert "Traceback" not in log
        assert "unexpected error" not in log
        for earlier, later in self._tried_again():
            fault = self._cell.fault.rules[0].fault
            if isinstance(fault, Answer) and fault.retry_after:
                assert later.at - earlier.at >= fault.retry_after, f"asked to wait, and did not: {later}"
        for phase, most in self._most_pods().items():
            assert most <= PODS_AT_MOST[phase], f"{most} pods at a time during {phase}"

    def report(self) -> Report:
        """What the operator did."""
        created = [call for call in self._pod_calls("create") if call.code == 201]
        return Report(
            cell=self._cell,
            pods_created=len(created),
            writes=len(self._proxy.writes()),
            busiest_minute=self._proxy.busiest_minute(),
        )

    def last_words(self) -> str:
        """The end of the operator's log, for an error."""
        return "\n".join(self._operator.text().splitlines()[-60:])

    def _finish(self, phase: str, picture: "Future[Object]") -> None:
        if self._cell.fault is NOTHING and not picture.done():
            picture.set_result(until_finished(self._deployments, phase, timeout_seconds=self._patience))
        what = f"{self._cell}: after {phase} all is as without a fault"
        until_alike(self._deployments, picture.result(), what=what, timeout_seconds=self._patience)

    def _wait_for_a_write(self, phase: str) -> None:
        """Return when the operator has begun to write, if it does so in the phase."""
        before = self._begun[phase]
        if phase in WRITING:
            wait_until(lambda: any(call.target.verb in WRITES for call in self._proxy.calls[before:]), "it writes")

    def _last(self, fault: Fault) -> None:
        """Let a fault last as long as it does."""
        if fault.away:
            self._proxy.stop()
        if fault.stopped:
            self._plane.stop_apiserver()
        threading.Event().wait(fault.seconds)
        if fault.away:
            self._proxy.resume()
        if fault.stopped:
            self._plane.start_apiserver()

    def _tried_again(self) -> list[tuple[Call, Call]]:
        """Calls that a fault answered, each with the next one of the same kind for the same object."""
        calls = self._proxy.calls
        pairs = []
        for number, call in enumerate(calls):
            again = next((other for other in calls[number + 1 :] if other.target == call.target), None)
            if call.fault and again is not None:
                pairs.append((call, again))
        return pairs

    def _most_pods(self) -> dict[str, int]:
        """The most pods that were not being deleted, in each phase, by what the API server answered."""
        most = dict.fromkeys(self._begun, 0)
        there = 0
        for number, call in enumerate(self._proxy.calls):
            if call.target.resource == "pods" and not call.target.subresource and call.code in {200, 201}:
                there += {"create": 1, "delete": -1}.get(call.target.verb, 0)
            phase = [name for name, begun in self._begun.items() if begun <= number][-1:]
            for name in phase:
                most[name] = max(most[name], there)
        return most

    def _pod_calls(self, verb: str) -> list[Call]:
        return [call for call in self._proxy.calls if (call.target.verb, call.target.resource) == (verb, "pods")]
