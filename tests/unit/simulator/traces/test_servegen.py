"""Workloads of ServeGen: requests drawn from rates and shares."""

import json
from typing import Any

import numpy as np
import pytest

from unit.simulator.traces.given import file, folder, read, refusal
from vlm_operator.simulator.trace import Trace
from vlm_operator.simulator.traces.base import cut

HOLDS = {
    "text_tokens": "{100: 1.0}",
    "image_tokens": "{500: 0.5, 700: 0.5}",
    "image_count": "{0: 0.25, 2: 0.75}",
    "output_tokens": "{7: 1.0}",
}
WINDOWS = "0,0.5,1.0,Gamma,1.0,2.0\n600,0,0,,0,0\n1200,1.0,0.5,Weibull,2.0,1.1\n"


def dataset(**windows: dict[str, str]) -> str:
    return json.dumps({name.removeprefix("at"): HOLDS | holds for name, holds in (windows or {"at0": {}}).items()})


def client(windows: str = WINDOWS, holds: str | None = None) -> Any:
    return file(windows, "chunk-3-trace.csv", beside={"chunk-3-dataset.json": holds or dataset()})


def trace_of(given: Any, seed: int = 1) -> Trace:
    return read("servegen", given, seed).trace


def test_each_window_has_as_many_requests_as_its_rate_says_and_an_empty_one_has_none() -> None:
    trace = trace_of(client("600,0.5,1,Gamma,1.0,2.0\n" + "1200,0,0,,0,0\n" + "1800,1.0,1,Weibull,2.0,1.1\n"))
    counts, _ = np.histogram(trace.times, [0, 600, 1200, 1800])
    assert len(trace) == 300 + 600
    assert counts[0] >= 299
    assert counts[1] <= 1
    assert trace.times[0] == 0
    assert (np.diff(trace.times) >= 0).all()


def test_prompts_hold_text_and_the_tokens_of_each_image() -> None:
    trace = trace_of(client())
    assert set(trace.images.tolist()) == {0, 2}
    assert set(trace.vision_tokens[trace.images == 2].tolist()) == {1000, 1200, 1400}
    assert not trace.vision_tokens[trace.images == 0].any()
    assert (trace.prompt_tokens == 100 + trace.vision_tokens).all()
    assert set(trace.output_tokens.tolist()) == {7}
    assert np.mean(trace.images == 2) == pytest.approx(0.75, abs=0.05)


def test_what_requests_hold_changes_with_the_windows_of_the_dataset() -> None:
    holds = dataset(at600={"output_tokens": "{1: 1}"}, at1200={"output_tokens": "{2: 3, 2.5: 1}"})
    trace = trace_of(client(holds=holds))
    assert set(trace.output_tokens[:300].tolist()) == {1}, "before the first window of the dataset that one counts"
    assert np.mean(trace.output_tokens[300:] == 2) == pytest.approx(0.75, abs=0.06)


def test_the_more_uneven_the_law_the_burstier_the_requests() -> None:
    even, uneven = (trace_of(client(f"0,2,0,Gamma,{shape},1\n")).times for shape in (50.0, 0.1))
    assert np.diff(even).std() < 0.1
    assert np.diff(uneven).std() > 1


def test_a_law_so_uneven_that_numbers_end_lets_all_come_at_once() -> None:
    trace = trace_of(client("0,0.1,9,Gamma,1e-300,1\n600,0.1,9,Weibull,1e-9,1e300\n"))
    assert len(trace) == 120
    assert set(trace.times.tolist()) == {0, 600}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("law", ["Gamma,1,1e308", "Weibull,1,1e308", "Gamma,1,1e-320"])
def test_distances_that_no_number_holds_let_all_come_at_once(law: str) -> None:
    assert set(trace_of(client(f"0,0.1,9,{law}\n")).times.tolist()) == {0}


def test_the_seed_decides_all() -> None:
    one, same, other = (trace_of(client(), seed) for seed in (1, 1, 2))
    assert one.times.tolist() == same.times.tolist()
    assert one.vision_tokens.tolist() == same.vision_tokens.tolist()
    assert one.times.tolist() != other.times.tolist()


def test_a_client_is_the_same_alone_and_among_others() -> None:
    files = {"chunk-3-trace.csv": WINDOWS, "chunk-3-dataset.json": dataset(), "LICENSE": "free"}
    other = {"chunk-20-trace.csv": WINDOWS, "chunk-20-dataset.json": dataset(at0={"output_tokens": "{9: 1}"})}
    alone, both = trace_of(folder(files)), trace_of(folder(other | files))
    mine = both.output_tokens == 7
    assert len(both) == 2 * len(alone)
    assert np.diff(both.times[mine]) == pytest.approx(np.diff(alone.times))
    assert trace_of(client()).times.tolist() == alone.times.tolist()


