"""The lease: at most one leads, whatever clocks, network and processes do; and a successor is found in time."""

import asyncio
from typing import Any, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from unit.runtime.lease_world import DURATIONS, UNREACHABLE, Process, World
from vlm_operator.runtime import lease as lease_module
from vlm_operator.runtime.kinds import LEASE, Kind
from vlm_operator.runtime.kube import Kube, KubeError
from vlm_operator.runtime.lease import SOON, Lease, LeaseLostError

CANDIDATES = st.integers(0, 2)


class Election(RuleBasedStateMachine):
    """Three processes, each call of which may be slow, lost, or carried out long after it was given up."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.started = 0
        self.processes = [self._new(zero) for zero in (0.0, 5000.0, -3.0)]

    def _new(self, zero: float) -> Process:
        self.started += 1
        return Process(self.world, f"p{self.started}", zero=zero)

    @rule(seconds=st.sampled_from([0.01, 0.5, 2.0, 4.9, 5.1, 9.9, 10.1, 14.9, 15.1]))
    def time_passes(self, seconds: float) -> None:
        self.world.now += seconds

    @rule(i=CANDIDATES, seconds=st.sampled_from([-3600.0, -1.0, 1.0, 3600.0]))
    def a_wall_clock_is_set(self, i: int, seconds: float) -> None:
        self.processes[i].set_wall(seconds)

    @rule(i=CANDIDATES)
    def one_tries(self, i: int) -> None:
        self.processes[i].begin()

    @rule(i=CANDIDATES)
    def one_tries_without_delay(self, i: int) -> None:
        self.processes[i].begin()
        while self.processes[i].call is not None:
            self.processes[i].arrive()
            self.processes[i].hear()

    @rule(i=CANDIDATES)
    def a_call_arrives(self, i: int) -> None:
        self.processes[i].arrive()

    @rule(i=CANDIDATES)
    def an_answer_comes(self, i: int) -> None:
        self.processes[i].hear()

    @rule(i=CANDIDATES)
    def an_answer_is_lost(self, i: int) -> None:
        self.processes[i].fail()

    @rule(i=CANDIDATES)
    def one_gives_up(self, i: int) -> None:
        self.processes[i].give_up()

    @precondition(lambda self: self.world.late)
    @rule()
    def a_late_call_arrives(self) -> None:
        self.world.late_call_arrives()

    @rule(i=CANDIDATES)
    def one_ends_cleanly(self, i: int) -> None:
        if self.processes[i].leads:
            self.processes[i].begin_release()

    @rule(i=CANDIDATES)
    def one_is_killed_and_starts_anew(self, i: int) -> None:
        self.processes[i].give_up()
        self.processes[i] = self._new(float(i))

    @invariant()
    def at_most_one_leads(self) -> None:
        assert [process.leads for process in self.processes].count(True) <= 1

    def teardown(self) -> None:
        for process in self.processes:
            process.give_up()


Election.TestCase.settings = settings(max_examples=60, stateful_step_count=50)
TestElection = Election.TestCase


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def first(world: World) -> Process:
    """The leader."""
    process = Process(world, "first")
    process.once()
    assert process.leads
    return process


@pytest.fixture
def second(world: World, first: Process) -> Process:  # noqa: ARG001 # it comes later
    """A follower that has just seen the leader's record."""
    process = Process(world, "second", zero=1234.5)
    process.once()
    assert not process.leads
    return process


def test_a_record_says_who_leads_for_people_and_other_clients(world: World, first: Process) -> None:
    assert world.server.stored is not None
    assert world.server.stored["spec"] == {
        "holderIdentity": "first",
        "leaseDurationSeconds": 15,
        "acquireTime": "2027-01-15T08:00:00.000000Z",
        "renewTime": "2027-01-15T08:00:00.000000Z",
        "leaseTransitions": 0,
    }
    assert first.lease.time_left() == 15


def test_of_two_that_start_at_once_the_slower_is_told(world: World) -> None:
    one, other = Process(world, "one"), Process(world, "other")
    for process in (one, other):
        process.begin()
        process.arrive()
        process.hear()  # there is no record yet: both are about to create it
    for process in (one, other):
        process.arrive()
        process.hear()
    assert (one.leads, other.leads) == (True, False)
    other.once()
    assert (one.leads, other.leads) == (True, False)


def test_a_dead_leader_is_followed_after_the_lease_and_not_before(world: World, second: Process) -> None:
    world.now += 14.9
    second.once()
    assert not second.leads
    world.now += 0.2
    second.once()
    assert second.leads
    assert world.server.stored is not None
    assert world.server.stored["spec"]["holderIdentity"] == "second"
    assert world.server.stored["spec"]["leaseTransitions"] == 1


def test_a_renewal_makes_a_follower_wait_anew(world: World, first: Process, second: Process) -> None:
    for _ in range(10):
        world.now += 5
        first.once()
        second.once()
    assert (first.leads, second.leads) == (True, False)


