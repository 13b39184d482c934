"""One simulated engine: what a test sets, and the answers of a vLLM 0.32 that follow from it. Runs in the server's loop."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

LOOK_SECONDS = 0.01
"""Between looks at what a test may have changed."""
_TOKENS = 16
"""Of an answer whose request does not say."""


@dataclass(kw_only=True)
class SimEngine:
    """Idle and healthy until a test says otherwise. All fields may be set at any time, from any thread."""

    address: str
    model: str
    """The first name that it serves."""
    in_flight: int = 0
    """Requests in work besides those that are really sent. They give out a token each with every look at the metrics."""
    waiting: int = 0
    """Requests that wait for the engine, besides."""
    kv_cache_usage: float = 0.0
    generated_tokens: int = 0
    token_seconds: float = 0.0
    """Between the tokens of answers to real requests."""
    silent: bool = False
    """Takes requests and answers none, until this is taken back."""
    hung: bool = False
    """Healthy, and nothing comes of its work: counters stand still, real requests wait."""
    dead: bool = False
    """Its engine process is gone: health is 503, requests are 500."""
    unauthorized: bool = False
    """Wants an API key that nobody has. As with vLLM, that guards /v1 alone."""
    gone: bool = False
    """Nothing is at its address."""
    cache_config: Mapping[str, str] = field(
        default_factory=lambda: {"block_size": "16", "num_gpu_blocks": "8192", "kv_cache_size_tokens": "131072"}
    )
    """Labels of `vllm:cache_config_info`."""
    asked: list[str] = field(default_factory=list)
    """All requests: `GET /load`."""
    _serving: int = 0

    @property
    def running(self) -> int:
        """Requests in work, those of tests and real ones."""
        return max(self.in_flight + self._serving, 1 if self.hung else 0)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        self.asked.append(f"{request.method} {request.path}")
        await self._until(lambda: not self.silent)
        if self.unauthorized and request.path.startswith("/v1/"):
            return web.json_response({"error": "Unauthorized"}, status=401)
        if request.method == "POST" and request.path == "/v1/chat/completions":
            return await self._chat(request)
        return self._told(request.path)

    def _told(self, path: str) -> web.Response:
        match path:
            case "/health":
                return web.Response(status=503 if self.dead else 200)
            case "/load":
                return web.json_response({"server_load": self.running + self.waiting})
            case "/metrics":
                return web.Response(text=self._metrics())
            case "/v1/models":
                return web.json_response({"object": "list", "data": [{"id": self.model, "object": "model"}]})
        return web.json_response({"detail": "Not Found"}, status=404)

    def _metrics(self) -> str:
        if not self.hung:
            self.generated_tokens += self.in_flight
        figures: tuple[tuple[str, str, dict[str, str], float], ...] = (
            ("num_requests_running", "gauge", {}, self.running),
            ("num_requests_waiting", "gauge", {}, self.waiting),
            ("num_requests_waiting_by_reason", "gauge", {"reason": "capacity"}, self.waiting),
            ("num_requests_waiting_by_reason", "gauge", {"reason": "deferred"}, 0),
            ("kv_cache_usage_perc", "gauge", {}, self.kv_cache_usage),
            ("generation_tokens_total", "counter", {}, self.generated_tokens),
        )
        labels = {"engine": "0", "model_name": self.model}
        lines = [_line(name, kind, labels | more, value) for name, kind, more, value in figures]
        return "".join([*lines, _line("cache_config_info", "gauge", {"engine": "0"} | dict(self.cache_config), 1)])

    async def _chat(self, request: web.BaseRequest) -> web.StreamResponse:
        wanted = json.loads(await request.read())
        if self.dead:
            return _error(500, "InternalServerError", "EngineCore encountered an issue.")
        if wanted.get("model") != self.model:
            return _error(404, "NotFoundError", f"The model `{wanted.get('model')}` does not exist.")
        tokens = wanted.get("max_completion_tokens") or wanted.get("max_tokens") or _TOKENS
        self._serving += 1
        try:
            return await (self._stream(request, wanted, tokens) if wanted.get("stream") else self._whole(tokens))
        finally:
            self._serving -= 1

    async def _whole(self, tokens: int) -> web.StreamResponse:
        for _ in range(tokens):
            await self._token()
        message = {"role": "assistant", "content": "word " * tokens}
        choice = {"index": 0, "message": message, "finish_reason": "length"}
        body = self._completion("chat.completion", [choice])
        return web.json_response(body | {"usage": _usage(tokens)})

    async def _stream(self, request: web.BaseRequest, wanted: dict[str, Any], tokens: int) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)

        async def say(choices: list[dict[str, Any]], **more: Any) -> None:
            chunk = self._completion("chat.completion.chunk", choices) | more
            await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")

        for number in range(tokens):
            await self._token()
            reason = "length" if number == tokens - 1 else None
            await say([{"index": 0, "delta": {"content": "word "}, "finish_reason": reason}])
        if (wanted.get("stream_options") or {}).get("include_usage"):
            await say([], usage=_usage(tokens))
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    async def _token(self) -> None:
        await asyncio.sleep(self.token_seconds)
        await self._until(lambda: not self.hung and not self.silent)
        self.generated_tokens += 1

    @staticmethod
    async def _until(what: Callable[[], bool]) -> None:
        while not what():  # noqa: ASYNC110 # tests set fields from other threads
            await asyncio.sleep(LOOK_SECONDS)

    def _completion(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": "chatcmpl-0", "object": kind, "created": 0, "model": self.model, "choices": choices}


def _line(name: str, kind: str, labels: Mapping[str, str], value: float) -> str:
    shown = ",".join(f"{key}={json.dumps(text, ensure_ascii=False)}" for key, text in sorted(labels.items()))
    return f"# TYPE vllm:{name} {kind}\nvllm:{name}{{{shown}}} {float(value)}\n"


def _usage(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": 1, "completion_tokens": tokens, "total_tokens": tokens + 1}


def _error(status: int, kind: str, message: str) -> web.StreamResponse:
    return web.json_response({"error": {"message": message, "type": kind, "code": status}}, status=status)
