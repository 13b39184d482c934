"""kopf as the shell: its watches feed the cache, and every piece of news puts a deployment into the queue.

Only `on.event` handlers, which write nothing to the objects, and each returns None: a value would be written to status.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import chain, repeat
from typing import Any

import kopf
from kopf._cogs.clients import fetching  # no public name, see `take_lists`
from kopf._cogs.structs.references import Insights, Namespace, Resource  # no public names, see `keep_watching`

from vlm_operator.runtime import telemetry
from vlm_operator.runtime.forgetful import NoProgress, NothingHandled
from vlm_operator.runtime.kinds import VLM_DEPLOYMENT, WATCHED, Kind
from vlm_operator.runtime.kube import PAGE

log = logging.getLogger(__name__)

RESCAN = 5.0
"""Seconds between looks whether the watch on VLMDeployments runs."""

RETRIES = (1.0, 1.0, 2.0, 3.0, 5.0)
"""Seconds between tries to open a watch. The last goes on for ever: a permission, or the API server, comes back some day."""

Feed = Callable[[Kind, str | None, dict[str, Any]], None]
"""Takes the kind, the type of the event and the object."""
Intake = Callable[[Kind, str | None, AsyncIterator[tuple[list[dict[str, Any]], int]]], Awaitable[int]]
"""Takes the kind, the namespace (None for all) and the pages of a list with its resourceVersion, which it returns."""

_fetch_objs = fetching.fetch_objs


def registry_for(feed: Feed, login: Callable[[], Awaitable[kopf.ConnectionInfo]]) -> kopf.OperatorRegistry:
    """The handlers of the operator."""
    registry = kopf.OperatorRegistry()

    async def log_in(**_: Any) -> kopf.ConnectionInfo:
        return await login()

    kopf.on.login(registry=registry)(log_in)
    for kind in WATCHED:
        _register(registry, kind, feed)
    return registry


def _register(registry: kopf.OperatorRegistry, kind: Kind, feed: Feed) -> None:
    async def handle(*, event: kopf.RawEvent, **_: Any) -> None:
        telemetry.WATCH_EVENTS.labels(kind=kind.kind).inc()
        feed(kind, event["type"], dict(event["object"]))

    kopf.on.event(kind.group, kind.version, kind.plural, id=f"watch-{kind.plural}", registry=registry)(handle)


def take_lists(take_in: Intake) -> None:
    """Have each list with which kopf opens a watch taken in as a whole, and no object of it handled.

    For kopf each is an event with a task of its own, which with thousands of objects takes longer than all else at a start;
    and it does not notice which objects are in the list no more, which is how a deletion is seen that no watch told.
    kopf has no parameter for this. All its watches list by this function.
    """
    kinds = {(kind.group, kind.version, kind.plural): kind for kind in WATCHED}

    async def fetch_objs(*, resource: Resource, namespace: Namespace, **options: Any) -> AsyncIterator[Any]:
        kind = kinds.get((resource.group, resource.version, resource.plural))
        pages = _fetch_objs(resource=resource, namespace=namespace, **options)
        if kind is not None:
            yield [], str(await take_in(kind, namespace, _plain(pages)))
            return
        async for page in pages:
            yield page

    fetching.fetch_objs = fetch_objs


async def _plain(pages: AsyncIterator[Any]) -> AsyncIterator[tuple[list[dict[str, Any]], int]]:
    async for items, version in pages:
        yield items, int(version or 0)


class _ForEver:
    """The pauses between tries. kopf ends as a whole after the last one, so there is none."""

    def __iter__(self) -> Iterator[float]:
        return chain(RETRIES, repeat(RETRIES[-1]))


async def keep_watching(insights: Insights, *, served: Callable[[], Awaitable[bool]]) -> None:
    """Make kopf watch VLMDeployments whenever the API server serves them, for ever.

    kopf looks once, when it starts. It could follow CRDs, but for that it would have to read all those of the cluster, and still
    miss a resource that the API server announces only after the last event about its CRD.
    `insights` has no public name in kopf, but is the parameter of `kopf.operator` by which this can be seen and mended.
    """
    kind = VLM_DEPLOYMENT
    resource = Resource(
        kind.group,
        kind.version,
        kind.plural,
        kind=kind.kind,
        namespaced=True,
        verbs=frozenset({"list", "watch", "patch"}),
    )
    while True:
        await asyncio.sleep(RESCAN)
        if insights.ready_resources.is_set() and resource not in insights.watched_resources and await served():
            log.info("the API server serves %s: watch them", kind.plural)
            async with insights.revised:
                insights.watched_resources.add(resource)
                insights.revised.notify_all()


def settings_for() -> kopf.OperatorSettings:
    """Settings of kopf: server-side selectors, no events, peering or eyes on CRDs of its own."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.process.ultimate_exiting_timeout = None  # the process goes on when kopf has ended
    settings.queueing.exit_timeout = 0.5
    settings.queueing.idle_timeout = 0.5  # each object that changes has a task for as long: thousands at a start
    settings.watching.chunk_size = PAGE
    settings.networking.error_backoffs = _ForEver()
    settings.persistence.diffbase_storage = NothingHandled()
    settings.persistence.progress_storage = NoProgress()
    for kind in WATCHED:
        if kind.selector:
            settings.watching.label_selectors[kind.group, kind.version, kind.plural] = kind.selector
    return settings
