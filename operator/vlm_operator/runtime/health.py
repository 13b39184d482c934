"""/healthz, /readyz and /metrics.

/healthz tests progress, not the mere existence of the process: the queue moves, lists succeed, the event loop is responsive.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from vlm_operator.runtime import telemetry

log = logging.getLogger(__name__)

STUCK_AFTER = 120.0
"""Seconds that a deployment may wait in the queue before the operator counts as stuck."""
SYNC_MISSED = 3
"""Full lists that may fail in a row."""
LAG_ALLOWED = 30.0
"""Seconds that the event loop may be behind."""
SHUTDOWN_SECONDS = 1.0
"""How long the end waits for those that are just being answered."""


class Health:
    """What the probes ask about."""

    def __init__(
        self,
        *,
        oldest_in_queue: Callable[[], float],
        resync_seconds: float,
        troubles: Sequence[Callable[[], str]] = (),
    ) -> None:
        """Each of `troubles` answers with a sentence while there is a reason why nothing is done, else with nothing."""
        self._oldest_in_queue = oldest_in_queue
        self._troubles = troubles
        self._resync_seconds = resync_seconds
        self._synced_at: float | None = None
        self._lag = 0.0
        self.waiting_for = "the first full list"

    def synced(self, *, lacking: str = "") -> None:
        """A full list was answered; `lacking` are the permissions without which nothing at all could be listed."""
        self._synced_at = asyncio.get_running_loop().time()
        self.waiting_for = f"a permission: {lacking}" if lacking else ""

    async def measure_lag(self) -> None:
        """Watch how late the event loop is, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(1.0)
            self._lag = loop.time() - before - 1.0

    def complaints(self) -> list[str]:
        """Why the operator makes no progress; empty when it does."""
        found = []
        if self._oldest_in_queue() > STUCK_AFTER:
            found.append(f"a deployment has waited in the queue for {self._oldest_in_queue():.0f} s")
        if self._lag > LAG_ALLOWED:
            found.append(f"the event loop is {self._lag:.0f} s behind")
        if self._synced_at is not None:
            age = asyncio.get_running_loop().time() - self._synced_at
            if age > SYNC_MISSED * self._resync_seconds + 60:
                found.append(f"the last full list is {age:.0f} s old")
        return found

    def unready(self) -> str:
        """Why the operator could not do its work, or take it over at once; empty when it could."""
        if self.waiting_for:
            return f"waiting for {self.waiting_for}"
        return "; ".join(sentence for trouble in self._troubles if (sentence := trouble()))

    async def serve(self, host: str, port: int) -> web.AppRunner:
        """Start to answer; the caller cleans the runner up. Raises OSError when the address cannot be had."""
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._metrics)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
        await runner.setup()
        await web.TCPSite(runner, host, port).start()
        log.info("health and metrics on %s", ", ".join(f"{address[0]}:{address[1]}" for address in runner.addresses))
        return runner

    async def _healthz(self, _: web.Request) -> web.Response:
        complaints = self.complaints()
        return web.Response(status=503 if complaints else 200, text="; ".join(complaints) or "ok")

    async def _readyz(self, _: web.Request) -> web.Response:
        waiting = self.unready()
        return web.Response(status=503 if waiting else 200, text=waiting or "ok")

    async def _metrics(self, _: web.Request) -> web.Response:
        body = generate_latest(telemetry.REGISTRY)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})
