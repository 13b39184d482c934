"""What the API server last said about every watched object, grouped by deployment.

Fed by lists, watch events and the answers to the operator's own writes, in any order: the newest version wins, and what
was deleted does not come back.
"""

import json
import math
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from vlm_operator.api import GROUP, KIND
from vlm_operator.api.names import DEPLOYMENT_LABEL
from vlm_operator.replicas.kept import kept
from vlm_operator.runtime.kinds import VLM_DEPLOYMENT, Kind

Key = tuple[str, str]
"""Namespace and name of a VLMDeployment."""
Object = Mapping[str, Any]

TOMBSTONES = 10_000
"""Most deleted objects that are remembered, so that a late answer about one does not bring it back."""


def key_of(kind: Kind, obj: Object) -> Key | None:
    """The deployment that an object belongs to: by controller reference, else by label."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace", "")
    if kind is VLM_DEPLOYMENT:
        return namespace, metadata["name"]
    for reference in metadata.get("ownerReferences") or ():
        if (
            reference.get("controller")
            and reference.get("kind") == KIND
            and reference["apiVersion"].split("/")[0] == GROUP
        ):
            return namespace, reference["name"]
    label = (metadata.get("labels") or {}).get(DEPLOYMENT_LABEL)
    return (namespace, label) if label else None


def version_of(obj: Object) -> int:
    """The resourceVersion as a number; Kubernetes orders the versions of an object by it."""
    return int(obj["metadata"].get("resourceVersion") or 0)


@dataclass(frozen=True, slots=True)
class _Held:
    """An object as JSON, which takes a fifth of the memory of the same as dicts."""

    text: str
    uid: str
    version: int

    @classmethod
    def of(cls, kind: Kind, obj: Object) -> "_Held":
        text = json.dumps(kept(obj, kind=kind.kind), separators=(",", ":"))
        return cls(text, obj["metadata"].get("uid", ""), version_of(obj))


@lru_cache(maxsize=512)  # one look reads the same objects several times
def _read(text: str) -> Object:
    return cast("Object", json.loads(text))


class Cache:
    """Objects by deployment, kind and name. Nobody may change what it returns."""

    def __init__(self) -> None:
        self._by_key: dict[Key, dict[tuple[str, str], _Held]] = {}
        self._place: dict[tuple[str, str, str], Key] = {}
        # In two halves, of which the older one goes as a whole.
        self._buried: dict[str, float] = {}
        self._buried_before: dict[str, float] = {}

    def deployment(self, key: Key) -> Object | None:
        """The VLMDeployment itself."""
        held = self._by_key.get(key, {}).get((KIND, key[1]))
        return _read(held.text) if held is not None else None

    def children(self, key: Key) -> Mapping[tuple[str, str], Object]:
        """Every other object of the deployment, by kind and name."""
        return {place: _read(held.text) for place, held in self._by_key.get(key, {}).items() if place[0] != KIND}

    def uids(self, key: Key) -> set[str]:
        """The uids of all of them, and of the deployment."""
        return {held.uid for held in self._by_key.get(key, {}).values()}

    def deployments(self) -> Iterator[Key]:
        """The keys of all VLMDeployments."""
        return (key for key, objects in self._by_key.items() if (KIND, key[1]) in objects)

    def put(self, kind: Kind, obj: Object, *, key: Key | None = None) -> set[Key]:
        """Take in a version of an object; returns the deployments for which that is news.

        `key` files it under a deployment that it does not name itself, as a stranger that holds a name we need.
        """
        metadata = obj["metadata"]
        place = (kind.kind, metadata.get("namespace", ""), metadata["name"])
        home = key or key_of(kind, obj)
        old_home = self._place.get(place)
        old = self._by_key.get(old_home, {}).get((kind.kind, metadata["name"])) if old_home else None
        if version_of(obj) < self._buried_at(metadata.get("uid", "")):
            return set()
        asked_for = key is not None and key != old_home
        if old is not None and old.version >= version_of(obj) + asked_for:
            return set()
        if old_home is not None and old_home != home:
            self._drop(place)
        if home is not None:
            self._place[place] = home
            self._by_key.setdefault(home, {})[kind.kind, metadata["name"]] = _Held.of(kind, obj)
        return {key for key in (home, old_home) if key is not None}

    def remove(self, kind: Kind, obj: Object, *, certain: bool = False) -> set[Key]:
        """Forget an object; returns the deployments for which that is news.

        Versions from before the removal stay away. A watch cannot tell a deleted object from one that lost the label that
        the watch selects by, so the version that it reports may come back by another way; unless `certain`, which says
        that no object of that uid exists any more.
        """
        metadata = obj["metadata"]
        place = (kind.kind, metadata.get("namespace", ""), metadata["name"])
        self._bury(metadata.get("uid", ""), math.inf if certain else float(version_of(obj)))
        home = self._place.get(place)
        known = self._by_key.get(home, {}).get((kind.kind, metadata["name"])) if home else None
        if home is None or known is None or known.uid != metadata.get("uid", ""):
            return set()
        self._drop(place)
        return {home}

    def drop_unlisted(
        self, kind: Kind, listed: Container[tuple[str, str]], *, version: int, namespace: str | None
    ) -> set[Key]:
        """Forget what a list of a kind as of a resourceVersion does not have, but for what is newer.

        `listed`: namespace and name of each that it has. Returns the deployments for which that is news.
        """
        news: set[Key] = set()
        for place, home in list(self._place.items()):
            if place[0] != kind.kind or (namespace and place[1] != namespace) or place[1:] in listed:
                continue
            known = self._by_key[home][kind.kind, place[2]]
            if known.version <= version:
                self._drop(place)
                news.add(home)
        return news

    def _bury(self, uid: str, version: float) -> None:
        if len(self._buried) >= TOMBSTONES // 2:
            self._buried, self._buried_before = {}, self._buried
        self._buried[uid] = version

    def _buried_at(self, uid: str) -> float:
        """The version from which on an object is no news that it lives; 0 for one that is not known as deleted."""
        return self._buried.get(uid) or self._buried_before.get(uid, 0.0)

    def _drop(self, place: tuple[str, str, str]) -> None:
        home = self._place.pop(place, None)
        if home is not None:
            objects = self._by_key.get(home, {})
            objects.pop((place[0], place[2]), None)
            if not objects:
                self._by_key.pop(home, None)
