"""Close the connections of clients while this replica drains. vLLM puts it around its server (`--middleware`).

A replica that leaves its Service keeps the connections that are open, and a client with a pool goes on sending through them.
While the role of the pod is `draining` each answer says `Connection: close`: that request is served to its end, streams too,
and the next one takes a new connection, which leads to a replica that serves.

It runs inside the engine: standard library of Python 3.9 only. Nothing about the file may harm an answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

ROLE_FILE = "/podinfo/role"
"""The label `vlm.dev/role` of the pod, kept up to date by the kubelet."""
DRAINING = b"draining"


class CloseWhileDraining:
    """An ASGI application around another one."""

    def __init__(self, app: App, role_file: str = ROLE_FILE) -> None:
        self._app = app
        self._role_file = Path(role_file)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve a request, or whatever else the server asks."""

        async def closing(message: Message) -> None:
            if message["type"] == "http.response.start" and self._drains():
                others = [pair for pair in message.get("headers", ()) if pair[0].lower() != b"connection"]
                message = {**message, "headers": [*others, (b"connection", b"close")]}
            await send(message)

        await self._app(scope, receive, closing if scope["type"] == "http" else send)

    def _drains(self) -> bool:
        """Read anew for each answer: a small file in memory, which takes microseconds."""
        try:
            return self._role_file.read_bytes().strip() == DRAINING
        except OSError:
            return False
