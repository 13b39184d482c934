"""Puts the parts together and runs them until a signal or an error ends it."""

import asyncio
import contextlib
import logging
import math
import os
import random
import signal
import socket
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

import kopf
from aiohttp import web
from kopf._cogs.structs.references import Insights  # no public name, see `watching.keep_watching`

from vlm_operator import __version__
from vlm_operator.api.names import NAMESPACES
from vlm_operator.replicas.reading import is_live
from vlm_operator.runtime import telemetry
from vlm_operator.runtime.apply import Applier
from vlm_operator.runtime.cache import Cache, Key
from vlm_operator.runtime.connection import StartError, check_server, connect, connection_info, lease_namespace
from vlm_operator.runtime.forgetful import NoMemories
from vlm_operator.runtime.gather import Gatherer
from vlm_operator.runtime.health import Health
from vlm_operator.runtime.installations import annotation
from vlm_operator.runtime.kinds import CHILDREN, POD, VLM_DEPLOYMENT, Kind
from vlm_operator.runtime.kube import NOT_DONE, Kube, KubeError
from vlm_operator.runtime.lease import Durations, Lease
from vlm_operator.runtime.neighbours import Neighbours
from vlm_operator.runtime.observe import Observer
from vlm_operator.runtime.pods import Pods
from vlm_operator.runtime.publish import Publisher
from vlm_operator.runtime.queue import WorkQueue
from vlm_operator.runtime.reconcile import Reconciler
from vlm_operator.runtime.settings import Settings
from vlm_operator.runtime.watching import keep_watching, registry_for, settings_for, take_lists
from vlm_operator.sizing.catalogue.loading import Catalogue

log = logging.getLogger(__name__)

Client = TypeVar("Client", Kube, Pods)

RESTART_AFTER = 1.0
"""Seconds until everything is started again after the watches ended."""
CORDONS_READ_EVERY = 15.0
"""Seconds between two looks at which nodes are cordoned."""
WATCHES_LIST_WITHIN = 3.0
"""Seconds without a list by a watch, after which the operator lists by itself, and tells what is wrong."""
CRD_RETRY = 2.0
"""Seconds between tries of the first full list, while the API server or the CRD is missing."""
UNLISTED_RETRY = 10.0
"""Seconds between full lists, while a permission to list something is missing."""
RESYNC_RETRY = 10.0
"""Seconds after a full list that failed, where full lists are not more frequent anyway."""
LISTED = (*CHILDREN, VLM_DEPLOYMENT)
"""The children come first: a deployment must not be seen without its pods."""