WRONG = [
    (
        client("0,1,1,Pareto,1,1\n"),
        "chunk-3-trace.csv, line 1, column law: 'Pareto' must be Gamma or Weibull; mend the line, or leave it out",
    ),
    (
        client("0,0,0,,0,0\n0,1,1,Gamma,1\n"),
        (
            "chunk-3-trace.csv, line 2: has 5 fields; it must have 6: window start, requests per second, "
            "coefficient of variation, law, shape, scale"
        ),
    ),
    (
        client("0,many,1,Gamma,1,1\n"),
        "chunk-3-trace.csv, line 1, column requests per second: 'many' is not a number; mend the line, or leave it out",
    ),
    (
        client("0,10001,1,Gamma,1,1\n"),
        (
            "chunk-3-trace.csv, line 1, column requests per second: 10001 is not a number from 0 to 10000; "
            "mend the line, or leave it out"
        ),
    ),
    (
        client("0,1,1,Gamma,0,1\n"),
        "chunk-3-trace.csv, line 1, column shape: 0 is not a number greater than 0; mend the line, or leave it out",
    ),
    (
        client("0,1,1,Gamma,1,nan\n"),
        "chunk-3-trace.csv, line 1, column scale: nan is not a number greater than 0; mend the line, or leave it out",
    ),
    (
        client("-600,1,1,Gamma,1,1\n"),
        "chunk-3-trace.csv, line 1, column window start: -600 is not a number from 0; mend the line, or leave it out",
    ),
    (client("0,0,0,,0,0\n"), "chunk-3-trace.csv has no window with requests; give clients whose rates are not all 0"),
    (client(""), "chunk-3-trace.csv has no window with requests; give clients whose rates are not all 0"),
    (client(holds="{"), "chunk-3-dataset.json is not JSON; get it once more"),
    (client(holds="[1]"), "chunk-3-dataset.json must be a JSON object with an object for each window"),
    (client(holds="{}"), "chunk-3-dataset.json must be a JSON object with an object for each window"),
    (
        client(holds='{"noon": {}}'),
        "chunk-3-dataset.json, column window: 'noon' is not a number; name each window by the second at which it begins",
    ),
    *(
        (
            client(holds=dataset(**{f"at{start}": {}})),
            (
                f"chunk-3-dataset.json, column window: {start!r} is not a number from 0; "
                "name each window by the second at which it begins"
            ),
        )
        for start in ("nan", "inf", "-600", "1e999")
    ),
    (
        client("1772438400000,1,1,Gamma,1e9,1\n"),
        (
            "chunk-3-trace.csv, column window start: 1772438400599 looks like milliseconds since 1970; "
            "write times in seconds: divide them by 1000"
        ),
    ),
    (
        client(f"0,{'9' * 300},1,Gamma,1,1\n"),
        (
            f"chunk-3-trace.csv, line 1, column requests per second: {'9' * 80}... is not a number from 0 to 10000; "
            "mend the line, or leave it out"
        ),
    ),
    (client(holds='{"0": {}}'), "chunk-3-dataset.json, column 0.text_tokens: is missing"),
    *(
        (
            client(holds=dataset(at0={"image_count": shares})),
            (
                f"chunk-3-dataset.json, column 0.image_count: {cut(shares)!r} is not a text with a share for each number "
                'from 0 to 10000, such as "{1: 0.7, 2: 0.3}"'
            ),
        )
        for shares in (
            "{}",
            "{1: 0}",
            "{1: -1, 2: 3}",
            "{-1: 1}",
            "{20000: 1}",
            "[1]",
            "__import__('os')",
            "{'a': 1}",
            "(" * 500,
            "{1: 1e999}",
            "{1: 1e308, 2: 1e308}",
            f"{{{10**400}: 1}}",
            f"{{1: {10**400}}}",
        )
    ),
    (
        file(WINDOWS, "chunk-3-trace.csv"),
        "chunk-3-trace.csv says when requests come; what they hold is missing: put chunk-3-dataset.json beside it",
    ),
    (file("", "mine.csv"), "mine.csv is not a file called chunk-N-trace.csv; give one, or a folder of them"),
    (
        folder({"LICENSE": ""}),
        "traces is a folder without files called chunk-N-trace.csv; give one, or a folder of them",
    ),
]


@pytest.mark.parametrize(("given", "said"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_told_with_its_place_and_the_way_out(given: Any, said: str) -> None:
    assert refusal("servegen", given) == said
