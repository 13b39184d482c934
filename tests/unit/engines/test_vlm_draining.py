"""The middleware around a server as vLLM has it, with clients that keep their connections."""

import asyncio
import importlib
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import aiohttp
import pytest
import uvicorn
from aiohttp.abc import AbstractResolver, ResolveResult

from unit.engines.golden_files import rendered, resource_and_pod
from vlm_operator.engines.registry import engine
from vlm_operator.engines.vllm.engine import DRAINING_SCRIPT

CONNECTIONS = 4
PAUSE = 0.05
"""Seconds between the requests of a client: the half second of real ones, made short."""
PIECES = 5
ANSWER = b"piece " * PIECES


@pytest.fixture(scope="module")
def middleware(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The class, found as vLLM finds it: by the argument in the pod, among the files of the ConfigMap."""
    command = rendered(resource_and_pod("minimal")[0])["spec"]["containers"][0]["command"]
    module_path, name = command[2].rpartition(" --middleware ")[2].rsplit(".", 1)
    folder = tmp_path_factory.mktemp("scripts")
    for file, text in engine("vLLM").scripts().items():
        (folder / file).write_text(text)
    sys.path.append(str(folder))
    module: ModuleType = importlib.import_module(module_path)
    assert module.__file__ == str(folder / DRAINING_SCRIPT)
    yield getattr(module, name)
    sys.path.remove(str(folder))
    del sys.modules[module_path]


class Replica:
    """A server of its own, in a thread. It answers in pieces, or at once where the path says so."""

    def __init__(self, wrapped: Callable[[Any], Any], http: Any) -> None:
        self.in_flight = 0
        self.served: list[tuple[int, float]] = []
        """The client's port and the time at which the request came."""
        self.goes_on = threading.Event()
        self.goes_on.set()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(wrapped(self._app), http=http, log_level="warning", timeout_keep_alive=600)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})

    def __enter__(self) -> "Replica":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.goes_on.set()
        self._server.should_exit = True
        self._thread.join()

    @property
    def connections(self) -> int:
        return len(self._server.server_state.connections)

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            return
        self.served.append((scope["client"][1], time.monotonic()))
        self.in_flight += 1
        try:
            while (await receive()).get("more_body"):
                pass
            headers = [(b"Connection", b"keep-alive")] if scope["path"] == "/once" else []
            if scope["path"] == "/once":
                headers.append((b"Content-Length", b"%d" % len(ANSWER)))
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            for piece in (ANSWER,) if scope["path"] == "/once" else (b"piece ",) * PIECES:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                await asyncio.to_thread(self.goes_on.wait)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self.in_flight -= 1


class Service(AbstractResolver):
    """Where new connections lead; those that are open stay where they are, as with kube-proxy."""

    def __init__(self, replica: Replica) -> None:
        self.endpoint = replica

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_INET) -> list[ResolveResult]:
        assert port
        place = ResolveResult(
            hostname=host,
            host="127.0.0.1",
            port=self.endpoint.port,
            family=family,
            proto=0,
            flags=socket.AI_NUMERICHOST,
        )
        return [place]

    async def close(self) -> None:
        pass


@dataclass
class World:
    """Two replicas, of which the first is in the Service, and a client with a pool of connections to it."""

    old: Replica
    new: Replica
    service: Service
    client: aiohttp.ClientSession
    role: Path
    answers: list[bytes] = field(default_factory=list)
    stopped: bool = False

    async def ask(self, path: str) -> bytes:
        async with self.client.post(f"http://service{path}", data=b"{}") as response:
            assert response.status == 200
            return await response.read()

    async def keep_asking(self, path: str) -> None:
        while not self.stopped:
            self.answers.append(await self.ask(path))
            await asyncio.sleep(PAUSE)

    async def until(self, what: Callable[[], bool]) -> None:
        while not what():  # noqa: ASYNC110 # it happens in the thread of a server
            await asyncio.sleep(0.01)


