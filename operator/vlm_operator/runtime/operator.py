"""Puts the parts together and runs them until a signal or an error ends it."""

import asyncio
import contextlib
import logging
import random
import signal
import socket
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

import kopf
from kopf._cogs.structs.references import Insights  # no public name, see `watching.keep_watching`
from kubernetes.aio.client import Configuration

from vlm_operator import __version__
from vlm_operator.runtime import telemetry
from vlm_operator.runtime.apply import Applier
from vlm_operator.runtime.cache import Cache, Key
from vlm_operator.runtime.connection import check_version, connect, connection_info, lease_namespace
from vlm_operator.runtime.gather import Gatherer
from vlm_operator.runtime.health import Health
from vlm_operator.runtime.kinds import CHILDREN, VLM_DEPLOYMENT, Kind
from vlm_operator.runtime.kube import Kube, KubeError
from vlm_operator.runtime.lease import Durations, Lease
from vlm_operator.runtime.publish import Publisher
from vlm_operator.runtime.queue import WorkQueue
from vlm_operator.runtime.reconcile import Reconciler
from vlm_operator.runtime.settings import Settings
from vlm_operator.runtime.watching import keep_watching, registry_for, settings_for
from vlm_operator.sizing.catalogue.loading import Catalogue

log = logging.getLogger(__name__)

RESTART_AFTER = 1.0
"""Seconds until everything is started again after the watches ended."""
CRD_RETRY = 2.0
"""Seconds between tries of the first full list, while the API server or the CRD is missing."""
UNLISTED_RETRY = 10.0
"""Seconds between full lists, while a permission to list something is missing."""


class Operator:
    """One running operator. With a lease it follows what happens, and acts once and while it holds the lease."""

    def __init__(self, settings: Settings, kube: Kube, catalogue: Catalogue, *, lease: Lease | None = None) -> None:
        self._settings = settings
        self._kube = kube
        self._cache = Cache()
        self._queue: WorkQueue[Key] = WorkQueue()
        self._gatherer = Gatherer(kube, self._cache, catalogue)
        self._reconciler = Reconciler(
            self._gatherer,
            Applier(kube, self._cache, self._gatherer),
            Publisher(kube, self._cache, instance=socket.gethostname()[:128]),
        )
        self._lease = lease
        self._acts = lease is None
        self._synced = asyncio.Event()
        self.health = Health(
            oldest_in_queue=self._queue.oldest_age,
            resync_seconds=settings.resync_seconds,
            lease_trouble=lambda: lease.trouble if lease is not None else "",
        )
        telemetry.DEPLOYMENTS.set_function(lambda: float(sum(1 for _ in self._cache.deployments())))
        telemetry.LEADER.set_function(lambda: float(lease is None or lease.time_left() > 0))

    def feed(self, kind: Kind, event: str | None, obj: dict[str, Any]) -> None:
        """Take in one watch event."""
        news = self._cache.remove(kind, obj) if event == "DELETED" else self._cache.put(kind, obj)
        self._enqueue(news)

    async def work(self) -> None:
        """Fill the cache, then work for ever. Nothing is planned before every watched kind was listed once."""
        await self._first_list()
        self._synced.set()
        await asyncio.gather(self._resync(), self._act())

    async def stand(self, lease: Lease) -> None:
        """Be a candidate as soon as the work could be taken over. Ends only with `LeaseLostError`."""
        await self._synced.wait()
        await lease.hold()

    async def _act(self) -> None:
        if self._lease is not None:
            await self._lease.acquired.wait()
            self._acts = True
            # The watches may be behind the last deeds of another leader.
            await self._first_list()
        workers = [self._queue.work(self._look, on_error=self._complain) for _ in range(self._settings.workers)]
        await asyncio.gather(*workers)

    async def _look(self, key: Key) -> float | None:
        with telemetry.RECONCILE_SECONDS.time():
            later = await self._reconciler.reconcile(key)
        telemetry.RECONCILES.labels(result="ok").inc()
        return later

    def _complain(self, key: Key, error: Exception) -> None:
        telemetry.RECONCILES.labels(result="error").inc()
        if isinstance(error, KubeError):
            log.warning("%s/%s: will be tried again: %s", *key, error)
        else:
            log.error("%s/%s: unexpected error, will be tried again", *key, exc_info=error)

    async def _first_list(self) -> None:
        while True:
            try:
                await self._list()
            except KubeError as error:
                missing = error.code == 404
                what = "the CustomResourceDefinition vlmdeployments.vlm.dev" if missing else f"the API server ({error})"
                if self.health.waiting_for != what:
                    log.warning("waiting for %s", what)
                self.health.waiting_for = what
                await asyncio.sleep(CRD_RETRY)
            else:
                log.info("%d VLMDeployments found", sum(1 for _ in self._cache.deployments()))
                self._enqueue(set(self._cache.deployments()))
                return

    async def _resync(self) -> None:
        while True:
            seconds = self._settings.resync_seconds
            if self._gatherer.unlisted:
                seconds = min(seconds, UNLISTED_RETRY)
            await asyncio.sleep(seconds * (0.9 + random.random() / 5))  # noqa: S311 # jitter
            try:
                await self._list()
            except KubeError as error:
                log.warning("the full list failed: %s", error)

    async def _list(self) -> None:
        """List every watched kind. The children come first: a deployment must not be seen without its pods.

        Namespaces in which something must not be listed are left out, and the others are served.
        """
        namespaces, unlisted = self._settings.namespaces or (None,), dict[str, KubeError]()
        for kind in (*CHILDREN, VLM_DEPLOYMENT):
            for namespace in namespaces:
                try:
                    items, version = await self._kube.list(kind, namespace=namespace)
                except KubeError as error:
                    if not error.refusal.lacks_permission:
                        raise
                    unlisted.setdefault(namespace or "", error)
                else:
                    self._enqueue(self._cache.replace(kind, items, version=version, namespace=namespace))
        self._take_in(unlisted)
        none = len(unlisted) == len(namespaces)
        self.health.synced(lacking="; ".join(error.refusal.sentence for error in unlisted.values()) if none else "")

    def _take_in(self, unlisted: dict[str, KubeError]) -> None:
        """Remember what could not be listed, and tell it once."""
        before, self._gatherer.unlisted = self._gatherer.unlisted, unlisted
        for namespace, error in unlisted.items():
            if namespace not in before or before[namespace].message != error.message:
                log.error("%s: nothing is done: %s", namespace or "all namespaces", error.refusal.sentence)
        served_again = before.keys() - unlisted.keys()
        self._enqueue({key for key in self._cache.deployments() if served_again & {"", key[0]}})

    def _enqueue(self, keys: set[Key]) -> None:
        for key in keys if self._acts else ():
            self._queue.add(key)


