"""`make bench-scaling`: replay everything, and write tables and pictures."""

import argparse
import sys
import time
from pathlib import Path

from bench.scaling.grid import FULL, REDUCED, found
from bench.scaling.jobs import Runner
from bench.scaling.report import write

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / ".build" / "bench-scaling"
TRACES = ROOT.parent / "shared" / "traces"


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="make bench-scaling", description=__doc__)
    parser.add_argument("--traces", type=Path, default=TRACES, help="folder with traces: files, and folders of files")
    parser.add_argument("--full", action="store_true", help="every cold start, scrape and routing, and longer traces")
    parser.add_argument("--publish", action="store_true", help="write the tables and pictures into docs, too")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    folder = options.traces if options.traces.is_dir() else None
    if folder is None:
        print(f"there is no folder {options.traces}: only workloads that are made are replayed", file=sys.stderr)
    extent = FULL if options.full else REDUCED
    RESULTS.mkdir(parents=True, exist_ok=True)
    kept = RESULTS / ("full.jsonl" if options.full else "reduced.jsonl")
    print(f"results are kept in {kept.relative_to(ROOT)}: delete it to run everything anew", file=sys.stderr)
    begun = time.monotonic()
    all_of_it = found(Runner(kept, folder, hours=extent.hours, processes=options.processes), folder, extent)
    page = write(all_of_it, RESULTS)
    if options.publish:
        write(all_of_it, ROOT / "docs")
    print(page.read_text())
    print(f"written to {page.relative_to(ROOT)} within {(time.monotonic() - begun) / 60:.0f} minutes", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