@pytest.fixture(params=["h11", "httptools"])
async def world(middleware: Any, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    role = tmp_path / "role"
    role.write_text("serving")
    with (
        Replica(lambda app: middleware(app, str(role)), request.param) as old,
        Replica(lambda app: middleware(app, str(tmp_path / "none")), request.param) as new,
    ):
        service = Service(old)
        connector = aiohttp.TCPConnector(resolver=service, use_dns_cache=False, limit=CONNECTIONS, force_close=False)
        async with aiohttp.ClientSession(connector=connector) as client:
            yield World(old=old, new=new, service=service, client=client, role=role)


async def test_a_client_with_a_pool_leaves_a_draining_replica_and_loses_nothing(world: World) -> None:
    paths = ["/once", "/stream"] * (CONNECTIONS // 2)
    clients = [asyncio.ensure_future(world.keep_asking(path)) for path in paths]
    await world.until(lambda: len(world.old.served) >= 5 * CONNECTIONS)
    assert len({port for port, _ in world.old.served}) == CONNECTIONS  # connections are kept

    world.service.endpoint = world.new
    before = len(world.old.served)
    await world.until(lambda: len(world.old.served) >= before + 5 * CONNECTIONS)
    assert not world.new.served  # to leave the Service alone changes nothing

    world.role.write_text("draining")
    marked = time.monotonic()
    await world.until(lambda: world.old.connections == 0 and len(world.new.served) >= 5 * CONNECTIONS)
    world.stopped = True
    await asyncio.gather(*clients)

    assert world.old.in_flight == 0
    late = [port for port, at in world.old.served if at > marked]
    assert len(late) == len(set(late)) <= CONNECTIONS  # one more answer for each connection
    assert set(world.answers) == {ANSWER}
    assert len(world.answers) == len(world.old.served) + len(world.new.served)


async def test_a_stream_that_has_begun_ends_whole_and_the_next_answer_closes(world: World) -> None:
    world.old.goes_on.clear()
    stream = asyncio.ensure_future(world.ask("/stream"))
    await world.until(lambda: world.old.in_flight == 1)
    world.role.write_text("draining\n")
    world.old.goes_on.set()
    assert await stream == ANSWER
    assert await world.ask("/once") == ANSWER
    assert await world.ask("/stream") == ANSWER
    await world.until(lambda: world.old.connections == 0)
    assert len({port for port, _ in world.old.served}) >= 2


async def test_a_replica_that_is_called_back_keeps_connections_again(world: World) -> None:
    world.role.write_text("draining")
    await world.ask("/once")
    world.role.write_text("serving")
    for _ in range(3):
        await world.ask("/once")
    ports = [port for port, _ in world.old.served]
    assert len(set(ports)) == 2
    assert len(set(ports[1:])) == 1


WRONG: tuple[Callable[[Path], Any], ...] = (
    lambda path: path.write_text(""),
    lambda path: path.write_bytes(b"\xff\x00draining"),
    lambda path: path.write_text("warm"),
    lambda path: path.write_text("draining-not"),
    lambda path: path.unlink(),
    lambda path: path.mkdir(),
)


async def test_nothing_about_the_file_harms_an_answer(world: World) -> None:
    for make in WRONG:
        make(world.role)
        assert await world.ask("/once") == ANSWER
    assert len({port for port, _ in world.old.served}) == 1


async def test_what_is_no_request_passes_untouched(middleware: Any, tmp_path: Path) -> None:
    (tmp_path / "role").write_text("draining")
    given: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        given.append((scope, receive, send))

    async def receive() -> Any: ...
    async def send(_: Any) -> None: ...

    for kind in ("websocket", "lifespan"):
        await middleware(app, str(tmp_path / "role"))({"type": kind}, receive, send)
        assert given[-1] == ({"type": kind}, receive, send)


def test_the_file_is_where_the_pod_has_it(middleware: Any) -> None:
    for name in ("minimal", "health-verification"):
        spec = rendered(resource_and_pod(name)[0])["spec"]
        (volume,) = [volume for volume in spec["volumes"] if volume["name"] == "podinfo"]
        (mount,) = [mount for mount in spec["containers"][0]["volumeMounts"] if mount["name"] == "podinfo"]
        (item,) = volume["downwardAPI"]["items"]
        assert item["fieldRef"] == {"fieldPath": "metadata.labels['vlm.dev/role']"}
        assert f"{mount['mountPath']}/{item['path']}" == sys.modules[middleware.__module__].ROLE_FILE
