"""Traces of Mooncake: of a prompt, what no earlier one left in the cache is computed."""

import json
from typing import Any

import pytest

from unit.simulator.traces.given import file, folder, read, refusal


def request(
    timestamp: Any = 0, input_length: Any = 1000, output_length: Any = 5, hash_ids: Any = (1, 2)
) -> dict[str, Any]:
    return {"timestamp": timestamp, "input_length": input_length, "output_length": output_length, "hash_ids": hash_ids}


def text(*requests: Any) -> str:
    return "".join(json.dumps(one) + "\n" for one in requests)


def test_times_are_milliseconds_and_there_are_no_images() -> None:
    trace = read("mooncake", file(text(request(1500), request(2750, output_length=7, hash_ids=[3])))).trace
    assert trace.times.tolist() == [0, 1.25]
    assert trace.output_tokens.tolist() == [5, 7]
    assert trace.images.tolist() == trace.vision_tokens.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("hashes", "computed"),
    [
        ([7, 8, 9], 1500),
        ([1, 8, 9], 1500 - 512),
        ([1, 2, 9], 1500 - 2 * 512),
        ([1, 2, 3], 32),
        ([7, 2, 3], 1500),
        ([1, 7, 3], 1500 - 512),
        ([], 1500),
    ],
)
def test_leading_blocks_that_came_before_are_not_computed_again(hashes: list[int], computed: int) -> None:
    first = request(0, 1500, hash_ids=[1, 2, 3])
    trace = read("mooncake", file(text(first, request(1, 1500, hash_ids=hashes)))).trace
    assert trace.prompt_tokens.tolist() == [1500, computed]


def test_what_is_behind_a_new_block_is_in_the_cache_for_those_that_follow() -> None:
    requests = [request(time, 1024, hash_ids=[time, 5]) for time in (1, 2, 2)]
    assert read("mooncake", file(text(*requests))).trace.prompt_tokens.tolist() == [1024, 1024, 32]


WRONG = [
    ("\n", "t.csv holds no requests; give a line of JSON for each request"),
    ("", "t.csv holds no requests; give a line of JSON for each request"),
    (text(request()) + "{cut", "t.csv, line 2: is not JSON; mend the line, or leave it out"),
    ("[" * 100_000, "t.csv, line 1: is not JSON; mend the line, or leave it out"),
    ("[1]\n", "t.csv, line 1: is not a JSON object; mend the line, or leave it out"),
    (
        text(request(5), request(4)),
        (
            "t.csv, line 2, column timestamp: 4 is earlier than 5 before it; what is in the cache depends on the order, "
            "so sort the lines by timestamp"
        ),
    ),
    (
        text(request(-1)),
        "t.csv, line 1, column timestamp: -1 is not a number from 0; mend the line, or leave it out",
    ),
    (
        text(request(input_length="many")),
        't.csv, line 1, column input_length: "many" is not a number from 0 to 1e+09; mend the line, or leave it out',
    ),
    (
        text(request(output_length=float("nan"))),
        "t.csv, line 1, column output_length: NaN is not a number from 0 to 1e+09; mend the line, or leave it out",
    ),
    (
        text(request(output_length=True)),
        "t.csv, line 1, column output_length: true is not a number from 0 to 1e+09; mend the line, or leave it out",
    ),
    (
        text(request(output_length=10**400)),
        f"t.csv, line 1, column output_length: 1{'0' * 79}... is not a number from 0 to 1e+09; mend the line, or leave it out",
    ),
    (
        text(request(0), request(86_400_000_000)),
        (
            "t.csv, column timestamp: goes from 0 to 86400000000, 1000 days; a trace may have up to 366; "
            "write times in milliseconds (of microseconds: divide by 1000)"
        ),
    ),
    (
        text(request(1772438400250000)),
        (
            "t.csv, column timestamp: 1772438400250000 looks like microseconds since 1970; "
            "write times in milliseconds: divide them by 1000"
        ),
    ),
    (
        text(request(10**300)),
        "t.csv, column timestamp: 1e+300 is later than any date; write times in milliseconds",
    ),
    (
        text(request(), {"timestamp": 1, "input_length": 2}),
        "t.csv, line 2, column hash_ids: is missing; mend the line, or leave it out",
    ),
    (
        text({"timestamp": 1, "output_length": 2, "hash_ids": []}),
        "t.csv, line 1, column input_length: is missing; mend the line, or leave it out",
    ),
    (
        text(request(hash_ids=[1, "a"])),
        't.csv, line 1, column hash_ids: [1, "a"] is not a list of whole numbers; mend the line, or leave it out',
    ),
]


@pytest.mark.parametrize(("given", "said"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_told_with_its_place_and_the_way_out(given: str, said: str) -> None:
    assert refusal("mooncake", file(given)) == said


def test_of_a_folder_its_only_jsonl_file_is_read() -> None:
    assert len(read("mooncake", folder({"LICENSE": "free", "synthetic.jsonl": text(request())})).trace) == 1