class Operator:
    """One running operator. It follows what happens, and acts once no other one does. `kube` sends nothing before."""

    def __init__(
        self,
        settings: Settings,
        kube: Kube,
        pods: Pods,
        catalogue: Catalogue,
        *,
        lease: Lease | None,
        neighbours: Neighbours,
    ) -> None:
        self._settings = settings
        self._kube = kube
        self._pods = pods
        self._cache = Cache()
        self._queue: WorkQueue[Key] = WorkQueue()
        self._gatherer = Gatherer(kube, self._cache, catalogue, look_again=self._queue.add)
        self._observer = Observer(kube, pods, self._cache, self._queue.add)
        self._reconciler = Reconciler(
            self._gatherer,
            self._observer,
            Applier(kube, self._cache, self._gatherer),
            Publisher(kube, self._cache, instance=socket.gethostname()[:128]),
            crowded=lambda: len(self._queue) > 0,
        )
        self._neighbours = neighbours
        self._acts = False
        self._namespaces: tuple[str | None, ...] = settings.namespaces or (None,)
        self._refused: dict[Kind, dict[str, KubeError]] = {}
        """Namespaces in which a kind must not be listed."""
        self._taken: set[tuple[Kind, str | None]] = set()
        """Kinds and namespaces that were listed once, be it by the watches."""
        self._all_taken = asyncio.Event()
        self._listing = asyncio.Lock()
        self._list_at = 0.0
        self._synced = asyncio.Event()
        self.health = Health(
            oldest_in_queue=self._queue.oldest_age,
            resync_seconds=settings.resync_seconds,
            troubles=(lambda: neighbours.trouble, lambda: _trouble_of(lease)),
        )
        telemetry.DEPLOYMENTS.set_function(lambda: float(sum(1 for _ in self._cache.deployments())))
        telemetry.LEADER.set_function(lambda: float(neighbours.time_left() > 0))

    def feed(self, kind: Kind, event: str | None, obj: dict[str, Any]) -> None:
        """Take in one watch event."""
        news = self._cache.remove(kind, obj) if event == "DELETED" else self._cache.put(kind, obj)
        # What was lost is replaced before anything is told of others.
        self._enqueue(news, first=kind is POD and (event == "DELETED" or not is_live(obj)))

    async def take_in(
        self, kind: Kind, namespace: str | None, pages: AsyncIterator[tuple[list[dict[str, Any]], int]]
    ) -> int:
        """Take in a list page by page; returns its resourceVersion."""
        listed, version = set[tuple[str, str]](), 0
        async for items, as_of in pages:
            version = as_of
            for obj in items:
                listed.add((obj["metadata"]["namespace"], obj["metadata"]["name"]))
                self._enqueue(self._cache.put(kind, obj))
        self._enqueue(self._cache.drop_unlisted(kind, listed, version=version, namespace=namespace))
        self._taken.add((kind, namespace))
        if len(self._taken) == len(LISTED) * len(self._namespaces):
            self._all_taken.set()
        return version

    async def work(self) -> None:
        """Fill the cache, then work for ever. Nothing is planned before every watched kind was listed once."""
        if not await self._watches_have_listed():
            await self._first_list()
        self._found()
        self._synced.set()
        await asyncio.gather(self._resync(), self._act())

    async def stand(self, lease: Lease) -> None:
        """Be a candidate as soon as the work could be taken over. Ends only with `LeaseLostError`."""
        await self._synced.wait()
        await self._neighbours.no_older.wait()
        await lease.hold()

    async def _act(self) -> None:
        await self._neighbours.may_act.wait()
        self._acts = True
        # The watches may be behind the last deeds of another operator.
        await self._first_list()
        self._found()
        workers = [self._queue.work(self._look, on_error=self._complain) for _ in range(self._settings.workers)]
        await asyncio.gather(*workers, self._observer.verify(), self._follow_cordons())

    async def _follow_cordons(self) -> None:
        """Have deployments with replicas on nodes that are to be emptied, or not any more, looked at."""
        while True:
            self._enqueue(await self._gatherer.follow_cordons())
            await asyncio.sleep(CORDONS_READ_EVERY)

    async def _look(self, key: Key) -> float | None:
        with telemetry.RECONCILE_SECONDS.time():
            later = await self._reconciler.reconcile(key)
        telemetry.RECONCILES.labels(result="ok").inc()
        return later

    def _complain(self, key: Key, error: Exception) -> float:
        """Tell an error; returns the seconds that the API server asked to wait."""
        telemetry.RECONCILES.labels(result="error").inc()
        if not isinstance(error, KubeError):
            log.error("%s/%s: unexpected error, will be tried again", *key, exc_info=error)
            return 0.0
        level = logging.DEBUG if error.reason == NOT_DONE else logging.WARNING
        log.log(level, "%s/%s: will be tried again: %s", *key, error)
        return error.retry_after

    async def _first_list(self) -> None:
        while True:
            try:
                await self._list(*LISTED)
            except KubeError as error:
                missing = error.code == 404
                what = "the CustomResourceDefinition vlmdeployments.vlm.dev" if missing else f"the API server ({error})"
                if self.health.waiting_for != what:
                    log.warning("waiting for %s", what)
                self.health.waiting_for = what
                await asyncio.sleep(CRD_RETRY)
            else:
                return

    async def _watches_have_listed(self) -> bool:
        """Wait for the lists with which the watches open, as long as one follows the other; returns whether all came."""
        before, wanted = -1, len(LISTED) * len(self._namespaces)
        while before < len(self._taken) < wanted:
            before = len(self._taken)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(WATCHES_LIST_WITHIN):
                    await self._all_taken.wait()
        return len(self._taken) == wanted

    def _found(self) -> None:
        self._synced_all()
        log.info("%d VLMDeployments found", sum(1 for _ in self._cache.deployments()))
        self._enqueue(set(self._cache.deployments()))

    async def _resync(self) -> None:
        """List everything again and again: a kind at a time, since all at once would keep the operator busy for seconds."""
        while True:
            for kind in LISTED:
                await self._list_soon(kind)
            changed = await self._gatherer.budgets.changed(self._namespaces)
            self._enqueue({key for key in self._cache.deployments() if key[0] in changed})
            self._synced_all()

    async def _list_soon(self, kind: Kind) -> None:
        """List a kind when it is its turn, and try until that is done."""
        while True:
            seconds = min(self._settings.resync_seconds, UNLISTED_RETRY if self._gatherer.unlisted else math.inf)
            await asyncio.sleep(seconds / len(LISTED) * (1 + random.random() / 5))  # noqa: S311 # jitter
            try:
                await self._list(kind)
            except KubeError as error:
                log.warning("the full list of %s failed: %s", kind.plural, error)
                await asyncio.sleep(min(self._settings.resync_seconds, RESYNC_RETRY))
            else:
                return

    async def _list(self, *kinds: Kind) -> None:
        """List kinds: one list at a time, and none before the time that the API server asks for."""
        async with self._listing:
            await asyncio.sleep(self._list_at - asyncio.get_running_loop().time())
            try:
                for kind in kinds:
                    await self._list_all(kind)
            except KubeError as error:
                self._list_at = asyncio.get_running_loop().time() + error.retry_after
                raise
        self._tell_unlisted()

    async def _list_all(self, kind: Kind) -> None:
        """List a kind. Namespaces in which it must not be listed are left out, and the others are served."""
        refused: dict[str, KubeError] = {}
        for namespace in self._namespaces:
            try:
                await self.take_in(kind, namespace, self._kube.pages(kind, namespace=namespace))
            except KubeError as error:
                if not error.refusal.lacks_permission:
                    raise
                refused[namespace or ""] = error
        self._refused[kind] = refused

    def _synced_all(self) -> None:
        unlisted = self._gatherer.unlisted
        none = len(unlisted) == len(self._namespaces)
        self.health.synced(lacking="; ".join(error.refusal.sentence for error in unlisted.values()) if none else "")

    def _tell_unlisted(self) -> None:
        """Remember what could not be listed, and tell it once."""
        refused = (refused for kind in reversed(LISTED) if (refused := self._refused.get(kind)))
        unlisted = {namespace: error for errors in refused for namespace, error in errors.items()}
        before, self._gatherer.unlisted = self._gatherer.unlisted, unlisted
        for namespace, error in unlisted.items():
            if namespace not in before or before[namespace].message != error.message:
                log.error("%s: nothing is done: %s", namespace or "all namespaces", error.refusal.sentence)
        served_again = before.keys() - unlisted.keys()
        self._enqueue({key for key in self._cache.deployments() if served_again & {"", key[0]}})

    def _enqueue(self, keys: set[Key], *, first: bool = False) -> None:
        for key in keys if self._acts else ():
            self._queue.add(key, first=first)


