"""Signals that are missing never scale down, and a restart forgets nothing that a smaller size has to be judged by."""

import json
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from unit.scaling.scenes import NOON, SCRAPE, TICK, Fleet, by_targets, by_work, queue, replicas, run, sizes, ticks
from vlm_operator.scaling.decide import decide
from vlm_operator.scaling.decision import Decision, Reason
from vlm_operator.scaling.policy import Policy, Signal, Target
from vlm_operator.scaling.signals import Quality, Signals
from vlm_operator.scaling.state import NEW, Learned, State

POLICY = by_work()
CALM = 3900.0
"""Long enough for windows of an hour to be full."""


def settled(size: int = 12, load: float = 8000.0) -> tuple[Fleet, State, float]:
    """A fleet that was watched for long, and the time."""
    fleet, state = _watched(size, load)
    return deepcopy(fleet), state, NOON + CALM


@cache
def _watched(size: int, load: float) -> tuple[Fleet, State]:
    fleet = Fleet(size=size)
    _, state = run(POLICY, fleet, seconds=CALM, load=lambda _: load)
    return fleet, state


def blind(fleet: Fleet) -> Fleet:
    fleet.silent = frozenset(range(fleet.size))
    return fleet


def test_while_all_is_seen_a_fleet_that_is_too_large_shrinks() -> None:
    fleet, state, now = settled()
    decision, _ = decide(POLICY, state, fleet.seen(now, 8000), now)
    assert decision.replicas < fleet.size


def test_without_any_signal_the_size_stays_and_rises_after_three_minutes() -> None:
    fleet, state, now = settled()
    _, state = run(POLICY, fleet, seconds=600, load=lambda _: 24000, state=state, start=now)
    needed = max(item.value for item in state.windows.wanted)
    blind(fleet)
    fleet.size = 3
    decisions, _ = run(POLICY, fleet, seconds=900, load=lambda _: 0, state=state, start=now + 600)
    assert sizes(decisions[9:33]) == [3] * 24
    assert decisions[20].reason == Reason.BLIND
    assert 3 < decisions[60].replicas <= needed
    assert "no replica can be read" in decisions[60].message
    assert min(sizes(decisions)) >= 3


def test_the_floor_of_the_blind_is_what_was_enough_for_nearly_all_of_an_hour() -> None:
    _, state, now = settled()
    high = [item.value for item in state.windows.wanted]
    fleet = blind(Fleet(size=1, since=now))
    decision, _ = decide(POLICY, state, fleet.seen(now + 400, 0), now + 400)
    assert min(high) <= decision.replicas <= max(high)


def test_in_an_outage_of_ten_minutes_nothing_scales_down_and_afterwards_the_gap_is_filled_from_the_counters() -> None:
    fleet, state, now = settled()
    everyone = frozenset(range(fleet.size))
    bins = len(state.windows.lane.rates)
    fleet.silent = everyone
    decisions, state = run(POLICY, fleet, seconds=600, state=state, start=now)
    assert min(sizes(decisions[8:])) >= fleet.size
    fleet.silent = frozenset()
    _, state = run(POLICY, fleet, seconds=60, state=state, start=now + 600)
    assert len(state.windows.lane.rates) == min(240, bins + 44)
    assert state.windows.lane.rates[-44:] == pytest.approx([8000] * 44)


def test_no_replica_at_all_is_no_reason_to_want_none() -> None:
    fleet, state, now = settled()
    decision, state = decide(POLICY, state, Signals(size=fleet.size), now)
    assert decision.replicas == fleet.size
    decision, _ = decide(POLICY, state, Signals(size=1), now + 300)
    assert decision.replicas > 1


SPOILT: list[tuple[dict[str, Any], Quality]] = [
    ({"waiting": None}, Quality.MISSING),
    ({"waiting": float("nan")}, Quality.NOT_A_NUMBER),
    ({"running": -1}, Quality.NEGATIVE),
    ({"kv_usage": 3.0}, Quality.IMPOSSIBLE),
    ({"prompt_tokens": None}, Quality.MISSING),
]


@pytest.mark.parametrize(("figures", "quality"), SPOILT)
def test_a_figure_that_cannot_be_used_freezes_scaling_down_and_is_shown(
    figures: dict[str, Any], quality: Quality
) -> None:
    fleet, state, now = settled()
    fleet.spoilt = figures
    decisions, _ = run(POLICY, fleet, seconds=60, state=state, start=now)
    assert decisions[-1].replicas == fleet.size
    assert decisions[-1].limits[0].name == Reason.PARTIAL
    assert any(flaw.quality == quality and flaw.count == fleet.size for flaw in decisions[-1].flaws)
    assert "nothing scales down" in decisions[-1].message


