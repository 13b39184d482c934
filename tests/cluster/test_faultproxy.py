"""The proxy in front of the real API server: what it passes on, and what each fault does."""

import asyncio
import base64
import json
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from controlplane import ControlPlane, wait_until
from faultproxy import (
    Answer,
    Crash,
    CutWatch,
    Delay,
    DelayEvents,
    Drop,
    Expire,
    FaultProxy,
    Keep,
    KeepEvents,
    LoseAnswer,
    LoseEvents,
    RepeatEvents,
    Rule,
)
from installation import operator_kubeconfig
from vlm_operator.runtime.connection import connect
from vlm_operator.runtime.kinds import CONFIG_MAP
from vlm_operator.runtime.kube import Kube, KubeError
from vlm_operator.runtime.settings import Settings

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def shared(control_plane: ControlPlane) -> Iterator[FaultProxy]:
    with FaultProxy(control_plane.kubeconfig) as proxy:
        yield proxy


@pytest.fixture
def proxy(shared: FaultProxy) -> FaultProxy:
    shared.calls.clear()
    return shared


@asynccontextmanager
async def _client(proxy: FaultProxy) -> AsyncIterator[Kube]:
    kube = Kube(await connect(Settings(kubeconfig=proxy.kubeconfig)))
    try:
        yield kube
    finally:
        await kube.close()


def _map(namespace: str, name: str = "one") -> dict[str, Any]:
    labels = {"vlm.dev/deployment": "none"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
    }


def _exists(plane: ControlPlane, namespace: str, name: str = "one") -> bool:
    return plane.api.answers(f"/api/v1/namespaces/{namespace}/configmaps/{name}")


# -- what goes through -------------------------------------------------------------------------------------------------
def test_a_client_sees_the_api_server_as_the_same_user(control_plane: ControlPlane, proxy: FaultProxy) -> None:
    kubectl = control_plane._layout.tools["kubectl"]

    def name(kubeconfig: Path) -> str:
        command = [kubectl, f"--kubeconfig={kubeconfig}", "auth", "whoami", "-o", "json"]
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
        return str(json.loads(told)["status"]["userInfo"]["username"])

    assert name(proxy.kubeconfig) == "admin"
    with FaultProxy(operator_kubeconfig(control_plane)) as other:
        assert name(other.kubeconfig) == "system:serviceaccount:vlm-system:vlm-operator"


async def test_calls_are_recorded(control_plane: ControlPlane, proxy: FaultProxy, namespace: str) -> None:
    async with _client(proxy) as kube:
        made = await kube.create(CONFIG_MAP, _map(namespace))
        with pytest.raises(KubeError, match="already exists"):
            await kube.create(CONFIG_MAP, _map(namespace))
        live = await kube.get(CONFIG_MAP, namespace=namespace, name="one")
    assert live == made
    assert _exists(control_plane, namespace)
    seen = [(call.target.verb, call.target.name, call.code, call.told, call.fault) for call in proxy.calls]
    assert seen == [("create", "one", 201, 201, ""), ("create", "one", 409, 409, ""), ("get", "one", 200, 200, "")]
    assert len(proxy.writes(namespace=namespace)) == proxy.busiest_minute() == 2
    assert proxy.writes(namespace="other") == ()


# -- faults of calls ---------------------------------------------------------------------------------------------------
async def test_an_answer_in_place_of_the_api_servers(
    control_plane: ControlPlane, proxy: FaultProxy, namespace: str
) -> None:
    overloaded = Answer(429, reason="TooManyRequests", message="slow down", retry_after=3)
    async with _client(proxy) as kube:
        with proxy.inject(Rule(overloaded, verbs={"create"}, times=1)) as injected:
            with pytest.raises(KubeError, match="slow down") as raised:
                await kube.create(CONFIG_MAP, _map(namespace))
            assert not _exists(control_plane, namespace)
            await kube.create(CONFIG_MAP, _map(namespace))
    assert (raised.value.code, raised.value.reason, raised.value.retry_after) == (429, "TooManyRequests", 3.0)
    assert [target.name for target in injected.hits] == ["one"]
    assert [(call.code, call.told, call.fault) for call in proxy.calls] == [(None, 429, "Answer"), (201, 201, "")]


