"""The connection to the API server: what cannot be one is told before anything else is tried."""

import asyncio
import base64
import contextlib
import copy
import json
import logging
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from kopf._cogs.clients.auth import APIContext  # no public name
from kubernetes.aio.client import Configuration

from controlplane.pki import Authority
from vlm_operator.runtime import connection
from vlm_operator.runtime.connection import (
    OLDEST,
    Connection,
    StartError,
    check_server,
    connect,
    connection_info,
    lease_namespace,
    version_in,
)
from vlm_operator.runtime.kube import Kube, KubeError
from vlm_operator.runtime.kubeconfig_fields import CLUSTER, EXEC, PROVIDER, USER
from vlm_operator.runtime.settings import Settings

KUBECONFIG: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "a",
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": False}}],
    "users": [{"name": "a", "user": {"token": "t"}}],
}


UNUSABLE = "no usable cluster configuration"
NO_VERSION = "HOST does not tell the version of its Kubernetes"


async def test_a_variable_that_names_no_file_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/a:{tmp_path}/b")
    with pytest.raises(StartError, match=r"KUBECONFIG is .*/a:.*/b, and there is no such file"):
        await connect(Settings())


def _file(tmp_path: Path, *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> Path:
    """A kubeconfig like KUBECONFIG, with another cluster or user."""
    config = KUBECONFIG | {
        "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"} | (cluster or {})}],
        "users": [{"name": "a", "user": {"token": "t"} if user is None else user}],
    }
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    return file


async def _refused(file: Path) -> str:
    with pytest.raises(StartError) as refused:
        await connect(Settings(kubeconfig=file))
    return str(refused.value).replace(str(file), "FILE")


@pytest.mark.parametrize(
    ("cluster", "user", "sentence"),
    [
        (
            {"certificate-authority-data": base64.b64encode(b"nonsense").decode()},
            None,
            "the certificate authority in context a of FILE cannot be used: no certificate or crl found; correct it",
        ),
        (
            {"certificate-authority": "/no/ca"},
            None,
            f"{UNUSABLE}: FILE: the certificate-authority of cluster a is /no/ca but must be a file that is there; correct it",
        ),
        (
            {},
            {"tokenFile": "/no/t"},
            f"{UNUSABLE}: FILE: the tokenFile of user a: /no/t cannot be read: no such file or directory; correct it",
        ),
        (
            {},
            {"token": "a\nb"},
            "the token in context a of FILE has a line break or a control character in it; correct it",
        ),
        (
            {},
            {
                "auth-provider": {"name": "oidc", "config": {"id-token": "a.eyJleHAiOjFlOTl9.c"}}
            },  # it expires in the year 1e99
            f"{UNUSABLE} in context a of FILE: timestamp out of range for platform time_t; correct it",
        ),
        (
            {},
            {"token": "secret", "auth-provider": {"name": "oidc"}},
            "no usable cluster configuration in context a of FILE: oidc: missing configuration; correct it",
        ),
        (
            {},
            {"token": "secret", "auth-provider": {"name": "gcp", "config": {"cmd-path": "/nowhere", "cmd-args": "a"}}},
            "no usable cluster configuration in context a of FILE: there is no /nowhere; correct it",
        ),
    ],
)
async def test_what_the_library_cannot_use_is_told(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any] | None, sentence: str
) -> None:
    assert await _refused(_file(tmp_path, cluster=cluster, user=user)) == sentence


async def test_no_secret_is_told(tmp_path: Path) -> None:
    provider = {"name": "oidc", "config": {"id-token": "a.b", "refresh-token": "secret"}}
    assert "secret" not in await _refused(_file(tmp_path, user={"token": "secret", "auth-provider": provider}))
    file = tmp_path / "none"
    file.write_text(yaml.safe_dump(KUBECONFIG | {"users": [{"name": "a", "user": None, "token": "secret"}]}))
    told = await _refused(file)
    assert "user a has no credentials" in told
    assert "secret" not in told