def test_a_front_end_that_is_no_longer_seen_freezes_scaling_down_where_it_has_work() -> None:
    for images, frozen in ((2.0, True), (0.0, False)):
        fleet = Fleet(size=20, front_end=1, images_per_request=images)
        _, state = run(POLICY, fleet, seconds=900)
        fleet.spoilt = {"in_flight": None}
        decisions, _ = run(POLICY, fleet, seconds=60, state=state, start=NOON + 900)
        assert (decisions[-1].reason == Reason.PARTIAL) is frozen


def test_busy_gpus_alone_raise_nothing_where_the_engines_cannot_be_read() -> None:
    target = Target(signal=Signal.GPU_UTILIZATION, value=0.1)
    fleet = blind(Fleet(size=4, gpu=1.0))
    decisions, _ = run(by_work(targets=(target,)), fleet, seconds=60)
    assert decisions[-1].replicas == 4


@pytest.mark.parametrize(("size", "silent"), [(5, 1), (10, 3), (23, 4)])
def test_replicas_that_are_not_read_count_as_the_others_do_and_nothing_scales_down(size: int, silent: int) -> None:
    fleet, state, now = settled(size=size, load=size * 2500.0)
    before = state.windows.lane.rates[-1]
    fleet.silent = frozenset(range(silent))
    decisions, state = run(POLICY, fleet, seconds=3900, load=lambda _: size * 2500.0, state=state, start=now)
    assert min(sizes(decisions[9:])) >= size
    assert state.windows.lane.rates[-1] == pytest.approx(before)
    assert [(flaw.signal, flaw.quality, flaw.count) for flaw in decisions[-1].flaws] == [
        ("sample", Quality.STALE, silent)
    ]


def test_one_silent_replica_of_a_fleet_that_is_too_large_freezes_scaling_down() -> None:
    fleet, state, now = settled(size=10)
    fleet.silent = frozenset({3})
    decisions, _ = run(POLICY, fleet, seconds=600, state=state, start=now)
    assert decisions[-1].replicas == 10
    assert decisions[-1].limits[0].name == Reason.PARTIAL


def test_with_some_replicas_silent_the_others_still_scale_up() -> None:
    fleet, state, now = settled(size=10)
    fleet.silent = frozenset(range(5))
    decisions, _ = run(POLICY, fleet, seconds=120, load=lambda _: 160_000, state=state, start=now)
    assert decisions[-1].replicas > 15


def test_samples_from_the_future_are_impossible_and_not_new() -> None:
    fleet, state, now = settled()
    fleet.spoilt = {"time": now + 5000}
    decisions, _ = run(POLICY, fleet, seconds=120, state=state, start=now)
    assert decisions[-1].reason == Reason.BLIND
    assert decisions[-1].flaws[0].quality == Quality.IMPOSSIBLE


def test_targets_that_all_say_nothing_leave_the_size_and_later_raise_it() -> None:
    policy, state = by_targets(queue(100)), NEW
    decisions: list[Decision] = []
    for second in range(0, 400, 5):
        silent = second >= 20
        size = 2 if silent else 4
        signals = Signals(size=size, replicas=replicas(*[None if silent else 200] * size, time=NOON + second))
        decision, state = decide(policy, state, signals, NOON + second)
        decisions.append(decision)
    assert sizes(decisions[12:36]) == [2] * 24
    assert (decisions[-1].replicas, decisions[-1].reason) == (6, Reason.PACE)


# -- restarts ----------------------------------------------------------------------------------------------------------


def restarted(state: State) -> State:
    """What is left after a restart: only what went through the status."""
    return State(learned=Learned.from_json(json.loads(json.dumps(state.learned.as_json()))))


