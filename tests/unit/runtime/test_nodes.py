"""Nodes of the cluster: read once for all that ask, and an error is no answer."""

import asyncio
from typing import Any, cast

import pytest

from vlm_operator.replicas.facts import GpuNode
from vlm_operator.runtime import nodes as nodes_module
from vlm_operator.runtime.kinds import NODE, Kind
from vlm_operator.runtime.kube import Kube, KubeError
from vlm_operator.runtime.nodes import TRUSTED, TRUSTED_AFTER_A_FAILURE, Nodes

GPU = GpuNode(product="NVIDIA-L4", resources={"nvidia.com/gpu": 4})
LIVE = {
    "metadata": {"name": "n", "labels": {"nvidia.com/gpu.product": "NVIDIA-L4"}},
    "status": {"allocatable": {"nvidia.com/gpu": "4", "cpu": "8"}},
}
TROUBLE = KubeError(500, "InternalError", "not now")


class Lists:
    """Lists of nodes, each answered after a moment."""

    def __init__(self) -> None:
        self.answers: list[list[dict[str, Any]] | KubeError] = []
        self.now = 0.0

    async def list(self, kind: Kind, *, namespace: str | None) -> tuple[list[dict[str, Any]], int]:
        assert (kind, namespace) == (NODE, None)
        await asyncio.sleep(0)
        answer = self.answers.pop(0)
        if isinstance(answer, KubeError):
            raise answer
        return answer, 1


@pytest.fixture
def lists(monkeypatch: pytest.MonkeyPatch) -> Lists:
    found = Lists()
    monkeypatch.setattr(nodes_module.time, "monotonic", lambda: found.now)
    return found


@pytest.fixture
def nodes(lists: Lists) -> Nodes:
    return Nodes(cast("Kube", lists))


async def test_all_that_ask_at_once_wait_for_one_list(lists: Lists, nodes: Nodes) -> None:
    lists.answers = [[LIVE]]
    assert await asyncio.gather(*(nodes.gpu_nodes() for _ in range(5))) == [(GPU,)] * 5


async def test_they_are_read_again_after_some_time(lists: Lists, nodes: Nodes) -> None:
    lists.answers = [[], [LIVE]]
    assert await nodes.gpu_nodes() == ()
    lists.now = TRUSTED - 0.1
    assert await nodes.gpu_nodes() == ()
    lists.now = TRUSTED
    assert await nodes.gpu_nodes() == (GPU,)


async def test_while_nothing_is_known_an_error_is_no_answer(lists: Lists, nodes: Nodes) -> None:
    lists.answers = [TROUBLE, TROUBLE, [LIVE]]
    for _ in range(2):
        with pytest.raises(KubeError, match="not now"):
            await nodes.gpu_nodes()
    assert await nodes.gpu_nodes() == (GPU,)


async def test_what_is_known_stands_while_it_cannot_be_read_again(lists: Lists, nodes: Nodes) -> None:
    lists.answers = [[LIVE], TROUBLE, []]
    await nodes.gpu_nodes()
    lists.now = TRUSTED
    assert await nodes.gpu_nodes() == (GPU,)
    assert await nodes.gpu_nodes() == (GPU,)
    lists.now += TRUSTED_AFTER_A_FAILURE
    assert await nodes.gpu_nodes() == ()


async def test_without_the_right_to_read_them_none_are_known_and_that_is_said_once(
    lists: Lists, nodes: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    forbidden = KubeError(403, "Forbidden", "nodes is forbidden")
    lists.answers = [forbidden, forbidden, [LIVE], forbidden]
    for known, said in (((), 1), ((), 1), ((GPU,), 1), ((GPU,), 2)):
        assert await nodes.gpu_nodes() == known
        assert await nodes.gpu_nodes() == known
        assert caplog.text.count("nodes cannot be read") == said
        lists.now += TRUSTED
