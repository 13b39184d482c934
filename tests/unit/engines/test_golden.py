"""Ten and more varied resources, each with the pod that it becomes. See `golden_files` for how to write them again."""

import pytest

from unit.engines.golden_files import NAMES, inputs_of, rendered, resource_and_pod
from vlm_operator.engines.registry import engine


@pytest.mark.parametrize("name", NAMES)
def test_a_resource_becomes_its_golden_pod(name: str) -> None:
    resource, pod = resource_and_pod(name)
    assert rendered(resource) == pod


@pytest.mark.parametrize("name", NAMES)
def test_no_golden_resource_is_refused(name: str) -> None:
    inputs = inputs_of(resource_and_pod(name)[0])
    assert [finding for finding in engine(inputs.engine.type).check(inputs) if finding.severity == "Error"] == []


def test_there_are_at_least_ten() -> None:
    assert len(NAMES) >= 10