@pytest.mark.parametrize("after", [False, True])
async def test_a_client_dies_before_or_after_its_call_was_carried_out(
    control_plane: ControlPlane, proxy: FaultProxy, namespace: str, after: bool
) -> None:
    there: list[bool] = []

    def kill() -> None:
        there.append(_exists(control_plane, namespace))
        proxy.inject(Rule(Answer(503), times=1))  # strikes the one that takes over

    async with _client(proxy) as kube:
        with proxy.inject(Rule(Crash(kill, after=after), verbs={"create"}, times=1)), pytest.raises(KubeError) as died:
            await kube.create(CONFIG_MAP, _map(namespace))
        assert (died.value.code, there) == (0, [after])
        with pytest.raises(KubeError, match="injected"):
            await kube.get(CONFIG_MAP, namespace=namespace, name="one")
    assert _exists(control_plane, namespace) == after
    assert [call.fault for call in proxy.calls] == ["Crash", "Answer"]


@pytest.mark.parametrize(("given", "asked"), [(None, 0.0), (1, 1.0), (86400, 300.0), (-1, 0.0)])
async def test_the_operator_is_asked_to_wait(
    proxy: FaultProxy, namespace: str, given: int | None, asked: float
) -> None:
    async with _client(proxy) as kube:
        with proxy.inject(Rule(Answer(503, retry_after=given))), pytest.raises(KubeError) as raised:
            await kube.get(CONFIG_MAP, namespace=namespace, name="one")
    assert raised.value.retry_after == asked


@pytest.mark.parametrize("body", ["<html>welcome</html>", "[]", ""])
async def test_to_the_operator_an_answer_that_is_no_object_is_none(
    proxy: FaultProxy, namespace: str, body: str
) -> None:
    async with _client(proxy) as kube:
        with proxy.inject(Rule(Answer(200, body=body))):
            for call in (
                kube.list(CONFIG_MAP, namespace=namespace),
                kube.get(CONFIG_MAP, namespace=namespace, name="one"),
                kube.create(CONFIG_MAP, _map(namespace)),
            ):
                with pytest.raises(KubeError, match="with something else than an object") as raised:
                    await call
                assert raised.value.code == 0


async def test_to_the_operator_a_kind_that_is_not_served_does_not_mean_that_an_object_is_gone(
    proxy: FaultProxy, namespace: str
) -> None:
    place = {"namespace": namespace, "name": "one"}
    async with _client(proxy) as kube:
        assert await kube.get(CONFIG_MAP, **place) is None
        with proxy.inject(Rule(Answer(404, body="404 page not found"))):
            for call in (
                kube.get(CONFIG_MAP, **place),
                kube.delete(CONFIG_MAP, **place, uid="u", resource_version="1", grace_seconds=None),
            ):
                with pytest.raises(KubeError, match="404 page not found"):
                    await call


async def test_a_connection_that_is_closed_before_the_call(
    control_plane: ControlPlane, proxy: FaultProxy, namespace: str
) -> None:
    async with _client(proxy) as kube:
        with proxy.inject(Rule(Drop())), pytest.raises(KubeError, match="did not answer"):
            await kube.create(CONFIG_MAP, _map(namespace))
    assert not _exists(control_plane, namespace)


@pytest.mark.parametrize("silent", [False, True])
async def test_a_write_whose_answer_is_lost(
    control_plane: ControlPlane, proxy: FaultProxy, namespace: str, silent: bool
) -> None:
    async with _client(proxy) as kube:
        with proxy.inject(Rule(LoseAnswer(silent=silent))), pytest.raises(TimeoutError if silent else KubeError):
            async with asyncio.timeout(2 if silent else 60):
                await kube.create(CONFIG_MAP, _map(namespace))
    assert _exists(control_plane, namespace)
    assert [(call.code, call.told) for call in proxy.calls] == [(201, None)]


async def test_a_call_that_is_kept_arrives_when_it_is_let_go_though_nobody_waits(
    control_plane: ControlPlane, proxy: FaultProxy, namespace: str
) -> None:
    async with _client(proxy) as kube:
        with proxy.inject(Rule(Keep())):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await kube.create(CONFIG_MAP, _map(namespace))
            assert not _exists(control_plane, namespace)
    wait_until(lambda: _exists(control_plane, namespace), "it has arrived")


async def test_a_call_that_is_delayed(proxy: FaultProxy, namespace: str) -> None:
    async with _client(proxy) as kube:
        with proxy.inject(Rule(Delay(0.5))):
            before = time.monotonic()
            await kube.create(CONFIG_MAP, _map(namespace))
            assert time.monotonic() - before >= 0.5


async def test_an_api_server_that_is_away(proxy: FaultProxy, namespace: str) -> None:
    async with _client(proxy) as kube:
        await kube.list(CONFIG_MAP, namespace=namespace)
        proxy.stop()
        with pytest.raises(KubeError, match="did not answer"):
            await kube.list(CONFIG_MAP, namespace=namespace)
        proxy.resume()
        await kube.list(CONFIG_MAP, namespace=namespace)
    assert len(proxy.calls) == 2


