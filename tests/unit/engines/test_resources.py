"""What a replica reserves on its node."""

from typing import Any

import pytest

from unit.engines.golden_files import inputs_of
from vlm_operator.engines.base import PodInputs
from vlm_operator.engines.vllm.resources import memory_request


def inputs(**sections: Any) -> PodInputs:
    spec = {"model": {"name": "a/b"}, "weights": {"persistentVolumeClaim": {"claimName": "models"}}}
    return inputs_of({"metadata": {"name": "a"}, "spec": spec | sections})


@pytest.mark.parametrize(
    ("sections", "tensor", "expected"),
    [
        ({}, 1, "13Gi"),  # 2 x 0.78 processes, 2 worker, 2 x 4 prepared images, 1 shared
        ({}, 8, "34Gi"),
        ({"multimodal": {"processorCache": "1Gi"}}, 1, "10Gi"),  # loading a file of 5 GiB outweighs 2 x 1
        ({"multimodal": {"processorCache": "32Gi"}}, 1, "69Gi"),
        ({"parallelism": {"tensor": 2, "data": 2}}, 2, "32Gi"),
    ],
)
def test_the_memory_request_follows_processes_and_caches(sections: dict[str, Any], tensor: int, expected: str) -> None:
    assert memory_request(inputs(**sections), tensor_parallel=tensor) == expected
