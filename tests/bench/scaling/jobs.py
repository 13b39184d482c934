"""The replays of the benchmark: each a job by name, run in processes and kept in a file, so that a run can be taken up again."""

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np

from bench.scaling.bound import Clairvoyant, Fluid, bound, schedule
from bench.scaling.workloads import Workload, adversarial, workloads
from vlm_operator.simulator.fleet import Fleet
from vlm_operator.simulator.measures import measure
from vlm_operator.simulator.peers.registry import FAMILIES, STATIC, Factory, factory, variants
from vlm_operator.simulator.physics import Physics
from vlm_operator.simulator.replay import (
    MOST_REPLICAS,
    WORK_BASED,
    Control,
    default_spec,
    deployed,
    engine_of,
    replay,
    run,
    starting_size,
)
from vlm_operator.simulator.routing import Routing
from vlm_operator.simulator.scraping import Scraper
from vlm_operator.simulator.trace import Trace
from vlm_operator.simulator.view import Peer

SLO_SECONDS = 2.0
OURS, FLUID, FORESEEN = WORK_BASED, "fluid bound", "clairvoyant"
ENLARGED = (1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.4, 2.8, 3.4)
"""Factors on the work for which the schedule of the clairvoyant is made."""
AHEAD = 1.2
"""Cold starts by which the clairvoyant is early."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One replay."""

    workload: str
    front_end: bool
    """Whether images cost CPU time."""
    policy: str
    """Of the operator, or a variant of a peer."""
    routing: str
    cold_start: float = 90.0
    scrape: float = 15.0
    seed: int = 1
    late_share: float = 0.0
    """For a bound: the share of late requests that it may have."""

    @property
    def key(self) -> str:
        """Under which its result is kept."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """What came of it."""

    job: Job
    attainment: float
    gpu_hours: float
    worst: float = 1.0
    changes: int = 0
    flaps: int = 0
    hours: float = 0.0
    down_in_outage: int = 0


class Runner:
    """Runs jobs and keeps what came of them."""

    def __init__(self, file: Path, folder: Path | None, *, hours: float, processes: int) -> None:
        self._file, self._folder, self._hours, self._processes = file, folder, hours, processes
        self._known = dict(_kept(file)) if file.exists() else {}
        self._known_to_end = not file.exists() or file.read_text().endswith("\n")

    def run(self, what: str, jobs: Iterable[Job]) -> list[Done]:
        """Results in the order of the jobs; those that are known are not run again."""
        wanted = list(jobs)
        left = [job for job in dict.fromkeys(wanted) if job.key not in self._known]
        shown = -1
        with ProcessPoolExecutor(self._processes, initializer=_prepare, initargs=(self._folder, self._hours)) as pool:
            for number, done in enumerate(pool.map(carry_out, left, chunksize=4), start=1):
                self._keep(done)
                percent = 100 * number // len(left)
                if percent // 10 != shown:
                    shown = percent // 10
                    print(f"{what}: {number} of {len(left)} replays", file=sys.stderr, flush=True)
        return [self._known[job.key] for job in wanted]

    def _keep(self, done: Done) -> None:
        self._known[done.job.key] = done
        line = json.dumps(asdict(done)) + "\n"
        with self._file.open("a") as file:
            # Behind a line that was cut off, on one of its own.
            file.write(line if self._known_to_end else f"\n{line}")
        self._known_to_end = True


def _kept(file: Path) -> Iterator[tuple[str, Done]]:
    for line in file.read_text().splitlines():
        try:
            found = json.loads(line)
        except ValueError:  # the run was cut in the middle of a line
            continue
        done = Done(**(found | {"job": Job(**found["job"])}))
        yield done.job.key, done


# -- in the processes --------------------------------------------------------------------------------------------------
_SETTINGS: dict[str, object] = {}


def _prepare(folder: Path | None, hours: float) -> None:
    _SETTINGS.update(folder=folder, hours=hours)


@cache
def by_name(folder: Path | None, hours: float, cold_start: float) -> dict[str, Workload]:
    """Every workload."""
    found = (*workloads(folder, hours=hours), *adversarial(cold_start))
    return {workload.name: workload for workload in found}


@cache
def _trace(folder: Path | None, hours: float, cold_start: float, name: str) -> Trace:
    return by_name(folder, hours, cold_start)[name].make()


def carry_out(job: Job) -> Done:
    """Run one."""
    folder, hours = _SETTINGS["folder"], _SETTINGS["hours"]
    workload = by_name(folder, hours, job.cold_start)[job.workload]  # type: ignore[arg-type] # as they were put there
    trace = _trace(folder, hours, job.cold_start, job.workload)  # type: ignore[arg-type] # as they were put there
    physics = physics_of(workload, job)
    if job.policy in (FLUID, FORESEEN):
        return _foreseen(job, trace, physics)
    start = starting_size(trace, physics)
    shared = {
        "routing": Routing(job.routing),
        "scrape_seconds": job.scrape,
        "seed": job.seed,
        "trouble": workload.trouble,
    }
    if job.policy == OURS:
        result = replay(trace, physics, WORK_BASED, replicas=start, **shared)  # type: ignore[arg-type] # of many types
    else:
        peer = peer_of(job.policy)(engine_of(trace, physics))
        start = getattr(peer, "replicas", start)
        result = run(trace, physics, _under(peer, start), start=start, **shared)  # type: ignore[arg-type] # of many types
    found = measure(result, slo_seconds=SLO_SECONDS)
    dark = workload.trouble.outages
    return Done(
        job=job,
        attainment=found.attainment,
        gpu_hours=found.gpu_hours,
        worst=found.worst_10_minutes,
        changes=found.scale_events,
        flaps=found.flaps,
        hours=trace.seconds / 3600,
        down_in_outage=sum(
            change.after < change.before and any(start + job.scrape <= change.time < end for start, end in dark)
            for change in result.changes
        ),
    )


def physics_of(workload: Workload, job: Job) -> Physics:
    """The replicas of a job."""
    return Physics(
        encode_seconds_per_image=workload.encode,
        front_end_seconds_per_image=workload.front_end if job.front_end else 0.0,
        cold_start_seconds=job.cold_start,
    )


def peer_of(name: str) -> Factory:
    """A variant of a peer by the name that `variants` gives it."""
    if name.startswith(STATIC):
        return factory(name)
    return next(one.make for family in FAMILIES for one in variants(family.name) if one.name == name)


def _under(peer: Peer, start: int) -> Callable[[Fleet, Scraper], Control]:
    return lambda fleet, scraper: deployed(fleet, scraper, peer, default_spec(), start=start)


def _foreseen(job: Job, trace: Trace, physics: Physics) -> Done:
    """The fluid bound for a share of late requests, or the cheapest schedule that reaches it when it is replayed."""
    fluid, start = Fluid.of(trace, physics), starting_size(trace, physics)
    shared = {"start_seconds": job.cold_start, "start": start, "most": MOST_REPLICAS, "wait": SLO_SECONDS}
    least = bound(fluid, late_share=job.late_share, **shared)  # type: ignore[arg-type] # of many types
    if job.policy == FLUID:
        return Done(job=job, attainment=1 - job.late_share, gpu_hours=least.replica_seconds / 3600)
    points = []
    for factor in ENLARGED:
        larger = Fluid(work=fluid.work * factor, requests=fluid.requests)
        sizes = schedule(larger, price=max(16.0, least.price * factor), **shared)  # type: ignore[arg-type] # of many types
        peer = Clairvoyant(sizes=sizes, ahead_seconds=AHEAD * job.cold_start)
        result = run(
            trace,
            physics,
            _under(peer, start),
            routing=Routing(job.routing),
            scrape_seconds=job.scrape,
            seed=job.seed,
            start=start,
        )
        found = measure(result, slo_seconds=SLO_SECONDS)
        points.append((found.attainment, found.gpu_hours))
        if found.attainment >= 1 - job.late_share:
            break
    cost = cost_at(points, 1 - job.late_share)
    return Done(job=job, attainment=max(a for a, _ in points), gpu_hours=math.nan if cost is None else cost)


def cost_at(points: Iterable[tuple[float, float]], attainment: float) -> float | None:
    """GPU-hours at which a frontier of (attainment, GPU-hours) reaches an attainment; None: it does not.

    Between two points it is taken for straight; below the cheapest one it costs what that costs.
    """
    frontier: list[tuple[float, float]] = []
    for reached, cost in sorted(points, key=lambda point: (point[1], -point[0])):
        if not frontier or reached > frontier[-1][0]:
            frontier.append((reached, cost))
    if not frontier or frontier[-1][0] < attainment:
        return None
    shares, costs = zip(*frontier, strict=True)
    return float(np.interp(attainment, shares, costs))
