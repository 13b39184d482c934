"""The proxy as a test sees it: a thread that listens on a port of its own, the rules in force, the record of all calls."""

import asyncio
import base64
import random
import ssl
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import aiohttp
import yaml
from aiohttp import web

from controlplane.pki import Authority
from controlplane.ports import Ports
from controlplane.threaded import Threaded
from faultproxy.calls import REVIEWING, WRITES, Call
from faultproxy.calls import busiest_minute as busiest
from faultproxy.faults import Injection, Rule
from faultproxy.relay import Relay

T = TypeVar("T")


class FaultProxy(Threaded):
    """A proxy in front of the API server of a kubeconfig, for the user of that kubeconfig.

    A client certificate of the user is presented to the API server by the proxy itself; tokens come from the client and are
    passed on. Connections that are upgraded (exec, port-forward) do not go through.
    """

    def __init__(self, kubeconfig: Path, *, seed: int = 0) -> None:
        super().__init__()
        self.calls: list[Call] = []
        """All requests since the start, in order."""
        self._upstream = _Upstream(kubeconfig)
        self._dice = random.Random(seed)  # noqa: S311 # a test that can be repeated
        self._rules: tuple[Injection, ...] = ()
        self._ports = Ports("proxy")
        self._folder = tempfile.TemporaryDirectory(prefix="vlm-faultproxy-")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, traceback)
        self._ports.release()
        self._folder.cleanup()

    @property
    def server(self) -> str:
        """URL of the proxy."""
        return f"https://127.0.0.1:{self._ports['proxy']}"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the same user, with the proxy in the place of the API server."""
        return Path(self._folder.name) / "kubeconfig"

    def inject(self, rule: Rule) -> Injection:
        """Put a rule into force, until it is lifted."""
        return self._call(self._inject, rule)

    def cut(self) -> None:
        """Close all connections now. Clients may connect again."""
        self._call(self._cut)

    def stop(self) -> None:
        """Be as an API server that has ended: no connection is left, and none is accepted."""
        self._await(self._close())

    def resume(self) -> None:
        """Accept connections again."""
        self._await(self._listen())

    def writes(self, *, namespace: str | None = None) -> tuple[Call, ...]:
        """Calls that would change something, whatever became of them."""
        calls = (call for call in self.calls if call.target.verb in WRITES and call.target.group not in REVIEWING)
        return tuple(call for call in calls if namespace in {None, call.target.namespace})

    def busiest_minute(self, *, namespace: str | None = None) -> int:
        """The most such calls within 60 seconds."""
        return busiest(self.writes(namespace=namespace))

    # -- the thread ----------------------------------------------------------------------------------------------------
    async def start(self) -> None:
        """Connect to the API server's side, and listen."""
        connector = aiohttp.TCPConnector(limit=0, ssl=self._upstream.ssl_context())
        # Nothing is added to what the client sends, and answers go on as they come, compressed or not.
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        )
        relay = Relay(self._session, self._upstream.server, calls=self.calls, rules=lambda: self._rules)
        self._handler = web.Server(relay.handle, handler_cancellation=True, access_log=None)
        authority = Authority(Path(self._folder.name), "faultproxy")
        certificate, key = authority.issue("server", user="faultproxy", hosts=("127.0.0.1",))
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(certificate, key)
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(self._upstream.kubeconfig_for(self.server, ca=authority.certificate.read_bytes()))
        await self._listen()

    async def end(self) -> None:
        """Close everything."""
        await self._close()
        await self._session.close()

    async def _listen(self) -> None:
        self._listener = await self._loop.create_server(
            self._handler, "127.0.0.1", self._ports["proxy"], ssl=self._tls, reuse_port=True
        )

    async def _close(self) -> None:
        self._listener.close()
        self._cut()

    def _cut(self) -> None:
        for connection in self._handler.connections:
            if connection.transport is not None:
                connection.transport.abort()

    def _inject(self, rule: Rule) -> Injection:
        injection = Injection(rule, dice=self._dice, lift=lambda one: self._call(self._lift, one))
        self._rules = (*self._rules, injection)
        return injection

    def _lift(self, injection: Injection) -> None:
        self._rules = tuple(one for one in self._rules if one is not injection)
        injection.lifted.set()

    def _call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function in the proxy's thread."""
        if threading.current_thread() is self._thread:
            return function(*arguments)  # from what a fault calls

        async def calling() -> T:
            return function(*arguments)

        return self._await(calling())

    def _await(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


class _Upstream:
    """What a kubeconfig says of its current context."""

    def __init__(self, kubeconfig: Path) -> None:
        self._config = yaml.safe_load(kubeconfig.read_text())
        (context,) = _named(self._config["contexts"], self._config["current-context"])
        (self._cluster,) = _named(self._config["clusters"], context["context"]["cluster"])
        (self._user,) = _named(self._config["users"], context["context"]["user"])
        self._folder = kubeconfig.parent

    @property
    def server(self) -> str:
        url: str = self._cluster["cluster"]["server"]
        return url.rstrip("/")

    def ssl_context(self) -> ssl.SSLContext | bool:
        if not self.server.startswith("https:"):
            return True
        authority = self._read(self._cluster["cluster"], "certificate-authority")
        context = ssl.create_default_context(cadata=authority.decode())
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if any(key.startswith("client-certificate") for key in self._user["user"]):
            with tempfile.NamedTemporaryFile() as file:  # there is no other way to load them
                for part in ("client-certificate", "client-key"):
                    file.write(self._read(self._user["user"], part) + b"\n")
                file.flush()
                context.load_cert_chain(file.name)
        return context

    def kubeconfig_for(self, server: str, *, ca: bytes) -> str:
        """The same with another server."""
        cluster = {"server": server, "certificate-authority-data": base64.b64encode(ca).decode()}
        clusters = [{**self._cluster, "cluster": cluster}]
        return yaml.safe_dump({**self._config, "clusters": clusters, "users": [self._user]})

    def _read(self, section: dict[str, str], key: str) -> bytes:
        if f"{key}-data" in section:
            return base64.b64decode(section[f"{key}-data"])
        return (self._folder / section[key]).read_bytes()


def _named(entries: Iterable[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [entry for entry in entries if entry["name"] == name]
