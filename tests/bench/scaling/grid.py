"""Which replays are run: a reduced grid of some twenty minutes, or all."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from bench.scaling.jobs import FLUID, FORESEEN, OURS, Done, Job, Runner
from bench.scaling.workloads import MOST_WINDOW_HOURS, Workload, adversarial, workloads
from vlm_operator.simulator.peers.registry import FAMILIES, Kind, variants
from vlm_operator.simulator.routing import Routing

RANDOM, LEAST, UNSTARTED = (str(routing) for routing in Routing)
WANTED = {LEAST: 0.975, RANDOM: 0.965, UNSTARTED: 0.975}
"""Mean attainment for which peers are tuned."""
STATIC_SIZES = (8, 12, 17, 25)
REDUCED_HOURS = 4.0


@dataclass(frozen=True, kw_only=True)
class Extent:
    """How much is run."""

    hours: float
    """Of long traces."""
    peer_colds: tuple[float, ...]
    cells: tuple[tuple[float, float], ...]
    """Cold start and scrape of our own replays."""
    seeds: tuple[int, ...] = (1, 2, 3)
    routings: tuple[str, ...] = (RANDOM, LEAST)
    """Under which peers are tuned and tested."""


REDUCED = Extent(
    hours=REDUCED_HOURS,
    peer_colds=(20.0,),
    cells=((5.0, 15.0), (20.0, 15.0), (90.0, 15.0), (240.0, 15.0), (90.0, 5.0), (90.0, 30.0)),
)
FULL = Extent(
    hours=MOST_WINDOW_HOURS,
    peer_colds=(5.0, 20.0, 240.0),
    cells=tuple((cold, scrape) for cold in (5.0, 20.0, 90.0, 240.0) for scrape in (5.0, 15.0, 30.0)),
    routings=(RANDOM, LEAST, UNSTARTED),
)


@dataclass(frozen=True, kw_only=True)
class Found:
    """All results, by what they are for."""

    extent: Extent
    workloads: tuple[Workload, ...]
    chosen: dict[tuple[str, str], str]
    """The tuned variant of a family under a routing."""
    peers: list[Done]
    """On the test workloads."""
    ours: list[Done]
    hard: list[Done]
    bounds: list[Done]


def found(runner: Runner, folder: Path | None, extent: Extent) -> Found:
    """Run everything."""
    there = workloads(folder, hours=extent.hours)
    training = runner.run("tuning the peers", _training(there, extent))
    chosen = choose(training)
    ours = runner.run("ours", _ours(there, extent))
    peers = runner.run("peers", _peers(there, extent, chosen))
    hard = runner.run("adversarial", _hard(chosen))
    bounds = runner.run("bounds", _bounds(ours))
    return Found(extent=extent, workloads=there, chosen=chosen, peers=peers, ours=ours, hard=hard, bounds=bounds)


def cases(there: Iterable[Workload], *, train: bool) -> Iterator[tuple[str, bool]]:
    """Workloads by name, each without and, where there are images, with the work of the front end."""
    for workload in there:
        if workload.train is train:
            yield from ((workload.name, front) for front in ((False, True) if workload.front_end else (False,)))


def choose(training: list[Done]) -> dict[tuple[str, str], str]:
    """For each family and routing: the cheapest variant with the wanted attainment, else the one with the highest."""
    scores: defaultdict[tuple[str, str, str], list[Done]] = defaultdict(list)
    for done in training:
        scores[done.job.policy.partition(":")[0], done.job.routing, done.job.policy].append(done)
    best: dict[tuple[str, str], tuple[bool, float, str]] = {}
    for (family, routing, name), dones in scores.items():
        attainment, cost = fmean(done.attainment for done in dones), sum(done.gpu_hours for done in dones)
        reached = attainment >= WANTED[routing]
        score = reached, -cost if reached else attainment, name
        best[family, routing] = max(best.get((family, routing), score), score)
    return {place: name for place, (_, _, name) in best.items()}


def _training(there: tuple[Workload, ...], extent: Extent) -> Iterator[Job]:
    for name, front_end in cases(there, train=True):
        for routing in extent.routings:
            for family in FAMILIES:
                for variant in variants(family.name):
                    if variant.kind is Kind.TUNED:
                        yield Job(workload=name, front_end=front_end, policy=variant.name, routing=routing)


def _ours(there: tuple[Workload, ...], extent: Extent) -> Iterator[Job]:
    for name, front_end in cases(there, train=False):
        for routing in Routing:
            for cold, scrape in extent.cells:
                for seed in extent.seeds:
                    yield Job(
                        workload=name,
                        front_end=front_end,
                        policy=OURS,
                        routing=str(routing),
                        cold_start=cold,
                        scrape=scrape,
                        seed=seed,
                    )


def _peers(there: tuple[Workload, ...], extent: Extent, chosen: dict[tuple[str, str], str]) -> Iterator[Job]:
    """Every variant at the usual cold start, and at others those that somebody would run."""
    static = [f"static:{size}" for size in STATIC_SIZES]
    every = [variant for family in FAMILIES for variant in variants(family.name)]
    untuned = [variant.name for variant in every if variant.kind is not Kind.TUNED]
    for name, front_end in cases(there, train=False):
        for routing in extent.routings:
            usual = Job(workload=name, front_end=front_end, policy="", routing=routing)
            yield from (replace(usual, policy=policy) for policy in [*static, *(variant.name for variant in every)])
            tuned = [chosen[family.name, routing] for family in FAMILIES]
            for cold in extent.peer_colds:
                yield from (replace(usual, policy=policy, cold_start=cold) for policy in [*static, *untuned, *tuned])


def _hard(chosen: dict[tuple[str, str], str]) -> Iterator[Job]:
    for cold in (90.0, 240.0):
        for workload in adversarial(cold):
            usual = Job(workload=workload.name, front_end=True, policy=OURS, routing=LEAST, cold_start=cold)
            yield usual
            yield from (
                replace(usual, policy=chosen[family, LEAST]) for family in ("hpa-running", "keda", "knative", "ray")
            )


def _bounds(ours: list[Done]) -> Iterator[Job]:
    """At the attainment that ours had."""
    for done in ours:
        job = done.job
        if (job.cold_start, job.scrape, job.seed) == (90.0, 15.0, 1) and job.routing in (LEAST, RANDOM):
            late = round(1 - done.attainment, 4)
            yield from (replace(job, policy=policy, late_share=late) for policy in (FLUID, FORESEEN))


Where = Callable[[Job], bool]


def select(dones: Iterable[Done], where: Where) -> list[Done]:
    """Those whose job is so."""
    return [done for done in dones if where(done.job)]
