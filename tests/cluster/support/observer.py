"""An independent observer: watches a namespace straight at the API server, and is the clients of its engines."""

import asyncio
import json
import ssl
from collections.abc import Callable
from typing import Any

import aiohttp

from cluster.support.invariants import Bounds, Invariants
from cluster.support.operator import Deployments, Object, engines
from controlplane.threaded import Threaded
from vlm_operator.runtime.kinds import ENDPOINT_SLICE, POD

WORK_SECONDS = 1.0
"""Until a pod that drains has finished its work."""
LONGEST_LINE = 2**20
"""Bytes of an event."""


class Observer(Threaded):
    """Looks on from the beginning of a `with` block to its end. Pods that serve have work in flight."""

    def __init__(self, deployments: Deployments) -> None:
        super().__init__()
        self._plane = deployments.control_plane
        self._namespace = deployments.namespace
        self._seen = Invariants()
        self._work: dict[str, str] = {}
        """Addresses of the engines that have work, by the uids of their pods."""
        self._ends: dict[str, asyncio.TimerHandle] = {}

    @property
    def violations(self) -> list[str]:
        """What was seen that should never have been."""
        return self._seen.violations

    @property
    def history(self) -> list[str]:
        """All that was seen, in order."""
        return self._seen.history

    def expect(self, bounds: Bounds) -> None:
        """From now on these hold."""
        self._seen.bounds = bounds

    def excuse(self, name: str) -> None:
        """A pod, or all of a node or a deployment, may go with work in flight: it is not the operator that takes them."""
        self._seen.excused.add(name)

    async def start(self) -> None:
        """List, and watch from there."""
        tls = ssl.create_default_context(cafile=str(self._plane.ca_file))
        tls.load_cert_chain(self._plane.pki / "admin.crt", self._plane.pki / "admin.key")
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls),
            timeout=aiohttp.ClientTimeout(total=None),
            read_bufsize=LONGEST_LINE,
        )
        kinds = ((POD, self._pod), (ENDPOINT_SLICE, self._seen.endpoints))
        paths = [(self._plane.server + kind.path(namespace=self._namespace), take) for kind, take in kinds]
        self._watches = [
            asyncio.ensure_future(self._follow(path, take, await self._list(path))) for path, take in paths
        ]

    async def end(self) -> None:
        """Look on no longer, and take the work of all engines back."""
        for watch in self._watches:
            watch.cancel()
        await asyncio.wait(self._watches)
        for uid in tuple(self._work):
            self._finish(uid)
        await self._session.close()

    async def _list(self, path: str) -> str:
        """The version of an empty collection, which the namespace's must be when the observer comes."""
        async with self._session.get(path) as answer:
            found = await answer.json()
        assert not found["items"]
        version: str = found["metadata"]["resourceVersion"]
        return version

    async def _follow(self, path: str, take: Callable[[str, Object], None], version: str) -> None:
        try:
            async with self._session.get(path, params={"watch": "1", "resourceVersion": version}) as answer:
                async for line in answer.content:
                    event: dict[str, Any] = json.loads(line)
                    take(event["type"], event["object"])
            self.violations.append(f"the watch of {path} has ended")
        except Exception as error:  # noqa: BLE001 # whatever it is, nobody would look on any more
            self.violations.append(f"the watch of {path} broke: {error!r}")

    def _pod(self, event: str, pod: Object) -> None:
        self._seen.pod(event, pod)
        uid = pod["metadata"]["uid"]
        if uid not in self._seen.busy:
            self._finish(uid)
        elif self._seen.drains(uid):
            if uid not in self._ends:
                self._ends[uid] = asyncio.get_running_loop().call_later(WORK_SECONDS, self._finish, uid)
        else:
            self._cancel(uid)
            self._work[uid] = self._seen.busy[uid]
            engines()[self._work[uid]].in_flight = 1

    def _finish(self, uid: str) -> None:
        self._cancel(uid)
        self._seen.busy.pop(uid, None)
        if uid in self._work:
            engines()[self._work.pop(uid)].in_flight = 0

    def _cancel(self, uid: str) -> None:
        if uid in self._ends:
            self._ends.pop(uid).cancel()
