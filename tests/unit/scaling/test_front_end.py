"""Workers of the front end by how the engine is started."""

from typing import Any

import pytest

from vlm_operator.scaling.front_end import derived_workers
from vlm_operator.scaling.policy import Source, Workers

ROWS: list[tuple[str, dict[str, Any], float, Source]] = [
    ("nothing is known", {}, 1, Source.ASSUMED),
    ("processes", {"processes": 4}, 4, Source.DERIVED),
    ("processes with several workers", {"processes": 2, "workers_per_process": 3}, 6, Source.DERIVED),
    ("no more than cores", {"processes": 4, "cores": 2.5}, 2.5, Source.DERIVED),
    ("cores alone make no worker", {"cores": 16.0}, 1, Source.DERIVED),
    ("less than a core is one worker, if a slow one", {"cores": 0.5}, 1, Source.DERIVED),
    ("none is one", {"processes": 0, "workers_per_process": 0}, 1, Source.DERIVED),
]


@pytest.mark.parametrize(("what", "started", "count", "source"), ROWS, ids=[row[0] for row in ROWS])
def test_workers(what: str, started: dict[str, Any], count: float, source: Source) -> None:
    assert derived_workers(**started) == Workers(count=count, source=source), what
