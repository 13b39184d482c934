"""One replay of a trace: requests come as they came, replicas as a policy wants them."""

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

from vlm_operator.api.scaling import Scaling
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.engines.base import PodInputs
from vlm_operator.engines.registry import engine
from vlm_operator.scaling.from_spec import policy_of
from vlm_operator.scaling.policy import Declared, Policy, Workers
from vlm_operator.simulator.deployment import Deployment
from vlm_operator.simulator.fleet import Fleet
from vlm_operator.simulator.operated import Operated
from vlm_operator.simulator.peers.registry import factory
from vlm_operator.simulator.peers.settings import Engine
from vlm_operator.simulator.peers.static import Static
from vlm_operator.simulator.physics import Physics
from vlm_operator.simulator.result import Change, Result, Series
from vlm_operator.simulator.routing import Routing
from vlm_operator.simulator.scraping import Scraper, Trouble
from vlm_operator.simulator.trace import Trace
from vlm_operator.simulator.view import Life, Peer

WORK_BASED, TARGETS = "work-based", "targets"
"""The policies of the operator itself."""
TICK_SECONDS = 5.0
"""Between two decisions of the operator."""
MOST_REPLICAS = 64
"""Where no spec says how many there may be."""
START_SECONDS, START_HEADROOM, FEWEST_AT_START = 600.0, 1.6, 2
"""The size to start with, where no spec says it: for the load of the first ten minutes, with headroom."""
NO_TROUBLE = Trouble()


class Control(Protocol):
    """Something that sizes a fleet."""

    @property
    def period_seconds(self) -> float:
        """Time between two decisions."""

    def act(self) -> int:
        """Decide on the size and bring the replicas nearer to it; gives the size."""


