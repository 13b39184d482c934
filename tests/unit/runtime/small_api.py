"""A small API server in memory, with the calls of `runtime.kube.Kube`: names are unique, versions grow, patches and
deletions have preconditions. It tells a cache what a watch would tell, and counts every call.
"""

import asyncio
import builtins
from collections import Counter
from typing import Any

from vlm_operator.api.names import DEPLOYMENT_LABEL
from vlm_operator.runtime.cache import Cache
from vlm_operator.runtime.kinds import EVENT, Kind
from vlm_operator.runtime.kube import KubeError

Object = dict[str, Any]
Place = tuple[str, str]
NO_WRITES = frozenset({"get", "list", "create Event", "log_tail", "answer_of", "events_about"})


class SmallApi:
    """The objects of one namespace."""

    def __init__(self, cache: Cache) -> None:
        self.objects: dict[Place, Object] = {}
        self.events: list[Object] = []
        self.calls: Counter[str] = Counter()
        self.refusals: dict[str, KubeError] = {}
        """What the next calls of a verb are answered with."""
        self.refused_kinds: dict[str, KubeError] = {}
        """Kinds that are not listed, with the answer."""
        self.logs: dict[str, str] = {}
        """The ends of logs, by the names of pods."""
        self.pages: dict[tuple[str, str], str] = {}
        """What pods answer, by name and path."""
        self.silent: set[str] = set()
        """Calls that are not answered at all."""
        self._cache = cache
        self._version = 100

    # -- what the operator calls ---------------------------------------------------------------------------------------
    async def get(self, kind: Kind, *, namespace: str | None, name: str) -> Object | None:  # noqa: ARG002
        self._called("get")
        return self.objects.get((kind.kind, name))

    async def list(
        self,
        kind: Kind,
        *,
        namespace: str | None,  # noqa: ARG002
        selector: str = "",  # noqa: ARG002
        fields: str = "",  # noqa: ARG002
    ) -> tuple[builtins.list[Object], int]:
        self._called("list")
        if kind.kind in self.refused_kinds:
            raise self.refused_kinds[kind.kind]
        return [obj for place, obj in self.objects.items() if place[0] == kind.kind], self._version

    async def log_tail(self, *, namespace: str, pod: str, container: str, previous: bool) -> str:  # noqa: ARG002
        self._called("log_tail")
        return self.logs.get(pod, "")

    async def answer_of(self, *, namespace: str, pod: str, port: int, path: str) -> str:  # noqa: ARG002
        self._called("answer_of")
        if (pod, path) not in self.pages:
            raise KubeError(503, "ServiceUnavailable", "dial tcp 198.18.0.1:8000: no route to host")
        return self.pages[pod, path]

    async def events_about(self, *, namespace: str, uid: str) -> builtins.list[Object]:  # noqa: ARG002
        self._called("events_about")
        return [event for event in self.events if event["regarding"]["uid"] == uid]

    async def create(self, kind: Kind, manifest: Object) -> Object:
        self._called(f"create {kind.kind}")
        if f"create {kind.kind}" in self.silent:
            await asyncio.Event().wait()
        if kind is EVENT:
            self.events.append(manifest)
            return manifest
        place = (kind.kind, manifest["metadata"]["name"])
        if place in self.objects:
            raise KubeError(409, "AlreadyExists", f"{place[1]} already exists")
        return self.hold(kind, manifest)

    async def change(self, kind: Kind, patch: Object) -> Object:
        self._called(f"change {kind.kind}")
        return self._patched(kind, patch["metadata"]["name"], patch)

    async def patch_status(
        self,
        kind: Kind,
        *,
        namespace: str,  # noqa: ARG002
        name: str,
        resource_version: str,
        status: Object,
    ) -> Object:
        self._called("patch_status")
        return self._patched(kind, name, {"metadata": {"resourceVersion": resource_version}, "status": status})

    async def delete(
        self,
        kind: Kind,
        *,
        namespace: str,  # noqa: ARG002
        name: str,
        uid: str,
        resource_version: str,
        grace_seconds: int | None,  # noqa: ARG002
    ) -> Object | None:
        self._called(f"delete {kind.kind}")
        live = self.objects.get((kind.kind, name))
        if live is None:
            return None
        self._compare(live, {"uid": uid, "resourceVersion": resource_version})
        del self.objects[kind.kind, name]
        return {"kind": "Status"}

    def _called(self, call: str) -> None:
        self.calls[call] += 1
        if call in self.refusals:
            raise self.refusals[call]

    def _compare(self, live: Object, expected: Object) -> None:
        for field in ("uid", "resourceVersion"):
            if field in expected and expected[field] != live["metadata"][field]:
                raise KubeError(409, "Conflict", f"the {field} differs")

    def _patched(self, kind: Kind, name: str, patch: Object) -> Object:
        live = self.objects.get((kind.kind, name))
        if live is None:
            raise KubeError(404, "NotFound", f"{name} not found")
        self._compare(live, patch["metadata"])
        version = {"metadata": {"resourceVersion": self._next_version()}}
        self.objects[kind.kind, name] = _merged(_merged(live, patch), version)
        return self.objects[kind.kind, name]

    def _next_version(self) -> str:
        self._version += 1
        return str(self._version)

    # -- what others do ------------------------------------------------------------------------------------------------
    def hold(self, kind: Kind, manifest: Object, *, watched: bool = False) -> Object:
        """Create an object, or a new version of it, and show it to the watch if there is one."""
        version = self._next_version()
        known = {"uid": f"uid-{version}", "generation": 1} | manifest["metadata"] | {"resourceVersion": version}
        held = manifest | {"kind": kind.kind, "metadata": known}
        self.objects[kind.kind, known["name"]] = held
        if watched:
            # Without its label an object leaves the watch, which tells that as a deletion.
            selected = not kind.selector or DEPLOYMENT_LABEL in (known.get("labels") or {})
            (self._cache.put if selected else self._cache.remove)(kind, held)
        return held

    def lose(self, kind: Kind, name: str, *, watched: bool = True) -> None:
        """Delete an object."""
        gone = self.objects.pop((kind.kind, name))
        if watched:
            self._cache.remove(kind, gone | {"metadata": gone["metadata"] | {"resourceVersion": self._next_version()}})

    def writes(self) -> dict[str, int]:
        """Calls that wrote something, without events."""
        return {call: number for call, number in self.calls.items() if call not in NO_WRITES}


def _merged(live: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    kept = dict(live) if isinstance(live, dict) else {}
    changed = {key: _merged(kept.get(key), part) for key, part in patch.items() if part is not None}
    return {key: part for key, part in kept.items() if patch.get(key, part) is not None} | changed
