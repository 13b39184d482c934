"""Storages for kopf that store nothing.

kopf prepares for handlers that follow changes: for every event it copies the object several times, to compare it with the
last one that was handled, and it keeps the last version of each. The operator has no such handlers, and a cache of its own;
without the copies an event costs a quarter.
"""

from typing import Any

import kopf
from kopf._core.reactor.inventory import (  # no public names; a parameter of `kopf.operator`
    ResourceMemories,
    ResourceMemory,
)


class NothingHandled(kopf.DiffBaseStorage):
    """Remembers no last-handled state and extracts none."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        """Extract nothing."""
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> None:
        """Return that nothing was handled."""

    def store(self, **_: Any) -> None:
        """Write nothing."""


class NoProgress(kopf.ProgressStorage):
    """Remembers no progress of handlers."""

    def fetch(self, **_: Any) -> None:
        """Return that no handler ran."""

    def store(self, **_: Any) -> None:
        """Write nothing."""

    def purge(self, **_: Any) -> None:
        """Remove nothing."""

    def touch(self, **_: Any) -> None:
        """Write nothing."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """Leave the essence as it is."""
        return essence


class NoMemories(ResourceMemories):
    """Remembers no object."""

    async def recall(self, raw_body: kopf.RawBody, **options: Any) -> ResourceMemory:
        """Return a new memory for each event."""
        return await super().recall(raw_body, **options | {"ephemeral": True})
