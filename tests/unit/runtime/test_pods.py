"""Replicas are read over real HTTP, from simulated engines behind a forward proxy."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from controlplane import wait_until
from simengine import SimEngines
from vlm_operator.engines.question import Verdict
from vlm_operator.engines.registry import engine
from vlm_operator.engines.work import Work
from vlm_operator.runtime import pods as module
from vlm_operator.runtime.pods import Pods

ADDRESS = "198.18.0.5"
MODEL = "Qwen/Qwen2.5-VL-7B-Instruct"
CHAT = "/v1/chat/completions"
UNKNOWN = Work(in_flight=None, running=None, waiting=None, generated_tokens=None, alive=False)
SHORT = 0.2
"""Seconds to wait for an answer that does not come."""

Server = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
def engines() -> Iterator[SimEngines]:
    with SimEngines(model=MODEL) as engines:
        yield engines


@pytest.fixture
async def pods(engines: SimEngines) -> AsyncIterator[Pods]:
    pods = Pods(proxy=engines.proxy_url)
    yield pods
    await pods.close()


async def work(pods: Pods, address: str = ADDRESS, *, model: str = MODEL) -> Work:
    return await pods.work(address, engine=engine("vLLM"), version="0.32", model=model)


async def verify(pods: Pods, address: str = ADDRESS) -> Verdict:
    return await pods.verify(address, engine=engine("vLLM"), version="0.32", model=MODEL)


async def test_the_work_of_a_replica_is_read_from_its_pod(pods: Pods, engines: SimEngines) -> None:
    assert await work(pods) == Work(in_flight=0, running=0, waiting=0, generated_tokens=0, alive=True)
    engines[ADDRESS].in_flight, engines[ADDRESS].waiting = 2, 3
    assert await work(pods) == Work(in_flight=5, running=2, waiting=3, generated_tokens=2, alive=True)
    assert (await work(pods, "198.18.0.6")).in_flight == 0


async def test_an_address_of_the_newer_kind_is_asked_in_brackets(pods: Pods, engines: SimEngines) -> None:
    engines["fd00::5"].in_flight = 1
    assert (await work(pods, "fd00::5")).in_flight == 1


async def test_what_cannot_be_read_is_unknown(pods: Pods, engines: SimEngines) -> None:
    assert (await work(pods, model="another")).in_flight is None
    engines[ADDRESS].gone = True
    assert await work(pods) == UNKNOWN


async def test_a_replica_that_does_not_answer_in_time_is_unknown(engines: SimEngines) -> None:
    engines[ADDRESS].silent = True
    pods = Pods(proxy=engines.proxy_url, timeout_seconds=SHORT)
    assert await work(pods) == UNKNOWN
    assert await verify(pods) == Verdict(alive=False, message=f"did not answer {CHAT} within 0.2 s")
    await pods.close()


def test_an_engine_under_load_has_time_to_answer() -> None:
    assert module.TIMEOUT >= 5


async def test_a_hung_engine_tells_that_nothing_moves(pods: Pods, engines: SimEngines) -> None:
    engines[ADDRESS].hung = True
    before = await work(pods)
    assert (await work(pods)).stands_still_since(before)
    engines[ADDRESS].hung, engines[ADDRESS].in_flight = False, 1
    before = await work(pods)
    assert not (await work(pods)).stands_still_since(before)


async def test_a_replica_shows_that_it_can_answer(pods: Pods, engines: SimEngines) -> None:
    assert await verify(pods) == Verdict(alive=True, message=f"answered {CHAT}")
    assert engines[ADDRESS].asked == [f"POST {CHAT}"]
    assert engines[ADDRESS].generated_tokens == 1


async def test_one_that_wants_a_key_is_asked_for_its_health(pods: Pods, engines: SimEngines) -> None:
    engines[ADDRESS].unauthorized = True
    assert await verify(pods) == Verdict(alive=True, message="answered /health")
    engines[ADDRESS].dead = True
    assert await verify(pods) == Verdict(alive=False, message="answered /health with 503")


async def test_one_that_was_verified_by_its_health_is_so_again(pods: Pods, engines: SimEngines) -> None:
    vllm = engine("vLLM")
    verdict = await pods.verify(ADDRESS, engine=vllm, version="0.32", model=MODEL, by_request=False)
    assert verdict == Verdict(alive=True, message="answered /health")
    assert engines[ADDRESS].asked == ["GET /health"]


async def test_one_that_cannot_answer_says_why(pods: Pods, engines: SimEngines) -> None:
    engines[ADDRESS].dead = True
    dead = await verify(pods)
    assert not dead.alive
    assert dead.message.startswith(f"answered {CHAT} with 500: ")
    assert "EngineCore encountered an issue" in dead.message
    engines["198.18.0.6"].gone = True
    assert not (await verify(pods, "198.18.0.6")).alive


async def test_only_some_are_asked_at_once(engines: SimEngines) -> None:
    addresses = [f"198.18.1.{number}" for number in range(12)]
    for address in addresses:
        engines[address].silent = True
    pods = Pods(proxy=engines.proxy_url, at_once=4)
    looks = [asyncio.ensure_future(work(pods, address)) for address in addresses]

    def asked() -> int:
        return sum(len(engines[address].asked) for address in addresses)

    await asyncio.to_thread(wait_until, lambda: asked() == 4, "four questions have arrived")
    for _ in range(20):
        await asyncio.sleep(0.005)  # time for a fifth, which must not come
        assert asked() == 4
    for address in addresses:
        engines[address].silent = False
    assert [look.in_flight for look in await asyncio.gather(*looks)] == [0] * len(addresses)
    await pods.close()


async def test_no_proxy_is_taken_from_the_environment(engines: SimEngines, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, engines.proxy_url)
    pods = Pods(timeout_seconds=SHORT)
    assert await work(pods, "127.0.0.1") == UNKNOWN
    assert not engines["127.0.0.1"].asked
    await pods.close()


@asynccontextmanager
async def strange(answer: bytes, *, more: bytes = b"") -> AsyncIterator[tuple[Pods, list[bytes]]]:
    """A client whose proxy gives the same answer to everything, and without end goes on with `more`."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.write(answer)
        try:
            while more:
                writer.write(more)
                await writer.drain()
        except ConnectionError:
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    pods = Pods(proxy=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        yield pods, asked
    finally:
        await pods.close()
        server.close()


STRANGE: dict[str, tuple[bytes, str]] = {
    "no HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n", f"cannot be asked for {CHAT}: "),
    "nothing": (b"", f"cannot be asked for {CHAT}: "),
    "half an answer": (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf", f"cannot be asked for {CHAT}: "),
    "no completion": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", f"answered {CHAT} with something else: ok"),
    "no text": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\xff\xfe", f"answered {CHAT} with something else: "),
    "elsewhere": (
        b"HTTP/1.1 302 Found\r\nLocation: http://198.18.0.9:8000/\r\nContent-Length: 0\r\n\r\n",
        f"answered {CHAT} with 302",
    ),
}


@pytest.mark.parametrize(("answer", "message"), STRANGE.values(), ids=STRANGE)
async def test_strange_answers_are_told_and_never_taken_for_idle(answer: bytes, message: str) -> None:
    async with strange(answer) as (pods, asked):
        assert (await work(pods)).in_flight is None
        verdict = await verify(pods)
        assert not verdict.alive
        assert verdict.message.startswith(message)
        assert all(ADDRESS.encode() in line for line in asked)  # no redirect is followed


async def test_an_answer_without_end_is_not_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_ANSWER", 100_000)
    async with strange(b"HTTP/1.1 200 OK\r\n\r\n", more=b"x" * 10_000) as (pods, _):
        assert await verify(pods) == Verdict(alive=False, message=f"answered {CHAT} with more than 100000 bytes")
        assert await work(pods) == UNKNOWN


async def test_the_whole_url_goes_to_the_proxy() -> None:
    async with strange(b"") as (pods, asked):
        await work(pods)
        paths = ("/load", "/metrics")
        assert set(asked) == {f"GET http://{ADDRESS}:8000{path} HTTP/1.1\r\n".encode() for path in paths}


def test_a_client_that_nobody_used_can_be_closed() -> None:
    async def opened_and_closed() -> Any:
        await Pods().close()

    asyncio.run(opened_and_closed())
