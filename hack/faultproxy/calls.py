"""What a request asks of the Kubernetes API, and the record of each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import yaml

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
"""Verbs that may change something."""
REVIEWING = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
"""Groups whose objects are questions: creating one changes nothing."""
MINUTE = 60.0
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OF_NAMESPACES = {"status", "finalize"}


@dataclass(frozen=True, kw_only=True)
class Target:
    """What a call, or an event of a watch, is about. A path outside the resources (`/version`) has no resource."""

    verb: str
    """get, list, watch, create, update, patch, delete or deletecollection."""
    group: str = ""
    resource: str = ""
    """The plural, as in the path."""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    """Of a creation: the name in the body. Empty for lists and watches."""


@dataclass(kw_only=True)
class Call:
    """One request and what became of it."""

    target: Target
    path: str
    at: float
    """On the monotonic clock."""
    code: int | None = None
    """The answer of the API server; None while there is none, or when the call was not passed on."""
    told: int | None = None
    """The status that the client got; None when it got none."""
    fault: str = ""
    """Name of the fault that struck."""


def target_of(method: str, path: str, query: Mapping[str, str], body: bytes = b"") -> Target:
    """Read a request."""
    parts = path.strip("/").split("/")
    group = ""
    if parts[:1] == ["api"]:
        rest = parts[2:]
    elif parts[:1] == ["apis"]:
        group, rest = "".join(parts[1:2]), parts[3:]
    else:
        rest = []
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _OF_NAMESPACES:
            rest = rest[2:]
    resource, name, subresource = (*rest[:3], "", "", "")[:3]
    verb = _verb(method, query, named=bool(name))
    return Target(
        verb=verb,
        group=group,
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name or (_name_in(body) if verb == "create" else ""),
    )


def _verb(method: str, query: Mapping[str, str], *, named: bool) -> str:
    if method in {"GET", "HEAD"}:
        if query.get("watch", "") in {"1", "true"}:
            return "watch"
        return "get" if named else "list"
    return "deletecollection" if method == "DELETE" and not named else _VERBS[method]


def _name_in(body: bytes) -> str:
    try:
        found = yaml.safe_load(body)  # JSON is YAML
    except yaml.YAMLError:
        return ""
    metadata = found.get("metadata") if isinstance(found, dict) else None
    return str((metadata or {}).get("name") or "")


def busiest_minute(calls: Iterable[Call]) -> int:
    """The most calls within any 60 seconds."""
    times = sorted(call.at for call in calls)
    most = start = 0
    for end, at in enumerate(times):
        while at - times[start] >= MINUTE:
            start += 1
        most = max(most, end - start + 1)
    return most