NASTY = st.sampled_from(
    [
        None, "", " ", 5, -1.5, True, [], ["x"], {}, {"a": 1}, {"name": "oidc"}, {"name": "gcp", "config": {"expiry": "x"}},
        "a\nb", "\0", "é", "a" * 300, "/", "~", "YWJj", "nonsense", "https://", "http://127.0.0.1:1", "https://a:b", "//a",
        "https://[::1]", "https://[", "https://a%zz", "https://a/%zz#", "https://a\\b", "https://*.a", "https://-a", "https://a.-",
        "https://" + ".".join(["a" * 60] * 9), "https://xn--a", "https://\uff41", "https://u:p@a", "https://127.0.0.1:99999", "https://1",
        [{"name": "A=", "value": "\0"}], {"id-token": "a.b.c"}, {"id-token": "a.e30.c"}, {"id-token": "a.WzVd.c"},
        {"id-token": "a.eyJleHAiOjFlOTl9.c"}, {"refresh-token": "a"}, {"cmd-path": "true", "cmd-args": "'"},
    ]
)  # fmt: skip
FIELDS = st.sampled_from(
    [("contexts", "context", field) for field in ("cluster", "user")]
    + [("clusters", "cluster", field) for field in CLUSTER]
    + [("users", "user", field) for field in (*USER, "username", "password")]
    + [("users", "exec", field) for field in EXEC]
    + [("users", "auth-provider", field) for field in PROVIDER]
)


@settings(max_examples=150, deadline=None)
@given(changes=st.lists(st.tuples(FIELDS, NASTY | st.text(max_size=6)), min_size=1, max_size=3))
def test_no_value_of_a_field_gives_anything_but_a_sentence_or_a_connection(
    changes: list[tuple[tuple[str, str, str], Any]],
) -> None:
    whole = copy.deepcopy(KUBECONFIG)
    for (kind, part, field), value in changes:
        entry = whole[kind][0]
        if part in {"exec", "auth-provider"}:
            base = {"apiVersion": "v1", "command": "true"} if part == "exec" else {"name": "oidc"}
            inner = entry["user"].setdefault(part, base)
            if isinstance(inner, dict):
                inner[field] = value
        else:
            entry[part][field] = value
    asyncio.run(_told_or_usable(whole))


async def _told_or_usable(whole: dict[str, Any]) -> None:
    """Both clients can be made of it, and a call fails as calls do: there is no server, and no name is known."""

    def unknown(host: str, *_: object, **__: object) -> None:
        host.encode("idna")  # as the real one does
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        file = Path(folder) / "kubeconfig"
        file.write_text(yaml.safe_dump(whole))
        patch.setattr(socket, "getaddrinfo", unknown)
        try:
            configuration = await connect(Settings(kubeconfig=file))
        except StartError as error:
            assert "\n" not in str(error)  # noqa: PT017 # most are none
            return
        kube = Kube(configuration)
        session = APIContext(await connection_info(configuration))
        for call in (kube.version(), _through_kopf(session)):
            with pytest.raises((KubeError, aiohttp.ClientConnectionError)) as failed:
                await call
            assert not isinstance(failed.value.__cause__, ValueError)
        await kube.close()
        await session.session.close()


async def _through_kopf(context: APIContext) -> None:
    await context.session.get(f"{context.server}/version")