@pytest.mark.parametrize("step", [-3600.0, 0.0, 3600.0])
def test_a_wall_clock_that_is_set_or_stands_still_changes_nothing(
    world: World, first: Process, second: Process, step: float
) -> None:
    for _ in range(10):
        world.now += 5
        first.set_wall(step)
        first.once()
        second.set_wall(-step)
        second.once()
    assert (first.leads, second.leads) == (True, False)


def test_a_record_that_looks_as_it_did_before_was_renewed_all_the_same(
    world: World, first: Process, second: Process
) -> None:
    world.now += 7
    first.set_wall(3600)
    first.once()
    first.set_wall(-3600)
    first.once()
    world.now += 8.5
    second.once()
    assert (first.leads, second.leads) == (True, False)


def test_the_leader_counts_from_before_its_renewal_was_sent(world: World, first: Process) -> None:
    world.now += 9
    first.begin()
    first.arrive()
    world.now += 4
    assert not first.leads
    first.hear()
    assert first.lease.time_left() == 15 - 4


def test_a_follower_counts_from_after_it_has_read_the_record(world: World, first: Process) -> None:
    late = Process(world, "late")
    late.begin()
    late.arrive()
    world.now += 9
    late.hear()
    first.once()
    world.now += 14
    late.once()
    assert not late.leads


def test_a_leader_stops_before_its_lease_ends(world: World, first: Process) -> None:
    world.now += 9.9
    assert first.lease.time_left() == pytest.approx(5.1)
    world.now += 0.2
    assert first.lease.time_left() == 0


def test_a_leader_that_slept_past_its_deadline_does_not_lead_again(world: World, first: Process) -> None:
    world.now += 10.5
    writes = world.server.writes
    first.once()
    assert not first.leads
    assert world.server.writes == writes


def test_a_renewal_without_an_answer_is_made_sure_of(world: World, first: Process) -> None:
    world.now += 2
    first.begin()
    first.arrive()
    first.fail()
    world.now += 2
    first.once()
    assert first.lease.time_left() == 15


def test_a_lease_that_is_given_back_is_taken_at_once(world: World, first: Process, second: Process) -> None:
    first.begin_release()
    assert not first.leads
    first.arrive()
    first.hear()
    second.once()
    assert second.leads
    assert world.server.stored is not None
    assert world.server.stored["spec"]["leaseDurationSeconds"] == 15


def test_a_deleted_record_binds_those_that_saw_it(world: World, first: Process, second: Process) -> None:
    world.server.stored = None
    second.once()
    assert not second.leads
    with pytest.raises(KubeError, match="not found"):
        first.once()
    first.once()
    second.once()
    assert (first.leads, second.leads) == (True, False)


def test_a_leader_whose_record_somebody_took_stops_at_once(world: World, first: Process) -> None:
    assert world.server.stored is not None
    world.server._store(world.server.stored["spec"] | {"holderIdentity": "admin"}, uid="uid-0")
    with pytest.raises(KubeError, match="changed"):
        first.once()
    first.once()
    assert not first.leads


def test_a_record_without_a_spec_is_free(world: World) -> None:
    world.server.stored = {"metadata": {"uid": "u", "resourceVersion": "0"}}
    world.server.stored["spec"] = {}
    process = Process(world, "one")
    process.once()
    assert process.leads


class Quick:
    """Answers at once, or as the test wants."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.failure: KubeError | None = None
        self.hangs = False

    async def get(self, _: Kind, **__: str) -> Any:
        await self._obstacles()
        return self.world.server.stored

    async def create(self, kind: Kind, manifest: dict[str, Any]) -> Any:
        assert kind is LEASE
        await self._obstacles()
        return self.world.server._store(manifest["spec"], uid="u")

    async def change(self, _: Kind, patch: dict[str, Any]) -> Any:
        await self._obstacles()
        assert self.world.server.stored is not None
        return self.world.server._store(self.world.server.stored["spec"] | patch["spec"], uid="u")

    async def _obstacles(self) -> None:
        if self.failure is not None:
            raise self.failure
        if self.hangs:
            raise TimeoutError


class Loop:
    """A lease whose pauses pass at once on the world's clock."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.api = Quick(world)
        self.pauses: list[float] = []
        self.at_pause: dict[int, Any] = {}
        self.lease = Lease(
            cast("Kube", self.api),
            namespace="ops",
            name="vlm-operator",
            identity="me",
            durations=DURATIONS,
            annotations={},
            clock=lambda: world.now,
            jitter=lambda: 0.5,
        )

        async def passes(seconds: float) -> None:
            self.pauses.append(seconds)
            world.now += seconds
            self.at_pause.get(len(self.pauses), lambda: None)()

        monkeypatch.setattr(lease_module.asyncio, "sleep", passes)


@pytest.fixture
def loop(world: World, monkeypatch: pytest.MonkeyPatch) -> Loop:
    return Loop(world, monkeypatch)


async def test_it_leads_until_the_api_server_is_out_of_reach_for_the_deadline(world: World, loop: Loop) -> None:
    loop.at_pause[5] = lambda: setattr(loop.api, "failure", UNREACHABLE)
    with pytest.raises(
        LeaseLostError, match=r"^the lease ops/vlm-operator is lost: it was not renewed for 10 s: the API"
    ):
        await loop.lease.hold()
    assert loop.lease.acquired.is_set()
    assert loop.pauses == [pytest.approx(2.2)] * 9
    assert world.now == pytest.approx(9 * 2.2)


