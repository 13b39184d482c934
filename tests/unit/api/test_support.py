"""Fields that nothing acts on yet are refused, not ignored."""

from typing import Any

import pytest

from cluster.crd.cases import MINIMAL
from vlm_operator.api.findings import UNSUPPORTED_FIELD
from vlm_operator.api.support import ACTED_ON, EXCEPT, acted_on, leads_to_acted_on, unsupported

FIELDS = [
    ("model", True, False),
    ("model.name", True, False),
    ("model.architecture.vision.layers", True, False),
    ("modelled", False, False),
    ("weights", False, True),
    ("weights.persistentVolumeClaim.claimName", True, False),
    ("weights.persistentVolumeClaim.prefetch.uri", False, False),
    ("podTemplate.compileCache", False, False),
]


@pytest.mark.parametrize(("path", "acts", "leads"), FIELDS)
def test_support_is_told_by_path(path: str, acts: bool, leads: bool) -> None:  # a table
    assert (acted_on(path), leads_to_acted_on(path)) == (acts, leads)


@pytest.mark.parametrize(
    ("overlay", "fields"),
    [
        ({}, []),
        ({"engine": {"type": "vLLM"}, "replicas": 3}, []),
        ({"weights": {"csi": {"driver": "a"}}}, ["spec.weights.csi"]),
        ({"gpu": {"memory": "48Gi", "products": ["A"]}}, []),
        ({"parallelism": {"tensor": 2}}, []),
        ({"podTemplate": {"compileCache": {}}}, ["spec.podTemplate.compileCache"]),
        ({"engine": None}, []),
    ],
)
def test_each_unsupported_part_is_named_once(overlay: dict[str, Any], fields: list[str]) -> None:
    findings = unsupported(MINIMAL | overlay)
    assert [finding.field for finding in findings] == fields
    assert all((finding.reason, finding.severity) == (UNSUPPORTED_FIELD, "Error") for finding in findings)
    assert all(finding.advice for finding in findings)


def test_exceptions_lie_within_what_is_acted_on() -> None:
    for path in EXCEPT:
        assert any(path.startswith(f"{entry}.") for entry in ACTED_ON), path
