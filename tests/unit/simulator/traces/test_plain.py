"""The simulator's own csv: what is read, and what is told of everything that is wrong with a file."""

import bz2
import gzip
import io
import lzma

import numpy as np
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from unit.simulator.traces.given import file, folder, read, refusal
from vlm_operator.simulator.trace import Trace
from vlm_operator.simulator.traces import stream
from vlm_operator.simulator.traces.times import LATEST_SECONDS, LONGEST_DAYS

HEADER = "time_s,prompt_tokens,output_tokens,images,vision_tokens\n"
ROW = "1,100,10,1,64\n"


def columns(trace: Trace) -> list[list[float]]:
    parts = (trace.times, trace.prompt_tokens, trace.output_tokens, trace.images, trace.vision_tokens)
    return [part.tolist() for part in parts]


def test_columns_of_requests_whose_times_count_from_the_first() -> None:
    found = read("csv", file(HEADER + "5.5,812,96,1,768\n6,40,7,0,0\n"))
    assert columns(found.trace) == [[0.0, 0.5], [812, 40], [96, 7], [1, 0], [768, 0]]
    assert found.notices == ()
    assert found.trace.times.dtype == np.float64
    assert found.trace.prompt_tokens.dtype == np.float32


def test_prompt_tokens_are_read_as_they_are_those_of_images_among_them() -> None:
    assert read("csv", file(HEADER + "0,100,1,2,100\n")).trace.vision_tokens.tolist() == [100]


@pytest.mark.parametrize(
    "text",
    [
        "images,vision_tokens,time_s,prompt_tokens,output_tokens\n1,64,7,100,10\n",
        "\ufeff" + HEADER + ROW,
        (HEADER + ROW).replace("\n", "\r\n"),
        HEADER + "\n" + ROW + "\n\n",
        HEADER + ROW.rstrip("\n"),
        HEADER.replace(",", " , ") + "1, 100 ,10,1,64",
        '"time_s","prompt_tokens","output_tokens","images","vision_tokens"\n"1","100","10","1","64"\n',
        HEADER + "1e0,1e2,10.0,+1,64.\n",
    ],
    ids=[
        "other order",
        "byte order mark",
        "Windows",
        "empty lines",
        "no last line end",
        "blanks",
        "quotes",
        "spellings",
    ],
)
def test_spellings_that_mean_the_same(text: str) -> None:
    assert columns(read("csv", file(text)).trace) == [[0.0], [100], [10], [1], [64]]


def test_one_request_and_a_gap_of_a_day() -> None:
    assert read("csv", file(HEADER + ROW)).trace.seconds == 0.0
    assert read("csv", file(HEADER + ROW + "86401,1,1,0,0\n")).trace.seconds == 86400.0


def test_seconds_since_1970_keep_their_fractions() -> None:
    text = HEADER + "1700000000.123456,1,1,0,0\n1700000000.223457,1,1,0,0\n"
    assert read("csv", file(text)).trace.seconds == pytest.approx(0.100001, abs=5e-7)


def test_gzip_is_known_by_its_first_bytes() -> None:
    packed = gzip.compress((HEADER + ROW).encode())
    assert len(read("csv", file(packed, "trace.csv")).trace) == 1
    assert len(read("csv", file((HEADER + ROW).encode(), "trace.csv.gz")).trace) == 1


def test_requests_out_of_order_are_put_in_order_with_a_notice_because_gateways_log_them_when_they_end() -> None:
    found = read("csv", file(HEADER + "5,1,1,0,0\n9,2,2,0,0\n\n3,3,3,0,0\n8,4,4,0,0\n7,5,5,0,0\n"))
    assert found.trace.times.tolist() == [0, 2, 4, 5, 6]
    assert found.trace.prompt_tokens.tolist() == [3, 1, 5, 4, 2]
    assert found.notices == (
        (
            "t.csv, line 5: is 6 s earlier than the line before (one of 2 such lines); "
            "the requests are replayed in the order of their times"
        ),
    )