async def run(settings: Settings, catalogue: Catalogue) -> None:
    """Run the operator until SIGTERM or SIGINT.

    kopf ends as a whole when a watch is answered with an error that it does not expect, as happens when the CRD is deleted
    in the moment in which a watch is opened again; with itself it ends tasks of others. So all starts anew then.
    """
    stop = asyncio.Event()
    _on_signals(stop.set)
    await _unless(stop, _serve(settings, catalogue, stop))
    while not stop.is_set():
        log.warning("starts again")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(RESTART_AFTER):
                await stop.wait()
            break
        await _unless(stop, _serve(settings, catalogue, stop, again=True))
    log.info("stopped")


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Do the work to its end, or until `stop`, in whatever it is then."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if stop.is_set():
        working.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await working


async def _serve(settings: Settings, catalogue: Catalogue, stop: asyncio.Event, *, again: bool = False) -> None:
    """Serve until the watches end, or an older installation comes. A first start fails without an API server, another waits."""
    configuration = await connect(settings)
    async with contextlib.AsyncExitStack() as stack:
        # Renewals neither wait for other calls nor are bound to what they win.
        aside = _opened(stack, Kube(configuration))
        pods = _opened(stack, Pods(proxy=settings.pod_proxy))
        lease = _candidate(settings, aside) if settings.leader_elect else None
        neighbours = Neighbours(aside, namespaces=settings.namespaces, lease=lease)
        kube = _opened(stack, Kube(configuration, time_left=neighbours.time_left))
        operator = Operator(settings, kube, pods, catalogue, lease=lease, neighbours=neighbours)
        runner = await _answering(operator.health, settings)
        stack.push_async_callback(runner.cleanup)
        if not again:
            await check_server(kube, configuration.host)
        log.info("vlm-operator %s serves %s", __version__, ", ".join(settings.namespaces) or "all namespaces")
        insights = Insights()
        take_lists(operator.take_in)
        watches = {
            "registry": registry_for(operator.feed, lambda: connection_info(configuration)),
            "settings": settings_for(),
            "insights": insights,
            "memories": NoMemories(),
            "clusterwide": not settings.namespaces,
            "namespaces": settings.namespaces,
            "standalone": True,
        }
        guard = keep_watching(insights, served=lambda: kube.serves(VLM_DEPLOYMENT))
        parts = [_watch(watches, stop), guard, neighbours.watch(), operator.work(), operator.health.measure_lag()]
        if lease is not None:
            parts.append(operator.stand(lease))
            stack.push_async_callback(lease.release)
        await _until_the_first_ends(*parts)


