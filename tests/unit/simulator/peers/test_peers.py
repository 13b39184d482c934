"""What holds for every peer, whatever it goes by."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.simulator.peers.views import ENGINE, FakeView, fleet, look, requests, seen
from vlm_operator.simulator.peers.registry import FAMILIES, Variant, factory, variants
from vlm_operator.simulator.view import Seen

DAY = 86_400.0
MOST = 10_000_000
"""No answer to the loads of these tests is larger."""

VARIANTS = [
    *(one for family in FAMILIES for one in variants(family.name)[:3]),
    Variant(name="static:2", family="static", kind=variants("hpa")[0].kind, value=None, make=factory("static:2")),
]
every = pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)


@every
def test_without_a_replica_and_without_a_scrape_it_answers(variant: Variant) -> None:
    peer = variant.make(ENGINE)
    for step in range(100):
        now = step * peer.period_seconds
        assert peer.desired(look(now=now, in_flight=step, held=step)) >= 1
        assert peer.desired(look(now=now, starting=2, in_flight=step, held=step)) >= 1
        assert peer.desired(look(fleet(2, in_flight=9, running=9), now=now, in_flight=18, scraped=())) >= 1


@every
def test_a_day_without_load_leaves_at_least_one_and_no_more_than_before(variant: Variant) -> None:
    peer, size = variant.make(ENGINE), 5
    for step in range(int(DAY / peer.period_seconds)):
        now = step * peer.period_seconds
        size = peer.desired(look(fleet(size), now=now))
        assert 1 <= size <= 5


@every
def test_a_huge_load_is_answered_with_a_number_of_replicas(variant: Variant) -> None:
    peer = variant.make(ENGINE)
    huge = {"in_flight": 10**6, "running": 64, "waiting": 10**6 - 64, "kv_tokens": 1e5, "kv_usage": 1.0}
    live = fleet(4, **huge)
    for step in range(200):
        now = step * peer.period_seconds
        busy = [one._replace(busy_seconds=now, prompt_tokens=1e4 * now, first_tokens=int(now)) for one in live]
        assert 1 <= peer.desired(look(busy, now=now, in_flight=requests(live))) <= MOST


@every
def test_the_same_views_get_the_same_answers(variant: Variant) -> None:
    def told() -> list[int]:
        peer = variant.make(ENGINE)
        return [peer.desired(view) for view in _day_in_short(peer.period_seconds)]

    assert told() == told()


figures = st.builds(
    seen,
    number=st.integers(0, 40),
    in_flight=st.integers(0, 3000),
    running=st.integers(0, 64),
    waiting=st.integers(0, 2000),
    kv_tokens=st.floats(0, 1e5),
    kv_usage=st.floats(0, 1),
    prompt_tokens=st.floats(0, 1e9),
    first_tokens=st.integers(0, 10**6),
    busy_seconds=st.floats(0, 1e5),
)
fleets = st.lists(figures, max_size=8, unique_by=lambda one: one.number)


@given(
    variant=st.sampled_from(VARIANTS),
    views=st.lists(st.tuples(fleets, fleets, st.integers(0, 4), st.integers(0, 5000)), min_size=1, max_size=12),
    step=st.sampled_from([1.0, 7.5, 15.0, 61.0, 400.0]),
)
def test_whatever_is_seen_the_answer_is_at_least_one_and_bounded(
    variant: Variant, views: list[tuple[Sequence[Seen], Sequence[Seen], int, int]], step: float
) -> None:
    """Counters that go back and replicas that come and go: nothing like it is impossible in a fleet."""
    peer = variant.make(ENGINE)
    for index, (live, scraped, starting, held) in enumerate(views):
        now = index * step
        view = FakeView(
            now=now,
            live=live,
            starting=starting,
            in_flight=requests(live) + held,
            held=held,
            scraped=scraped,
            scraped_at=now if scraped else float("-inf"),
        )
        assert 1 <= peer.desired(view) <= MOST


def _day_in_short(period: float) -> Iterator[FakeView]:
    """Load that rises and falls over a fleet that changes with it."""
    for step in range(400):
        load = (step * 37) % 90
        live = fleet(
            2 + step // 100,
            in_flight=load,
            running=min(load, 64),
            waiting=max(0, load - 64),
            kv_tokens=900.0 * load,
            kv_usage=load / 100,
            prompt_tokens=1000.0 * step,
            first_tokens=step,
            busy_seconds=0.5 * period * step,
        )
        yield look(live, now=period * step, in_flight=requests(live), starting=step % 3)
