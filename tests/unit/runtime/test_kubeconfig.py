"""What is wrong with a kubeconfig is told with the file, the entry and the way out, before anybody is asked."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from vlm_operator.runtime.files import UnusableInputError
from vlm_operator.runtime.kubeconfig import choose

Object = dict[str, Any]


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
    return config(clusters=[{"name": "here", "cluster": {"server": url}}])


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
        (server(None), "the server of cluster here is empty but must be https://HOST:PORT; correct it"),
        (server(7), "the server of cluster here is 7 but must be https://HOST:PORT; correct it"),
        (server("nonsense"), "the server of cluster here is nonsense but must be https://HOST:PORT; correct it"),
        (server("ftp://a"), "the server of cluster here is ftp://a but must be https://HOST:PORT; correct it"),
        (
            server("https://a:99999"),
            "the server of cluster here is https://a:99999 but must be https://HOST:PORT; correct it",
        ),
        (user(exec="aws"), "exec of user here must be a map with a command; correct it"),
        (user(exec={"command": ""}), "exec of user here must be a map with a command; correct it"),
        (
            user(exec={"command": "no-such-plugin"}),
            "user here needs the program no-such-plugin, which is not there; install it",
        ),
        (
            user(**{"auth-provider": {"name": "azure"}}),
            "auth-provider of user here must be gcp or oidc; use exec or a token instead",
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
