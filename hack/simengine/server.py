"""All engines in one thread, behind a forward proxy on a port of its own: it leads to the engine that a URL names by its host.

A program that takes an HTTP proxy (`GET http://198.18.0.5:8000/load`) reaches the engine of any pod by its address, though
nothing has that address. Which port the URL names does not matter.
"""

import asyncio
import threading

from aiohttp import web

from controlplane.threaded import Threaded
from simengine.engine import SimEngine

MODEL = "Qwen/Qwen2.5-VL-7B-Instruct"


class SimEngines(Threaded):
    """The engines by the addresses of their pods, made when they are first asked for, by a test or by a request.

    `everywhere=False`: only those that a test has asked for; at other addresses is nothing. kwok gives the address of a pod
    that is gone to a later one: `forget` it then.
    """

    def __init__(self, *, model: str = MODEL, everywhere: bool = True) -> None:
        super().__init__()
        self._model = model
        self._everywhere = everywhere
        self._engines: dict[str, SimEngine] = {}
        self._lock = threading.Lock()
        self._port = 0

    @property
    def proxy_url(self) -> str:
        """What the operator is given as `--pod-proxy`."""
        return f"http://127.0.0.1:{self._port}"

    def __getitem__(self, address: str) -> SimEngine:
        with self._lock:
            return self._engines.setdefault(address, SimEngine(address=address, model=self._model))

    def forget(self, address: str) -> None:
        """Let the next pod at an address have a new engine."""
        with self._lock:
            self._engines.pop(address, None)

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = web.Server(self._handle, handler_cancellation=True, access_log=None)
        self._listener = await asyncio.get_running_loop().create_server(self._server, "127.0.0.1", 0)
        self._port = self._listener.sockets[0].getsockname()[1]

    async def end(self) -> None:
        """Close the port and every connection."""
        self._listener.close()
        await self._server.shutdown(timeout=0)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        address = request.url.host or ""
        known = self._everywhere or address in self._engines
        if not known or self[address].gone:
            return web.Response(status=502, text=f"nothing is at {address}")
        return await self[address].answer(request)
