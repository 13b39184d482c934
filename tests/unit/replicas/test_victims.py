"""The order in which replicas are given up is policy: change it here first."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.replicas.examples import NOW, TROUBLE, replica
from vlm_operator.replicas.facts import Replica
from vlm_operator.replicas.victims import choose_victims

HEALTHY = replica(1)

GOES_BEFORE_A_HEALTHY_ONE: list[tuple[dict[str, Any], str]] = [
    ({"scheduled": False}, "it holds no GPU yet"),
    ({"trouble": TROUBLE}, "its engine fails"),
    ({"ready": False}, "it is not ready"),
    ({"revision": "old"}, "its revision is outdated"),
    ({"created_at": NOW}, "it is the youngest"),
    ({"slot": 2}, "its slot is the highest"),
    ({"name": "m-new-2"}, "its name comes last"),
]


@pytest.mark.parametrize(
    ("change", "reason"), GOES_BEFORE_A_HEALTHY_ONE, ids=[row[1] for row in GOES_BEFORE_A_HEALTHY_ONE]
)
def test_one_difference_decides(change: dict[str, Any], reason: str) -> None:
    worse = replace(HEALTHY, **change)
    (victim,) = choose_victims([HEALTHY, worse], surplus=1, revision="new")
    assert (victim.replica, victim.reason) == (worse, reason)


@pytest.mark.parametrize("index", range(len(GOES_BEFORE_A_HEALTHY_ONE) - 1))
def test_an_earlier_difference_outweighs_all_later_ones(index: int) -> None:
    worst = replace(HEALTHY, **GOES_BEFORE_A_HEALTHY_ONE[index][0])
    changes: dict[str, Any] = {}
    for change, _ in GOES_BEFORE_A_HEALTHY_ONE[index + 1 :]:
        changes |= change
    (victim,) = choose_victims([replace(HEALTHY, **changes), worst], surplus=1, revision="new")
    assert victim.replica == worst


def test_the_reason_tells_a_victim_from_the_best_that_stays() -> None:
    victims = choose_victims([HEALTHY, replica(0), replica(5, scheduled=False), replica(6)], surplus=2, revision="new")
    assert [(v.replica.slot, v.reason) for v in victims] == [(5, "it holds no GPU yet"), (6, "it is the youngest")]


def test_when_nothing_stays_none_are_wanted() -> None:
    assert [v.reason for v in choose_victims([HEALTHY], surplus=1, revision="new")] == ["none are wanted"]


replicas = st.lists(
    st.builds(
        replica,
        st.integers(0, 9),
        revision=st.sampled_from(["new", "old", "older"]),
        scheduled=st.booleans(),
        ready=st.booleans(),
        trouble=st.none() | st.just(TROUBLE),
        created_at=st.integers(0, 3),
    ),
    unique_by=lambda r: r.name,
    max_size=8,
)


@settings(max_examples=50)
@given(replicas, st.integers(0, 9), st.randoms(use_true_random=False))
def test_the_answer_does_not_depend_on_the_order_of_the_facts(found: list[Replica], surplus: int, random: Any) -> None:
    victims = choose_victims(found, surplus=surplus, revision="new")
    assert victims == choose_victims(random.sample(found, len(found)), surplus=surplus, revision="new")
    assert len(victims) == min(surplus, len(found))


@settings(max_examples=40)
@given(replicas, st.integers(1, 8))
def test_one_more_victim_leaves_the_others_what_they_are(found: list[Replica], surplus: int) -> None:
    fewer = choose_victims(found, surplus=surplus - 1, revision="new")
    more = choose_victims(found, surplus=surplus, revision="new")
    assert [v.replica for v in fewer] == [v.replica for v in more][: len(fewer)]
