"""What a spec asks for becomes a policy; what nothing can follow is refused in words."""

from typing import Any

import pytest
from pydantic import ValidationError

from unit.scaling.scenes import by_targets, by_work, queue
from vlm_operator.api.scaling import Scaling, WarmPool
from vlm_operator.scaling.from_spec import BY_WORK, HPA, policy_of
from vlm_operator.scaling.policy import Pace, PolicyError, Pool, Select, Signal, Target

EVERYTHING = {
    "policy": "Targets",
    "mode": "Advisory",
    "minReplicas": 2,
    "maxReplicas": 9,
    "targets": {
        "queueDepth": 4,
        "runningRequests": 60,
        "gpuUtilization": 85,
        "kvCacheUtilization": 90,
        "custom": [{"name": "jobs", "query": "sum(jobs)", "target": "1500m"}],
    },
    "behavior": {
        "scaleUp": {"stabilizationWindowSeconds": 30, "tolerance": "0.05"},
        "scaleDown": {"selectPolicy": "Min", "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]},
    },
    "schedules": [{"schedule": "0 7 * * 1-5", "timeZone": "Europe/Berlin", "minReplicas": 3}],
}


def test_a_spec_with_everything() -> None:
    policy = policy_of(Scaling.model_validate(EVERYTHING), WarmPool.model_validate({"size": 2, "mode": "Standby"}))
    assert (policy.work_based, policy.advisory, policy.min_replicas, policy.max_replicas) == (False, True, 2, 9)
    assert policy.pool == Pool(size=2, standby=True)
    assert {target.name: target.value for target in policy.targets} == {
        "queueDepth": 4,
        "runningRequests": 60,
        "gpuUtilization": 0.85,
        "kvCacheUtilization": 0.9,
        "custom/jobs": 1.5,
    }
    up, down = policy.behavior.up, policy.behavior.down
    assert (up.window_seconds, up.tolerance, up.paces) == (30, 0.05, HPA.up.paces)
    assert (down.window_seconds, down.select) == (300, Select.MIN)
    assert down.paces == (Pace(percent=False, value=1, period_seconds=60),)
    assert [(one.cron, one.time_zone, one.min_replicas) for one in policy.schedules] == [
        ("0 7 * * 1-5", "Europe/Berlin", 3)
    ]


def test_a_spec_with_nothing_is_work_based_and_active() -> None:
    policy = policy_of(Scaling.model_validate({"maxReplicas": 8}))
    assert (policy.work_based, policy.advisory, policy.min_replicas) == (True, False, 1)
    assert (policy.behavior, policy.pool, policy.targets) == (BY_WORK, Pool(), ())


def test_what_a_behavior_leaves_out_is_that_of_the_policy() -> None:
    behavior = {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}, "maxReplicas": 8}
    policy = policy_of(Scaling.model_validate(behavior))
    assert policy.behavior.down.window_seconds == 60
    assert (policy.behavior.down.paces, policy.behavior.up) == (BY_WORK.down.paces, BY_WORK.up)


REFUSED_BY_THE_RESOURCE: list[tuple[dict[str, Any], str]] = [
    ({"minReplicas": 9, "maxReplicas": 8}, "minReplicas must not be greater than maxReplicas"),
    ({"maxReplicas": 8, "targets": {"queueDepth": 0}}, "greater than or equal to 1"),
    ({"maxReplicas": 8, "targets": {"queueDepth": -1}}, "greater than or equal to 1"),
    ({"maxReplicas": 8, "targets": {"gpuUtilization": 101}}, "less than or equal to 100"),
    ({"maxReplicas": 8, "targets": {"kvCacheUtilization": 0}}, "greater than or equal to 1"),
    ({"maxReplicas": 8, "policy": "Magic"}, "'WorkBased' or 'Targets'"),
]


@pytest.mark.parametrize(("scaling", "words"), REFUSED_BY_THE_RESOURCE)
def test_the_resource_refuses_it(scaling: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Scaling.model_validate(scaling)


REFUSED: list[tuple[Any, str, str]] = [
    (lambda: by_work(min_replicas=9, max_replicas=8), "minReplicas", "greater than maxReplicas (8)"),
    (lambda: by_work(min_replicas=0), "minReplicas", "set at least 1"),
    (lambda: queue(0), "targets.queueDepth", "is 0; set a value greater than 0"),
    (lambda: queue(-3), "targets.queueDepth", "is -3; set a value greater than 0"),
    (lambda: queue(float("nan")), "targets.queueDepth", "is nan"),
    (lambda: Target(signal=Signal.GPU_UTILIZATION, value=1.01), "gpuUtilization", "is 101; set a value from 1 to 100"),
    (lambda: Target(signal=Signal.KV_CACHE_UTILIZATION, value=0), "kvCacheUtilization", "is 0; set a value from 1"),
    (lambda: Target(signal=Signal.CUSTOM, metric="jobs", value=0), "custom/jobs", "is 0"),
    (by_targets, "spec.scaling.policy", "set one under spec.scaling.targets"),
    (lambda: by_work(scrape_seconds=0), "scrape interval", "set a time greater than 0"),
    (lambda: by_work(tick_seconds=-5), "tick interval", "is -5 s"),
]


@pytest.mark.parametrize(("make", "field", "words"), REFUSED, ids=[row[2] for row in REFUSED])
def test_what_got_in_another_way_is_refused_with_field_value_and_way_out(make: Any, field: str, words: str) -> None:
    with pytest.raises(PolicyError) as refused:
        make()
    assert field in refused.value.finding.field
    assert words in str(refused.value)


def test_a_target_of_nothing_in_a_quantity_is_refused() -> None:
    custom = {"name": "jobs", "query": "sum(jobs)", "target": "0"}
    with pytest.raises(PolicyError, match="custom/jobs"):
        policy_of(Scaling.model_validate({"maxReplicas": 8, "targets": {"custom": [custom]}}))
