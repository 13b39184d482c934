"""Answers of pods through the API server, which is a small one here: what a pod says is not trusted."""

from collections.abc import AsyncIterator, Callable

import pytest
from aiohttp import web
from kubernetes.aio.client import Configuration

from vlm_operator.runtime.kube import PROXY_BYTES, Kube, KubeError

PLACE = "/api/v1/namespaces/models/pods/m-0:8000/proxy"


class Server:
    """An API server in front of one pod."""

    def __init__(self) -> None:
        self.answer: Callable[[], web.StreamResponse] = lambda: web.Response(text="fine")
        self.asked: list[str] = []
        self.url = ""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(request.path)
        return self.answer()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    known = Server()
    runner = web.ServerRunner(web.Server(known.handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    known.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield known
    await runner.cleanup()


async def ask(server: Server) -> str:
    kube = Kube(Configuration(host=server.url))
    try:
        return await kube.answer_of(namespace="models", pod="m-0", port=8000, path="/load")
    finally:
        await kube.close()


async def test_a_pod_is_asked_through_the_api_server(server: Server) -> None:
    assert await ask(server) == "fine"
    assert server.asked == [f"{PLACE}/load"]


async def test_what_it_redirects_to_is_not_asked(server: Server) -> None:
    server.answer = lambda: web.Response(status=302, headers={"Location": f"{server.url}/elsewhere"})
    with pytest.raises(KubeError, match="302"):
        await ask(server)
    assert server.asked == [f"{PLACE}/load"]


async def test_an_endless_answer_is_none(server: Server) -> None:
    server.answer = lambda: web.Response(body=b"0" * (PROXY_BYTES + 1))
    with pytest.raises(KubeError, match=f"more than {PROXY_BYTES} bytes"):
        await ask(server)


async def test_what_the_api_server_refuses_is_told_in_its_words(server: Server) -> None:
    status = {"kind": "Status", "reason": "Forbidden", "message": "no pods/proxy for ann"}
    server.answer = lambda: web.json_response(status, status=403)
    with pytest.raises(KubeError, match="403 Forbidden: no pods/proxy for ann"):
        await ask(server)
