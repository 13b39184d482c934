"""The sizing at work on the real API server: before a GPU is booked."""

from typing import Any

import pytest

from cluster.support.operator import Deployments

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

MODEL = {"name": "Qwen/Qwen2.5-VL-7B-Instruct", "size": "7B", "quantization": "AWQ", "maxModelLen": 32768}
FITTING: dict[str, Any] = {
    "model": MODEL,
    "gpu": {"products": ["NVIDIA-L4", "NVIDIA-H100-80GB-HBM3"]},
    "multimodal": {"limitsPerPrompt": {"image": 2, "video": 0}, "maxPixels": 1003520},
}


def argument(pod: dict[str, Any], flag: str) -> str:
    args: list[str] = pod["spec"]["containers"][0]["args"]
    return args[args.index(flag) + 1]


def test_a_degree_that_the_heads_do_not_allow_is_refused_and_nothing_is_created(deployments: Deployments) -> None:
    deployments.create(**FITTING, parallelism={"tensor": 3})
    refused = deployments.until("Accepted", "False", reason="TensorParallelHeads")
    assert "28 attention heads" in refused["message"]
    assert "set tensor to 1, 2 or 4" in refused["message"]
    assert deployments.pods() == {}
    deployments.patch(parallelism={"tensor": 2})
    deployments.until_ready()


def test_a_refused_edit_leaves_the_running_revision(deployments: Deployments) -> None:
    deployments.create(**FITTING)
    deployments.until_ready()
    before = deployments.pods()
    deployments.patch(parallelism={"tensor": 3})
    deployments.until("Accepted", "False", reason="TensorParallelHeads")
    assert deployments.pods().keys() == before.keys()
    deployments.until("Available", "True")
    deployments.patch(parallelism={"tensor": 1})
    deployments.until_ready()
    assert deployments.pods().keys() == before.keys()


def test_auto_becomes_the_smallest_degree_that_fits(deployments: Deployments) -> None:
    sixteen_bits = {"name": MODEL["name"], "size": "7B", "maxModelLen": 100_000}
    l4 = {"gpu": {"products": ["NVIDIA-L4"]}, "model": sixteen_bits}
    deployments.create(**FITTING | l4, parallelism={"tensor": "Auto"})
    deployments.until_ready()
    (pod,) = deployments.pods().values()
    assert argument(pod, "--tensor-parallel-size") == "2"
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "2"


def test_checks_that_only_warn_let_it_through(deployments: Deployments) -> None:
    deployments.create(**FITTING, parallelism={"tensor": 3}, checks="Warn")
    accepted = deployments.until("Accepted", "True")
    assert "28 attention heads" in accepted["message"]


def test_a_claim_for_one_node_is_a_warning_with_several_replicas(deployments: Deployments) -> None:
    deployments.control_plane.bound_claim(deployments.namespace, "single", mode="ReadWriteOnce")
    deployments.create(**FITTING, replicas=2, weights={"persistentVolumeClaim": {"claimName": "single"}})
    accepted = deployments.until("Accepted", "True")
    assert "claim single is ReadWriteOnce: one node can mount it, and there may be 2 replicas" in accepted["message"]
