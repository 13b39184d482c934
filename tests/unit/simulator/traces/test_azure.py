"""Traces of Azure: times as they are published, no images."""

import pytest

from unit.simulator.traces.given import file, folder, read, refusal

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
PUBLISHED = (
    HEADER
    + "2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 18:17:04.0319600,3180,8\r\n2023-11-17 18:17:04.0319600,1,2"
)


def test_a_trace_as_it_is_published() -> None:
    trace = read("azure", file(PUBLISHED)).trace
    assert trace.times.tolist() == pytest.approx([0, 0.052, 86400.052], abs=1e-6)
    assert trace.prompt_tokens.tolist() == [4808, 3180, 1]
    assert trace.output_tokens.tolist() == [10, 8, 2]
    assert trace.images.tolist() == trace.vision_tokens.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "times",
    [
        ("2024-05-10 00:00:00.009930+00:00", "2024-05-10 00:00:01.009930+00:00"),
        ("2024-05-10T00:00:00Z", "2024-05-10T02:00:01+02:00"),
        ("2024-03-31 01:59:59.5", "2024-03-31 02:00:00.5"),
    ],
    ids=["published 2024", "zones", "an hour that some clocks skip"],
)
def test_times_are_in_utc_where_they_name_no_zone(times: tuple[str, str]) -> None:
    text = HEADER + "".join(f"{time},1,1\n" for time in times)
    assert read("azure", file(text)).trace.seconds == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            PUBLISHED + "\nyesterday,1,2\n",
            (
                "t.csv, line 5, column TIMESTAMP: 'yesterday' is not a time such as 2023-11-16 18:17:03.97; "
                "mend the line, or leave it out"
            ),
        ),
        (
            PUBLISHED + "\n2023-11-18 18:17:03,1,-2\n",
            "t.csv, line 5, column GeneratedTokens: -2 is not a number from 0 to 1e+09; mend the line, or leave it out",
        ),
        (
            "time_s,prompt_tokens\n1,2\n",
            (
                "t.csv, line 1: columns TIMESTAMP, ContextTokens, GeneratedTokens are missing, "
                "and 'time_s', 'prompt_tokens' are not known; "
                "the first line must be TIMESTAMP,ContextTokens,GeneratedTokens"
            ),
        ),
        (
            HEADER + f"{'2' * 300}-11-16 18:17:03,1,1\n",
            (
                f"t.csv, line 2, column TIMESTAMP: '{'2' * 80}...' is not a time such as 2023-11-16 18:17:03.97; "
                "mend the line, or leave it out"
            ),
        ),
        (
            HEADER + "1969-12-31 23:59:59,1,1\n",
            "t.csv, line 2, column TIMESTAMP: '1969-12-31 23:59:59' is before 1970; mend the line, or leave it out",
        ),
        (
            HEADER + "2023-11-16 18:17:03.97,1,1\n2025-11-17,1,1\n",
            (
                "t.csv, column TIMESTAMP: goes from 2023-11-16 18:17:03 to 2025-11-17 00:00:00, 731 days; "
                "a trace may have up to 366; leave out the requests before or after"
            ),
        ),
        (
            HEADER + "2023-11-16 18:17:03,,1\n",
            "t.csv, line 2, column ContextTokens: an empty field is not a number; mend the line, or leave it out",
        ),
    ],
)
def test_what_is_wrong_is_told(text: str, said: str) -> None:
    assert refusal("azure", file(text)) == said


def test_the_last_moment_that_can_be_written_is_read() -> None:
    assert len(read("azure", file(HEADER + "9999-12-31T23:59:59-23:59,1,1\n")).trace) == 1


def test_of_a_folder_its_only_csv_file_is_read() -> None:
    assert len(read("azure", folder({"LICENSE": "free", "code.csv": PUBLISHED})).trace) == 3
    assert len(read("azure", folder({"code.csv.gz": PUBLISHED})).trace) == 3


def test_a_folder_with_several_traces_or_none_is_refused() -> None:
    both = folder({"conv.csv": PUBLISHED, "code.csv": PUBLISHED})
    assert (
        refusal("azure", both)
        == "traces holds 2 files whose name ends with .csv; name one of them, for example code.csv"
    )
    assert refusal("azure", folder({})) == "traces is a folder without a file whose name ends with .csv; name the file"
