"""How quickly a trace is read, and in how much memory beyond its columns: a million requests in csv, plain and packed."""

import gzip
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from bench.table import Row

REQUESTS = 1_000_000
BYTES_PER_REQUEST = 8 + 4 * 4
"""Of the columns: float64 for the time, float32 for the others."""
_READ = """
import pathlib, re, sys, time
from vlm_operator.cli.trace_files import read_trace

def most_kib():
    return int(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])

before = most_kib()
started = time.perf_counter()
read = read_trace(sys.argv[1], "csv", seed=1)
seconds = time.perf_counter() - started
print(len(read.trace), seconds, most_kib() - before)
"""


def measure(quick: bool) -> list[Row]:
    """Each file in a process of its own, whose memory is looked at."""
    count = REQUESTS // 10 if quick else REQUESTS
    with tempfile.TemporaryDirectory() as folder:
        plain, packed = Path(folder) / "trace.csv", Path(folder) / "packed.csv"
        plain.write_bytes(_trace(count))
        packed.write_bytes(gzip.compress(plain.read_bytes(), 1))
        return [_row(plain, "plain", count), _row(packed, "packed with gzip", count)]


def _trace(count: int) -> bytes:
    chance = np.random.default_rng(1)
    times = np.cumsum(chance.exponential(0.1, count))
    vision, text, output, images = (
        chance.integers(low, high, count) for low, high in ((0, 1500), (20, 3000), (1, 400), (0, 3))
    )
    rows = zip(times.tolist(), (vision + text).tolist(), output.tolist(), images.tolist(), vision.tolist(), strict=True)
    lines = (f"{time:.3f},{prompt},{answer},{number},{seen}\n" for time, prompt, answer, number, seen in rows)
    return ("time_s,prompt_tokens,output_tokens,images,vision_tokens\n" + "".join(lines)).encode()


def _row(path: Path, how: str, count: int) -> Row:
    done = subprocess.run([sys.executable, "-c", _READ, str(path)], check=True, capture_output=True, text=True)
    read, seconds, grown_kib = (float(word) for word in done.stdout.split())
    if read != count:
        raise RuntimeError(f"{read:.0f} of {count} requests were read")
    beyond = grown_kib / 1024 - count * BYTES_PER_REQUEST / 2**20
    return Row(
        what=f"a trace of {count} requests in csv, {how}",
        ours=f"{count / seconds / 1e6:.2f} million requests/s, {beyond:.0f} MiB beyond the columns",
        aim=">= 1 million requests/s",
    )
