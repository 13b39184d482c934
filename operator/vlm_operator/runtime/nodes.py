"""The GPU nodes of the cluster, as far as they may be read: read seldom, since only the largest of a kind matters."""

import logging
import time

from vlm_operator.replicas.facts import GpuNode
from vlm_operator.replicas.reading import read_node
from vlm_operator.runtime.kinds import NODE
from vlm_operator.runtime.kube import Kube, KubeError

log = logging.getLogger(__name__)

TRUSTED = 300.0
"""Seconds for which nodes are not read again."""


class Nodes:
    """Reads nodes; never writes."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._known: tuple[GpuNode, ...] = ()
        self._read_at = float("-inf")
        self._told = ""

    async def gpu_nodes(self) -> tuple[GpuNode, ...]:
        """Nodes with extended resources, none where they cannot be read."""
        if time.monotonic() - self._read_at >= TRUSTED:
            self._read_at = time.monotonic()
            try:
                nodes, _ = await self._kube.list(NODE, namespace=None)
            except KubeError as error:
                if self._told != error.message:
                    log.warning("nodes cannot be read, so that GPUs per node are not checked: %s", error)
                self._told = error.message
            else:
                self._told = ""
                self._known = tuple(found for node in nodes if (found := read_node(node)) is not None)
        return self._known
