"""`make bench-scaling`: replay everything, and write tables and pictures."""

import argparse
import sys
import time
from hashlib import sha256
from pathlib import Path

from bench.scaling.grid import FULL, REDUCED, found
from bench.scaling.jobs import Runner
from bench.scaling.report import write

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / ".build" / "bench-scaling"
TRACES = ROOT.parent / "shared" / "traces"


def digest(folder: Path | None) -> str:
    """A word that changes with whatever decides the results: the code, and the traces."""
    told = sha256()
    code = (ROOT / "operator" / "vlm_operator", Path(__file__).parent)
    for file in sorted(path for root in code for path in root.rglob("*.py")):
        told.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    for file in sorted(path for path in (folder.rglob("*") if folder is not None else ()) if path.is_file()):
        known = file.stat()
        told.update(f"{file} {known.st_size} {known.st_mtime_ns}\0".encode())
    return told.hexdigest()[:12]


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="make bench-scaling", description=__doc__)
    parser.add_argument("--traces", type=Path, help="folder with traces: files, and folders of files")
    parser.add_argument("--full", action="store_true", help="every cold start, scrape and routing, and longer traces")
    parser.add_argument("--publish", action="store_true", help="write the tables and pictures into docs, too")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    if options.traces is not None and not options.traces.is_dir():
        print(f"{options.traces} is no folder; give TRACES the folder that holds the traces", file=sys.stderr)
        return 2
    folder = options.traces or (TRACES if TRACES.is_dir() else None)
    if folder is None:
        print("no traces are given: only workloads that are made are replayed; see TRACES", file=sys.stderr)
    extent = FULL if options.full else REDUCED
    RESULTS.mkdir(parents=True, exist_ok=True)
    kept = RESULTS / f"{'full' if options.full else 'reduced'}-{digest(folder)}.jsonl"
    print(f"results are kept in {kept.relative_to(ROOT)}, so that a run that is cut goes on", file=sys.stderr)
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
