"""How many replicas of each role there are, by size, pool and bounds."""

from typing import Any

from unit.replicas.examples import spec
from unit.replicas.tables import table
from vlm_operator.replicas.facts import Decision
from vlm_operator.replicas.settings import Settings
from vlm_operator.replicas.sizes import Sizes, sizes_of

ACTIVE, ADVISORY = {"maxReplicas": 6, "minReplicas": 2}, {"maxReplicas": 6, "mode": "Advisory"}
TARGETS = ACTIVE | {"policy": "Targets"}


def pool(size: int, mode: str | None = None) -> dict[str, Any]:
    return {"size": size} | ({"mode": mode} if mode else {})


ROWS: list[tuple[str, int, dict[str, Any], tuple[int, int, int, int]]] = [
    # sentence, size, sections, and the numbers: serving, needed, warm, ceiling
    ("without a pool", 3, {}, (3, 3, 0, 3)),
    ("in rotation, by default", 3, {"warmPool": pool(2)}, (5, 3, 0, 5)),
    ("on standby", 3, {"warmPool": pool(2, "Standby")}, (3, 3, 2, 5)),
    ("a pool of none", 3, {"warmPool": pool(0, "Standby")}, (3, 3, 0, 3)),
    ("nothing, the pool neither", 0, {"warmPool": pool(2, "Standby"), "scaling": ACTIVE}, (0, 0, 0, 0)),
    ("advice changes nothing", 3, {"warmPool": pool(2, "Standby"), "scaling": ADVISORY}, (3, 3, 2, 5)),
    ("scaled: the ceiling is the greatest number", 3, {"scaling": ACTIVE}, (3, 3, 0, 6)),
    ("scaled, on standby", 3, {"warmPool": pool(2, "Standby"), "scaling": ACTIVE}, (3, 3, 2, 6)),
    ("scaled, on standby: serving comes before warm", 5, {"warmPool": pool(2, "Standby"), "scaling": ACTIVE}, (5, 5, 1, 6)),
    ("scaled to the ceiling: no pool", 6, {"warmPool": pool(2, "Standby"), "scaling": ACTIVE}, (6, 6, 0, 6)),
    ("scaled by work, in rotation: the pool is part of the size", 5, {"warmPool": pool(2), "scaling": ACTIVE}, (5, 3, 0, 6)),
    ("scaled by work, in rotation: the least is needed", 3, {"warmPool": pool(2), "scaling": ACTIVE}, (3, 2, 0, 6)),
    ("scaled by targets, in rotation: the pool is added", 3, {"warmPool": pool(2), "scaling": TARGETS}, (5, 3, 0, 6)),
    ("scaled by targets, in rotation: not beyond the ceiling", 5, {"warmPool": pool(2), "scaling": TARGETS}, (6, 5, 0, 6)),
]  # fmt: skip


@table("size, sections, expected", ROWS)
def test_sizes(size: int, sections: dict[str, Any], expected: tuple[int, int, int, int]) -> None:
    found = sizes_of(Decision(replicas=size, reason="", message=""), Settings.of(spec(**sections)))
    serving, needed, warm, ceiling = expected
    assert found == Sizes(serving=serving, needed=needed, warm=warm, ceiling=ceiling)
    assert found.needed <= found.serving
    assert found.total <= found.ceiling
