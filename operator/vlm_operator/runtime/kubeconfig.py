"""Looks at kubeconfig files before the client library does, which says little about one that it cannot use.

It also takes a user that is not there, and a server that no client can talk to. Nothing here talks to a server.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vlm_operator.runtime.files import UnusableInputError, read_document
from vlm_operator.runtime.kubeconfig_fields import (
    CONTEXT,
    Section,
    checked,
    cluster_in,
    is_text,
    must_have_credentials,
    shown,
    user_in,
)

DEFAULT = Path(".kube", "config")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What a connection is made from."""

    files: tuple[Path, ...]
    context: str
    cluster: Mapping[str, Any]
    namespace: str
    """The namespace of the context; "default" where it has none."""
    user: Mapping[str, Any] = field(repr=False)
    """Cluster and user have those fields only that were looked at, and that are not empty."""

    def __str__(self) -> str:
        return f"context {self.context} of {_listed(self.files)}"

    @property
    def plugin(self) -> str:
        """The program that the user's credentials come from; empty when they are in the files."""
        command: str = self.user.get("exec", {}).get("command", "")
        return command

    @property
    def document(self) -> dict[str, Any]:
        """A kubeconfig with nothing but this."""
        name = self.context
        return {
            "current-context": name,
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "clusters": [{"name": name, "cluster": dict(self.cluster)}],
            "users": [{"name": name, "user": dict(self.user)}],
        }


def choose(given: Path | None, context: str | None, *, variable: str, home: Path) -> Choice:
    """Choose files and context as kubectl does: `given`, else `variable` (KUBECONFIG), else the file in `home`.

    Raises UnusableInputError, whose sentence ends with the way out.
    """
    files = _files(given, variable=variable, home=home)
    documents = [_document(file) for file in files]
    contexts, clusters, users = (_entries(documents, files, kind) for kind in ("context", "cluster", "user"))
    name = context or next((d["current-context"] for d in documents if d.get("current-context")), None)
    chosen = _entry(contexts, name, option="--context" if context else "current-context", files=files)
    names = checked(chosen, CONTEXT)
    cluster = cluster_in(_named(clusters, names.get("cluster"), f"the cluster of {chosen.what}", files))
    nobody = Section(file=chosen.file, what=f"the user of {chosen.what}", fields={})
    section = _named(users, names["user"], f"the user of {chosen.what}", files) if "user" in names else nobody
    user = user_in(section)
    if cluster["server"].startswith("https:"):  # else it may be `kubectl proxy`, which has them
        must_have_credentials(section, user)
    _must_be_there(section, user)
    namespace = names.get("namespace", "default")
    return Choice(files=files, context=str(name), cluster=cluster, namespace=namespace, user=user)


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


def _entries(documents: Sequence[Mapping[str, Any]], files: Sequence[Path], kind: str) -> dict[str, Section]:
    """The entries of a kind (`cluster`) by name; the first of a name counts."""
    found: dict[str, Section] = {}
    for document, file in zip(documents, files, strict=True):
        entries = document.get(f"{kind}s") or []
        if not isinstance(entries, list) or not all(_is_entry(entry, kind) for entry in entries):
            raise UnusableInputError(f"{file}: {kind}s must be a list of maps, each with a name and a map {kind}")
        for entry in entries:
            name = entry["name"]
            found.setdefault(name, Section(file=file, what=f"{kind} {name}", fields=entry.get(kind) or {}))
    return found


def _is_entry(entry: Any, kind: str) -> bool:
    return isinstance(entry, dict) and is_text(entry.get("name")) and isinstance(entry.get(kind) or {}, dict)


def _entry(contexts: Mapping[str, Section], name: Any, *, option: str, files: Sequence[Path]) -> Section:
    if not contexts:
        raise UnusableInputError(f"{_listed(files)} has no contexts; give another file with --kubeconfig or KUBECONFIG")
    known = ", ".join(contexts)
    if name is None:
        raise UnusableInputError(f"{_listed(files)} has no current-context; set --context to one of: {known}")
    if not isinstance(name, str) or name not in contexts:
        raise UnusableInputError(
            f"{_listed(files)} has no context {shown(name)}, which is {option}; set --context to one of: {known}"
        )
    return contexts[name]


def _named(entries: Mapping[str, Section], name: Any, what: str, files: Sequence[Path]) -> Section:
    if name not in entries:
        known = ", ".join(entries) or "none"
        raise UnusableInputError(f"{_listed(files)}: {what} is {shown(name)}, which is not there; it has: {known}")
    return entries[name]


def _must_be_there(section: Section, user: Mapping[str, Any]) -> None:
    command = user.get("exec", {}).get("command")
    if command is not None and shutil.which(command) is None:
        raise UnusableInputError(
            f"{section.file}: {section.what} needs the program {command}, which is not there; install it"
        )


def _listed(files: Sequence[Path]) -> str:
    return ", ".join(map(str, files))
