"""Installations, an API server that holds their Leases, and a network between them that does as the test wants."""

from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from unit.runtime.lease_world import DURATIONS, UNREACHABLE, Call, on_the_way
from vlm_operator.api.names import NAMESPACES
from vlm_operator.runtime.installations import annotation
from vlm_operator.runtime.kinds import LEASE, Kind
from vlm_operator.runtime.kube import Kube, KubeError
from vlm_operator.runtime.lease import Lease
from vlm_operator.runtime.neighbours import Neighbours

Object = dict[str, Any]
Place = tuple[str, str]

START = datetime(2027, 1, 15, 8, 0, 0, tzinfo=UTC)
FORBIDDEN = KubeError(403, "Forbidden", "leases is forbidden")


@dataclass
class World:
    """True time, the Leases, and what is still on the way to the server though nobody waits for the answer."""

    now: float = 0.0
    leases: dict[Place, Object] = field(default_factory=dict)
    version: int = 0
    late: list[tuple["Wire", Call]] = field(default_factory=list)

    def late_call_arrives(self) -> None:
        wire, call = self.late.pop(0)
        wire.carry_out(call)

    def store(self, place: Place, body: Object) -> Object:
        """Create a Lease, or merge into it."""
        self.version += 1
        created = (START + timedelta(seconds=self.now)).strftime("%Y-%m-%dT%H:%M:%SZ")
        old = self.leases.get(place) or {
            "metadata": {
                "namespace": place[0],
                "name": place[1],
                "uid": f"u{self.version}",
                "creationTimestamp": created,
            }
        }
        metadata = old["metadata"] | body["metadata"] | {"resourceVersion": str(self.version)}
        self.leases[place] = {"metadata": metadata, "spec": old.get("spec", {}) | body["spec"]}
        return self.leases[place]


class Wire:
    """The calls of `Kube` that a lease and its look-out make, with the rights of one process."""

    def __init__(self, world: World, *, sees: frozenset[str] | None) -> None:
        self.slow = True
        """Each call waits until the test carries it out and lets the answer through."""
        self.broken = False
        """Without `slow`: no call is answered."""
        self._world = world
        self.sees = sees
        """Namespaces in which it may list Leases; None: all."""

    async def get(self, _: Kind, *, namespace: str, name: str) -> Object | None:
        return cast("Object | None", await self._sent(Call("get", {"place": (namespace, name)})))

    async def create(self, _: Kind, manifest: Object) -> Object:
        return cast("Object", await self._sent(Call("create", manifest)))

    async def change(self, _: Kind, patch: Object) -> Object:
        return cast("Object", await self._sent(Call("change", patch)))

    async def list(self, kind: Kind, *, namespace: str | None) -> tuple[list[Object], int]:
        assert kind is LEASE
        return cast("tuple[list[Object], int]", await self._sent(Call("list", {"namespace": namespace})))

    async def may_list(self, kind: Kind, *, namespace: str | None) -> bool:
        assert kind is LEASE
        return self.sees is None or namespace in self.sees

    async def _sent(self, call: Call) -> Any:
        if self.slow:
            return await on_the_way(call)
        if self.broken:
            raise UNREACHABLE
        return self._done(call)

    def carry_out(self, call: Call) -> None:
        """Do what a call asks for, and note the answer."""
        try:
            call.answer = self._done(call)
        except KubeError as error:
            call.answer = error

    def _done(self, call: Call) -> Any:
        leases = self._world.leases
        if call.verb == "list":
            namespace = call.body["namespace"]
            if self.sees is not None and namespace not in self.sees:
                raise FORBIDDEN
            return [lease for place, lease in leases.items() if namespace in {None, place[0]}], self._world.version
        if call.verb == "get":
            return leases.get(call.body["place"])
        metadata = call.body["metadata"]
        place = metadata["namespace"], metadata["name"]
        if call.verb == "create" and place in leases:
            raise KubeError(409, "AlreadyExists", "it exists")
        if call.verb == "change" and place not in leases:
            raise KubeError(404, "NotFound", "not found")
        if call.verb == "change" and metadata["resourceVersion"] != leases[place]["metadata"]["resourceVersion"]:
            raise KubeError(409, "Conflict", "it has changed")
        return self._world.store(place, call.body)


