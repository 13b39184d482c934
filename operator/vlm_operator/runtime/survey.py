"""One look at one deployment from outside, with the permissions of whoever asks. Reads what the operator reads; never writes."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

from vlm_operator.api import PLURAL
from vlm_operator.api.names import DEPLOYMENT_LABEL, DRAINING
from vlm_operator.engines.base import HTTP_PORT
from vlm_operator.replicas.actions import Create, CreatePod, Plan
from vlm_operator.replicas.facts import Decision, Facts, Replica, StoredRevision
from vlm_operator.replicas.plan import plan
from vlm_operator.replicas.recall import recall
from vlm_operator.replicas.size import decide_size
from vlm_operator.runtime.cache import Cache, Key
from vlm_operator.runtime.files import UnusableInputError
from vlm_operator.runtime.gather import Gatherer
from vlm_operator.runtime.kinds import CHILDREN, POD, VLM_DEPLOYMENT
from vlm_operator.runtime.kube import LOG_SECONDS, Kube, KubeError
from vlm_operator.runtime.observe import endpoint_slices, routed_uids, served_by
from vlm_operator.runtime.pods import AT_ONCE, read_work
from vlm_operator.sizing.catalogue.loading import Catalogue


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What was found, and the plan that the operator would make of it."""

    facts: Facts | None
    """None: the deployment is being deleted, and nothing is planned for it."""
    decision: Decision | None
    plan: Plan | None
    unread: tuple[str, ...]
    """What could not be read, as sentences."""
    left: tuple[str, ...] = ()
    """Pods that are left of a deployment that is being deleted."""


async def survey(kube: Kube, key: Key, catalogue: Catalogue, *, now: float) -> Survey:
    """Look at a deployment. Raises UnusableInputError where it is not there, or what must be known of it cannot be read."""
    cache = Cache()
    await _fill(kube, cache, key)
    surveyor = _Surveyor(kube, cache, key, catalogue)
    facts = await surveyor.facts(now=now)
    if facts is None:
        left = tuple(name for kind, name in sorted(cache.children(key)) if kind == POD.kind)
        return Survey(facts=None, decision=None, plan=None, unread=(), left=left)
    decision = decide_size(facts)
    made = plan(facts, decision, now=now)
    if await surveyor.found_strangers(made):
        facts = await surveyor.facts(now=now) or facts
        made = plan(facts, decision, now=now)
    return Survey(facts=facts, decision=decision, plan=made, unread=tuple(sorted(surveyor.unread)))


async def _fill(kube: Kube, cache: Cache, key: Key) -> None:
    """Read the deployment and what belongs to it."""
    namespace, name = key
    try:
        live = await kube.get(VLM_DEPLOYMENT, namespace=namespace, name=name)
        if live is None:
            raise UnusableInputError(
                f"there is no VLMDeployment {name} in namespace {namespace}; "
                f"kubectl get {PLURAL} -n {namespace} lists those that are there, -n names another namespace"
            )
        cache.put(VLM_DEPLOYMENT, live)
        selector = f"{DEPLOYMENT_LABEL}={name}"
        lists = await asyncio.gather(*(kube.list(kind, namespace=namespace, selector=selector) for kind in CHILDREN))
    except KubeError as error:
        raise UnusableInputError(_unreadable(error)) from error
    for kind, (objects, _) in zip(CHILDREN, lists, strict=True):
        for found in objects:
            cache.put(kind, found)


def _unreadable(error: KubeError) -> str:
    if error.code == 404:
        return f"the cluster does not know VLMDeployments ({error.message}); install the operator with its CRD first"
    way_out = _WAYS_OUT.get(error.code, "")
    return f"the deployment cannot be read: {error.message}{way_out}"


_WAYS_OUT = {
    401: "; the API server does not know these credentials: log in again, or use another --context",
    403: "; ask for the permission, or use another --context",
}


class _Surveyor:
    """Reads again as often as there is more to know."""

    def __init__(self, kube: Kube, cache: Cache, key: Key, catalogue: Catalogue) -> None:
        self._kube = kube
        self._cache = cache
        self._key = key
        self._more = False
        self._free = asyncio.Semaphore(AT_ONCE)
        self._gatherer = Gatherer(kube, cache, catalogue, look_again=self._there_is_more, patience=LOG_SECONDS + 1)
        self.unread: set[str] = set()
        self._silent: dict[str, str] = {}
        """Replicas that could not be asked, and why."""

    def _there_is_more(self, _: Key) -> None:
        self._more = True

    async def facts(self, *, now: float) -> Facts | None:
        """The facts, with what the replicas say of their work. Raises UnusableInputError."""
        await self._cordons()
        found = await self._gathered()
        while self._more:
            self._more = False
            found = await self._gathered()
        if found is None:
            return None
        found = replace(found, memory=replace(recall(found.status), recalled=False))
        routed = await self._routed()
        work = await asyncio.gather(*(self._in_flight(replica, found.revisions) for replica in found.replicas))
        if self._silent:
            name, why = min(self._silent.items())
            others = f" and {len(self._silent) - 1} more" if len(self._silent) > 1 else ""
            self.unread.add(f"requests in flight of {name}{others} cannot be read: {why}")
        pairs = zip(found.replicas, work, strict=True)
        return replace(found, replicas=tuple(_with_work(r, routed, in_flight, now=now) for r, in_flight in pairs))

    async def found_strangers(self, made: Plan) -> bool:
        """Whether somebody else holds a name that would be used next."""
        places = [
            ("Pod", action.identity.name)
            if isinstance(action, CreatePod)
            else (str(action.manifest["kind"]), str(action.manifest["metadata"]["name"]))
            for action in made.actions
            if isinstance(action, Create | CreatePod)
        ]
        for place in places:
            try:
                await self._gatherer.look_at(self._key, place)
            except KubeError as error:
                self.unread.add(f"whether {place[0]} {place[1]} exists is not known: {error.message}")
        return any(place in self._cache.children(self._key) for place in places)

    async def _gathered(self) -> Facts | None:
        try:
            return await self._gatherer.gather(self._key)
        except KubeError as error:
            raise UnusableInputError(_unreadable(error)) from error

    async def _cordons(self) -> None:
        await self._gatherer.follow_cordons()
        if self._gatherer.nodes.unread:
            why = self._gatherer.nodes.unread
            self.unread.add(f"nodes cannot be read, so that cordons and GPUs per node do not count: {why}")

    async def _routed(self) -> frozenset[str] | None:
        try:
            return routed_uids(await endpoint_slices(self._kube, self._key))
        except KubeError as error:
            self.unread.add(f"where clients are sent cannot be read: {error.message}")
            return None

    async def _in_flight(self, replica: Replica, revisions: tuple[StoredRevision, ...]) -> int | None:
        revision = next((known for known in revisions if known.revision == replica.revision), None)
        if revision is None or not replica.live or not replica.address or replica.loading:
            return None

        async def read(path: str) -> str | None:
            try:
                async with self._free:
                    return await self._kube.answer_of(
                        namespace=self._key[0], pod=replica.name, port=HTTP_PORT, path=path
                    )
            except KubeError as error:
                self._silent.setdefault(replica.name, error.message)
                return None

        return (await read_work(read, **served_by(revision.resolved))).in_flight


def _with_work(replica: Replica, routed: frozenset[str] | None, in_flight: int | None, *, now: float) -> Replica:
    known: dict[str, Any] = {"in_flight": in_flight}
    if replica.role == DRAINING:
        known |= {"routed": None if routed is None else replica.uid in routed, "read_at": now}
    return replace(replica, **known)
