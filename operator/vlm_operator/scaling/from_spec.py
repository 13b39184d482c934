"""The policy that a spec asks for, with what is in force where it says nothing."""

from vlm_operator.api.findings import INVALID_FIELD, Finding
from vlm_operator.api.scalars import quantity_value
from vlm_operator.api.scaling import Scaling, ScalingRules, Targets, WarmPool
from vlm_operator.scaling import schedules
from vlm_operator.scaling.policy import (
    Behavior,
    Declared,
    Pace,
    Policy,
    PolicyError,
    Pool,
    Rules,
    Schedule,
    Select,
    Signal,
    Target,
)
from vlm_operator.scaling.tuning import STANDARD

HPA = Behavior(
    up=Rules(
        paces=(
            Pace(percent=True, value=100, period_seconds=15),
            Pace(percent=False, value=4, period_seconds=15),
        )
    ),
    down=Rules(window_seconds=300, paces=(Pace(percent=True, value=100, period_seconds=15),)),
)
"""Defaults of autoscaling/v2."""
BY_WORK = Behavior(
    up=Rules(),
    down=Rules(
        window_seconds=None,
        paces=(Pace(percent=True, value=STANDARD.down_percent, period_seconds=STANDARD.down_period_seconds),),
    ),
)
"""Defaults of work-based scaling: up at once, down after a hold that grows with the start time."""


def policy_of(
    scaling: Scaling,
    warm_pool: WarmPool | None = None,
    *,
    declared: Declared | None = None,
    scrape_seconds: float = 15.0,
    tick_seconds: float = 5.0,
) -> Policy:
    """The policy of a spec. Raises PolicyError with a finding for what nothing can follow."""
    for problem in problems(scaling):
        raise PolicyError(problem.field, problem.message, problem.advice)
    work_based = scaling.policy != "Targets"
    usual = BY_WORK if work_based else HPA
    behavior = scaling.behavior
    return Policy(
        work_based=work_based,
        advisory=scaling.mode == "Advisory",
        min_replicas=scaling.min_replicas or 1,
        max_replicas=scaling.max_replicas,
        targets=_targets(scaling.targets),
        behavior=Behavior(
            up=_rules(behavior.scale_up if behavior else None, usual.up),
            down=_rules(behavior.scale_down if behavior else None, usual.down),
        ),
        schedules=tuple(
            Schedule(cron=given.schedule, time_zone=given.time_zone or "UTC", min_replicas=given.min_replicas)
            for given in scaling.schedules
        ),
        pool=Pool(size=warm_pool.size, standby=warm_pool.mode == "Standby") if warm_pool else Pool(),
        declared=declared or Declared(),
        scrape_seconds=scrape_seconds,
        tick_seconds=tick_seconds,
    )


def problems(scaling: Scaling) -> tuple[Finding, ...]:
    """What no pattern of the resource can refuse: times that never come, zones that do not exist."""
    found = []
    for index, given in enumerate(scaling.schedules):
        path = f"spec.scaling.schedules[{index}]"
        problem = schedules.problem_of(given.schedule, given.time_zone or "UTC")
        if problem is not None:
            found.append(
                Finding(
                    reason=INVALID_FIELD,
                    severity="Error",
                    field=f"{path}.{problem.field}",
                    message=problem.message,
                    advice=problem.advice,
                )
            )
        elif given.min_replicas > scaling.max_replicas:
            found.append(
                Finding(
                    reason=INVALID_FIELD,
                    severity="Error",
                    field=f"{path}.minReplicas",
                    message=f"is {given.min_replicas}, which is greater than maxReplicas ({scaling.max_replicas})",
                    advice="lower it, or raise spec.scaling.maxReplicas",
                )
            )
    return tuple(found)


def _targets(given: Targets | None) -> tuple[Target, ...]:
    if given is None:
        return ()
    wanted = (
        (Signal.QUEUE_DEPTH, given.queue_depth, 1.0),
        (Signal.RUNNING_REQUESTS, given.running_requests, 1.0),
        (Signal.GPU_UTILIZATION, given.gpu_utilization, 0.01),
        (Signal.KV_CACHE_UTILIZATION, given.kv_cache_utilization, 0.01),
    )
    found = [Target(signal=signal, value=value * unit) for signal, value, unit in wanted if value is not None]
    found += [
        Target(signal=Signal.CUSTOM, metric=custom.name, value=float(quantity_value(custom.target)))
        for custom in given.custom
    ]
    return tuple(found)


def _rules(given: ScalingRules | None, usual: Rules) -> Rules:
    """What is given, and for each field that is not the usual, as the API server fills in an autoscaler."""
    if given is None:
        return usual
    paces = tuple(
        Pace(percent=pace.type == "Percent", value=pace.value, period_seconds=pace.period_seconds)
        for pace in given.policies
    )
    window = given.stabilization_window_seconds
    return Rules(
        window_seconds=usual.window_seconds if window is None else float(window),
        select=Select(given.select_policy) if given.select_policy else usual.select,
        paces=paces or usual.paces,
        tolerance=float(quantity_value(given.tolerance)) if given.tolerance is not None else usual.tolerance,
    )
