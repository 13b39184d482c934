"""What the benchmark of scaling rests on: the frontier, the bound, traces told apart, and a run that can be taken up again."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from bench.scaling.__main__ import digest
from bench.scaling.bound import SLOT_SECONDS, Fluid, bound, schedule
from bench.scaling.grid import LEAST, choose
from bench.scaling.jobs import Done, Job, Runner, cost_at
from bench.scaling.workloads import cut, repeated, superposed, workloads
from unit.simulator.traces_made import at_random
from vlm_operator.simulator.physics import Physics

HEADER = "time_s,prompt_tokens,output_tokens,images,vision_tokens\n"


def test_a_frontier_costs_what_lies_between_its_points() -> None:
    points = [(0.90, 100.0), (0.98, 300.0), (0.95, 400.0)]
    assert cost_at(points, 0.94) == pytest.approx(200.0)
    assert cost_at(points, 0.98) == pytest.approx(300.0)
    assert cost_at(points, 0.5) == pytest.approx(100.0)
    assert cost_at(points, 0.99) is None
    assert cost_at([], 0.9) is None


def fluid(work: float, *, slots: int = 40) -> Fluid:
    """So many replicas' work in each slot."""
    return Fluid(work=np.full(slots, work * SLOT_SECONDS), requests=np.full(slots, 150.0))


LIMITS = {"start_seconds": 60.0, "most": 12, "wait": 2.0}


def test_a_constant_load_needs_its_replicas_and_no_fewer() -> None:
    found = bound(fluid(3.0), start=3, late_share=0.0, **LIMITS)
    assert found.replica_seconds == pytest.approx(3 * 40 * SLOT_SECONDS, rel=0.01)
    assert set(schedule(fluid(3.0), price=1000.0, start=3, **LIMITS).tolist()) == {3}


def test_starts_are_part_of_the_bound_and_late_requests_lower_it() -> None:
    lazy = bound(fluid(3.0), start=1, late_share=0.5, **LIMITS).replica_seconds
    strict = bound(fluid(3.0), start=1, late_share=0.0, **LIMITS).replica_seconds
    # Two starts of a minute; the end of the backlog is free to be left.
    assert 3 * 40 * SLOT_SECONDS * 0.9 < strict <= 3 * 40 * SLOT_SECONDS + 2 * 60 + 1
    assert lazy < strict


def test_the_work_of_a_trace_is_that_of_its_busiest_stage() -> None:
    trace = at_random([(600.0, 5.0)], images=1.0)
    front = Physics(front_end_seconds_per_image=0.35)
    lane = Physics(prompt_tokens_per_second=500.0, front_end_seconds_per_image=0.35)
    assert Fluid.of(trace, front).work.sum() == pytest.approx(
        float(np.sum(front.front_end_seconds(images=trace.images)))
    )
    busy = lane.lane_seconds(prompt_tokens=trace.prompt_tokens, images=trace.images)
    assert Fluid.of(trace, lane).work.sum() == pytest.approx(float(np.sum(busy)))


def test_traces_are_cut_repeated_and_laid_on_top_of_each_other() -> None:
    trace = at_random([(1000.0, 3.0)])
    assert len(cut(trace, 200.0, 400.0)) == pytest.approx(600, abs=80)
    assert len(superposed(trace, 3)) == 3 * len(trace)
    assert superposed(trace, 3).seconds <= trace.seconds
    twice = repeated(trace, (1.0, 0.5), seed=1)
    assert len(twice) == pytest.approx(1.5 * len(trace), rel=0.05)
    assert twice.seconds == pytest.approx(2 * trace.seconds, rel=0.01)


def test_traces_are_told_apart_by_their_content(tmp_path: Path) -> None:
    rows = "".join(f"{second},500,20,1,300\n" for second in range(600))
    (tmp_path / "plain.log").write_text(HEADER + rows)
    (tmp_path / "packed").write_bytes(gzip.compress((HEADER + rows).encode()))
    (tmp_path / "notes.txt").write_text("nothing to replay\n")
    nested = tmp_path / "azure"
    nested.mkdir()
    stamps = "".join(f"2024-05-10 00:0{minute}:00.0000000,500,20\n" for minute in range(9))
    (nested / "code.csv").write_text(f"TIMESTAMP,ContextTokens,GeneratedTokens\n{stamps}")
    (nested / "LICENSE").write_text("free\n")
    moon = {"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1]}
    (tmp_path / "moon.jsonl").write_text("".join(json.dumps(moon | {"timestamp": t * 1000}) + "\n" for t in range(9)))
    found = {one.name: one for one in workloads(tmp_path, hours=1.0)}
    named = {name: one.train for name, one in found.items() if "," not in name}
    assert named == {"azure": True, "moon.jsonl": False, "packed": True, "plain.log": False}
    assert (found["packed"].front_end, found["azure"].front_end) == (0.35, 0.0)
    assert {one.train for one in workloads(None, hours=1.0)} == {True, False}


def test_a_run_goes_on_where_it_was_cut(tmp_path: Path) -> None:
    jobs = [
        Job(workload="step", front_end=True, policy=policy, routing=LEAST) for policy in ("static:5", "ray, shipped")
    ]
    file = tmp_path / "kept.jsonl"
    first = Runner(file, None, hours=1.0, processes=1).run("some", jobs[:1])
    with file.open("a") as cut_off:
        cut_off.write('{"job": {"work')
    lines = file.read_text()
    again = Runner(file, None, hours=1.0, processes=1).run("all", jobs)
    assert again[0] == first[0]
    assert file.read_text().startswith(lines)
    written = file.read_text()
    assert Runner(file, None, hours=1.0, processes=1).run("all", jobs) == again
    assert file.read_text() == written
    assert again[1].job == jobs[1]
    assert 0 < again[1].attainment <= 1 < again[1].gpu_hours


def test_peers_are_tuned_to_the_cheapest_that_reaches_what_is_wanted() -> None:
    def done(policy: str, attainment: float, cost: float) -> Done:
        job = Job(workload="w", front_end=False, policy=policy, routing=LEAST)
        return Done(job=job, attainment=attainment, gpu_hours=cost)

    chosen = choose([done("ray:1", 0.99, 9), done("ray:2", 0.98, 5), done("ray:4", 0.97, 3)])
    assert chosen == {("ray", LEAST): "ray:2"}
    assert choose([done("hpa:1", 0.8, 9), done("hpa:2", 0.7, 5)]) == {("hpa", LEAST): "hpa:1"}


def test_results_are_kept_for_the_same_traces_alone(tmp_path: Path) -> None:
    trace = tmp_path / "day.csv"
    trace.write_text("time_s\n1\n")
    before = digest(tmp_path)
    assert digest(tmp_path) == before
    trace.write_text("time_s\n1\n2\n")
    assert len({before, digest(tmp_path), digest(None)}) == 3
