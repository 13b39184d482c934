"""kopf as the shell: its watches feed the cache, and every piece of news puts a deployment into the queue.

Only `on.event` handlers, which write nothing to the objects, and each returns None: a value would be written to status.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import kopf

from vlm_operator.runtime import telemetry
from vlm_operator.runtime.kinds import WATCHED, Kind

Feed = Callable[[Kind, str | None, dict[str, Any]], None]
"""Takes the kind, the type of the event (None for an initial object) and the object."""


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


def settings_for(*, namespaced: bool) -> kopf.OperatorSettings:
    """Settings of kopf: server-side selectors, no events or peering of its own."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = namespaced
    settings.process.ultimate_exiting_timeout = 10.0
    for kind in WATCHED:
        if kind.selector:
            settings.watching.label_selectors[kind.group, kind.version, kind.plural] = kind.selector
    return settings
