"""Passes requests on to the API server and answers back, with the faults of the rules in force. Runs in the proxy's loop."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

import aiohttp
from aiohttp import web

from faultproxy.calls import Call, Target, target_of
from faultproxy.faults import (
    Answer,
    CallFault,
    Crash,
    CutWatch,
    Delay,
    DelayEvents,
    EventFault,
    Expire,
    Injection,
    Keep,
    KeepEvents,
    LoseAnswer,
    LoseEvents,
    RepeatEvents,
)

OF_ONE_CONNECTION = frozenset(
    {"connection", "content-length", "date", "host", "keep-alive", "server", "transfer-encoding"}
)
"""Headers that are not passed on, in lower case."""


@dataclass(frozen=True)
class Reply:
    """A whole answer."""

    code: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Event:
    """One line of a watch."""

    line: bytes
    due: float
    """When to pass it on, on the monotonic clock."""
    injection: Injection | None


class Relay:
    """Handles all requests."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        server: str,
        *,
        calls: list[Call],
        rules: Callable[[], tuple[Injection, ...]],
    ) -> None:
        self._session = session
        self._server = server
        self._calls = calls
        self._rules = rules
        self._on_the_way: set[asyncio.Task[Reply]] = set()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request, or close its connection."""
        body = await request.read()
        target = target_of(request.method, request.path, request.query, body)
        call = Call(target=target, path=request.path_qs, at=time.monotonic())
        self._calls.append(call)
        injection = self._strikes(target, CallFault)
        try:
            if injection is not None:
                call.fault = type(injection.rule.fault).__name__
                return await self._struck(injection, call, request, body)
            if target.verb == "watch":
                return await self._watch(call, request)
            return _told(call, await self._passed_on(call, request, body))
        except aiohttp.ClientError:
            return _cut(request)

    def _strikes(self, target: Target, kinds: type[CallFault] | type[EventFault]) -> Injection | None:
        fitting = (injection for injection in self._rules() if isinstance(injection.rule.fault, kinds))
        return next((injection for injection in fitting if injection.strikes(target)), None)

    # -- calls ---------------------------------------------------------------------------------------------------------
    async def _struck(
        self, injection: Injection, call: Call, request: web.BaseRequest, body: bytes
    ) -> web.StreamResponse:
        match injection.rule.fault:
            case Answer() as answer:
                return _told(call, _status(answer))
            case Delay(seconds=seconds):
                return _told(call, await self._passed_on(call, request, body, after=asyncio.sleep(seconds)))
            case Keep():
                return _told(call, await self._passed_on(call, request, body, after=injection.lifted.wait()))
            case LoseAnswer(silent=silent):
                await self._passed_on(call, request, body)
                if silent:
                    await asyncio.Event().wait()  # until the client closes the connection
            case Crash(kill=kill, after=after):
                if after:
                    await self._passed_on(call, request, body)
                kill()
        return _cut(request)

    async def _passed_on(
        self, call: Call, request: web.BaseRequest, body: bytes, *, after: Awaitable[object] | None = None
    ) -> Reply:
        """Pass a call on and return the answer. It arrives, even though the client goes meanwhile."""
        task = asyncio.ensure_future(self._sent(call, request, body, after))
        self._on_the_way.add(task)
        task.add_done_callback(self._on_the_way.discard)
        return await asyncio.shield(task)

    async def _sent(self, call: Call, request: web.BaseRequest, body: bytes, after: Awaitable[object] | None) -> Reply:
        url, headers = self._server + call.path, _passed(request.headers)
        if after is not None:
            await after
        async with self._session.request(request.method, url, headers=headers, data=body or None) as upstream:
            reply = Reply(upstream.status, _passed(upstream.headers), await upstream.read())
        call.code = reply.code
        return reply

    # -- watches -------------------------------------------------------------------------------------------------------
    async def _watch(self, call: Call, request: web.BaseRequest) -> web.StreamResponse:
        headers = _passed(request.headers) | {"Accept-Encoding": "identity"}
        async with self._session.get(self._server + call.path, headers=headers) as upstream:
            call.code = upstream.status
            if upstream.status != 200:
                return _told(call, Reply(upstream.status, _passed(upstream.headers), await upstream.read()))
            call.told = 200
            response = web.StreamResponse(headers=_passed(upstream.headers))
            await response.prepare(request)
            events: asyncio.Queue[Event | None] = asyncio.Queue()
            reading = asyncio.ensure_future(self._read(call.target, upstream, events))
            try:
                while (event := await events.get()) is not None:
                    if not await _deliver(event, response, request):
                        return response
                reading.result()
            finally:
                reading.cancel()
            return response

    async def _read(self, watch: Target, upstream: aiohttp.ClientResponse, events: asyncio.Queue[Event | None]) -> None:
        """Read events from the API server; whom a fault strikes is decided here. None is the end of the watch."""
        try:
            async for line in _lines(upstream.content):
                injection = self._strikes(_about(watch, line), EventFault)
                fault = injection.rule.fault if injection is not None else None
                due = time.monotonic() + (fault.seconds if isinstance(fault, DelayEvents) else 0.0)
                copies = 0 if isinstance(fault, LoseEvents) else 2 if isinstance(fault, RepeatEvents) else 1
                for _ in range(copies):
                    events.put_nowait(Event(line, due, injection))
        finally:
            events.put_nowait(None)


async def _deliver(event: Event, response: web.StreamResponse, request: web.BaseRequest) -> bool:
    """Send an event when it is due, or what a fault makes of it. Returns whether the watch goes on."""
    await asyncio.sleep(max(0.0, event.due - time.monotonic()))
    match event.injection.rule.fault if event.injection is not None else None:
        case KeepEvents() if event.injection is not None:
            await event.injection.lifted.wait()
        case Expire():
            expired = _failure(410, "Expired", "too old resource version: injected")
            await response.write(json.dumps({"type": "ERROR", "object": expired}).encode() + b"\n")
            return False
        case CutWatch(half_a_line=half, properly=properly):
            if half:
                await response.write(event.line[: len(event.line) // 2])
            if not properly:
                _cut(request)
            return False
    await response.write(event.line)
    return True


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """The lines of a stream, however long, each with its end."""
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line + b"\n"


def _about(watch: Target, line: bytes) -> Target:
    """The object that an event is about. A bookmark is about none."""
    metadata = json.loads(line)["object"].get("metadata") or {}
    return replace(watch, namespace=metadata.get("namespace", ""), name=metadata.get("name", ""))


def _told(call: Call, reply: Reply) -> web.StreamResponse:
    call.told = reply.code
    return web.Response(status=reply.code, headers=reply.headers, body=reply.body)


def _status(answer: Answer) -> Reply:
    headers = {"Content-Type": "application/json"}
    if answer.retry_after is not None:
        headers["Retry-After"] = str(answer.retry_after)
    if answer.body is not None:
        return Reply(answer.code, headers | {"Content-Type": "text/html"}, answer.body.encode())
    return Reply(answer.code, headers, json.dumps(_failure(answer.code, answer.reason, answer.message)).encode())


def _failure(code: int, reason: str, message: str) -> dict[str, object]:
    """A Status as the API server writes it."""
    head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return {**head, "message": message, "reason": reason, "code": code}


def _passed(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in OF_ONE_CONNECTION}


def _cut(request: web.BaseRequest) -> web.StreamResponse:
    """Close the connection at once. The response is for nobody: a handler must return one."""
    if request.transport is not None:
        with contextlib.suppress(OSError):
            request.transport.abort()
    return web.Response()
