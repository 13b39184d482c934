"""The PodDisruptionBudgets of others: read seldom, since all that they bring is a warning."""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

from vlm_operator.api.names import DEPLOYMENT_LABEL
from vlm_operator.runtime.kinds import BUDGET
from vlm_operator.runtime.kube import Kube, KubeError

log = logging.getLogger(__name__)

Object = dict[str, Any]

TRUSTED = 600.0
"""Seconds for which the budgets of a namespace are not read again by a look. The full lists read them more often."""


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
        found = await self._read(namespace)
        known = tuple(found) if found is not None else known
        self._known[namespace] = (self._clock(), known)
        return known

    async def changed(self, scopes: Iterable[str | None]) -> set[str]:
        """Read those of some namespaces, or of all (None); returns the namespaces of which a look knew otherwise."""
        news: set[str] = set()
        for scope in scopes:
            found = await self._read(scope)
            if found is None:
                continue
            for namespace in [name for name in self._known if scope in {None, name}]:
                now = tuple(budget for budget in found if budget["metadata"]["namespace"] == namespace)
                if now != self._known[namespace][1]:
                    news.add(namespace)
                self._known[namespace] = (self._clock(), now)
        return news

    async def _read(self, scope: str | None) -> list[Object] | None:
        try:
            found, _ = await self._kube.list(BUDGET, namespace=scope, selector=f"!{DEPLOYMENT_LABEL}")
        except KubeError as error:
            where = scope or "all namespaces"
            log.warning("%s: other PodDisruptionBudgets cannot be read, and are not warned of: %s", where, error)
            return None
        return [_what_matters(budget) for budget in found]


def _what_matters(budget: Object) -> Object:
    metadata = {key: budget["metadata"].get(key) for key in ("name", "namespace", "deletionTimestamp")}
    return {"metadata": metadata, "spec": {"selector": (budget.get("spec") or {}).get("selector")}}