class Errand:
    """One call after the other of one coroutine, as fast or slow as the test wants."""

    def __init__(self, world: World, wire: Wire) -> None:
        self._world = world
        self._wire = wire
        self._running: Coroutine[Any, Any, Any] | None = None
        self.call: Call | None = None

    def begin(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start it; its first call is on the way then."""
        self.give_up()
        self._running = work
        self._go_on()

    def arrive(self) -> None:
        """The server carries out the call that is on the way."""
        if self.call is not None and self.call.answer is Ellipsis:
            self._wire.carry_out(self.call)

    def hear(self) -> None:
        """The answer comes back."""
        if self.call is not None and self.call.answer is not Ellipsis:
            self._go_on()

    def fail(self) -> None:
        """No answer comes. A write that was not carried out may still be, at any later time."""
        if self.call is not None:
            self._leave_on_the_way()
            self.call.answer = UNREACHABLE
            self._go_on()

    def give_up(self) -> None:
        """It is cancelled, as by a timeout."""
        if self._running is not None:
            self._leave_on_the_way()
            self._running.close()
        self._running = self.call = None

    def finish(self) -> None:
        """Let it run to its end without any delay."""
        while self.call is not None:
            self.arrive()
            self.hear()

    def _leave_on_the_way(self) -> None:
        if self.call is not None and self.call.answer is Ellipsis and self.call.verb in {"create", "change"}:
            self._world.late.append((self._wire, Call(self.call.verb, self.call.body)))

    def _go_on(self) -> None:
        assert self._running is not None
        try:
            self.call = self._running.send(None)
        except (StopIteration, KubeError):
            self._running = self.call = None


class Process:
    """One replica of an installation; without a place it has no Lease."""

    def __init__(
        self,
        world: World,
        name: str,
        place: Place | None,
        *,
        serves: Iterable[str] = (),
        sees: frozenset[str] | None = None,
        zero: float = 0.0,
    ) -> None:
        self.place = place
        self.serves = frozenset(serves)
        self.sees = sees
        self.wire = Wire(world, sees=sees)
        kube = cast("Kube", self.wire)
        self.lease = place and Lease(
            kube,
            namespace=place[0],
            name=place[1],
            identity=name,
            durations=DURATIONS,
            annotations={NAMESPACES: annotation(serves)},
            clock=lambda: world.now + zero,
            wall=lambda: START,
            jitter=lambda: 0.0,
        )
        self.neighbours = Neighbours(
            kube, namespaces=serves, lease=self.lease or None, clock=lambda: world.now + zero, jitter=lambda: 0.0
        )
        self.standing = Errand(world, self.wire)
        self.looking = Errand(world, self.wire)

    @property
    def acts(self) -> bool:
        return self.neighbours.time_left() > 0

    @property
    def must_begin_anew(self) -> bool:
        """What ends `Neighbours.watch`."""
        return bool(self.neighbours._older) and self.neighbours.no_older.is_set()

    def begin_look(self) -> None:
        self.looking.begin(self.neighbours.look())

    def begin_to_stand(self) -> None:
        if self.lease and self.neighbours.no_older.is_set() and not self.must_begin_anew:
            self.standing.begin(self.lease.attempt())

    def begin_to_leave(self) -> None:
        self.looking.give_up()
        if self.lease:
            self.standing.begin(self.lease.give_back())

    def step(self) -> None:
        """Look and stand, without any delay."""
        self.begin_look()
        self.looking.finish()
        self.begin_to_stand()
        self.standing.finish()

    def give_up(self) -> None:
        self.looking.give_up()
        self.standing.give_up()
