"""A few lines of HTTP for polling the API server: no caches, no retries, JSON in and out."""

import contextlib
import http.client
import json
import ssl
import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from controlplane.errors import ApiError, WaitTimeoutError

T = TypeVar("T")

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"


class Api:
    """One user's access to an API server, with a client certificate."""

    def __init__(self, server: str, *, ca_file: Path, certificate: Path, key: Path) -> None:
        where = urllib.parse.urlsplit(server)
        self._address = (where.hostname or "", where.port)
        self._tls = ssl.create_default_context(cafile=str(ca_file))
        self._tls.load_cert_chain(str(certificate), str(key))

    def get(self, path: str) -> Any:
        """Return the object at `path`; raises ApiError."""
        return self._request("GET", path)

    def post(self, path: str, body: Any) -> Any:
        """Create `body` in the collection at `path`."""
        return self._request("POST", path, body)

    def merge_patch(self, path: str, body: Any) -> Any:
        """Apply a JSON merge patch to the object at `path`."""
        return self._request("PATCH", path, body, content_type=MERGE_PATCH)

    def delete(self, path: str, body: Any = None) -> Any:
        """Delete the object at `path`; `body` may carry DeleteOptions."""
        return self._request("DELETE", path, body)

    def answers(self, path: str) -> bool:
        """Tell whether a GET of `path` succeeds now."""
        try:
            self._request("GET", path, timeout_seconds=5)
        except (ApiError, OSError, http.client.HTTPException):
            return False
        return True

    def _request(
        self, method: str, path: str, body: Any = None, *, content_type: str = JSON, timeout_seconds: float = 60
    ) -> Any:
        connection = http.client.HTTPSConnection(*self._address, timeout=timeout_seconds, context=self._tls)
        with contextlib.closing(connection):
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {"Content-Type": content_type, "Accept": JSON})
            answer = connection.getresponse()
            found = _decoded(answer.read())
        if answer.status < 400:
            return found
        known = found if isinstance(found, dict) else {"message": str(found)}
        raise ApiError(status=answer.status, reason=known.get("reason", ""), message=known.get("message", ""))


def _decoded(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content.decode(errors="replace")


def wait_until(look: Callable[[], T], what: str, *, timeout_seconds: float = 60, every_seconds: float = 0.05) -> T:
    """Call `look` until it returns something true, and return that.

    `what` completes "Waited 60 s until ...". A 404 counts as "not yet"; other errors pass through.
    """
    deadline = time.monotonic() + timeout_seconds
    while True:
        seen: Any
        try:
            seen = look()
        except ApiError as error:
            if error.status != 404:
                raise
            seen = error
        else:
            if seen:
                return seen  # type: ignore[no-any-return]
        if time.monotonic() > deadline:
            raise WaitTimeoutError(f"Waited {timeout_seconds:g} s until {what}; last seen: {seen}")
        time.sleep(every_seconds)
