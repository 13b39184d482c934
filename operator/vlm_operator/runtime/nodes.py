"""The GPU nodes of the cluster, as far as they may be read: read seldom, since only the largest of a kind matters."""

import asyncio
import logging
import time

from vlm_operator.replicas.facts import GpuNode
from vlm_operator.replicas.reading import read_node
from vlm_operator.runtime.kinds import NODE
from vlm_operator.runtime.kube import Kube, KubeError

log = logging.getLogger(__name__)

TRUSTED, TRUSTED_AFTER_A_FAILURE = 300.0, 10.0
"""Seconds for which nodes are not read again."""


class Nodes:
    """Reads nodes; never writes."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._known: tuple[GpuNode, ...] | None = None
        self._read_again_at = float("-inf")
        self._reading = asyncio.Lock()
        self._told = ""
        self.cordoned: frozenset[str] = frozenset()
        """Names of the nodes that are to be emptied."""
        self.unread = ""
        """Why that could not be read."""

    async def changed_cordons(self) -> frozenset[str]:
        """Read which nodes are cordoned; the names of those that were not before, or are not any more.

        Pods that come to such a node later are there in spite of its cordon: see `Gatherer.follow_cordons`.
        """
        try:
            nodes, _ = await self._kube.list(NODE, namespace=None, fields="spec.unschedulable=true")
        except KubeError as error:
            # What may not be read is told where the nodes are read as a whole.
            log.debug("cordoned nodes cannot be read: %s", error)
            self.unread = error.message
            return frozenset()
        self.unread = ""
        before, self.cordoned = self.cordoned, frozenset(node["metadata"]["name"] for node in nodes)
        return before ^ self.cordoned

    async def gpu_nodes(self) -> tuple[GpuNode, ...]:
        """Nodes with extended resources, none where they may not be read. Raises `KubeError` while nothing is known of them."""
        async with self._reading:
            if time.monotonic() >= self._read_again_at:
                self._known = await self._read()
        return self._known or ()

    async def _read(self) -> tuple[GpuNode, ...]:
        known, trusted, trouble = self._known or (), TRUSTED, ""
        try:
            nodes, _ = await self._kube.list(NODE, namespace=None)
        except KubeError as error:
            trouble = error.message
            if error.code != 403:
                if self._known is None:
                    raise
                trusted = max(TRUSTED_AFTER_A_FAILURE, error.retry_after)
            if trouble != self._told:
                log.warning("nodes cannot be read, so that GPUs per node are not checked: %s", error)
        else:
            known = tuple(found for node in nodes if (found := read_node(node)) is not None)
        self._told = trouble
        self._read_again_at = time.monotonic() + trusted
        return known