def wave(now: float) -> float:
    """A load with steps."""
    return 8000.0 + 6000.0 * (int(now // 700) % 3)


class Recorded:
    """Signals as a database of metrics keeps them: those of each scrape, to be read once more."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.fleet = policy, Fleet(size=14)
        self.signals: dict[float, Signals] = {}

    def live(self, state: State, *, seconds: float, start: float) -> tuple[list[Decision], State]:
        """Decide at every tick, and keep what was seen."""
        decisions = []
        for now in ticks(start, seconds):
            signals = self.signals[now] = self.fleet.seen(now, wave(now))
            decision, state = decide(self.policy, state, signals, now)
            decisions.append(decision)
        return decisions, state

    def rebuilt(self, state: State, *, now: float, step: float) -> State:
        """The windows from the last hour, and a little more for what lies before its first sample."""
        for past in ticks(now - 3600 - 2 * SCRAPE, 3600 + 2 * SCRAPE, step):
            _, state = decide(self.policy, state, self.signals[past], past)
        return state


def test_after_a_restart_nothing_scales_down_until_the_windows_are_complete() -> None:
    tape = Recorded(POLICY)
    _, state = tape.live(NEW, seconds=CALM, start=NOON)
    tape.fleet.size = 30
    decisions, _ = run(POLICY, tape.fleet, seconds=3600 + 120, state=restarted(state), start=NOON + CALM)
    assert min(sizes(decisions[: int(3600 / TICK) - 6])) == 30
    assert decisions[200].limits[0].name == Reason.REBUILDING
    assert decisions[-1].replicas < 30


def test_a_new_deployment_waits_only_for_its_window_to_scale_down() -> None:
    decisions, _ = run(POLICY, Fleet(size=30), seconds=1200)
    frozen = [decision.replicas for decision in decisions if decision.replicas == 30]
    assert 900 / TICK <= len(frozen) <= 960 / TICK


@pytest.mark.parametrize("step", [SCRAPE, TICK])
def test_from_rebuilt_windows_the_size_differs_by_one_at_most(step: float) -> None:
    tape = Recorded(POLICY)
    _, state = tape.live(NEW, seconds=CALM, start=NOON)
    now = NOON + CALM
    again = tape.rebuilt(restarted(state), now=now, step=step)
    assert again.learned.gains == pytest.approx(state.learned.gains, rel=1e-4)
    assert again.learned.lane.work == pytest.approx(state.learned.lane.work, rel=1e-4)
    for moment in ticks(now, 1800):
        signals = tape.fleet.seen(moment, wave(moment))
        before, state = decide(POLICY, state, signals, moment)
        after, again = decide(POLICY, again, signals, moment)
        assert abs(before.wanted - after.wanted) <= 1, moment
        assert abs(before.replicas - after.replicas) <= 1, moment


def test_what_was_written_a_while_ago_is_learned_up_to_now_while_the_windows_are_rebuilt() -> None:
    tape = Recorded(POLICY)
    _, early = tape.live(NEW, seconds=CALM - 900, start=NOON)
    _, state = tape.live(early, seconds=900, start=NOON + CALM - 900)
    again = tape.rebuilt(restarted(early), now=NOON + CALM, step=TICK)
    assert again.learned.gains == pytest.approx(state.learned.gains, rel=0.05)
    assert again.learned.until == state.learned.until


def test_the_lasting_state_is_small_and_comes_back_as_it_was() -> None:
    _, state, _ = settled()
    full = replace(state.learned, starts=tuple(range(1000, 1016)), gains=(1.23456, 7.65432), started_until=NOON)
    text = json.dumps(full.as_json())
    assert len(text) <= 2048
    assert Learned.from_json(json.loads(text)).as_json() == full.as_json()


BROKEN: list[Any] = [
    {},
    {"since": "yesterday", "gains": [1], "lane": "fast", "starts": {"a": 1}, "until": None},
    {"since": -1, "gains": [0, 1], "lane": [1], "starts": [None], "until": float("nan")},
    {"gains": [True, False], "lane": [1, "2"]},
]


@pytest.mark.parametrize("stored", BROKEN)
def test_what_cannot_be_read_of_it_is_learned_anew(stored: dict[str, Any]) -> None:
    assert Learned.from_json(stored) == Learned()


@pytest.mark.parametrize(
    ("held", "quality"),
    [
        (float("nan"), Quality.NOT_A_NUMBER),
        (float("inf"), Quality.NOT_A_NUMBER),
        (-3.0, Quality.NEGATIVE),
        (1e12, Quality.IMPOSSIBLE),
    ],
)
def test_requests_before_the_replicas_that_cannot_be_told_freeze_scaling_down(held: float, quality: Quality) -> None:
    fleet, state, now = settled()
    decision, _ = decide(POLICY, state, replace(fleet.seen(now, 8000), held=held), now)
    assert decision.replicas == fleet.size
    assert decision.limits[0].name == Reason.PARTIAL
    assert [(flaw.signal, flaw.quality) for flaw in decision.flaws] == [("held", quality)]


def test_replicas_of_which_the_first_interval_is_unknown_do_not_count_as_the_others_do() -> None:
    """What they carry was with the others until now: counted once more it would ask for still more replicas."""
    fleet, state, now = settled(size=4, load=12_000.0)
    fleet.seen(now, 12_000.0)
    for new in range(4, 8):
        fleet.samples[new] = replace(fleet.samples[0], prompt_tokens=5e5)
    fleet.size = 8
    _, state = decide(POLICY, state, fleet.seen(now, 12_000.0), now)
    assert state.windows.lane.rates[-1] == pytest.approx(12_000.0)