async def test_a_call_that_hangs_is_a_try_that_failed(loop: Loop) -> None:
    loop.at_pause[1] = lambda: setattr(loop.api, "hangs", True)
    loop.at_pause[3] = lambda: setattr(loop.api, "hangs", False)
    loop.at_pause[9] = lambda: setattr(loop.api, "failure", UNREACHABLE)
    with pytest.raises(LeaseLostError):
        await loop.lease.hold()
    assert len(loop.pauses) == 8 + 5
    assert loop.pauses[:4] == [pytest.approx(2.2), SOON, SOON, pytest.approx(2.2)]


@pytest.mark.parametrize(("asked", "pause"), [(1.0, 2.2), (4.0, 4.0), (60.0, 5.0)])
async def test_it_waits_as_it_is_asked_to_as_long_as_one_more_try_fits_into_the_deadline(
    loop: Loop, asked: float, pause: float
) -> None:
    overloaded = KubeError(429, "TooManyRequests", "slow down", retry_after=asked)
    loop.at_pause[1] = lambda: setattr(loop.api, "failure", overloaded)
    loop.at_pause[2] = lambda: setattr(loop.api, "failure", None)
    loop.at_pause[9] = lambda: setattr(loop.api, "failure", UNREACHABLE)
    with pytest.raises(LeaseLostError):
        await loop.lease.hold()
    assert loop.pauses[:4] == [pytest.approx(2.2), pytest.approx(pause), pytest.approx(2.2), pytest.approx(2.2)]


async def test_it_says_who_took_the_lease(world: World, loop: Loop) -> None:
    def taken() -> None:
        world.server._store({"holderIdentity": "other", "leaseDurationSeconds": 15}, uid="u")
        loop.lease._up_to_date = False

    loop.at_pause[2] = taken
    with pytest.raises(LeaseLostError, match="other holds it now"):
        await loop.lease.hold()


async def test_it_says_what_refused_the_renewals_though_the_record_can_be_read(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object) -> None:
        raise KubeError(403, "Forbidden", "leases is forbidden")

    loop.at_pause[1] = lambda: monkeypatch.setattr(loop.api, "change", refused)
    with pytest.raises(LeaseLostError, match="it was not renewed for 10 s: 403 Forbidden: leases is forbidden"):
        await loop.lease.hold()


async def test_a_follower_looks_again_in_the_moment_in_which_the_lease_ends(world: World, loop: Loop) -> None:
    world.server._store({"holderIdentity": "other", "leaseDurationSeconds": 15}, uid="u")
    loop.at_pause[8] = lambda: setattr(loop.api, "failure", UNREACHABLE)
    with pytest.raises(LeaseLostError):
        await loop.lease.hold()
    assert loop.pauses[:7] == [pytest.approx(2.2)] * 6 + [pytest.approx(15 - 6 * 2.2)]


async def test_what_stands_in_the_way_of_a_follower_is_told(loop: Loop) -> None:
    loop.api.failure = KubeError(403, "Forbidden", "leases is forbidden")
    troubles: list[str] = []
    loop.at_pause[1] = lambda: (troubles.append(loop.lease.trouble), setattr(loop.api, "failure", None))
    loop.at_pause[2] = lambda: (troubles.append(loop.lease.trouble), setattr(loop.api, "failure", UNREACHABLE))
    with pytest.raises(LeaseLostError):
        await loop.lease.hold()
    assert troubles == ["403 Forbidden: leases is forbidden", ""]


async def test_a_permission_that_is_missing_is_told_with_the_way_out(loop: Loop) -> None:
    told = 'leases "vlm-operator" is forbidden: User "me" cannot get resource "leases" in the namespace "ops"'
    loop.api.failure = KubeError(403, "Forbidden", told)
    troubles: list[str] = []

    def look() -> None:
        troubles.append(loop.lease.trouble)
        loop.api.failure = None

    loop.at_pause[1] = look
    loop.at_pause[2] = lambda: setattr(loop.api, "failure", UNREACHABLE)
    with pytest.raises(LeaseLostError):
        await loop.lease.hold()
    way_out = "or correct --leader-elect-namespace ops and --leader-elect-name vlm-operator"
    assert troubles == [f"{told}; give this permission to the operator's ServiceAccount, {way_out}"]


async def test_a_follower_has_nothing_to_give_back(world: World, loop: Loop) -> None:
    world.server._store({"holderIdentity": "other", "leaseDurationSeconds": 15}, uid="u")
    await loop.lease.attempt()
    await loop.lease.release()
    assert world.server.writes == 1


async def test_a_lease_that_cannot_be_given_back_does_not_hold_up_the_end(
    loop: Loop, caplog: pytest.LogCaptureFixture
) -> None:
    await loop.lease.attempt()
    loop.api.failure = UNREACHABLE
    await asyncio.wait_for(loop.lease.release(), 1)
    assert loop.lease.time_left() == 0
    assert "could not be given back" in caplog.text
