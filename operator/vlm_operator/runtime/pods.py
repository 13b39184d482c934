"""Reads replicas: at the addresses of their pods, a few at a time, and never for long.

No redirect is followed and no proxy is taken from the environment: what answers for a pod would not be the pod.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import aiohttp

from vlm_operator.api.names import OPERATOR
from vlm_operator.engines.base import HTTP_PORT, Engine
from vlm_operator.engines.question import Verdict
from vlm_operator.engines.work import Work, kv_cache_tokens, work_of

AT_ONCE = 16
"""Requests on their way at the same time."""
TIMEOUT = 8.0
"""Seconds for one request, its whole answer included. An overloaded engine takes five to tell its load."""
LARGEST_ANSWER = 4 * 2**20
"""In bytes. The metrics of an engine are less than a tenth of a megabyte."""
_CHUNK = 64 * 2**10
_SHOWN = 300
_NEEDS_KEY = (401, 403)
_OF_A_PROXY = (502, 504)


class PodError(Exception):
    """A pod gave no answer that can be read; what it did, as the end of a sentence."""


class UnreachablePodError(PodError):
    """No connection to the pod came about: a policy or the network may be in the way of the operator alone."""


class Pods:
    """A client of all pods. What is not told is not asked for again: whoever wants to know looks again later."""

    def __init__(self, *, proxy: str | None = None, timeout_seconds: float = TIMEOUT, at_once: int = AT_ONCE) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._seconds = timeout_seconds
        self._session = aiohttp.ClientSession(
            # A pod may be gone and its address another one's by the next look, so no connection is kept.
            connector=aiohttp.TCPConnector(limit=0, force_close=True),
            timeout=aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=timeout_seconds / 2),
            headers={"User-Agent": OPERATOR, "Accept-Encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            proxy=proxy,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def work(self, address: str, *, engine: Engine, version: str, model: str) -> Work:
        """What the replica at an address of a pod works on. `model` is the first name that it serves."""
        return await read_work(partial(self._read, address), engine=engine, version=version, model=model)

    async def kv_cache_tokens(self, address: str, *, engine: Engine, version: str, **_: str) -> int | None:
        """Tokens that fit into the KV cache of the replica at an address, as it says itself."""
        metrics = engine.metrics(version)
        figures = await self._read(address, metrics.path)
        return kv_cache_tokens(metrics, figures) if figures is not None else None

    async def verify(
        self, address: str, *, engine: Engine, version: str, model: str, by_request: bool = True
    ) -> Verdict:
        """Ask the replica the smallest question. Its health counts where that needs an API key, which is not known here.

        `by_request=False`: where verification is by health, so is this.
        """
        question = engine.question(version, model=model)
        try:
            if by_request:
                status, answer = await self._ask("POST", address, question.path, body=question.body)
                if status not in _NEEDS_KEY:
                    return _verdict(question.path, status, answer, wrong=question.wrong(answer))
            status, answer = await self._ask("GET", address, question.health_path)
        except UnreachablePodError as error:
            return Verdict(alive=None, message=str(error))
        except PodError as error:
            return Verdict(alive=False, message=str(error))
        return _verdict(question.health_path, status, answer, wrong=False)

    async def _read(self, address: str, path: str) -> str | None:
        try:
            status, answer = await self._ask("GET", address, path)
        except PodError:
            return None
        return answer if status == 200 else None

    async def _ask(self, method: str, address: str, path: str, *, body: str | None = None) -> tuple[int, str]:
        """Status and text of an answer. Raises PodError."""
        host = f"[{address}]" if ":" in address else address
        url = f"http://{host}:{HTTP_PORT}{path}"
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            async with (
                self._free,
                self._session.request(method, url, data=body, headers=headers, allow_redirects=False) as response,
            ):
                if response.status in _OF_A_PROXY:
                    raise UnreachablePodError(f"cannot be reached: a proxy answered with {response.status}")
                return response.status, await _text(response, path)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise UnreachablePodError(f"cannot be reached: {str(error) or type(error).__name__}") from error
        except TimeoutError as error:
            raise PodError(f"did not answer {path} within {self._seconds:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise PodError(f"cannot be asked for {path}: {str(error) or type(error).__name__}") from error


async def read_work(read: Callable[[str], Awaitable[str | None]], *, engine: Engine, version: str, model: str) -> Work:
    """What a replica works on. `read` asks it for a path; None stands for no answer."""
    metrics, draining = engine.metrics(version), engine.drain(version)
    figures, load = await asyncio.gather(read(metrics.path), read(draining.load_path))
    return work_of(metrics, draining, model=model, figures=figures, load=load)


def _verdict(path: str, status: int, answer: str, *, wrong: bool) -> Verdict:
    shown = " ".join(answer.split())[:_SHOWN]
    if status != 200:
        return Verdict(alive=False, message=f"answered {path} with {status}: {shown}".removesuffix(": "))
    if wrong:
        return Verdict(alive=False, message=f"answered {path} with something else: {shown}")
    return Verdict(alive=True, message=f"answered {path}")


async def _text(response: aiohttp.ClientResponse, path: str) -> str:
    content = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK):
        content += chunk
        if len(content) > LARGEST_ANSWER:
            raise PodError(f"answered {path} with more than {LARGEST_ANSWER} bytes")
    return content.decode("utf-8", "replace")
