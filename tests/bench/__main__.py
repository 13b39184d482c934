"""`make bench`: run the measurements, print their tables, write them as JSON."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from bench import core, crashes, creation, decisions, fleet, image, laptop, pool, sizing, takeover, traces, turmoil
from bench.table import Row, table

BENCHES: dict[str, Callable[[bool], list[Row]]] = {
    "core": core.measure,
    "crashes": crashes.measure,
    "creation": creation.measure,
    "decisions": decisions.measure,
    "fleet": fleet.measure,
    "image": image.measure,
    "laptop": laptop.measure,
    "pool": pool.measure,
    "sizing": sizing.measure,
    "takeover": takeover.measure,
    "traces": traces.measure,
    "turmoil": turmoil.measure,
}
RESULTS = Path(__file__).parents[2] / ".build" / "bench"


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("names", nargs="*", default=list(BENCHES), metavar="NAME", help=f"of {', '.join(BENCHES)}")
    parser.add_argument("--quick", action="store_true", help="few repetitions: shows that it runs, measures badly")
    options = parser.parse_args()
    unknown = set(options.names) - BENCHES.keys()
    if unknown:
        parser.error(f"no such measurement: {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
    rows: list[Row] = []
    for name in options.names:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        found = BENCHES[name](options.quick)
        print(table(found), flush=True)
        rows += found
    now = datetime.now(tz=UTC)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{now:%Y%m%dT%H%M%SZ}.json"
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()[0]}
    path.write_text(
        json.dumps({"time": now.isoformat(), "machine": machine, "rows": [row.as_dict() for row in rows]}, indent=1)
    )
    print(f"written to {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
