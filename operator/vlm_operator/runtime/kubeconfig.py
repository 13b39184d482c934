"""Looks at kubeconfig files before the client library does, which says little about one that it cannot use.

It also takes a user that is not there, and a server that no client can talk to. Nothing here talks to a server.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from vlm_operator.runtime.files import UnusableInputError, read_document

DEFAULT = Path(".kube", "config")
PROVIDERS = ("gcp", "oidc")
"""What the client library still knows of the old way in which clusters gave credentials."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What a connection is made from."""

    files: tuple[Path, ...]
    context: str
    plugin: str
    """The program that the user's credentials come from; empty when they are in the files."""

    def __str__(self) -> str:
        return f"context {self.context} of {_listed(self.files)}"


def choose(given: Path | None, context: str | None, *, variable: str, home: Path) -> Choice:
    """Choose files and context as kubectl does: `given`, else `variable` (KUBECONFIG), else the file in `home`.

    Raises UnusableInputError, whose sentence ends with the way out.
    """
    files = _files(given, variable=variable, home=home)
    documents = [_document(file) for file in files]
    entries = {kind: _entries(documents, files, kind) for kind in ("context", "cluster", "user")}
    name = context or next((d["current-context"] for d in documents if d.get("current-context")), None)
    chosen = _entry(entries["context"], name, option="--context" if context else "current-context", files=files)
    of = f"context {name}"
    cluster = _named(entries["cluster"], chosen.get("cluster"), f"the cluster of {of}", files)
    _must_be_a_server(cluster.get("server"), f"the server of cluster {chosen['cluster']}", files)
    user = _named(entries["user"], chosen["user"], f"the user of {of}", files) if chosen.get("user") else {}
    return Choice(files=files, context=str(name), plugin=_plugin(user, f"user {chosen.get('user')}", files))


def _files(given: Path | None, *, variable: str, home: Path) -> tuple[Path, ...]:
    """Of the files in KUBECONFIG those that are missing are skipped, as everywhere."""
    if given is not None:
        return (given,)
    if variable:
        files = tuple(_expanded(file, home) for file in variable.split(os.pathsep) if file)
        there = tuple(file for file in files if _is_there(file))
        if not there:
            raise UnusableInputError(f"KUBECONFIG is {variable}, and there is no such file; correct it")
        return there
    default = home / DEFAULT
    if not _is_there(default):
        where = f"KUBECONFIG is not set, there is no {default}, and this process runs in no pod"
        raise UnusableInputError(f"{where}; set --kubeconfig or KUBECONFIG")
    return (default,)


def _is_there(file: Path) -> bool:
    try:
        return file.exists()
    except OSError:  # it may not be looked at; reading it tells that
        return True


def _expanded(file: str, home: Path) -> Path:
    return home / file[2:] if file.startswith("~/") else Path(file)


def _document(file: Path) -> Mapping[str, Any]:
    try:
        found = read_document(str(file))
    except UnusableInputError as error:
        raise UnusableInputError(f"{error}; correct --kubeconfig or KUBECONFIG") from error
    if not isinstance(found, dict):
        raise UnusableInputError(f"{file} is no kubeconfig: it must be a map with clusters, contexts and users")
    return found


def _entries(documents: Sequence[Mapping[str, Any]], files: Sequence[Path], kind: str) -> dict[str, Mapping[str, Any]]:
    """The entries of a kind (`cluster`) by name; the first of a name counts."""
    found: dict[str, Mapping[str, Any]] = {}
    for document, file in zip(documents, files, strict=True):
        entries = document.get(f"{kind}s") or []
        if not isinstance(entries, list) or not all(_is_entry(entry, kind) for entry in entries):
            raise UnusableInputError(f"{file}: {kind}s must be a list of maps, each with a name and a map {kind}")
        for entry in entries:
            found.setdefault(entry["name"], entry.get(kind) or {})
    return found


def _is_entry(entry: Any, kind: str) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("name"), str) and isinstance(entry.get(kind) or {}, dict)


def _entry(
    contexts: Mapping[str, Mapping[str, Any]], name: Any, *, option: str, files: Sequence[Path]
) -> Mapping[str, Any]:
    if not contexts:
        raise UnusableInputError(f"{_listed(files)} has no contexts; give another file with --kubeconfig or KUBECONFIG")
    known = ", ".join(contexts)
    if name is None:
        raise UnusableInputError(f"{_listed(files)} has no current-context; set --context to one of: {known}")
    if name not in contexts:
        raise UnusableInputError(
            f"{_listed(files)} has no context {name}, which is {option}; set --context to one of: {known}"
        )
    return contexts[name]


def _named(entries: Mapping[str, Mapping[str, Any]], name: Any, what: str, files: Sequence[Path]) -> Mapping[str, Any]:
    if name not in entries:
        known = ", ".join(entries) or "none"
        raise UnusableInputError(f"{_listed(files)}: {what} is {name}, which is not there; it has: {known}")
    return entries[name]


def _must_be_a_server(server: Any, what: str, files: Sequence[Path]) -> None:
    try:
        parts = urlsplit(server if isinstance(server, str) else "")
        usable = parts.scheme in {"https", "http"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none
        usable = False
    if not usable:
        raise UnusableInputError(
            f"{_listed(files)}: {what} is {server or 'empty'} but must be https://HOST:PORT; correct it"
        )


def _plugin(user: Mapping[str, Any], what: str, files: Sequence[Path]) -> str:
    provider = user.get("auth-provider")
    if provider and (not isinstance(provider, dict) or provider.get("name") not in PROVIDERS):
        known = " or ".join(PROVIDERS)
        raise UnusableInputError(
            f"{_listed(files)}: auth-provider of {what} must be {known}; use exec or a token instead"
        )
    settings = user.get("exec")
    if not settings:
        return ""
    command = settings.get("command") if isinstance(settings, dict) else None
    if not isinstance(command, str) or not command:
        raise UnusableInputError(f"{_listed(files)}: exec of {what} must be a map with a command; correct it")
    if shutil.which(command) is None:
        raise UnusableInputError(
            f"{_listed(files)}: {what} needs the program {command}, which is not there; install it"
        )
    return command


def _listed(files: Sequence[Path]) -> str:
    return ", ".join(map(str, files))