def test_requests_of_the_same_moment_stay_in_the_order_of_the_file() -> None:
    found = read("csv", file(HEADER + "5,1,1,0,0\n4,2,2,0,0\n5,3,3,0,0\n4,4,4,0,0\n"))
    assert found.trace.prompt_tokens.tolist() == [2, 4, 1, 3]


WRONG = [
    ("", "t.csv is empty; it must begin with the line time_s,prompt_tokens,output_tokens,images,vision_tokens"),
    (HEADER, "t.csv has a header and no requests; add a line for each request"),
    (HEADER + "\n\r\n", "t.csv has a header and no requests; add a line for each request"),
    (
        HEADER.replace(",images", ""),
        f"t.csv, line 1: column images is missing; the first line must be {HEADER.strip()}",
    ),
    (
        HEADER.replace("images", "pictures"),
        f"t.csv, line 1: column images is missing, and 'pictures' is not known; the first line must be {HEADER.strip()}",
    ),
    (
        HEADER.replace("time_s", "time").replace("images", "pictures").replace("vision_tokens", "user"),
        (
            "t.csv, line 1: columns time_s, images, vision_tokens are missing, and 'time', 'pictures', 'user' are not known; "
            f"the first line must be {HEADER.strip()}"
        ),
    ),
    (
        "x" * 1000,
        (
            f"t.csv, line 1: columns {', '.join(HEADER.strip().split(','))} are missing, and '{'x' * 199}... is not known; "
            f"the first line must be {HEADER.strip()}"
        ),
    ),
    (
        HEADER.strip() + ",user\n1,2,3,4,5,6\n",
        f"t.csv, line 1: 'user' is not known; remove it: the first line must be {HEADER.strip()}",
    ),
    (
        HEADER.strip() + ",user,model\n1,2,3,4,5,6,7\n",
        f"t.csv, line 1: 'user', 'model' are not known; remove them: the first line must be {HEADER.strip()}",
    ),
    (
        HEADER.strip() + ",images\n1,2,3,4,5,6\n",
        f"t.csv, line 1, column images: is there twice; the first line must be {HEADER.strip()}",
    ),
    (HEADER.replace(",", ";"), "t.csv, line 1: its fields are separated by semicolons; separate them by commas"),
    (HEADER.replace(",", "\t"), "t.csv, line 1: its fields are separated by tabs; separate them by commas"),
    (HEADER.replace(",", "|"), "t.csv, line 1: its fields are separated by bars; separate them by commas"),
    (
        (HEADER + ROW).replace("\n", "\r"),
        "t.csv, line 1: its lines end with carriage returns alone; end them with line feeds",
    ),
    (
        HEADER + ROW + '"1\n",100,10,1,64\n',
        "t.csv, line 3, column prompt_tokens: is missing: the line has 1 of 5 fields; mend the line, or leave it out",
    ),
    (
        HEADER + f"1,{'1' * 300},10,1,64\n",
        f"t.csv, line 2, column prompt_tokens: {'1' * 80}... is not a number from 0 to 1e+09; mend the line, or leave it out",
    ),
    (
        HEADER + f"1,100,{'x' * 300},1,64\n",
        f"t.csv, line 2, column output_tokens: '{'x' * 80}...' is not a number; mend the line, or leave it out",
    ),
    (
        HEADER + ROW + "2,100,ten,1,64\n",
        "t.csv, line 3, column output_tokens: 'ten' is not a number; mend the line, or leave it out",
    ),
    (
        HEADER + ROW + "\n2,100,,1,64\n",
        "t.csv, line 4, column output_tokens: an empty field is not a number; mend the line, or leave it out",
    ),
    (
        HEADER + ROW + "2,100,1_0,1,64\n",
        "t.csv, line 3, column output_tokens: '1_0' is not a number; mend the line, or leave it out",
    ),
    (
        HEADER + "-1,100,10,1,64\n",
        "t.csv, line 2, column time_s: -1 is not a number from 0; mend the line, or leave it out",
    ),
    (
        HEADER + ROW + "nan,100,10,1,64\n",
        "t.csv, line 3, column time_s: nan is not a number from 0; mend the line, or leave it out",
    ),
    (
        HEADER + ROW + "inf,100,10,1,64\n",
        "t.csv, line 3, column time_s: inf is not a number from 0; mend the line, or leave it out",
    ),
    (
        HEADER + ROW + "1e999,100,10,1,64\n",
        "t.csv, line 3, column time_s: 1e999 is not a number from 0; mend the line, or leave it out",
    ),
    (
        HEADER + ROW + "2,-100,10,1,64\n",
        "t.csv, line 3, column prompt_tokens: -100 is not a number from 0 to 1e+09; mend the line, or leave it out",
    ),
    (
        HEADER + ROW + "2,100,NaN,1,64\n",
        "t.csv, line 3, column output_tokens: NaN is not a number from 0 to 1e+09; mend the line, or leave it out",
    ),
    (
        HEADER + ROW + "2,100,10,1e10,64\n",
        "t.csv, line 3, column images: 1e10 is not a number from 0 to 1e+09; mend the line, or leave it out",
    ),
    (
        HEADER + ROW + "2,100,10,1,101\n",
        (
            "t.csv, line 3, column vision_tokens: 101 is more than prompt_tokens (100), which counts the tokens of images too; "
            "mend the line, or leave it out"
        ),
    ),
    (
        HEADER + ROW + "2,100,10,1\n",
        "t.csv, line 3, column vision_tokens: is missing: the line has 4 of 5 fields; mend the line, or leave it out",
    ),
    (
        HEADER + "2,100,10,1\n2,100,10,1\n",
        "t.csv, line 2, column vision_tokens: is missing: the line has 4 of 5 fields; mend the line, or leave it out",
    ),
    (
        HEADER + ROW + "2,100,10,1,64,7\n",
        "t.csv, line 3: has 6 fields for 5 columns; mend the line, or leave it out",
    ),
    (
        HEADER + "0,1,1,0,0\n86400000,1,1,0,0\n",
        (
            "t.csv, column time_s: goes from 0 to 86400000, 1000 days; a trace may have up to 366; "
            "write times in seconds (of milliseconds: divide by 1000)"
        ),
    ),
    *(
        (
            HEADER + "".join(f"{time}{zeros},1,1,0,0\n" for time in (1772438400250, 1772438400500)),
            (
                f"t.csv, column time_s: 1772438400500{zeros} looks like {unit} since 1970; "
                f"write times in seconds: divide them by 1000{zeros}"
            ),
        )
        for zeros, unit in (("", "milliseconds"), ("000", "microseconds"), ("000000", "nanoseconds"))
    ),
    (
        HEADER + ROW + "1772438400250,1,1,0,0\n",
        (
            "t.csv, column time_s: 1772438400250 looks like milliseconds since 1970; "
            "write times in seconds: divide them by 1000"
        ),
    ),
    (
        HEADER + f"{'9' * 300},1,1,0,0\n",
        "t.csv, column time_s: 1e+300 is later than any date; write times in seconds",
    ),
]


