"""Publishes what a look at a deployment found: status where it changed, and events."""

import asyncio
import hashlib
import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from vlm_operator.api import API_VERSION, KIND
from vlm_operator.api.names import OPERATOR
from vlm_operator.replicas.facts import Facts
from vlm_operator.replicas.refusal import Refusal
from vlm_operator.runtime import telemetry
from vlm_operator.runtime.cache import Cache, Key
from vlm_operator.runtime.kinds import EVENT, VLM_DEPLOYMENT
from vlm_operator.runtime.kube import Kube, KubeError
from vlm_operator.status.events import Event
from vlm_operator.status.summary import unknown

log = logging.getLogger(__name__)

EVENT_SECONDS = 5.0
"""Time for the recording of an event: events may have a store of their own, and nothing else is to wait for it."""


def patch_to(wanted: Mapping[str, Any], held: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that makes the one of the other as a whole: what is no more wanted is null, at any depth."""
    gone: dict[str, Any] = {name: None for name in held if name not in wanted}
    return gone | {name: _part(part, held.get(name)) for name, part in wanted.items()}


def _part(wanted: Any, held: Any) -> Any:
    both = isinstance(wanted, Mapping) and isinstance(held, Mapping)
    return patch_to(wanted, held) if both else wanted


class Publisher:
    """Writes status and events."""

    def __init__(self, kube: Kube, cache: Cache, *, instance: str) -> None:
        self._kube = kube
        self._cache = cache
        self._instance = instance

    async def write(self, key: Key, status: Mapping[str, Any]) -> None:
        """Write the status unless the API server has it already. Raises `KubeError`."""
        resource = self._cache.deployment(key)
        if resource is None or (resource.get("status") or {}) == status:
            return
        updated = await self._kube.patch_status(
            VLM_DEPLOYMENT,
            namespace=key[0],
            name=key[1],
            resource_version=resource["metadata"]["resourceVersion"],
            status=patch_to(status, resource.get("status") or {}),
        )
        self._cache.put(VLM_DEPLOYMENT, updated)

    async def give_up(self, key: Key, refusal: Refusal, *, now: float) -> None:
        """Say in the status that a permission is missing without which nothing can be planned."""
        resource = self._cache.deployment(key)
        if resource is not None:
            await self.write(key, unknown(resource, refusal, now=now))

    async def tell(self, facts: Facts, events: Iterable[Event], *, now: float) -> None:
        """Record events. One that cannot be recorded in time is logged and lost: nothing depends on it."""
        await asyncio.gather(*(self._tell(facts, event, now=now) for event in events))

    async def _tell(self, facts: Facts, event: Event, *, now: float) -> None:
        level = logging.WARNING if event.type == "Warning" else logging.INFO
        if event.type == "Warning":
            telemetry.WARNINGS.labels(reason=event.reason).inc()
        log.log(level, "%s/%s: %s: %s", facts.namespace, facts.name, event.reason, event.message)
        try:
            async with asyncio.timeout(EVENT_SECONDS):
                await self._kube.create(EVENT, self._manifest(facts, event, now=now))
        except (KubeError, TimeoutError) as error:
            if not (isinstance(error, KubeError) and error.code == 409):
                why = error if isinstance(error, KubeError) else "no answer in time"
                log.warning("%s/%s: event %s not recorded: %s", facts.namespace, facts.name, event.reason, why)

    def _manifest(self, facts: Facts, event: Event, *, now: float) -> dict[str, Any]:
        text = "\0".join((facts.uid, event.reason, event.message, f"{now:.3f}"))
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "name": f"{facts.name}.{hashlib.sha256(text.encode()).hexdigest()[:16]}",
                "namespace": facts.namespace,
            },
            "eventTime": datetime.fromtimestamp(now, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "type": event.type,
            "reason": event.reason,
            "note": event.message,
            "action": "Reconcile",
            "reportingController": f"vlm.dev/{OPERATOR}",
            "reportingInstance": self._instance,
            "regarding": {
                "apiVersion": API_VERSION,
                "kind": KIND,
                "name": facts.name,
                "namespace": facts.namespace,
                "uid": facts.uid,
            },
        }
