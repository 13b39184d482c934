"""Of installations that serve the same namespace at most one acts, whatever clocks, network and processes do; and one does."""

import asyncio
import itertools
import logging

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from unit.runtime.lease_world import DURATIONS
from unit.runtime.neighbours_world import Place, Process, World
from vlm_operator.api.names import LEASE_LABELS, NAMESPACES
from vlm_operator.runtime.installations import overlap, read_installation
from vlm_operator.runtime.kube import KubeError
from vlm_operator.runtime.neighbours import ACTS_SECONDS, CLEARED_SECONDS, LOOK_SECONDS, RIGHTS_SECONDS, SOON_SECONDS

A, B, C = ("ops-a", "vlm-operator"), ("ops-b", "vlm-operator"), ("ops-c", "vlm-operator")
INSTALLATIONS: tuple[tuple[Place, tuple[str, ...]], ...] = ((A, ()), (B, ("team-1", "team-2")), (C, ("team-2",)))
ONE = st.integers(0, len(INSTALLATIONS) - 1)


class Neighbourhood(RuleBasedStateMachine):
    """Three installations; each call may be slow, lost, or carried out long after it was given up."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.started = 0
        self.processes = [self._new(number) for number in range(len(INSTALLATIONS))]

    def _new(self, number: int) -> Process:
        self.started += 1
        place, serves = INSTALLATIONS[number]
        return Process(self.world, f"p{self.started}", place, serves=serves, zero=1000.0 * number)

    @rule(moving=st.sets(ONE, min_size=1), steps=st.integers(1, 12))
    def some_do_as_they_should(self, moving: set[int], steps: int) -> None:
        for _ in range(steps):
            self.world.now += 2.5
            for i in sorted(moving):
                self.processes[i].step()
                self.at_most_one_acts_in_a_namespace()
                if self.processes[i].must_begin_anew:
                    self.one_ends_cleanly_and_starts_anew(i)

    @rule(seconds=st.sampled_from([0.01, 1.0, 4.9, 9.9, 14.9, 15.1, 19.9, 20.1]))
    def time_passes(self, seconds: float) -> None:
        self.world.now += seconds

    @rule(i=ONE)
    def one_looks(self, i: int) -> None:
        self.processes[i].begin_look()

    @rule(i=ONE)
    def one_stands(self, i: int) -> None:
        self.processes[i].begin_to_stand()

    @rule(i=ONE)
    def one_does_both_without_delay(self, i: int) -> None:
        self.processes[i].step()

    @rule(i=ONE, looking=st.booleans())
    def a_call_arrives(self, i: int, looking: bool) -> None:
        (self.processes[i].looking if looking else self.processes[i].standing).arrive()

    @rule(i=ONE, looking=st.booleans())
    def an_answer_comes(self, i: int, looking: bool) -> None:
        (self.processes[i].looking if looking else self.processes[i].standing).hear()

    @rule(i=ONE, looking=st.booleans())
    def an_answer_is_lost(self, i: int, looking: bool) -> None:
        (self.processes[i].looking if looking else self.processes[i].standing).fail()

    @precondition(lambda self: self.world.late)
    @rule()
    def a_late_call_arrives(self) -> None:
        self.world.late_call_arrives()

    @rule(i=ONE)
    def one_ends_cleanly_and_starts_anew(self, i: int) -> None:
        self.processes[i].begin_to_leave()
        self.processes[i].standing.finish()
        self.processes[i] = self._new(i)

    @rule(i=ONE)
    def one_is_killed_and_starts_anew(self, i: int) -> None:
        self.processes[i].give_up()
        self.processes[i] = self._new(i)

    @rule(place=st.sampled_from([A, B, C]))
    def somebody_deletes_a_lease_that_nobody_holds(self, place: Place) -> None:
        if not self.world.leases.get(place, {}).get("spec", {}).get("holderIdentity"):
            self.world.leases.pop(place, None)

    @invariant()
    def at_most_one_acts_in_a_namespace(self) -> None:
        acting = [process for process in self.processes if process.acts]
        for one, other in itertools.combinations(acting, 2):
            assert not overlap(one.serves, other.serves), (one.place, other.place)

    def teardown(self) -> None:
        for process in self.processes:
            process.give_up()


Neighbourhood.TestCase.settings = settings(max_examples=40, stateful_step_count=30)
TestNeighbourhood = Neighbourhood.TestCase


@pytest.fixture
def world() -> World:
    return World()


def _pass(world: World, seconds: float, *processes: Process) -> None:
    """Let time pass in which the processes renew and look as they do."""
    for _ in range(round(seconds / 2.5)):
        world.now += 2.5
        for process in processes:
            process.step()


def _acting(world: World, name: str, place: Place | None, **rights: object) -> Process:
    process = Process(world, name, place, **rights)  # type: ignore[arg-type]
    process.step()
    process.step()
    assert process.acts
    return process


def test_a_lease_says_what_its_holder_serves(world: World) -> None:
    _acting(world, "a", A, serves=("team-2", "team-1"))
    metadata = world.leases[A]["metadata"]
    assert metadata["annotations"] == {NAMESPACES: "team-1,team-2"}
    assert metadata["labels"] == LEASE_LABELS
    _acting(world, "b", B, serves=("team-3",))
    assert read_installation(world.leases[B]).serves == {"team-3"}


@pytest.mark.parametrize("annotations", [{}, None, {NAMESPACES: ""}, {NAMESPACES: "*"}, {NAMESPACES: "a,,b"}])
def test_a_lease_that_does_not_say_what_is_served_counts_for_all_namespaces(
    world: World, annotations: dict[str, str] | None
) -> None:
    _acting(world, "a", A)
    world.leases[A]["metadata"]["annotations"] = annotations
    assert read_installation(world.leases[A]).serves == frozenset()


def test_the_second_does_not_even_take_its_lease(world: World) -> None:
    first = _acting(world, "first", A)
    second = Process(world, "second", B, serves=("team-1",))
    _pass(world, 60, first, second)
    assert (first.acts, second.acts) == (True, False)
    assert B not in world.leases


def test_those_that_serve_nothing_in_common_both_act(world: World) -> None:
    first = _acting(world, "first", A, serves=("team-1",))
    second = _acting(world, "second", B, serves=("team-2",))
    _pass(world, 60, first, second)
    assert first.acts
    assert second.acts


def test_of_two_that_start_at_once_the_older_acts_and_the_younger_gives_way(world: World) -> None:
    one, other = Process(world, "one", A), Process(world, "other", B)
    for process in (one, other):
        process.begin_look()
        process.looking.finish()
        process.begin_to_stand()
    for process in (one, other):  # both were about to create their leases
        process.standing.finish()
    for process in (one, other):
        process.begin_look()
        process.looking.finish()
    assert not one.acts
    assert other.must_begin_anew
    other.begin_to_leave()
    other.standing.finish()
    one.step()
    assert one.acts


def test_the_second_goes_on_when_the_first_has_been_dead_for_its_lease(world: World) -> None:
    first = _acting(world, "first", A)
    second = Process(world, "second", B)
    _pass(world, 5, first, second)
    _pass(world, DURATIONS.lease_seconds - 2.5, second)
    assert not second.neighbours.no_older.is_set()
    _pass(world, 2.5, second)
    second.step()
    assert second.acts


def test_the_second_goes_on_at_once_when_the_first_gives_its_lease_back(world: World) -> None:
    first = _acting(world, "first", A)
    second = Process(world, "second", B)
    second.step()
    first.begin_to_leave()
    first.standing.finish()
    second.step()
    second.step()
    assert second.acts


def test_a_lease_that_was_deleted_binds_as_long_as_if_it_were_there(world: World) -> None:
    first = _acting(world, "first", A)
    second = Process(world, "second", B)
    _pass(world, 5, first, second)
    del world.leases[A]
    second.step()
    assert not second.neighbours.no_older.is_set()
    _pass(world, DURATIONS.lease_seconds, second)
    second.step()
    assert second.acts


def test_an_older_one_that_comes_back_waits_until_it_is_noticed(world: World) -> None:
    first = _acting(world, "first", A)
    world.now += 1
    first.begin_to_leave()
    first.standing.finish()
    second = _acting(world, "second", B)
    back = Process(world, "back", A)
    back.step()
    back.step()
    assert (back.acts, second.acts) == (False, True)
    assert back.neighbours.no_older.is_set()
    second.begin_look()
    second.looking.finish()
    assert not second.acts
    assert second.must_begin_anew


def test_one_that_cannot_see_the_older_one_is_waited_for_and_told(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    _acting(world, "old", A).begin_to_leave()
    world.leases[A]["spec"]["holderIdentity"] = ""
    world.now += 1
    blind = _acting(world, "blind", B, serves=("team-1",), sees=frozenset({"ops-b", "team-1"}))
    older = Process(world, "older", A)
    older.step()
    _pass(world, CLEARED_SECONDS - 5, older, blind)
    assert not older.acts
    _pass(world, 7.5, older, blind)
    assert older.acts
    assert blind.acts  # the case that the documents name
    assert not older.neighbours.trouble


def test_a_lease_that_is_made_up_holds_back_none_that_was_there_before(world: World) -> None:
    first = _acting(world, "first", A)
    world.now += 1
    for _ in range(20):
        world.store(
            ("team-1", "made-up"),
            {
                "metadata": {"namespace": "team-1", "name": "made-up"},
                "spec": {"holderIdentity": "me", "leaseDurationSeconds": 2**31 - 1},
            },
        )
        _pass(world, 2.5, first)
        assert first.acts
    first.give_up()
    again = Process(world, "again", A)
    _pass(world, DURATIONS.lease_seconds + CLEARED_SECONDS + 5, again)
    assert again.acts


@pytest.mark.parametrize("duration", [2**31 - 1, None])
def test_nobody_counts_as_alive_for_more_than_an_hour(world: World, duration: int | None) -> None:
    spec = {"holderIdentity": "me", "leaseDurationSeconds": duration}
    world.store(C, {"metadata": {"namespace": C[0], "name": C[1]}, "spec": spec})
    process = Process(world, "one", A)
    process.step()
    world.now += 3590
    process.step()
    assert not process.neighbours.no_older.is_set()
    world.now += 10
    process.step()
    assert process.neighbours.no_older.is_set()


def test_an_operator_without_a_lease_gives_way_to_everybody(world: World) -> None:
    laptop = _acting(world, "laptop", None, serves=("team-1",))
    first = _acting(world, "first", A)
    assert laptop.acts  # nobody can see it: it has to look again first
    laptop.begin_look()
    laptop.looking.finish()
    assert not laptop.acts
    assert laptop.must_begin_anew
    assert first.acts


def test_without_news_it_acts_no_longer_than_others_wait(world: World) -> None:
    process = _acting(world, "one", None)
    world.now += ACTS_SECONDS - 0.1
    assert process.neighbours.time_left() == pytest.approx(CLEARED_SECONDS - ACTS_SECONDS + 0.1)
    world.now += 0.2
    assert not process.acts
    process.step()
    assert process.acts


def test_a_look_counts_from_its_beginning(world: World) -> None:
    process = Process(world, "one", None)
    process.begin_look()
    world.now += 3
    process.looking.arrive()
    world.now += 4
    process.looking.hear()
    assert process.neighbours.time_left() == CLEARED_SECONDS - 7


def test_what_it_sends_ends_before_its_own_lease(world: World) -> None:
    process = _acting(world, "one", A)
    assert process.lease
    assert process.neighbours.time_left() == process.lease.time_left() == DURATIONS.lease_seconds


@pytest.mark.parametrize(("sees", "looks_in"), [(None, "all"), (frozenset({"ops-a", "team-1"}), "some")])
def test_it_looks_where_it_may(world: World, sees: frozenset[str] | None, looks_in: str) -> None:
    _acting(world, "other", ("team-9", "vlm-operator"), serves=("team-1",))
    process = Process(world, "one", A, serves=("team-1",), sees=sees)
    process.step()
    assert process.neighbours.no_older.is_set() is (looks_in == "some")


def test_where_it_may_not_look_is_told_once_and_it_goes_on(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    _acting(world, "other", ("team-1", "vlm-operator"), serves=("team-1",))
    process = _acting(world, "one", A, serves=("team-1", "team-2"), sees=frozenset({"team-2"}))
    _pass(world, 20, process)
    assert process.acts
    assert [record.getMessage() for record in caplog.records] == [
        "team-1: other installations are not seen there: give list leases to the operator"
    ]


@pytest.mark.parametrize("sees", [frozenset(), frozenset({"ops-a"})])
def test_one_for_all_namespaces_that_may_not_look_everywhere_says_so(
    world: World, sees: frozenset[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    _acting(world, "one", A, sees=sees)
    (record,) = caplog.records
    assert record.getMessage().startswith("all namespaces: other installations are not seen there")


def test_rights_that_come_and_go_are_noticed(world: World) -> None:
    other = _acting(world, "other", B, serves=("team-1",))
    process = _acting(world, "one", None, serves=("team-1",), sees=frozenset())
    process.wire.sees = None
    _pass(world, RIGHTS_SECONDS, other, process)
    assert process.must_begin_anew
    process = Process(world, "again", None, serves=("team-1",))
    process.step()
    assert not process.acts
    process.wire.sees = frozenset()
    _pass(world, DURATIONS.lease_seconds + 5, other, process)
    assert process.acts


LED = "the installation with the lease ops-a/vlm-operator, which serves {}, is led by one-7f-x2_1, and this process serves {}"
TWO = "if these are two installations, set --leader-elect-name for one of them"


@pytest.mark.parametrize("serves", [("team-2",), ("team-1", "team-2"), ()])
async def test_two_that_share_a_lease_by_mistake_are_told_and_are_not_ready(
    world: World, serves: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    first = _acting(world, "one-7f-x2_1", A, serves=("team-1",))
    follower = Process(world, "two-6d-9z_1", A, serves=serves)
    follower.wire.slow = False
    for _ in range(3):
        await follower.neighbours._try()
    assert not follower.acts
    led = LED.format("team-1", ", ".join(serves) or "all namespaces")
    assert follower.neighbours.trouble == f"{led}, so that it does nothing: {TWO}"
    assert [record.getMessage() for record in caplog.records] == [follower.neighbours.trouble]

    first.begin_to_leave()
    first.standing.finish()
    await follower.neighbours._try()
    assert not follower.neighbours.trouble


@pytest.mark.parametrize(
    ("follower", "serves"),
    [("one-6d-9z_1", ("team-1", "team-3")), ("two-6d-9z_1", ("team-1",))],
    ids=["it is the next version of the leader", "the leader serves more"],
)
async def test_a_follower_that_may_soon_lead_or_is_not_missed_is_ready_and_told(
    world: World, follower: str, serves: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    _acting(world, "one-7f-x2_1", A, serves=("team-1", "team-2"))
    ready = Process(world, follower, A, serves=serves)
    ready.wire.slow = False
    for _ in range(3):
        await ready.neighbours._try()
    assert not ready.neighbours.trouble
    (record,) = caplog.records
    led = LED.format("team-1, team-2", ", ".join(serves))
    assert record.getMessage() == f"{led}: {TWO}"


def test_a_follower_of_the_same_installation_says_nothing(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    first, follower = _acting(world, "first", A), Process(world, "follower", A)
    _pass(world, 20, first, follower)
    assert (first.acts, follower.acts) == (True, False)
    assert not caplog.records
    assert not follower.neighbours.trouble


async def test_it_looks_again_and_again_until_an_older_one_comes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def passes(seconds: float) -> None:
        pauses.append(seconds)
        world.now += seconds
        if len(pauses) == 3:
            _acting(world, "other", A)

    monkeypatch.setattr("vlm_operator.runtime.neighbours.asyncio.sleep", passes)
    laptop = Process(world, "laptop", None)
    laptop.wire.slow = False
    await laptop.neighbours.watch()
    assert pauses == [LOOK_SECONDS] * 3
    assert laptop.neighbours.trouble == (
        "does nothing and stands by for the installation with the lease ops-a/vlm-operator, which serves all namespaces too;"
        " two must not serve the same namespace: remove one, or give each its own with --namespace"
    )


async def test_a_look_that_fails_is_made_up_for_soon_and_told_when_it_matters(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[float, str]] = []

    async def passes(seconds: float) -> None:
        told.append((seconds, laptop.neighbours.trouble))
        world.now += seconds
        laptop.wire.broken = len(told) < 12
        if len(told) == 13:
            _acting(world, "other", A)

    monkeypatch.setattr("vlm_operator.runtime.neighbours.asyncio.sleep", passes)
    laptop = Process(world, "laptop", None)
    laptop.wire.slow = False
    await laptop.neighbours.watch()
    failed = "no word about other installations: the API server did not answer"
    assert told == [(LOOK_SECONDS, ""), *[(SOON_SECONDS, "")] * 10, (SOON_SECONDS, failed), (LOOK_SECONDS, "")]


@pytest.mark.parametrize(("asked", "pause"), [(0.0, SOON_SECONDS), (3.0, 3.0), (60.0, ACTS_SECONDS / 2)])
async def test_it_waits_as_it_is_asked_to_as_long_as_one_more_look_fits_in(
    world: World, monkeypatch: pytest.MonkeyPatch, asked: float, pause: float
) -> None:
    pauses: list[float] = []

    async def refuse() -> None:
        raise KubeError(429, "TooManyRequests", "slow down", retry_after=asked)

    async def passes(seconds: float) -> None:
        pauses.append(seconds)
        raise asyncio.CancelledError

    laptop = Process(world, "laptop", None)
    monkeypatch.setattr(laptop.neighbours, "look", refuse)
    monkeypatch.setattr("vlm_operator.runtime.neighbours.asyncio.sleep", passes)
    with pytest.raises(asyncio.CancelledError):
        await laptop.neighbours.watch()
    assert pauses == [pause]