@pytest.mark.parametrize(("text", "said"), WRONG, ids=[said.partition(";")[0][:100] for _, said in WRONG])
def test_what_is_wrong_is_told_with_its_place_and_the_way_out(text: str, said: str) -> None:
    assert refusal("csv", file(text)) == said


BROKEN = [
    (
        (HEADER + ROW).encode("utf-16"),
        "t.csv is no text: it holds zero bytes; give plain UTF-8 text, as it is or packed with gzip",
    ),
    (b"PAR1\x00\x15\x04", "t.csv is no text: it holds zero bytes; give plain UTF-8 text, as it is or packed with gzip"),
    ((HEADER + ROW + "2,1,é,0,0\n").encode("latin-1"), "t.csv, line 3: is not UTF-8 text; save the file as UTF-8"),
    (
        gzip.compress((HEADER + ROW * 1000).encode())[:-12],
        "t.csv is packed with gzip and ends too early; get it once more (gzip -t tells whether it is whole)",
    ),
    (
        gzip.compress((HEADER + ROW).encode())[:-8] + bytes(range(8)),
        "t.csv is packed with gzip and is damaged; get it once more (gzip -t tells whether it is whole)",
    ),
    (
        gzip.compress((HEADER + ROW).encode()) + b"and more",
        "t.csv is packed with gzip and is damaged; get it once more (gzip -t tells whether it is whole)",
    ),
    (b"PK\x03\x04\x14\x00", "t.csv is packed with zip; unpack it, or pack it with gzip"),
    (bz2.compress(ROW.encode()), "t.csv is packed with bzip2; unpack it, or pack it with gzip"),
    (lzma.compress(ROW.encode()), "t.csv is packed with xz; unpack it, or pack it with gzip"),
    (b"\x28\xb5\x2f\xfd\x24\x09", "t.csv is packed with zstd; unpack it, or pack it with gzip"),
    (b"1" * (stream.LONGEST_LINE + 1), "t.csv has a line of more than 1048576 bytes; a trace has one request a line"),
]


