"""The results as a page with tables and pictures."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import isnan, sqrt
from pathlib import Path
from statistics import fmean, stdev

from bench.scaling.grid import LEAST, RANDOM, UNSTARTED, WANTED, Found, cases, select
from bench.scaling.jobs import FLUID, FORESEEN, OURS, Done, cost_at
from bench.scaling.pictures import cold_starts, frontiers
from vlm_operator.simulator.peers.registry import FAMILIES, STATIC, Kind, variants

TEXT = Path(__file__).with_name("benchmarks.md.txt")
T_95 = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78}
"""Factor of a confidence interval of 95 % on a mean of so many (Student's t)."""
USUAL = (90.0, 15.0)
NAMES = {RANDOM: "random", LEAST: "least outstanding", UNSTARTED: "fewest unstarted"}


def write(found: Found, folder: Path) -> Path:
    """The page and its pictures, in a folder; gives the page."""
    pictures = folder / "images"
    pictures.mkdir(parents=True, exist_ok=True)
    (pictures / "scaling-frontiers.png").write_bytes(frontiers(_clouds(found), _own_points(found)))
    (pictures / "scaling-cold-starts.png").write_bytes(cold_starts(_by_cold(found)))
    page = folder / "benchmarks.md"
    parts = {
        "workloads": _workloads(found),
        "headline": _headline(found),
        "peers": "\n\n".join(_peers(found, routing) for routing in found.extent.routings),
        "by_workload": "\n\n".join(_by_workload(found, routing) for routing in found.extent.routings),
        "cells": _cells(found),
        "hard": _hard(found),
        "bounds": _bounds(found),
        "hours": f"{found.extent.hours:g}",
        "seeds": str(len(found.extent.seeds)),
    }
    text = TEXT.read_text()
    for name, part in parts.items():
        text = text.replace(f"@{name}@", part)
    page.write_text(text)
    return page


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


# -- sums --------------------------------------------------------------------------------------------------------------
def _own(found: Found, routing: str, cold: float = USUAL[0], scrape: float = USUAL[1]) -> list[Done]:
    return select(found.ours, lambda job: (job.routing, job.cold_start, job.scrape) == (routing, cold, scrape))


def _seeds(dones: Iterable[Done]) -> list[tuple[float, float]]:
    """Mean attainment and sum of GPU-hours, for each seed."""
    by_seed: defaultdict[int, list[Done]] = defaultdict(list)
    for done in dones:
        by_seed[done.job.seed].append(done)
    return [_sum(of_one) for _, of_one in sorted(by_seed.items())]


def _sum(dones: Sequence[Done]) -> tuple[float, float]:
    return fmean(done.attainment for done in dones), sum(done.gpu_hours for done in dones)


def _of(found: Found, policy: str, routing: str, cold: float = USUAL[0]) -> list[Done]:
    return select(found.peers, lambda job: (job.policy, job.routing, job.cold_start) == (policy, routing, cold))


def _points(found: Found, family: str, routing: str) -> list[tuple[float, float]]:
    """Mean attainment and sum of GPU-hours of every variant."""
    return [_sum(dones) for one in variants(family) if (dones := _of(found, one.name, routing))]


def _plus_minus(values: Sequence[float], form: Callable[[float], str]) -> str:
    mean = fmean(values)
    if len(values) < 2:
        return form(mean)
    return f"{form(mean)} ± {form(T_95.get(len(values), 2.6) * stdev(values) / sqrt(len(values)))}"


def _percent(share: float) -> str:
    return f"{100 * share:.2f}"


def _hours(cost: float | None) -> str:
    return "not reached" if cost is None or isnan(cost) else f"{cost:.0f}" if cost >= 100 else f"{cost:.1f}"


# -- parts -------------------------------------------------------------------------------------------------------------
def _workloads(found: Found) -> str:
    return table(
        ("workload", "for", "GPU s per image", "CPU s per image"),
        (
            (one.name, "tuning" if one.train else "results", f"{one.encode:g}", f"{one.front_end:g}")
            for one in found.workloads
        ),
    )


def _headline(found: Found) -> str:
    rows = []
    for routing in found.extent.routings:
        own = _own(found, routing)
        seeds = _seeds(own)
        attainment, cost = fmean(a for a, _ in seeds), fmean(c for _, c in seeds)
        pooled = [point for family in FAMILIES for point in _points(found, family.name, routing)]
        best = cost_at(pooled, attainment)
        flaps = sum(done.flaps for done in own) / sum(done.hours for done in own)
        rows.append(
            (
                NAMES[routing],
                f"{_plus_minus([a for a, _ in seeds], _percent)} % (aim {100 * WANTED[routing]:g})",
                f"{100 * min(done.attainment for done in own):.1f} %",
                _plus_minus([c for _, c in seeds], lambda c: f"{c:.0f}"),
                _hours(best),
                "-" if best is None else f"{cost / best:.2f}",
                f"{flaps:.2f}",
            )
        )
    head = (
        "routing",
        "mean in time",
        "lowest",
        "GPU-hours",
        "best peers at equal attainment",
        "ratio",
        "flaps per hour",
    )
    return table(head, rows)


def _peers(found: Found, routing: str) -> str:
    attainment = fmean(a for a, _ in _seeds(_own(found, routing)))
    own = fmean(c for _, c in _seeds(_own(found, routing)))
    rows = [("**ours**", f"**{_percent(attainment)} / {own:.0f}**", "", "", f"**{own:.0f}**", "1.00")]
    for family in FAMILIES:
        shown = []
        for kind in (Kind.SHIPPED, Kind.DOCUMENTED):
            name = next(one.name for one in variants(family.name) if one.kind is kind)
            shown.append(_cell(_of(found, name, routing)))
        tuned = found.chosen[family.name, routing]
        cost = cost_at(_points(found, family.name, routing), attainment)
        ratio = "-" if cost is None else f"{own / cost:.2f}"
        rows.append((family.name, *shown, f"{_cell(_of(found, tuned, routing))} ({tuned})", _hours(cost), ratio))
    static = sorted({done.job.policy for done in found.peers if done.job.policy.startswith(STATIC)}, key=_size)
    rows += [(name, "", "", _cell(_of(found, name, routing)), "", "") for name in static]
    head = ("policy", "as shipped", "as documented", "tuned", "GPU-hours at our attainment", "ours / that")
    return f"Routing: {NAMES[routing]}. Mean share in time, in percent / GPU-hours.\n\n{table(head, rows)}"


def _size(name: str) -> int:
    return int(name.partition(":")[2])


def _cell(dones: Sequence[Done]) -> str:
    attainment, cost = _sum(dones)
    return f"{_percent(attainment)} / {cost:.0f}"


def _by_workload(found: Found, routing: str) -> str:
    """For each case the peer that is cheapest there with any of its settings: what a tuning for one workload could give."""
    rows = []
    for name, front_end in cases(found.workloads, train=False):
        own = [done for done in _own(found, routing) if (done.job.workload, done.job.front_end) == (name, front_end)]
        attainment, cost = fmean(done.attainment for done in own), fmean(done.gpu_hours for done in own)
        costs = []
        for family in FAMILIES:
            points = [
                (done.attainment, done.gpu_hours)
                for one in variants(family.name)
                for done in _of(found, one.name, routing)
                if (done.job.workload, done.job.front_end) == (name, front_end)
            ]
            known = cost_at(points, attainment)
            if known is not None:
                costs.append((known, family.name))
        best = min(costs, default=None)
        lost = best is not None and best[0] < cost
        rows.append(
            (
                f"{name}{', front end' if front_end else ''}",
                f"{100 * attainment:.1f} % / {_hours(cost)}",
                f"{100 * min(done.worst for done in own):.0f} %",
                "none" if best is None else f"{best[1]}: {_hours(best[0])}",
                "-" if best is None else f"{cost / best[0]:.2f}{' (lost)' if lost else ''}",
            )
        )
    head = ("workload", "ours: in time / GPU-hours", "worst 10 min", "cheapest peer there, at our attainment", "ratio")
    return f"Routing: {NAMES[routing]}.\n\n{table(head, rows)}"


def _cells(found: Found) -> str:
    rows = []
    for cold, scrape in found.extent.cells:
        row = [f"{cold:g} s", f"{scrape:g} s"]
        for routing in (RANDOM, LEAST, UNSTARTED):
            seeds = _seeds(_own(found, routing, cold, scrape))
            share = _plus_minus([a for a, _ in seeds], _percent)
            lowest = 100 * min(done.attainment for done in _own(found, routing, cold, scrape))
            row.append(f"{share} (≥ {lowest:.1f}) / {fmean(c for _, c in seeds):.0f}")
        rows.append(row)
    return table(("cold start", "scrape", *(NAMES[routing] for routing in (RANDOM, LEAST, UNSTARTED))), rows)


def _hard(found: Found) -> str:
    policies = list(dict.fromkeys(done.job.policy for done in found.hard))
    rows = []
    for cold in (90.0, 240.0):
        there = select(found.hard, lambda job, cold=cold: job.cold_start == cold)
        for name in dict.fromkeys(done.job.workload for done in there):
            of_it = {done.job.policy: done for done in there if done.job.workload == name}
            ours = of_it[OURS]
            rows.append(
                (
                    name,
                    f"{cold:g} s",
                    *(f"{100 * of_it[p].attainment:.1f} / {of_it[p].gpu_hours:.0f}" for p in policies),
                    f"{100 * ours.worst:.0f} %",
                    f"{ours.flaps / ours.hours:.1f}",
                    str(ours.down_in_outage),
                )
            )
    head = ("workload", "cold start", *policies, "ours: worst 10 min", "flaps per hour", "down while blind")
    return table([OURS if name == OURS else name for name in head], rows)


def _bounds(found: Found) -> str:
    rows = []
    for name, front_end in cases(found.workloads, train=False):
        for routing in (LEAST, RANDOM):
            there = [
                done
                for done in (*found.bounds, *found.ours)
                if (done.job.workload, done.job.front_end, done.job.routing) == (name, front_end, routing)
                and (done.job.cold_start, done.job.scrape, done.job.seed) == (*USUAL, 1)
            ]
            cost = {done.job.policy: done.gpu_hours for done in there}
            attainment = next(done.attainment for done in there if done.job.policy == OURS)
            foreseen = cost[FORESEEN]
            rows.append(
                (
                    f"{name}{', front end' if front_end else ''}",
                    NAMES[routing],
                    f"{100 * attainment:.1f} %",
                    _hours(cost[OURS]),
                    _hours(foreseen),
                    "-" if isnan(foreseen) else f"{cost[OURS] / foreseen:.2f}",
                    _hours(cost[FLUID]),
                    f"{cost[OURS] / cost[FLUID]:.2f}",
                )
            )
    head = ("workload", "routing", "in time", "ours", "clairvoyant schedule", "ratio", "fluid bound", "ratio")
    return table(head, rows)


# -- pictures ----------------------------------------------------------------------------------------------------------
def _clouds(found: Found) -> dict[str, dict[str, list[tuple[float, float]]]]:
    return {
        NAMES[routing]: {family.name: _points(found, family.name, routing) for family in FAMILIES}
        for routing in found.extent.routings
    }


def _own_points(found: Found) -> dict[str, tuple[float, float]]:
    return {NAMES[routing]: _sum(_own(found, routing)[:: len(found.extent.seeds)]) for routing in found.extent.routings}


def _by_cold(found: Found) -> dict[str, list[tuple[float, float, float]]]:
    colds = sorted({cold for cold, scrape in found.extent.cells if scrape == USUAL[1]})
    return {
        NAMES[routing]: [
            (cold, fmean(a for a, _ in seeds), fmean(c for _, c in seeds))
            for cold in colds
            if (seeds := _seeds(_own(found, routing, cold)))
        ]
        for routing in (RANDOM, LEAST, UNSTARTED)
    }
