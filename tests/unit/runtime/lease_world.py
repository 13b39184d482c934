"""Processes that stand for one lease, an API server that holds it, and a network between them that does as the test wants."""

import types
from collections.abc import Coroutine, Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from vlm_operator.runtime.kinds import Kind
from vlm_operator.runtime.kube import Kube, KubeError
from vlm_operator.runtime.lease import Durations, Lease

Object = dict[str, Any]

DURATIONS = Durations(lease_seconds=15, deadline_seconds=10.0, retry_seconds=2.0)
UNREACHABLE = KubeError(0, "Unreachable", "the API server did not answer")


@dataclass
class LeaseServer:
    """Holds one Lease: versions grow, a write of an older version is refused."""

    stored: Object | None = None
    version: int = 0
    writes: int = 0

    def carry_out(self, call: "Call") -> None:
        """Do what a call asks for, and note the answer."""
        try:
            call.answer = self._done(call)
        except KubeError as error:
            call.answer = error

    def _done(self, call: "Call") -> Object | None:
        if call.verb == "get":
            return self.stored
        if call.verb == "create" and self.stored is not None:
            raise KubeError(409, "AlreadyExists", "it exists")
        if call.verb == "change":
            if self.stored is None:
                raise KubeError(404, "NotFound", "not found")
            if any(call.body["metadata"][field] != self.stored["metadata"][field] for field in _PRECONDITIONS):
                raise KubeError(409, "Conflict", "it has changed")
            merged = self.stored["spec"] | call.body["spec"]
            if merged == self.stored["spec"]:
                return self.stored
            return self._store(merged, uid=self.stored["metadata"]["uid"])
        return self._store(call.body["spec"], uid=f"uid-{self.version}")

    def _store(self, spec: Object, *, uid: str) -> Object:
        self.version += 1
        self.writes += 1
        self.stored = {"metadata": {"uid": uid, "resourceVersion": str(self.version)}, "spec": spec}
        return self.stored


_PRECONDITIONS = ("uid", "resourceVersion")


@dataclass
class Call:
    """A call on its way; its answer is set when the server has carried it out."""

    verb: str
    body: Object
    answer: Any = Ellipsis


class Wire:
    """The calls of `Kube` that a lease makes; each waits until the test carries it out and lets the answer through."""

    async def get(self, _: Kind, *, namespace: str, name: str) -> Object | None:
        assert (namespace, name) == ("ops", "vlm-operator")
        return cast("Object | None", await on_the_way(Call("get", {})))

    async def create(self, _: Kind, manifest: Object) -> Object:
        return cast("Object", await on_the_way(Call("create", manifest)))

    async def change(self, _: Kind, patch: Object) -> Object:
        return cast("Object", await on_the_way(Call("change", patch)))


@types.coroutine
def on_the_way(call: Call) -> Generator[Call, None, Object | None]:
    yield call
    if isinstance(call.answer, KubeError):
        raise call.answer
    answer: Object | None = call.answer
    return answer


@dataclass
class World:
    """True time, the server, and what is still on the way to it though nobody waits for the answer."""

    now: float = 0.0
    server: LeaseServer = field(default_factory=LeaseServer)
    late: list[Call] = field(default_factory=list)

    def late_call_arrives(self) -> None:
        if self.late:
            self.server.carry_out(self.late.pop(0))


class Process:
    """One candidate with clocks of its own: the steady one runs from another zero, the wall clock shows anything."""

    def __init__(self, world: World, name: str, *, zero: float = 0.0) -> None:
        self.world = world
        self.wall = datetime(2027, 1, 15, 8, 0, 0, tzinfo=UTC)
        self.lease = Lease(
            cast("Kube", Wire()),
            namespace="ops",
            name="vlm-operator",
            identity=name,
            durations=DURATIONS,
            annotations={},
            clock=lambda: world.now + zero,
            wall=lambda: self.wall,
            jitter=lambda: 0.0,
        )
        self.attempt: Coroutine[Any, Any, None] | None = None
        self.call: Call | None = None

    @property
    def leads(self) -> bool:
        return self.lease.time_left() > 0

    def set_wall(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)

    def begin(self) -> None:
        """Start an attempt; its first call is on the way then."""
        self.give_up()
        self.attempt = self.lease.attempt()
        self._go_on()

    def begin_release(self) -> None:
        self.give_up()
        self.attempt = self.lease.give_back()
        self._go_on()

    def arrive(self) -> None:
        """The server carries out the call that is on the way."""
        if self.call is not None and self.call.answer is Ellipsis:
            self.world.server.carry_out(self.call)

    def hear(self) -> None:
        """The answer comes back; the attempt ends or sends its next call."""
        if self.call is not None and self.call.answer is not Ellipsis:
            self._go_on()

    def fail(self) -> None:
        """No answer comes. A call that was not carried out may still be, at any later time."""
        if self.call is not None:
            self._leave_on_the_way()
            self.call.answer = UNREACHABLE
            self._go_on()

    def give_up(self) -> None:
        """The attempt is cancelled, as by a timeout."""
        if self.attempt is not None:
            self._leave_on_the_way()
            self.attempt.close()
        self.attempt = self.call = None

    def _leave_on_the_way(self) -> None:
        if self.call is not None and self.call.answer is Ellipsis:
            self.world.late.append(Call(self.call.verb, self.call.body))

    def once(self) -> None:
        """A whole attempt, without any delay. Raises `KubeError` where the attempt does."""
        self.begin()
        while self.call is not None:
            self.arrive()
            self._go_on(raising=True)

    def _go_on(self, *, raising: bool = False) -> None:
        assert self.attempt is not None
        try:
            self.call = self.attempt.send(None)
        except StopIteration:
            self.attempt = self.call = None
        except KubeError:
            self.attempt = self.call = None
            if raising:
                raise