async def run(settings: Settings, catalogue: Catalogue) -> None:
    """Run the operator until SIGTERM or SIGINT.

    kopf ends as a whole when a watch is answered with an error that it does not expect, as happens when the CRD is deleted
    in the moment in which a watch is opened again; with itself it ends tasks of others. So all starts anew then.
    """
    stop = asyncio.Event()
    _on_signals(stop.set)
    await _serve(settings, catalogue, stop)
    while not stop.is_set():
        log.warning("the watches have ended: start again")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), RESTART_AFTER)
            break
        try:
            await _serve(settings, catalogue, stop)
        except KubeError as error:
            log.warning("cannot start again yet: %s", error)
    log.info("stopped")


async def _serve(settings: Settings, catalogue: Catalogue, stop: asyncio.Event) -> None:
    """Serve until `stop`, or until the watches end."""
    shell_runs = asyncio.Event()
    configuration = await connect(settings)
    async with contextlib.AsyncExitStack() as stack:
        lease = _candidate(settings, configuration, stack) if settings.leader_elect else None
        kube = Kube(configuration, time_left=lease.time_left) if lease is not None else Kube(configuration)
        stack.push_async_callback(kube.close)
        operator = Operator(settings, kube, catalogue, lease=lease)
        runner = await operator.health.serve(settings.health_host, settings.health_port)
        stack.push_async_callback(runner.cleanup)
        check_version(await kube.server_version())
        log.info("vlm-operator %s serves %s", __version__, ", ".join(settings.namespaces) or "all namespaces")
        insights = Insights()
        shell = kopf.operator(
            registry=registry_for(operator.feed, lambda: connection_info(configuration)),
            settings=settings_for(),
            insights=insights,
            clusterwide=not settings.namespaces,
            namespaces=settings.namespaces,
            standalone=True,
            ready_flag=shell_runs,
        )
        guard = keep_watching(insights, served=lambda: kube.serves(VLM_DEPLOYMENT))
        parts = [_told_to_stop(stop, shell_runs), _watch(shell), guard, operator.work(), operator.health.measure_lag()]
        if lease is not None:
            parts.append(operator.stand(lease))
            stack.push_async_callback(lease.release)
        await _until_the_first_ends(*parts)


def _candidate(settings: Settings, configuration: Configuration, stack: contextlib.AsyncExitStack) -> Lease:
    """A candidate with a connection of its own: renewals neither wait for other calls nor are bound to what they win."""
    connection = Kube(configuration)
    stack.push_async_callback(connection.close)
    return Lease(
        connection,
        namespace=lease_namespace(settings),
        identity=f"{socket.gethostname()}_{uuid.uuid4().hex[:12]}",
        durations=Durations(
            lease_seconds=settings.leader_elect_lease_seconds,
            deadline_seconds=settings.leader_elect_deadline_seconds,
            retry_seconds=settings.leader_elect_retry_seconds,
        ),
    )


async def _watch(shell: Coroutine[Any, Any, None]) -> None:
    """Run the shell to its end. It logs itself what ended it."""
    with contextlib.suppress(Exception):
        await shell


def _on_signals(handle: Callable[[], None]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, handle)


async def _told_to_stop(stop: asyncio.Event, shell_runs: asyncio.Event) -> None:
    """Return at a signal. kopf takes the signals for itself when it starts, and would then wait for our tasks: take them back."""
    starting = asyncio.ensure_future(shell_runs.wait())
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    _on_signals(stop.set)
    await stopping
    starting.cancel()


async def _until_the_first_ends(*parts: Coroutine[Any, Any, None]) -> None:
    """Run the parts together; when one ends, for whatever reason, end the others and pass its error on."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result