async def test_a_key_that_is_not_of_the_certificate_is_told(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    certificate, _ = authority.issue("one", user="one")
    _, key = authority.issue("other", user="other")
    file = _file(tmp_path, user={"client-certificate": str(certificate), "client-key": str(key)})
    why = "the client certificate or its key in context a of FILE cannot be used: key values mismatch; correct it"
    assert await _refused(file) == why


def _plugin(script: str) -> dict[str, Any]:
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script]}}


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        ("echo no way >&2; exit 3", "no way"),
        ("echo hello", "failed to decode"),
        ("echo '{}'", "missing key"),
        (
            'echo \'{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {}}\'',
            "missing token",
        ),
    ],
)
async def test_a_plugin_that_gives_no_credentials_is_told(
    tmp_path: Path, script: str, cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    told = await _refused(_file(tmp_path, user=_plugin(script)))
    assert told == "no credentials: the plugin sh of context a of FILE failed, as told above"
    assert cause in caplog.text


async def test_a_plugin_that_does_not_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PLUGIN_SECONDS", 0.2)
    told = await _refused(_file(tmp_path, user=_plugin("exec sleep 100")))
    assert told == "no credentials: the plugin of context a of FILE did not end within 0 s"


async def test_a_token_in_a_file_may_end_with_a_line_break(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t\n")
    configuration = await connect(Settings(kubeconfig=_file(tmp_path, user={"tokenFile": "token"})))
    assert configuration.api_key == {"BearerToken": "Bearer t"}


@contextlib.asynccontextmanager
async def _server(status: int, body: str, *, content: str = "application/json") -> AsyncIterator[Kube]:
    """A client of a server that answers everything with that."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=body, content_type=content)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    kube = _client(runner.addresses[0][1])
    try:
        yield kube
    finally:
        await kube.close()
        await runner.cleanup()


def _client(port: int, *, scheme: str = "http") -> Kube:
    configuration = Configuration()
    configuration.host = f"{scheme}://127.0.0.1:{port}"
    return Kube(configuration)


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ({"major": "1", "minor": "31", "gitVersion": "v1.31.0"}, (1, 31)),
        ({"major": "1", "minor": "31+", "gitVersion": "v1.31.9-gke.100"}, (1, 31)),
        ({"major": "1", "minor": "33+", "gitVersion": "v1.33.0-eks-b9a1"}, (1, 33)),
        ({"major": "", "minor": "", "gitVersion": "v1.32.4+k3s1"}, (1, 32)),
        ({"gitVersion": "v1.36.3"}, (1, 36)),
        ({"major": "2", "minor": "0"}, (2, 0)),
        ({"major": 1, "minor": 31}, (1, 31)),
        ({"major": "one", "minor": "x", "gitVersion": "nonsense"}, None),
        ({"major": None, "minor": [], "gitVersion": 7}, None),
        ({}, None),
    ],
)
def test_versions_are_read_as_vendors_write_them(version: dict[str, Any], found: tuple[int, int] | None) -> None:
    assert version_in(version) == found


@pytest.mark.parametrize("minor", ["31", "31+", "33+"])
async def test_a_kubernetes_that_is_new_enough_is_taken(minor: str) -> None:
    async with _server(200, json.dumps({"major": "1", "minor": minor})) as kube:
        await check_server(kube, "HOST")


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (
            200,
            json.dumps({"major": "1", "minor": "30", "gitVersion": "v1.30.9"}),
            "the cluster runs Kubernetes 1.30; this operator needs 1.31 or newer: upgrade the cluster",
        ),
        (
            200,
            json.dumps({"major": "1", "minor": "9+"}),
            "the cluster runs Kubernetes 1.9; this operator needs 1.31 or newer: upgrade the cluster",
        ),
        (
            200,
            json.dumps({"major": "a", "minor": "b"}),
            "HOST does not answer as a Kubernetes API server does; correct the server in the kubeconfig",
        ),
        (200, "[]", "HOST does not answer as a Kubernetes API server does; correct the server in the kubeconfig"),
        (200, "<html>", "HOST does not answer as a Kubernetes API server does; correct the server in the kubeconfig"),
        (
            404,
            "nothing here",
            "HOST does not tell the version of its Kubernetes: 404: nothing here; is it an API server?",
        ),
        (
            400,
            "Client sent an HTTP request\nto an HTTPS server.\n",
            f"{NO_VERSION}: 400: Client sent an HTTP request to an HTTPS server; write https:// in the server of the kubeconfig",
        ),
        (
            403,
            json.dumps({"reason": "Forbidden", "message": "no"}),
            "HOST does not tell the version of its Kubernetes: 403 Forbidden: no; is it an API server?",
        ),
        (401, "", "HOST refuses the credentials (401): they are wrong or have expired; renew them"),
    ],
)
async def test_a_server_that_cannot_be_worked_with_is_told(status: int, body: str, sentence: str) -> None:
    async with _server(status, body) as kube:
        with pytest.raises(StartError) as refused:
            await check_server(kube, "HOST")
    assert str(refused.value) == sentence


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_server_in_trouble_is_not_given_up(status: int) -> None:
    async with _server(status, "") as kube:
        with pytest.raises(KubeError) as failed:
            await check_server(kube, "HOST")
    assert failed.value.code == status


def test_the_oldest_kubernetes_is_the_one_that_is_promised() -> None:
    assert OLDEST == (1, 31)


async def test_a_server_that_does_not_speak_tls_is_told() -> None:
    async with _server(200, "{}") as plain:
        port = int(plain._client.configuration.host.rpartition(":")[2])
        kube = _client(port, scheme="https")
        with pytest.raises(KubeError, match=r"the API server did not answer: .*(?i:wrong version number)"):
            await check_server(kube, "HOST")
        await kube.close()


async def test_a_certificate_that_is_not_trusted_is_told(tmp_path: Path) -> None:
    certificate, key = Authority(tmp_path, "ca").issue("server", user="server", hosts=["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = await asyncio.start_server(lambda _, __: None, "127.0.0.1", 0, ssl=context)
    kube = _client(server.sockets[0].getsockname()[1], scheme="https")
    with pytest.raises(
        KubeError, match=r"^the certificate of the API server 127.0.0.1:\d+ is not trusted: unable to get"
    ):
        await check_server(kube, "HOST")
    await kube.close()
    server.close()


async def test_nobody_at_the_address_is_told() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # and does not listen
        kube = _client(held.getsockname()[1])
        with pytest.raises(KubeError, match=r"^the API server did not answer: Cannot connect to host 127.0.0.1"):
            await check_server(kube, "HOST")
        await kube.close()


async def test_a_server_that_stays_silent_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vlm_operator.runtime.kube.CALL_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        kube = _client(silent.getsockname()[1])
        with pytest.raises(KubeError, match=r"^the API server did not answer: "):
            await check_server(kube, "HOST")
        await kube.close()


async def test_certificates_are_checked_as_kubernetes_does_by_both_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(KUBECONFIG))
    configuration = await connect(Settings(kubeconfig=file))
    info = await connection_info(configuration)
    strict = ssl.create_default_context()
    strict.verify_flags |= ssl.VERIFY_X509_STRICT  # the default from Python 3.13 on
    monkeypatch.setattr(ssl, "create_default_context", lambda **_: strict)
    assert isinstance(info, Connection)
    context = info.as_ssl_context()
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert configuration.disable_strict_ssl_verification
    assert configuration.verify_ssl


def test_the_lease_lies_in_the_namespace_of_the_pod_unless_another_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "OWN_NAMESPACE", tmp_path / "namespace")
    assert lease_namespace(Settings(leader_elect_namespace="ops")) == "ops"
    with pytest.raises(StartError, match="set --leader-elect-namespace"):
        lease_namespace(Settings())
    (tmp_path / "namespace").write_text("vlm-system\n")
    assert lease_namespace(Settings()) == "vlm-system"


@pytest.mark.parametrize(
    ("cluster", "environment", "proxy"),
    [
        ({}, {}, None),
        ({}, {"HTTPS_PROXY": "http://proxy:3128"}, "http://proxy:3128"),
        ({}, {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "10.0.0.1,127.0.0.1"}, None),
        ({}, {"HTTP_PROXY": "http://proxy:3128"}, None),
        ({}, {"ALL_PROXY": "http://proxy:3128"}, "http://proxy:3128"),
        ({"proxy-url": "http://own:1"}, {"HTTPS_PROXY": "http://proxy:3128"}, "http://own:1"),
    ],
)
async def test_both_clients_go_through_the_same_proxy(
    cluster: dict[str, str],
    environment: dict[str, str],
    proxy: str | None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "kubeconfig"
    clusters = [{"name": "a", "cluster": KUBECONFIG["clusters"][0]["cluster"] | cluster}]
    file.write_text(yaml.safe_dump(KUBECONFIG | {"clusters": clusters}))
    configuration = await connect(Settings(kubeconfig=file))
    info = await connection_info(configuration)
    assert isinstance(info, Connection)
    assert (configuration.proxy, info.proxy_url) == (proxy, proxy)


@pytest.mark.parametrize("proxy", ["nonsense", "proxy:3128", "socks5://proxy:1"])
async def test_a_proxy_in_the_environment_that_is_none_is_told(
    proxy: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("https_proxy", raising=False)
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    assert await _refused(_file(tmp_path)) == (
        f"the proxy in HTTPS_PROXY or ALL_PROXY is {proxy} but must be http://HOST:PORT, since no other proxies are known;"
        " correct it, or set NO_PROXY"
    )
