"""What is wrong with a kubeconfig is told with the file, the entry and the way out, before anybody is asked."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from vlm_operator.runtime.files import UnusableInputError
from vlm_operator.runtime.kubeconfig import choose

Object = dict[str, Any]

SERVER = "must be https://HOST:PORT, without a user or a password; correct it"
PROXY = "must be http://HOST:PORT, since no other proxies are known; correct it"
GIVE = "give a token, a tokenFile, a client-certificate with its client-key, or exec"


def config(name: str = "here", **parts: Any) -> Object:
    """A kubeconfig with one context, `name`; `parts` replace top-level fields, None removes them."""
    whole = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example.com:6443"}}],
        "users": [{"name": name, "user": {"token": "t"}}],
    }
    return {key: value for key, value in (whole | parts).items() if value is not None}


def server(url: Any) -> Object:
    return cluster(server=url)


def cluster(**fields: Any) -> Object:
    server = {"server": "https://here.example.com:6443"}
    return config(clusters=[{"name": "here", "cluster": server | fields}])


def context(**fields: Any) -> Object:
    return config(contexts=[{"name": "here", "context": {"cluster": "here", "user": "here"} | fields}])


def exec_(**fields: Any) -> Object:
    """A user with a plugin that is there."""
    return user(exec={"apiVersion": "client.authentication.k8s.io/v1", "command": "true"} | fields)


def user(**fields: Any) -> Object:
    return config(users=[{"name": "here", "user": fields}])


def why(tmp_path: Path, content: object, *, context: str | None = None) -> str:
    """What is told of a file with this content, without its name."""
    file = tmp_path / "config"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        file.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    with pytest.raises(UnusableInputError) as refused:
        choose(file, context, variable="", home=tmp_path)
    sentence = str(refused.value)
    assert sentence.startswith(str(file))
    return sentence.removeprefix(str(file)).removeprefix(":").strip()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is empty; it must hold one document; correct --kubeconfig or KUBECONFIG"),
        (bytes(range(256)), "is not UTF-8 text; correct --kubeconfig or KUBECONFIG"),
        (
            "a: [b\nc: }",
            "is not YAML: line 2, column 2: did not find expected ',' or ']'; correct --kubeconfig or KUBECONFIG",
        ),
        ("hello", "is no kubeconfig: it must be a map with clusters, contexts and users"),
        ("- a", "is no kubeconfig: it must be a map with clusters, contexts and users"),
        ("7", "is no kubeconfig: it must be a map with clusters, contexts and users"),
        (config(contexts=None), "has no contexts; give another file with --kubeconfig or KUBECONFIG"),
        (config(contexts=[]), "has no contexts; give another file with --kubeconfig or KUBECONFIG"),
        (config(contexts={}), "has no contexts; give another file with --kubeconfig or KUBECONFIG"),
        (config(contexts="a"), "contexts must be a list of maps, each with a name and a map context"),
        (config(users=["a"]), "users must be a list of maps, each with a name and a map user"),
        (
            config(users=[{"name": "here", "user": "a"}]),
            "users must be a list of maps, each with a name and a map user",
        ),
        (config(clusters=[{"cluster": {}}]), "clusters must be a list of maps, each with a name and a map cluster"),
        (config(**{"current-context": None}), "has no current-context; set --context to one of: here"),
        (
            config(**{"current-context": "there"}),
            "has no context there, which is current-context; set --context to one of: here",
        ),
        (config(clusters=None), "the cluster of context here is here, which is not there; it has: none"),
        (config(users=[{"name": "me"}]), "the user of context here is here, which is not there; it has: me"),
        (server(None), f"the server of cluster here is empty but {SERVER}"),
        (server(7), f"the server of cluster here is 7 but {SERVER}"),
        (server("nonsense"), f"the server of cluster here is nonsense but {SERVER}"),
        (server("ftp://a"), f"the server of cluster here is ftp://a but {SERVER}"),
        (
            server("https://a:99999"),
            f"the server of cluster here is https://a:99999 but {SERVER}",
        ),
        (
            server("https://u:secret@127.0.0.1:6443"),
            f"the server of cluster here is https://...@127.0.0.1:6443 but {SERVER}",
        ),
        (server("https://a..b:6443"), f"the server of cluster here is https://a..b:6443 but {SERVER}"),
        (
            server(f"https://{'a' * 300}:6443"),
            f"the server of cluster here is https://{'a' * 72}... but {SERVER}",
        ),
        (server("https://exa mple:6443"), f"the server of cluster here is https://exa mple:6443 but {SERVER}"),
        (server("https://a\nb:6443"), f"the server of cluster here is https://a b:6443 but {SERVER}"),
        (server("https://a/?b=c"), f"the server of cluster here is https://a/?b=c but {SERVER}"),
        (server("HTTPS://a"), f"the server of cluster here is HTTPS://a but {SERVER}"),
        (server("https://1.2.3"), f"the server of cluster here is https://1.2.3 but {SERVER}"),
        (server("https://[::1"), f"the server of cluster here is https://[::1 but {SERVER}"),
        (cluster(**{"proxy-url": 5}), f"the proxy-url of cluster here is 5 but {PROXY}"),
        (cluster(**{"proxy-url": ["x"]}), f"the proxy-url of cluster here is ['x'] but {PROXY}"),
        (cluster(**{"proxy-url": "nonsense"}), f"the proxy-url of cluster here is nonsense but {PROXY}"),
        (cluster(**{"proxy-url": "socks5://a:1"}), f"the proxy-url of cluster here is socks5://a:1 but {PROXY}"),
        (
            cluster(**{"tls-server-name": 5}),
            "the tls-server-name of cluster here is 5 but must be the name of a host; correct it",
        ),
        (
            cluster(**{"insecure-skip-tls-verify": "false"}),
            "the insecure-skip-tls-verify of cluster here is false but must be true or false without quotes; correct it",
        ),
        (
            cluster(**{"certificate-authority": 5}),
            "the certificate-authority of cluster here is 5 but must be the name of a file; correct it",
        ),
        (
            cluster(**{"certificate-authority": "/nope"}),
            "the certificate-authority of cluster here is /nope but must be a file that is there; correct it",
        ),
        (
            cluster(**{"certificate-authority-data": "a"}),
            "the certificate-authority-data of cluster here must be text in base64; correct it",
        ),
        (context(user=["x"]), "the user of context here is ['x'] but must be text; correct it"),
        (context(cluster={"a": 1}), "the cluster of context here is {'a': 1} but must be text; correct it"),
        (
            config(**{"current-context": ["x"]}),
            "has no context ['x'], which is current-context; set --context to one of: here",
        ),
        (context(user=None), f"the user of context here has no credentials; {GIVE}"),
        (user(), f"user here has no credentials; {GIVE}"),
        (user(token=""), f"user here has no credentials; {GIVE}"),
        (
            user(**dict.fromkeys(("username", "password"), "secret")),
            f"user here has a username and a password only, which Kubernetes takes no longer; {GIVE}",
        ),
        (user(token=["secret"]), "the token of user here must be text; correct it"),
        (user(tokenFile=5), "the tokenFile of user here is 5 but must be the name of a file; correct it"),
        (
            user(**{"client-certificate": 5}),
            "the client-certificate of user here is 5 but must be the name of a file; correct it",
        ),
        (
            user(**{"client-certificate-data": "YWJj"}),
            "user here has a client-certificate but no client-key; add it",
        ),
        (
            user(**{"token": "t", "client-key-data": "YWJj"}),
            "user here has a client-key but no client-certificate; add it",
        ),
        (user(exec="aws"), "the exec of user here must be a map with a command; correct it"),
        (exec_(command=""), "exec of user here must have the field command; add it"),
        (exec_(command=["aws"]), "the command of exec of user here is ['aws'] but must be text; correct it"),
        (exec_(apiVersion=None), "exec of user here must have the field apiVersion; add it"),
        (exec_(args="hello"), "the args of exec of user here is hello but must be a list of texts; correct it"),
        (
            exec_(env=[{"name": "A", "value": 5}]),
            "the env of exec of user here must be a list of maps, each with the texts name and value; correct it",
        ),
        (
            exec_(command="no-such-plugin"),
            "user here needs the program no-such-plugin, which is not there; install it",
        ),
        (
            user(**{"auth-provider": {"name": "azure"}}),
            "the auth-provider of user here must be a map with the name gcp or oidc, else use exec or a token; correct it",
        ),
        (
            user(**{"auth-provider": {"name": "oidc", "config": {"id-token": 5}}}),
            "the config of auth-provider of user here must be a map of texts; correct it",
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_a_file_that_cannot_be_used_is_told(tmp_path: Path, content: object, sentence: str) -> None:
    assert why(tmp_path, content) == sentence


def test_a_wrong_option_is_told(tmp_path: Path) -> None:
    assert why(tmp_path, config(), context="nope") == (
        "has no context nope, which is --context; set --context to one of: here"
    )


def test_a_file_that_is_none_or_may_not_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        UnusableInputError, match=r"none cannot be read: no such file or directory; correct --kubeconfig"
    ):
        choose(tmp_path / "none", None, variable="", home=tmp_path)
    with pytest.raises(UnusableInputError, match=r"cannot be read: is a directory; correct --kubeconfig"):
        choose(tmp_path, None, variable="", home=tmp_path)


def test_without_any_file_it_says_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(UnusableInputError) as refused:
        choose(None, None, variable="", home=tmp_path)
    where = f"KUBECONFIG is not set, there is no {tmp_path}/.kube/config, and this process runs in no pod"
    assert str(refused.value) == f"{where}; set --kubeconfig or KUBECONFIG"


def test_files_are_found_and_merged_as_kubectl_does_it(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    first, second, default = tmp_path / "first", tmp_path / "second", tmp_path / ".kube" / "config"
    first.write_text(yaml.safe_dump(config("one") | {"users": []}))
    second.write_text(yaml.safe_dump(config("two") | {"users": config("one")["users"] + config("two")["users"]}))
    default.write_text(yaml.safe_dump(config("home")))

    chosen = choose(None, None, variable="", home=tmp_path)
    assert (chosen.context, chosen.files) == ("home", (default,))
    chosen = choose(
        None, None, variable=os.pathsep.join([f"{tmp_path}/none", str(first), "", str(second)]), home=tmp_path
    )
    assert (chosen.context, chosen.files) == ("one", (first, second))
    assert choose(None, "two", variable=f"{first}:~/second", home=tmp_path).context == "two"
    assert choose(second, None, variable=str(first), home=tmp_path).context == "two"


def test_a_plain_server_needs_no_credentials_since_it_may_be_a_proxy_of_kubectl(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(server("http://127.0.0.1:8001") | {"users": [{"name": "here", "user": {}}]}))
    assert choose(file, None, variable="", home=tmp_path).user == {}


@pytest.mark.parametrize(
    "url", ["https://[::1]:6443", "https://10.0.0.1", "https://a_b.example.com./path", "https://bücher.de"]
)
def test_servers_of_all_kinds_are_taken(tmp_path: Path, url: str) -> None:
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(server(url)))
    assert choose(file, None, variable="", home=tmp_path).cluster == {"server": url}


def test_names_of_files_are_relative_to_the_file_that_holds_them(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "ca").write_text("ca")
    (tmp_path / "sub" / "token").write_text("t")
    first, second = tmp_path / "first", tmp_path / "sub" / "second"
    first.write_text(yaml.safe_dump(config(users=None) | {"clusters": None}))
    whole = cluster(**{"certificate-authority": "ca"}) | {"users": [{"name": "here", "user": {"tokenFile": "token"}}]}
    second.write_text(yaml.safe_dump(whole))
    chosen = choose(None, None, variable=f"{first}:{second}", home=tmp_path)
    assert chosen.cluster["certificate-authority"] == str(tmp_path / "sub" / "ca")
    assert chosen.user == {"token": "t"}
