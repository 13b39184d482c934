"""Peers by name, and the table of variants."""

import pytest

from unit.simulator.peers.views import ENGINE, fleet, look
from vlm_operator.simulator.peers.registry import (
    FAMILIES,
    LEAST_TARGET,
    Family,
    Kind,
    factory,
    tuned,
    variants,
)
from vlm_operator.simulator.peers.settings import SettingsError
from vlm_operator.simulator.policies import OPERATOR, PEERS
from vlm_operator.simulator.replay import TARGETS, WORK_BASED


@pytest.mark.parametrize("name", [name.replace(":N", ":3") for name in PEERS])
def test_every_name_of_the_command_line_makes_a_peer(name: str) -> None:
    peer = factory(name)(ENGINE)
    assert peer.period_seconds > 0
    assert peer.desired(look(fleet(3))) >= 1


def test_each_call_makes_a_fresh_peer() -> None:
    make = factory("ray")
    assert make(ENGINE) is not make(ENGINE)


def test_a_value_after_the_colon_is_the_main_target() -> None:
    live = fleet(1, running=40)
    assert factory("keda:10")(ENGINE).desired(look(live)) == 4
    assert factory("keda:20")(ENGINE).desired(look(live)) == 2
    assert tuned("keda", 20)(ENGINE).desired(look(live)) == 2
    assert factory("static:4")(ENGINE).desired(look(live)) == 4


def asked_for(name: str, value: float) -> float:
    """Mean of what a peer wants in a quarter of an hour of a fleet of three under some load."""
    peer, wanted = factory(f"{name}:{value:g}")(ENGINE), []
    for step in range(int(900 / peer.period_seconds)):
        now = step * peer.period_seconds
        live = fleet(
            3,
            in_flight=22,
            running=20,
            waiting=2,
            kv_tokens=60_000.0,
            kv_usage=0.6,
            busy_seconds=0.7 * now,
            prompt_tokens=1000.0 * now,
            first_tokens=int(now),
        )
        wanted.append(peer.desired(look(live, now=now, in_flight=66)))
    return sum(wanted) / len(wanted)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_grid_reaches_from_more_replicas_to_fewer(family: Family) -> None:
    asked = [asked_for(family.name, value) for value in family.grid]
    # A spare is the only target of which more asks for more.
    assert asked == sorted(asked, reverse=family.name != "wva-v1")
    assert max(asked) > min(asked)


def test_each_peer_has_as_many_settings_as_the_others() -> None:
    assert {len(set(family.grid)) for family in FAMILIES} == {5}
    for family in FAMILIES:
        table = variants(family.name)
        assert [one.kind for one in table] == [Kind.SHIPPED, Kind.DOCUMENTED, *[Kind.TUNED] * 5]
        assert len({one.name for one in table}) == 7
        assert all(one.make(ENGINE).desired(look(fleet(2))) >= 1 for one in table)


@pytest.mark.parametrize(
    ("spelled", "message"),
    [
        (
            "hpaa",
            (
                "there is no policy 'hpaa'; there are work-based, targets, hpa, hpa-running, hpa-gpu, keda, knative, kubeai, "
                "ray, wva, wva-v1, dynamo, dynamo-latency, aibrix, aibrix-kpa, static:N"
            ),
        ),
        ("", "there is no policy ''; there are work-based, targets, hpa,"),
        ("ray:", "the policy 'ray:' needs a number from 0.001 to 1e+09 after the colon: ongoing requests per replica"),
        ("ray:two", "the policy 'ray:two' needs a number from 0.001 to 1e+09 after the colon"),
        ("ray:0", "the policy 'ray:0' needs a number from 0.001 to 1e+09 after the colon"),
        ("ray:nan", "the policy 'ray:nan' needs a number from 0.001 to 1e+09 after the colon"),
        (f"ray:{'9' * 300}", "needs a number from 0.001 to 1e+09 after the colon"),
        (
            "wva-v1:5.1",
            "the policy 'wva-v1:5.1' needs a number from 0.001 to 5 after the colon: least spare of a queue",
        ),
        ("static", "the policy 'static' needs a number of replicas from 1 to 1000, such as static:3"),
        ("static:0", "the policy 'static:0' needs a number of replicas from 1 to 1000"),
        ("static:2.5", "the policy 'static:2.5' needs a number of replicas from 1 to 1000"),
        ("static:1001", "the policy 'static:1001' needs a number of replicas from 1 to 1000"),
        *((f"static:{'9' * digits}", "needs a number of replicas from 1 to 1000") for digits in (300, 5000)),
        ("static:٣", "the policy 'static:٣' needs a number of replicas from 1 to 1000"),
    ],
)
def test_names_that_there_are_not(spelled: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        factory(spelled)
    assert message in str(caught.value)


def test_the_names_that_are_shown_are_those_that_there_are() -> None:
    assert OPERATOR == (WORK_BASED, TARGETS)
    assert (*(family.name for family in FAMILIES), "static:N") == PEERS


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_least_and_the_largest_target_make_a_peer_that_wants_something(family: Family) -> None:
    assert all(asked_for(family.name, value) >= 1 for value in (LEAST_TARGET, family.most))