@pytest.mark.parametrize(
    ("data", "said"),
    BROKEN,
    ids=["UTF-16", "binary", "latin-1", "cut", "damaged", "more", "zip", "bzip2", "xz", "zstd", "one line"],
)
def test_what_is_no_text_is_told(data: bytes, said: str) -> None:
    assert refusal("csv", file(data)) == said


def test_a_folder_is_no_csv_file() -> None:
    assert refusal("csv", folder({"t.csv": HEADER + ROW})) == "traces is a folder; name the csv file itself"


def test_places_are_right_in_every_block_of_a_long_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "BLOCK_BYTES", 100)
    text = HEADER + "".join(f"{number},100,10,1,64\n" for number in range(100))
    assert read("csv", file(text)).trace.times.tolist() == list(range(100))
    assert refusal("csv", file(text + "100,100,x,1,64\n")).startswith("t.csv, line 102, column output_tokens: 'x' is")
    assert refusal("csv", file(text + "100,100,10,1,-64\n")).startswith("t.csv, line 102, column vision_tokens: -64 is")
    assert read("csv", file(text + "90,100,10,1,64\n")).notices[0].startswith("t.csv, line 102: is 9 s earlier")


def test_the_longest_trace_is_read() -> None:
    assert (
        read("csv", file(HEADER + ROW + f"{LONGEST_DAYS * 86400 + 1},1,1,0,0\n")).trace.seconds == LONGEST_DAYS * 86400
    )


def test_the_latest_time_is_read() -> None:
    assert len(read("csv", file(HEADER + f"{LATEST_SECONDS:.0f},1,1,0,0\n")).trace) == 1


amounts = st.floats(0, 1e6, width=32)
requests = st.tuples(st.floats(0, 1e6), amounts, amounts, st.integers(0, 500), st.floats(0, 1))


@examples(st.lists(requests, min_size=1, max_size=20), st.integers(20, 200), st.booleans())
def test_what_is_written_is_read_whatever_the_blocks_are(
    wanted: list[tuple[float, ...]], block_bytes: int, packed: bool
) -> None:
    wanted = sorted(wanted)
    rows = np.array(
        [
            (time, prompt, output, images, float(np.float32(prompt * share)))
            for time, prompt, output, images, share in wanted
        ]
    )
    out = io.StringIO()
    out.write(HEADER)
    for row in rows.tolist():
        out.write(",".join(repr(field) for field in row) + "\n")
    data = out.getvalue().encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "BLOCK_BYTES", block_bytes)
        found = read("csv", file(gzip.compress(data) if packed else data))
    assert found.notices == ()
    assert columns(found.trace) == [(rows[:, 0] - rows[0, 0]).tolist(), *rows[:, 1:].astype(np.float32).T.tolist()]


@examples(st.permutations(list(range(8))))
def test_the_order_of_the_lines_does_not_matter_where_no_two_times_are_equal(order: list[int]) -> None:
    text = HEADER + "".join(f"{number},{number},1,0,0\n" for number in order)
    assert read("csv", file(text)).trace.prompt_tokens.tolist() == list(range(8))
