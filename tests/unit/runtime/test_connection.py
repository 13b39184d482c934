"""The connection to the API server."""

import ssl
from pathlib import Path

import pytest
import yaml

from vlm_operator.runtime import connection
from vlm_operator.runtime.connection import Connection, StartError, connect, connection_info, lease_namespace
from vlm_operator.runtime.settings import Settings

KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "a",
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": False}}],
    "users": [{"name": "a", "user": {"token": "t"}}],
}


async def test_a_variable_that_names_no_file_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/a:{tmp_path}/b")
    with pytest.raises(StartError, match=r"KUBECONFIG is .*/a:.*/b, and there is no such file"):
        await connect(Settings())


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
    clusters = [{"name": "a", "cluster": KUBECONFIG["clusters"][0]["cluster"] | cluster}]  # type: ignore[index] # a literal above
    file.write_text(yaml.safe_dump(KUBECONFIG | {"clusters": clusters}))
    configuration = await connect(Settings(kubeconfig=file))
    info = await connection_info(configuration)
    assert isinstance(info, Connection)
    assert (configuration.proxy, info.proxy_url) == (proxy, proxy)
