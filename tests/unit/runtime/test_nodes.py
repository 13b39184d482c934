"""Nodes that must not be read are no hindrance, and no flood of words."""

from typing import Any, cast

import pytest

from vlm_operator.runtime import nodes as nodes_module
from vlm_operator.runtime.kube import Kube, KubeError
from vlm_operator.runtime.nodes import TRUSTED, Nodes

FORBIDDEN = KubeError(403, "Forbidden", 'User "operator" cannot list resource "nodes"')
NODE = {"metadata": {"name": "a"}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}}


class Lists:
    """Answers lists as the test wants."""

    def __init__(self) -> None:
        self.answer: KubeError | None = None
        self.asked = 0

    async def list(self, *_: Any, **__: Any) -> tuple[list[Any], int]:
        self.asked += 1
        if self.answer is not None:
            raise self.answer
        return [NODE], 1


async def test_that_nodes_cannot_be_read_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 0.0
    monkeypatch.setattr(nodes_module.time, "monotonic", lambda: now)
    api = Lists()
    nodes = Nodes(cast("Kube", api))
    for answer, known, said in ((FORBIDDEN, 0, 1), (FORBIDDEN, 0, 1), (None, 1, 1), (FORBIDDEN, 1, 2)):
        api.answer = answer
        assert len(await nodes.gpu_nodes()) == known
        assert caplog.text.count("nodes cannot be read") == said
        asked = api.asked
        await nodes.gpu_nodes()
        assert api.asked == asked
        now += TRUSTED
