"""Ray Serve reproduces its own tests.

Figures: ray-project/ray `python/ray/serve/tests/unit/test_autoscaling_policy.py`. The least is one replica here, where
those tests go on to none.
"""

import pytest

from unit.simulator.peers.views import fleet, look
from vlm_operator.simulator.peers.ray import Ray, RaySettings
from vlm_operator.simulator.peers.settings import SettingsError


def at_once(**given: float) -> Ray:
    """Without delays."""
    return Ray(RaySettings(**{"upscale_delay_seconds": 0.0, "downscale_delay_seconds": 0.0, **given}))


@pytest.mark.parametrize(("factor", "wanted"), [(10.0, 10), (0.5, 1)])
def test_from_none_it_goes_up_at_once_by_its_factor(factor: float, wanted: int) -> None:
    """test_scaling_factor_scale_up_from_0_replicas."""
    assert Ray(RaySettings(upscaling_factor=factor)).decide(0.0, requests=1, running=0, size=0) == wanted


def test_while_none_runs_yet_what_was_wanted_stays() -> None:
    peer = Ray(RaySettings())
    assert [peer.decide(0.0, requests=requests, running=0, size=5) for requests in (0, 1, 1000)] == [5, 5, 5]


def test_the_delay_begins_anew_after_each_step() -> None:
    peer = Ray(RaySettings(target=1))
    steps = [
        peer.decide(1.0 * now, requests=9, running=n, size=n) for now, n in [(0, 1), (30, 1), (31, 2), (60, 2), (61, 2)]
    ]
    assert steps == [1, 9, 2, 2, 9]


@pytest.mark.parametrize(("requests", "wanted"), [(20, 4), (100, 20), (10, 2)])
def test_one_replica_with_all_requests_counts_like_all_of_them(requests: float, wanted: int) -> None:
    """test_single_replica_receives_all_requests."""
    assert at_once(target=5).decide(0.0, requests=requests, running=4, size=4) == wanted


def test_replicas_that_start_slowly() -> None:
    """test_replicas_delayed_startup."""
    peer = at_once(target=1, downscale_delay_seconds=100_000)
    told = [(100, 1, 1), (100, 1, 100), (123, 3, 100), (10, 4, 123)]
    assert [peer.decide(1.0 * step, requests=r, running=n, size=s) for step, (r, n, s) in enumerate(told)] == [
        100, 100, 123, 123,
    ]  # fmt: skip


def test_a_direction_must_last() -> None:
    """test_upscale_downscale_delay: 30 s up and 600 s down, begun anew after a look the other way."""
    peer = Ray(RaySettings(target=1))
    assert {peer.decide(0.1 * tick, requests=2, running=1, size=1) for tick in range(300)} == {1}
    assert peer.decide(30.0, requests=2, running=1, size=1) == 2
    assert {peer.decide(31 + 0.1 * tick, requests=0, running=2, size=2) for tick in range(6000)} == {2}
    assert peer.decide(631.0, requests=0, running=2, size=2) == 1
    assert {peer.decide(700 + 0.1 * tick, requests=2, running=1, size=1) for tick in range(150)} == {1}
    assert peer.decide(715.0, requests=1, running=1, size=1) == 1
    assert {peer.decide(716 + 0.1 * tick, requests=2, running=1, size=1) for tick in range(300)} == {1}
    assert peer.decide(746.0, requests=2, running=1, size=1) == 2


@pytest.mark.parametrize(("delay", "wanted"), [(30.0, {1, 2}), (0.0, {1, 2})])
def test_requests_that_alternate_change_nothing_with_a_delay(delay: float, wanted: set[int]) -> None:
    """test_fluctuating_ongoing_requests: 100 requests for one replica, then 40 for two, with a target of 50."""
    peer = Ray(RaySettings(target=50, upscale_delay_seconds=delay, downscale_delay_seconds=delay))
    found = set()
    for trial in range(1000):
        requests, size = (100, 1) if trial % 2 == 0 else (40, 2)
        answer = peer.decide(0.1 * trial, requests=requests, running=size, size=size)
        found.add(answer)
        assert answer == (size if delay else 3 - size)
    assert found == wanted


def test_a_small_factor_goes_down_by_one_at_least() -> None:
    """test_scaling_factor_scale_down_to_0_replicas, with a factor of 0.2: five steps instead of none."""
    peer, size, sizes = at_once(downscaling_factor=0.2), 5, []
    for step in range(5):
        size = peer.decide(1.0 * step, requests=0, running=size, size=size)
        sizes.append(size)
    assert sizes == [4, 3, 2, 1, 1]


def test_requests_are_averaged_over_half_a_minute_and_reported_every_ten_seconds() -> None:
    peer = at_once(target=1)
    # Nine seconds of 4 are not known before the tenth: a mean of (1 + 9 * 4 + 4) / 11 then.
    load = [1] + [4] * 12
    assert [peer.desired(look(fleet(1), now=1.0 * now, in_flight=count)) for now, count in enumerate(load)] == (
        [1] * 10 + [4] * 3
    )


def test_a_target_is_a_number_above_zero() -> None:
    with pytest.raises(SettingsError, match=r"RaySettings\.target is 0; it must be a number greater than 0"):
        RaySettings(target=0)
