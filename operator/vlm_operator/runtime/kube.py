"""The Kubernetes API in plain dicts: the handful of calls that the operator makes, each with its safeguard.

Objects are created by POST, changed by a patch that carries uid and resourceVersion, deleted under the same preconditions;
status goes by merge patch under a resourceVersion. Nothing here retries: the work queue does.

Why not server-side apply: after a POST it cannot take back what the POST owns. A changed port of a Service would become a
second port, since lists with keys are merged by ownership.
"""

import builtins
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration

from vlm_operator.api.names import OPERATOR
from vlm_operator.replicas.refusal import Refusal
from vlm_operator.runtime import telemetry
from vlm_operator.runtime.kinds import EVENT, POD, REVIEWS, Kind

Object = dict[str, Any]

CALL_TIMEOUT = 20.0
"""Seconds for one call."""
CONNECTIONS = 24
"""Connections at once. TLS has buffers of 128 KiB for each, and more of them make no API server quicker."""
PAGE = 500
"""Objects per page of a list."""
LOG_LINES, LOG_BYTES = 400, 128 * 1024
"""Most that is read of a log. A failure is told again by the engine for each of its processes, and by the server in the end."""
LOG_SECONDS = 5.0
"""Time for a log: the API server asks the node for it, which may not answer."""
PROXY_SECONDS = 8.0
"""Time for the answer of a pod. An overloaded engine takes five seconds to tell its load."""
PROXY_BYTES = 4 * 2**20
"""Most that is read of it."""
EVENTS = 50
"""Events that are read about a pod; there is one for each reason and message, however often it happened."""
NOT_LEADER = "NotLeader"
UNREADABLE = "Unreadable"
"""The reason of an error that stands for an answer that is no object."""
NOT_DONE = "NotDone"
"""The reason of an error that stands for actions, each of which was told in the log."""
LONGEST_RETRY_AFTER = 300.0
"""Seconds that the API server may ask to wait; more is taken for this."""
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
YAML = "application/yaml"


class KubeError(Exception):
    """The API server's answer to a call that it did not carry out; code 0 when there was no answer that can be read.

    `retry_after`: the seconds that it asked to wait, 0 when it did not.
    """

    def __init__(self, code: int, reason: str, message: str, *, retry_after: float = 0.0) -> None:
        super().__init__(f"{' '.join(filter(None, (str(code), reason)))}: {message}" if code else message)
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.refusal = Refusal(code=code, message=message, retry_after=retry_after)

    @property
    def not_found(self) -> bool:
        """Whether there is no such object. A 404 without this reason says that the kind is not served, which passes."""
        return self.code == 404 and self.reason == "NotFound"


