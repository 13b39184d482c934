"""Failures that a pod itself does not explain: its node has the log, its events the cause, the cluster knows of its node."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.support.node_logs import NodeLogs, serving_logs
from cluster.support.operator import Deployments, RunningOperator
from cluster.support.stuck import CANNOT_MOUNT, START_LATE, stuck
from controlplane import ControlPlane, l4, wait_until
from unit.engines.failure_texts import CORE, HEALTHY

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

NODE = "gpu-of-its-own"
THERE = {
    "podTemplate": {
        "nodeSelector": {"kubernetes.io/hostname": NODE},
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
    }
}
DIED = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
CAUSE = (
    "ValueError: To serve at least one request with the model's max seq len (8192), (1.91 GiB KV cache is needed, which is larger"
    " than the available KV cache memory (1.0 GiB). Based on the available memory, the estimated maximum model length is 4096."
)


@pytest.fixture
def node(control_plane: ControlPlane) -> Iterator[str]:
    """A node for the test alone."""
    control_plane.add_gpu_nodes(l4(NODE, gpus=4))
    yield NODE
    control_plane.api.delete(f"/api/v1/nodes/{NODE}")


@pytest.fixture
def logs(control_plane: ControlPlane, node: str, tmp_path: Path) -> Iterator[NodeLogs]:
    """The logs that the node serves."""
    with serving_logs(control_plane, node, tmp_path) as served:
        yield served


def test_what_the_message_does_not_tell_is_read_in_the_log_and_what_waiting_cannot_mend_is_given_up(
    deployments: Deployments, logs: NodeLogs
) -> None:
    deployments.create(**THERE)
    deployments.until_ready()
    (name,) = deployments.pods()
    logs.texts[name] = HEALTHY + CORE.format(CAUSE)
    deployments.annotate_pod(name, fault="exit", exit_code="1", message=DIED, back_off="1s")
    explained = deployments.until("Available", "False", reason="KVCacheTooSmall")
    assert "set spec.model.maxModelLen to 4096 or less" in explained["message"]
    deployments.until_pods(lambda pods: name not in pods, "are without it: the next one would fail alike")
    queries = [query for pod, query in logs.asked if pod == name]
    assert 1 <= len(queries) == len(logs.asked) <= 2, "once for each end"
    assert all(query["previous"] == "true" for query in queries)


def test_a_node_that_does_not_hand_out_the_log_is_told(deployments: Deployments) -> None:
    deployments.create()
    deployments.until_ready()
    deployments.annotate_pod(min(deployments.pods()), fault="exit", exit_code="1", message=DIED)
    deployments.until("Available", "False", reason="EngineDied")
    told = "the end of its log could not be read: "
    wait_until(lambda: told in deployments.condition("Available").get("message", ""), "the condition tells it")


def test_a_volume_that_cannot_be_mounted_is_told_by_the_events_of_the_pod(
    deployments: Deployments, control_plane: ControlPlane, node: str
) -> None:
    control_plane.api.merge_patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": START_LATE}})
    deployments.create(**THERE)
    stuck(deployments)
    assert CANNOT_MOUNT in deployments.until("Available", "False", reason="MountFailed")["message"]


def test_a_replica_whose_node_does_not_answer_is_told(
    deployments: Deployments, control_plane: ControlPlane, node: str, operator: RunningOperator
) -> None:
    deployments.create(**THERE)
    deployments.until_ready()
    control_plane.lose_node(node)
    deployments.until("Available", "False", reason="NodeLost")
    wait_until(lambda: "NodeLost" in operator.text(), "the log tells it")