def replay(
    trace: Trace,
    physics: Physics,
    policy: str,
    *,
    spec: VLMDeploymentSpec | None = None,
    routing: Routing = Routing.RANDOM,
    scrape_seconds: float = 15.0,
    seed: int = 1,
    replicas: int | None = None,
    trouble: Trouble = NO_TROUBLE,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Replay a trace under a policy by name: `work-based` or `targets` of the operator, or one of `peers.registry`.

    `spec` gives bounds, pool, targets and the rest of spec.scaling; `replicas` the size to start with, within bounds, which
    is loaded when the trace begins. `static:N` has its own size, whatever the bounds. `progress` is called now and then
    with the seconds of the trace that are done. Raises PolicyError where the spec cannot be followed and SettingsError
    where there is no policy of that name.
    """
    wanted = spec or default_spec()
    least, most = bounds_of(wanted)
    start = replicas or (wanted.replicas if spec is not None else starting_size(trace, physics))
    start = min(most, max(least, start))
    if policy in {WORK_BASED, TARGETS}:
        rules = policy_for(wanted, policy, physics, scrape_seconds=scrape_seconds)

        def control(fleet: Fleet, scraper: Scraper) -> Control:
            return Operated(fleet, scraper, wanted, rules, start=start)
    else:
        peer = factory(policy)(engine_of(trace, physics))
        start = peer.replicas if isinstance(peer, Static) else start

        def control(fleet: Fleet, scraper: Scraper) -> Control:
            return deployed(fleet, scraper, peer, wanted, start=start)

    return run(
        trace,
        physics,
        control,
        routing=routing,
        scrape_seconds=scrape_seconds,
        seed=seed,
        start=start,
        trouble=trouble,
        gpus_per_replica=gpus_of(wanted),
        progress=progress,
    )


def engine_of(trace: Trace, physics: Physics) -> Engine:
    """What policies are told of the engine and its work, as kindly as can be: the means of the whole trace."""
    return Engine(
        kv_tokens=physics.kv_tokens,
        slots=physics.slots,
        prompt_tokens=float(trace.prompt_tokens.mean()),
        output_tokens=float(trace.output_tokens.mean()),
    )


def deployed(fleet: Fleet, scraper: Scraper, peer: Peer, spec: VLMDeploymentSpec, *, start: int) -> Deployment:
    """A Deployment under a policy, with as many replicas as it starts with."""
    for _ in range(start):
        fleet.start(loaded=True)
    least, most = (start, start) if isinstance(peer, Static) else bounds_of(spec)
    return Deployment(fleet, scraper, peer, least=least, most=most)


def bounds_of(spec: VLMDeploymentSpec) -> tuple[int, int]:
    """Fewest and most replicas."""
    scaling = spec.scaling
    return ((scaling.min_replicas or 1), scaling.max_replicas) if scaling else (1, MOST_REPLICAS)


def run(
    trace: Trace,
    physics: Physics,
    control_of: Callable[[Fleet, Scraper], Control],
    *,
    routing: Routing,
    scrape_seconds: float,
    seed: int,
    start: int,
    trouble: Trouble = NO_TROUBLE,
    gpus_per_replica: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Replay a trace under something that sizes the fleet."""
    fleet = Fleet(trace, physics, routing=routing, seed=seed)
    scraper = Scraper(fleet, seconds=scrape_seconds, seed=seed, trouble=trouble)
    control = control_of(fleet, scraper)
    crashes = sorted(trouble.crashes, reverse=True)
    size, act_at, changes, rows = start, 0.0, [], []
    while True:
        now = min(scraper.next_at, act_at, crashes[-1] if crashes else math.inf)
        if now > trace.seconds:
            break
        fleet.advance(now)
        if crashes and now == crashes[-1]:
            crashes.pop()
            _crash(fleet)
        if now == scraper.next_at:
            scraper.scrape()
        if now == act_at:
            act_at += control.period_seconds
            wanted = control.act()
            if wanted != size:
                changes.append(Change(time=now, before=size, after=wanted))
                size = wanted
            rows.append((now, wanted, *fleet.counts()[: Life.GONE], fleet.in_flight))
            if progress is not None:
                progress(now)
    fleet.advance(trace.seconds)
    replica_seconds = fleet.replica_seconds()
    fleet.advance(math.inf)
    return Result(
        arrivals=trace.times,
        waits=fleet.waits,
        replica_seconds=replica_seconds,
        gpus_per_replica=gpus_per_replica,
        changes=tuple(changes),
        series=_series(rows),
    )


def starting_size(trace: Trace, physics: Physics) -> int:
    """Replicas for the load of the first ten minutes, of the stage that has the most to do, with headroom."""
    seconds = max(min(START_SECONDS, trace.seconds), 1.0)
    first = slice(0, int(np.searchsorted(trace.times, seconds, side="right")))
    prompts, images = trace.prompt_tokens[first], trace.images[first]
    lane = physics.lane_seconds(prompt_tokens=prompts, images=images).sum()
    front_end = physics.front_end_seconds(images=images).sum() / physics.front_end_workers
    load = max(float(lane), float(front_end)) / seconds
    return min(MOST_REPLICAS, max(FEWEST_AT_START, math.ceil(load * START_HEADROOM)))


def default_spec() -> VLMDeploymentSpec:
    """What is replayed where nobody gives a spec: scaling as it is by default, up to MOST_REPLICAS."""
    return VLMDeploymentSpec.model_validate(
        {
            "model": {"name": "Qwen/Qwen2.5-VL-7B-Instruct"},
            "weights": {"persistentVolumeClaim": {"claimName": "models"}},
            "scaling": {"minReplicas": 1, "maxReplicas": MOST_REPLICAS},
        }
    )


def policy_for(spec: VLMDeploymentSpec, policy: str, physics: Physics, *, scrape_seconds: float) -> Policy:
    """What the scaling of the operator follows. Of the replicas it is told what a spec tells; the rest it has to learn."""
    scaling = spec.scaling or Scaling(max_replicas=MOST_REPLICAS)
    declared = Declared(
        start_seconds=physics.cold_start_seconds * (1 + START_QUANTILE * physics.cold_start_spread),
        slots=physics.slots,
        workers=Workers(count=float(physics.front_end_workers)),
    )
    asked = scaling.model_copy(update={"policy": "Targets" if policy == TARGETS else "WorkBased"})
    return policy_of(
        asked,
        spec.warm_pool,
        declared=declared,
        scrape_seconds=scrape_seconds,
        tick_seconds=TICK_SECONDS,
    )


START_QUANTILE = 0.8
"""Of starts that are spread evenly around their mean, nine in ten are over by that share of the spread above it."""


def gpus_of(spec: VLMDeploymentSpec) -> int:
    """GPUs of one replica, as the operator would choose them without a catalogue."""
    resolved = engine(spec.engine.type).resolve(PodInputs.of(spec))
    parallelism = spec.parallelism
    return resolved.tensor_parallel * parallelism.pipeline * parallelism.data


def _crash(fleet: Fleet) -> None:
    serving = [seen for seen in fleet.seen() if seen.life == Life.SERVING]
    if serving:
        fleet.end(max(serving, key=lambda seen: (seen.in_flight, seen.number)).number)


def _series(rows: list[tuple[float, ...]]) -> Series:
    times, wanted, starting, serving, standby, draining, in_flight = np.array(rows).T
    whole = {
        "wanted": wanted,
        "starting": starting,
        "serving": serving,
        "standby": standby,
        "draining": draining,
        "in_flight": in_flight,
    }
    return Series(times=times, **{name: column.astype(np.int32) for name, column in whole.items()})