class Kube:
    """A connection to one API server.

    `time_left` is asked right before each call that may change something: the seconds in which the call must have ended, 0
    when it must not be sent. Such a call fails then with the reason `NOT_LEADER`.
    """

    def __init__(self, configuration: Configuration, *, time_left: Callable[[], float] = lambda: CALL_TIMEOUT) -> None:
        self._time_left = time_left
        configuration.connection_pool_maxsize = CONNECTIONS
        self._client = ApiClient(configuration)
        self._client.user_agent = OPERATOR

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()  # type: ignore[no-untyped-call] # the client is not typed

    async def version(self) -> Object:
        """What the API server tells of its version; anything, when it is none."""
        return await self._call("GET", "/version", verb="get", kind="version")

    async def serves(self, kind: Kind) -> bool:
        """Whether the API server knows the kind now; False, too, when it does not answer."""
        try:
            found = await self._call("GET", f"/apis/{kind.group}/{kind.version}", verb="get", kind="discovery")
        except KubeError:
            return False
        return any(resource["name"] == kind.plural for resource in found.get("resources", ()))

    async def may_list(self, kind: Kind, *, namespace: str | None) -> bool:
        """Whether this process has the right to list a kind, in the whole cluster or in a namespace. Everybody may ask."""
        wanted = {"group": kind.group, "resource": kind.plural, "verb": "list", "namespace": namespace or ""}
        review = {"apiVersion": f"{REVIEWS.group}/{REVIEWS.version}", "kind": REVIEWS.kind}
        body = review | {"spec": {"resourceAttributes": wanted}}
        answer = await self._call("POST", REVIEWS.path(), body=body, verb="create", kind=REVIEWS.plural)
        return bool(answer["status"]["allowed"])

    async def list(
        self, kind: Kind, *, namespace: str | None, selector: str = "", fields: str = ""
    ) -> tuple[list[Object], int]:
        """All objects of a kind with labels that its selector, or the given one, allows; the resourceVersion of the list."""
        items: list[Object] = []
        version = 0
        async for page, as_of in self.pages(kind, namespace=namespace, selector=selector, fields=fields):
            items.extend(page)
            version = as_of
        return items, version

    async def pages(
        self, kind: Kind, *, namespace: str | None, selector: str = "", fields: str = ""
    ) -> AsyncIterator[tuple[builtins.list[Object], int]]:
        """The pages of a list, each with the resourceVersion of the whole, which is one state of the cluster."""
        selectors = {"labelSelector": selector or kind.selector, "fieldSelector": fields}
        query: dict[str, Any] = {"limit": PAGE} | {name: value for name, value in selectors.items() if value}
        while True:
            page = await self._call("GET", kind.path(namespace=namespace), query=query, verb="list", kind=kind.plural)
            yield page["items"], int(page["metadata"]["resourceVersion"])
            if not page["metadata"].get("continue"):
                return
            query["continue"] = page["metadata"]["continue"]

    async def get(self, kind: Kind, *, namespace: str | None, name: str) -> Object | None:
        """One object; None when there is none of that name."""
        try:
            return await self._call("GET", kind.path(namespace=namespace, name=name), verb="get", kind=kind.plural)
        except KubeError as error:
            if error.not_found:
                return None
            raise

    async def log_tail(self, *, namespace: str, pod: str, container: str, previous: bool) -> str:
        """The last lines of what a container wrote, or of what it wrote before it was started again.

        Where they are more than `LOG_BYTES`, the server cuts off their end.
        """
        query = {"container": container, "tailLines": LOG_LINES, "limitBytes": LOG_BYTES}
        query |= {"previous": "true"} if previous else {}
        path = f"{POD.path(namespace=namespace, name=pod)}/log"
        request = await self._prepared("GET", path, query=query, accept="*/*")
        code, payload, retry_after = await self._sent(request, seconds=LOG_SECONDS, verb="get", kind="pods/log")
        if not 200 <= code < 300:
            _answer(code, payload, retry_after=retry_after)
        return payload.decode(errors="replace")

    async def answer_of(self, *, namespace: str, pod: str, port: int, path: str) -> str:
        """What a pod answers to a GET, through the API server. What it redirects to is not asked."""
        place = f"{POD.path(namespace=namespace, name=pod)}:{port}/proxy{path}"
        request = await self._prepared("GET", place, accept="*/*")
        code, payload, retry_after = await self._sent(
            request, seconds=PROXY_SECONDS, verb="get", kind="pods/proxy", at_most=PROXY_BYTES
        )
        if not 200 <= code < 300:
            _answer(code, payload, retry_after=retry_after)
        return payload.decode(errors="replace")

    async def events_about(self, *, namespace: str, uid: str) -> builtins.list[Object]:
        """Some of the events about an object."""
        query = {"fieldSelector": f"regarding.uid={uid}", "limit": EVENTS}
        page = await self._call("GET", EVENT.path(namespace=namespace), query=query, verb="list", kind=EVENT.plural)
        return cast("builtins.list[Object]", page["items"])

    async def create(self, kind: Kind, manifest: Object) -> Object:
        """POST an object. 409 says that the name is held by somebody."""
        path = kind.path(namespace=manifest["metadata"]["namespace"])
        if kind.keeps_bytes:
            text = as_yaml(manifest)
            return await self._call(
                "POST", path, body=text, content=YAML, query=_OWNED, verb="create", kind=kind.plural
            )
        return await self._call("POST", path, body=manifest, query=_OWNED, verb="create", kind=kind.plural)

    async def change(self, kind: Kind, patch: Object) -> Object:
        """Merge the given fields into the object that the patch names with uid and resourceVersion.

        Another object of that name, or a newer version of it, answers 409 or 422.
        """
        metadata = patch["metadata"]
        if not {"uid", "resourceVersion"} <= metadata.keys():
            message = f"a change of {kind.kind} {metadata['name']} must carry uid and resourceVersion"
            raise ValueError(message)
        path = kind.path(namespace=metadata["namespace"], name=metadata["name"])
        content = STRATEGIC if kind.merges_lists else MERGE
        return await self._call(
            "PATCH", path, body=patch, query=_OWNED, content=content, verb="patch", kind=kind.plural
        )

    async def delete(
        self, kind: Kind, *, namespace: str, name: str, uid: str, resource_version: str, grace_seconds: int | None
    ) -> Object | None:
        """DELETE exactly that object as it was seen; None when it is gone already."""
        body: Object = {
            "preconditions": {"uid": uid, "resourceVersion": resource_version},
            "propagationPolicy": "Background",
        }
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        path = kind.path(namespace=namespace, name=name)
        try:
            return await self._call("DELETE", path, body=body, verb="delete", kind=kind.plural)
        except KubeError as error:
            if error.not_found:
                return None
            raise

    async def patch_status(
        self, kind: Kind, *, namespace: str, name: str, resource_version: str, status: Object
    ) -> Object:
        """Merge a status into the object as it was seen; 409 when it has changed since."""
        path = f"{kind.path(namespace=namespace, name=name)}/status"
        body = {"metadata": {"resourceVersion": resource_version}, "status": status}
        return await self._call(
            "PATCH", path, body=body, query=_OWNED, content=MERGE, verb="patch_status", kind=kind.plural
        )

    async def _call(
        self,
        method: str,
        path: str,
        *,
        verb: str,
        kind: str,
        body: Object | bytes | None = None,
        query: Object | None = None,
        content: str = "application/json",
    ) -> Object:
        request = await self._prepared(method, path, body=body, query=query, content=content)
        seconds = CALL_TIMEOUT if method == "GET" else min(CALL_TIMEOUT, self._time_left())
        if seconds <= 0:
            raise KubeError(0, NOT_LEADER, "not sent: another operator may act by now")
        code, payload, retry_after = await self._sent(request, seconds=seconds, verb=verb, kind=kind)
        return _answer(code, payload, retry_after=retry_after)

    async def _prepared(
        self,
        method: str,
        path: str,
        *,
        body: Object | bytes | None = None,
        query: Object | None = None,
        content: str = "application/json",
        accept: str = "application/json",
    ) -> tuple[Any, ...]:
        try:
            # The body stays out of it: the client would copy it value by value, which takes longer than all the rest.
            method, url, headers, *_ = await self._client.param_serialize(
                method,
                path,
                query_params=list((query or {}).items()),
                header_params={"Accept": accept, "Content-Type": content},
                auth_settings=["BearerToken"],
            )
        except OSError as error:
            raise KubeError(0, "Unreachable", f"no credentials for the API server: {error}") from error
        return method, url, headers, body

    async def _sent(
        self, request: tuple[Any, ...], *, seconds: float, verb: str, kind: str, at_most: int | None = None
    ) -> tuple[int, bytes, float]:
        """Code, body and the seconds to wait. `at_most`: bytes beyond which an answer is none that can be read."""
        started = time.monotonic()
        code, retry_after = 0, 0.0
        rest = self._client.rest_client
        if rest.pool_manager is None:
            rest.pool_manager = _Direct(rest._create_pool_manager())  # type: ignore[assignment] # noqa: SLF001 # see there
        try:
            method, url, headers, data = request
            response = await self._client.call_api(method, url, headers, data, _request_timeout=seconds)
            payload = await _body(response.response, at_most)
            code, retry_after = response.status, _seconds(response.headers.get("Retry-After", ""))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise KubeError(0, "Unreachable", _why_unreachable(error, seconds)) from error
        finally:
            telemetry.API_REQUESTS.labels(verb=verb, kind=kind, code=str(code)).inc()
            telemetry.API_SECONDS.labels(verb=verb).observe(time.monotonic() - started)
        return code, payload, retry_after


