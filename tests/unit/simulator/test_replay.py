"""Whole replays: the operator's own decisions and plans, and those of others, on simulated replicas."""

import numpy as np
import pytest

from unit.simulator.traces_made import at_random
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.scaling.policy import PolicyError
from vlm_operator.simulator.physics import Physics
from vlm_operator.simulator.replay import default_spec, replay, starting_size
from vlm_operator.simulator.result import Result
from vlm_operator.simulator.routing import Routing
from vlm_operator.simulator.scraping import Trouble

PHYSICS = Physics(cold_start_seconds=60.0)
UP_AND_DOWN = at_random([(1200.0, 5.0), (1200.0, 40.0), (4800.0, 5.0)], prompt_tokens=400.0, output_tokens=50.0)
"""Half a replica's work, then four replicas', then half a one's again."""


def spec(**sections: object) -> VLMDeploymentSpec:
    known = default_spec().model_dump(by_alias=True, exclude_unset=True)
    return VLMDeploymentSpec.model_validate(known | sections)


def on_time(result: Result, since: float = 0.0) -> float:
    counted = result.waits[result.arrivals >= since]
    return float((counted <= 2.0).mean())


def totals(result: Result) -> np.ndarray:
    there = result.series
    whole: np.ndarray = there.serving + there.starting + there.standby + there.draining
    return whole


@pytest.mark.parametrize("routing", list(Routing))
def test_replicas_follow_the_load_up_and_down(routing: Routing) -> None:
    result = replay(UP_AND_DOWN, PHYSICS, "work-based", routing=routing)
    times, serving = result.series.times, result.series.serving
    busy = serving[(times > 1800) & (times < 2400)]
    assert busy.min() >= 5
    assert serving[-1] <= 3
    assert on_time(result) >= 0.95
    assert (totals(result) == serving + result.series.starting + result.series.draining).all()
    assert (result.series.in_flight >= 0).all()
    assert np.isfinite(result.waits).all()


def test_a_replay_is_the_same_for_a_seed() -> None:
    first, second, other = (replay(UP_AND_DOWN, PHYSICS, "work-based", seed=seed) for seed in (3, 3, 4))
    assert first.waits.tolist() == second.waits.tolist()
    assert first.changes == second.changes
    assert first.waits.tolist() != other.waits.tolist()


def test_a_replica_on_standby_serves_at_once_where_others_load() -> None:
    """The same replicas in all: with a pool, one of them is warm when the load rises, and is promoted."""
    slow = Physics(cold_start_seconds=240.0)
    pooled = replay(UP_AND_DOWN, slow, "work-based", spec=spec(warmPool={"size": 2, "mode": "Standby"}, replicas=3))
    there = pooled.series
    assert there.standby[(there.times > 1100) & (there.times < 1200)].max() == 2
    rise = (there.times >= 1200) & (there.times < 1320)
    assert there.standby[rise].min() == 0
    assert there.serving[rise].max() >= 5
    assert there.standby[-1] == 2


def test_the_ceiling_of_the_spec_holds_for_all_roles() -> None:
    bounded = spec(scaling={"minReplicas": 2, "maxReplicas": 4}, warmPool={"size": 1, "mode": "Standby"}, replicas=2)
    result = replay(UP_AND_DOWN, PHYSICS, "work-based", spec=bounded)
    there = result.series
    assert (there.serving + there.starting + there.standby).max() == 4
    assert there.wanted.min() == 2


def test_targets_of_the_spec_decide_where_they_are_asked_for() -> None:
    asked = spec(scaling={"minReplicas": 1, "maxReplicas": 9, "targets": {"queueDepth": 2}}, replicas=2)
    result = replay(UP_AND_DOWN, PHYSICS, "targets", spec=asked)
    assert result.series.wanted.max() > 2
    with pytest.raises(PolicyError, match="there is no target"):
        replay(UP_AND_DOWN, PHYSICS, "targets")


def test_nothing_scales_down_while_nothing_is_scraped() -> None:
    blind = Trouble(outages=((2200.0, 2800.0),))
    result = replay(UP_AND_DOWN, PHYSICS, "work-based", trouble=blind)
    assert not [change for change in result.changes if 2215 < change.time < 2800 and change.after < change.before]
    assert result.series.serving[-1] <= 3


