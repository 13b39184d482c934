"""A control plane seen by a measurement: one kept-alive connection, a watch of the pods, and what is written."""

import http.client
import json
import ssl
import threading
import time
import urllib.parse
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from controlplane import Call, ControlPlane

Object = dict[str, Any]
PATIENCE = 600.0
"""Seconds for one step of a measurement."""
IDLE_SECONDS = 60.0
"""After so long without a request a new connection is made: the API server closes idle ones."""
WRITES = {"create", "update", "patch", "delete", "deletecollection"}


class Connection:
    """One kept-alive connection, so that no handshake is measured."""

    def __init__(self, plane: ControlPlane) -> None:
        where = urllib.parse.urlsplit(plane.server)
        self._tls = ssl.create_default_context(cafile=str(plane.ca_file))
        self._tls.load_cert_chain(str(plane.pki / "admin.crt"), str(plane.pki / "admin.key"))
        self._http = http.client.HTTPSConnection(where.hostname or "", where.port, context=self._tls, timeout=PATIENCE)
        self._used_at = time.monotonic()

    def call(self, method: str, path: str, body: Object | None = None) -> Object:
        """One request; an error of the server is raised with its words."""
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        if time.monotonic() - self._used_at > IDLE_SECONDS:
            self._http.close()
        self._http.request(method, path, json.dumps(body) if body else None, {"Content-Type": content})
        answer = self._http.getresponse()
        found: Object = json.loads(answer.read())
        self._used_at = time.monotonic()
        if answer.status >= 400:
            raise RuntimeError(found.get("message"))
        return found

    def stream(self, path: str) -> Iterator[Object]:
        """The events of a watch, until there is no API server. It ends a watch whose client is slow, which goes on then."""
        since = ""
        while True:
            try:
                self._http.request("GET", f"{path}{since}")
                answer = self._http.getresponse()
            except OSError:
                return
            while line := answer.readline():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise RuntimeError(event["object"].get("message"))
                since = f"&resourceVersion={event['object']['metadata']['resourceVersion']}"
                yield event
            self._http.close()


class PodWatch:
    """When pods appeared and went, as a watch tells."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._path = f"/api/v1/namespaces/{namespace}/pods?watch=true"
        self._connection = Connection(plane)
        self._changed = threading.Condition()
        self._there: dict[str, float] = {}
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        for event in self._connection.stream(self._path):
            now, name = time.perf_counter(), event["object"]["metadata"]["name"]
            with self._changed:
                if event["type"] == "ADDED":
                    self._there[name] = now
                elif event["type"] == "DELETED":
                    self._there.pop(name, None)
                self._changed.notify_all()

    def when(self, count: int) -> float:
        """Wait until exactly `count` pods are there; returns when the last of them appeared."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._there) == count, timeout=PATIENCE):
                message = f"{count} pods were not there within {PATIENCE:.0f} s; there are {len(self._there)}"
                raise RuntimeError(message)
            return max(self._there.values(), default=0.0)


def writes(calls: Iterable[Call]) -> Counter[str]:
    """How many of the calls were writes, by verb and resource."""
    return Counter(f"{call.verb} {call.resource}" for call in calls if call.verb in WRITES)