class _Direct:
    """The session of the client, which follows no redirect: the API server sends none, but a pod behind it might.

    The client has no option for that.
    """

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def request(self, **options: Any) -> aiohttp.ClientResponse:
        """Send a request."""
        return await self._session.request(**options, allow_redirects=False)

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()


async def _body(response: aiohttp.ClientResponse, at_most: int | None) -> bytes:
    if at_most is None:
        return await response.read()
    content = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK):
        content += chunk
        if len(content) > at_most:
            response.close()
            raise KubeError(0, UNREADABLE, f"the answer has more than {at_most} bytes")
    return bytes(content)


def _why_unreachable(error: Exception, seconds: float) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        why = getattr(error.certificate_error, "verify_message", "") or error.certificate_error
        return f"the certificate of the API server {error.host}:{error.port} is not trusted: {why}"
    nothing = f"not within {seconds:.0f} s" if isinstance(error, TimeoutError) else type(error).__name__
    return f"the API server did not answer: {str(error) or nothing}"


_CHUNK = 64 * 2**10
_OWNED = {"fieldManager": OPERATOR}
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def as_yaml(manifest: Object) -> bytes:
    """A manifest as YAML: JSON, with escapes for the characters that YAML does not allow or takes for line breaks."""
    text = json.dumps(manifest, ensure_ascii=False)
    return _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def _answer(code: int, payload: bytes, *, retry_after: float) -> Object:
    text = payload.decode(errors="replace")
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    fine = 200 <= code < 300
    if fine and not isinstance(answer, dict):
        raise KubeError(
            0, UNREADABLE, f"the API server answered {code} with something else than an object: {text[:200]}"
        )
    if not fine:
        told = answer if isinstance(answer, dict) else {}
        reason, message = (
            str(told.get("reason", "")),
            str(told.get("message") or " ".join(text[:500].split()).rstrip(".")),
        )
        raise KubeError(code, reason, message, retry_after=retry_after)
    return cast("Object", answer)


def _seconds(retry_after: str) -> float:
    """The header Retry-After. A date, which is allowed, too, counts as none: the API server sends seconds."""
    return min(float(retry_after), LONGEST_RETRY_AFTER) if retry_after.isdecimal() else 0.0