def test_a_crashed_replica_is_replaced_and_its_requests_are_served() -> None:
    result = replay(UP_AND_DOWN, PHYSICS, "work-based", trouble=Trouble(crashes=(2000.0,)))
    quiet = replay(UP_AND_DOWN, PHYSICS, "work-based")
    at = np.searchsorted(result.series.times, 2001.0)
    assert result.series.starting[at] >= 1
    assert np.isfinite(result.waits).all()
    assert on_time(result) >= on_time(quiet) - 0.05


def test_a_crash_of_the_only_replica_holds_requests_until_the_next_one() -> None:
    alone = spec(scaling={"minReplicas": 1, "maxReplicas": 1}, replicas=1)
    calm = at_random([(600.0, 2.0)])
    result = replay(calm, PHYSICS, "work-based", spec=alone, trouble=Trouble(crashes=(300.0,)))
    assert result.waits.max() == pytest.approx(60.0, rel=0.3)
    assert result.series.serving[-1] == 1


def test_lost_scrapes_change_little() -> None:
    result = replay(UP_AND_DOWN, PHYSICS, "work-based", trouble=Trouble(lost_share=0.1))
    assert on_time(result) >= 0.93


def test_static_replicas_stay() -> None:
    result = replay(UP_AND_DOWN, PHYSICS, "static:6")
    assert set(result.series.wanted.tolist()) == {6}
    assert result.changes == ()
    assert result.series.serving.min() == 6
    assert result.replica_seconds == pytest.approx(6 * UP_AND_DOWN.seconds)


def test_static_replicas_stay_whatever_the_bounds() -> None:
    bounded = spec(scaling={"minReplicas": 2, "maxReplicas": 4})
    for size in (1, 6):
        assert set(replay(UP_AND_DOWN, PHYSICS, f"static:{size}", spec=bounded).series.serving.tolist()) == {size}


@pytest.mark.parametrize("policy", ["work-based", "ray"])
def test_the_size_to_start_with_is_within_bounds(policy: str) -> None:
    for replicas, first in ((1, 2), (9, 4)):
        bounded = spec(scaling={"minReplicas": 2, "maxReplicas": 4}, replicas=replicas)
        assert replay(UP_AND_DOWN, PHYSICS, policy, spec=bounded).series.serving[0] == first


def test_targets_on_the_busy_share_of_the_gpus_scale() -> None:
    by_gpu = {"maxReplicas": 12, "policy": "Targets", "targets": {"gpuUtilization": 70}}
    result = replay(UP_AND_DOWN, PHYSICS, "targets", spec=spec(scaling=by_gpu, replicas=2))
    times, serving = result.series.times, result.series.serving
    assert serving[(times > 1800) & (times < 2400)].min() >= 4
    assert serving[-1] < serving.max()


def test_a_target_on_busy_gpus_does_not_keep_a_fleet_from_shrinking() -> None:
    beside = {"maxReplicas": 12, "targets": {"gpuUtilization": 90}}
    assert replay(UP_AND_DOWN, PHYSICS, "work-based", spec=spec(scaling=beside, replicas=2)).series.serving[-1] <= 3


def test_gpus_of_a_replica_are_those_of_the_spec() -> None:
    assert replay(UP_AND_DOWN, PHYSICS, "static:2", spec=spec(parallelism={"tensor": 4})).gpus_per_replica == 4


def test_the_size_to_start_with_carries_the_first_ten_minutes() -> None:
    calm = at_random([(600.0, 5.0), (600.0, 100.0)])
    assert starting_size(calm, PHYSICS) == 2
    assert starting_size(at_random([(600.0, 100.0)]), PHYSICS) == pytest.approx(100 * 0.115 * 1.6, abs=1)


def test_progress_is_told_in_seconds_of_the_trace() -> None:
    told: list[float] = []
    replay(UP_AND_DOWN, PHYSICS, "static:2", progress=told.append)
    assert told == sorted(told)
    assert told[-1] == pytest.approx(UP_AND_DOWN.seconds, abs=60)
