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