# -- faults of watches -------------------------------------------------------------------------------------------------
class Watch:
    """A watch on ConfigMaps, through the proxy, of those that a test creates beside it."""

    def __init__(self, plane: ControlPlane, namespace: str, response: aiohttp.ClientResponse) -> None:
        self._plane = plane
        self._namespace = namespace
        self.content = response.content

    def create(self, *names: str) -> None:
        for name in names:
            self._plane.api.post(f"/api/v1/namespaces/{self._namespace}/configmaps", _map(self._namespace, name))

    async def names(self, count: int) -> list[str]:
        """The names in the next events."""
        lines = [json.loads(await asyncio.wait_for(self.content.readline(), 30)) for _ in range(count)]
        return [line["object"]["metadata"]["name"] for line in lines]


@pytest.fixture
async def watch(control_plane: ControlPlane, proxy: FaultProxy, namespace: str) -> AsyncIterator[Watch]:
    cluster = yaml.safe_load(proxy.kubeconfig.read_text())["clusters"][0]["cluster"]
    authority = ssl.create_default_context(cadata=_decoded(cluster["certificate-authority-data"]))
    # A label keeps the ConfigMap away that every namespace gets.
    path = f"/api/v1/namespaces/{namespace}/configmaps?watch=true&labelSelector=vlm.dev/deployment"
    async with (
        aiohttp.ClientSession() as session,
        session.get(proxy.server + path, ssl=authority) as response,
    ):
        assert response.status == 200
        yield Watch(control_plane, namespace, response)


def _decoded(data: str) -> str:
    return base64.b64decode(data).decode()


async def test_events_go_through_as_they_come(watch: Watch) -> None:
    watch.create("one")
    assert await watch.names(1) == ["one"]
    watch.create("two", "three")
    assert await watch.names(2) == ["two", "three"]


@pytest.mark.parametrize(
    ("rule", "names"),
    [
        (Rule(LoseEvents(), name="two"), ["one", "three"]),
        (Rule(RepeatEvents(), name="two"), ["one", "two", "two", "three"]),
        (Rule(DelayEvents(0.5), name="two"), ["one", "two", "three"]),
        (Rule(LoseEvents(), resources={"pods"}), ["one", "two", "three"]),
        (Rule(LoseEvents(), verbs={"watch"}, skip=1, times=1), ["one", "three"]),
    ],
)
async def test_events_that_are_lost_repeated_or_late(
    proxy: FaultProxy, watch: Watch, namespace: str, rule: Rule, names: list[str]
) -> None:
    with proxy.inject(replace(rule, namespace=namespace)):
        watch.create("one", "two", "three")
        assert await watch.names(len(names)) == names


async def test_a_watch_is_silent_until_it_is_let_go(proxy: FaultProxy, watch: Watch) -> None:
    with proxy.inject(Rule(KeepEvents())) as kept:
        watch.create("one", "two")
        wait_until(lambda: len(kept.hits) == 2, "the events have come")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(watch.content.readline(), 0.5)
    assert await watch.names(2) == ["one", "two"]


async def test_a_watch_that_expires(proxy: FaultProxy, watch: Watch) -> None:
    with proxy.inject(Rule(Expire())):
        watch.create("one")
        event = json.loads(await watch.content.readline())
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    assert await watch.content.read() == b""


async def test_a_watch_that_breaks_off_within_an_event(proxy: FaultProxy, watch: Watch) -> None:
    with proxy.inject(Rule(CutWatch(half_a_line=True))):
        watch.create("one")
        assert (await watch.content.readany()).startswith(b'{"type":"ADDED"')
        with pytest.raises(aiohttp.ClientError):
            await watch.content.read()


async def test_a_watch_that_ends_within_an_event_as_if_it_were_complete(proxy: FaultProxy, watch: Watch) -> None:
    with proxy.inject(Rule(CutWatch(half_a_line=True, properly=True))):
        watch.create("one")
        half = await watch.content.read()
    assert half.startswith(b'{"type":"ADDED"')
    assert not half.endswith(b"\n")


async def test_connections_are_cut_at_a_word(proxy: FaultProxy, watch: Watch) -> None:
    watch.create("one")
    assert await watch.names(1) == ["one"]
    proxy.cut()
    with pytest.raises(aiohttp.ClientError):
        await watch.content.read()
    async with _client(proxy) as kube:
        await kube.version()