def _opened(stack: contextlib.AsyncExitStack, client: Client) -> Client:
    stack.push_async_callback(client.close)
    return client


async def _answering(health: Health, settings: Settings) -> web.AppRunner:
    try:
        return await health.serve(settings.health_host, settings.health_port)
    except OSError as error:
        where = f"{settings.health_host}, port {settings.health_port}"
        why = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0).lower()
        way_out = "set --health-port and --health-host to what is free"
        raise StartError(f"cannot serve health and metrics on {where}: {why}; {way_out}") from error


def _trouble_of(lease: Lease | None) -> str:
    return f"the {lease} cannot be had: {lease.trouble}" if lease is not None and lease.trouble else ""


def _candidate(settings: Settings, kube: Kube) -> Lease:
    return Lease(
        kube,
        namespace=lease_namespace(settings),
        name=settings.leader_elect_name,
        identity=f"{socket.gethostname()}_{uuid.uuid4().hex[:12]}",
        durations=Durations(
            lease_seconds=settings.leader_elect_lease_seconds,
            deadline_seconds=settings.leader_elect_deadline_seconds,
            retry_seconds=settings.leader_elect_retry_seconds,
        ),
        annotations={NAMESPACES: annotation(settings.namespaces)},
    )


async def _watch(watches: dict[str, Any], stop: asyncio.Event) -> None:
    """Run the shell to its end. It logs itself what ended it."""
    others = asyncio.all_tasks()
    with contextlib.suppress(Exception):
        tasks = await kopf.spawn_tasks(**watches)
        # It has just taken the signals for itself, and would not end with us.
        _on_signals(stop.set)
        await kopf.run_tasks(tasks, ignored=others)


def _on_signals(handle: Callable[[], None]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, handle)


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
