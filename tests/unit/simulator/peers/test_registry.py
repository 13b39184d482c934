"""Peers by name, and the table of variants."""

import pytest

from unit.simulator.peers.views import ENGINE, fleet, look
from vlm_operator.simulator.peers.registry import FAMILIES, Family, Kind, factory, names, tuned, variants
from vlm_operator.simulator.peers.settings import SettingsError

COMMAND_LINE = ("hpa", "keda", "knative", "kubeai", "ray", "wva", "dynamo", "aibrix", "static:3")


@pytest.mark.parametrize("name", COMMAND_LINE)
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
        ("hpaa", "there is no policy 'hpaa'; there are hpa, hpa-running, hpa-gpu, keda,"),
        ("", "there is no policy ''; there are hpa,"),
        ("ray:", "the policy 'ray:' needs a number greater than 0 after the colon: ongoing requests per replica"),
        ("ray:two", "the policy 'ray:two' needs a number greater than 0 after the colon"),
        ("ray:0", "the policy 'ray:0' needs a number greater than 0 after the colon"),
        ("ray:inf", "the policy 'ray:inf' needs a number greater than 0 after the colon"),
        ("static", "the policy 'static' needs a number of replicas from 1 to 1000, such as static:3"),
        ("static:0", "the policy 'static:0' needs a number of replicas from 1 to 1000"),
        ("static:1001", "the policy 'static:1001' needs a number of replicas from 1 to 1000"),
        ("static:" + "9" * 5000, "needs a number of replicas from 1 to 1000"),
        ("static:2.5", "the policy 'static:2.5' needs a number of replicas from 1 to 1000"),
    ],
)
def test_names_that_there_are_not(spelled: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        factory(spelled)
    assert message in str(caught.value)


def test_names_are_shown_with_the_form_of_static() -> None:
    assert names()[-1] == "static:N"
    assert set(COMMAND_LINE) - {"static:3"} <= set(names())
