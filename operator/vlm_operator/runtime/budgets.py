"""The PodDisruptionBudgets of others: read seldom, since all that they bring is a warning."""

import logging
import time
from collections.abc import Callable
from typing import Any

from vlm_operator.api.names import DEPLOYMENT_LABEL
from vlm_operator.runtime.kinds import BUDGET
from vlm_operator.runtime.kube import Kube, KubeError

log = logging.getLogger(__name__)

Object = dict[str, Any]

TRUSTED = 300.0
"""Seconds for which the budgets of a namespace are not read again."""


class ForeignBudgets:
    """Reads budgets without our label; never writes. One with our label is watched."""

    def __init__(self, kube: Kube, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._kube = kube
        self._clock = clock
        self._known: dict[str, tuple[float, tuple[Object, ...]]] = {}
        """When each namespace was read, and what there was."""

    async def of(self, namespace: str) -> tuple[Object, ...]:
        """Those of a namespace; none where they cannot be read."""
        read_at, known = self._known.get(namespace, (float("-inf"), ()))
        if self._clock() - read_at < TRUSTED:
            return known
        try:
            found, _ = await self._kube.list(BUDGET, namespace=namespace, selector=f"!{DEPLOYMENT_LABEL}")
        except KubeError as error:
            log.warning("%s: other PodDisruptionBudgets cannot be read, and are not warned of: %s", namespace, error)
        else:
            known = tuple(found)
        self._known[namespace] = (self._clock(), known)
        return known
