"""Carries out a plan: surroundings first, then deletions, then new replicas. Reports what became of each action.

An answer that says the world is not as it was seen (404, 409, 422 on a repair) is no error: the object is read again and
the next look decides. Nothing is raised: an error of the connection or the server is an outcome, too.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from vlm_operator.engines.base import sibling
from vlm_operator.engines.registry import engine
from vlm_operator.replicas.actions import Action, Create, CreatePod, Delete, Outcome, Repair, SetRole
from vlm_operator.replicas.refusal import Refusal
from vlm_operator.runtime.cache import Cache, Key
from vlm_operator.runtime.gather import Gatherer
from vlm_operator.runtime.kinds import BY_NAME, POD, Kind
from vlm_operator.runtime.kube import Kube, KubeError, Object

log = logging.getLogger(__name__)

CALLS_AT_ONCE = 16
"""Writes in flight for all deployments together."""

Call = Callable[[], Awaitable[None]]


class Applier:
    """Writes what plans ask for."""

    def __init__(self, kube: Kube, cache: Cache, gatherer: Gatherer) -> None:
        self._kube = kube
        self._cache = cache
        self._gatherer = gatherer
        self._slots = asyncio.Semaphore(CALLS_AT_ONCE)

    async def apply(self, key: Key, actions: Sequence[Action]) -> tuple[Outcome, ...]:
        """Try every action; new replicas only when what must stand around them does."""
        around = [action for action in actions if isinstance(action, Create | Repair | SetRole)]
        deletions = [action for action in actions if isinstance(action, Delete)]
        replicas = [action for action in actions if isinstance(action, CreatePod)]
        outcomes, pods = await asyncio.gather(
            self._together(key, [(action, partial(self._set_up, action)) for action in around]), _rendered(replicas)
        )
        outcomes += await self._together(key, [(action, partial(self._delete, key, action)) for action in deletions])
        if all(outcome.refusal is None for outcome in outcomes if isinstance(outcome.action, Create)):
            outcomes += await self._together(
                key, [(action, partial(self._create, pod)) for action, pod in zip(replicas, pods, strict=True)]
            )
        return tuple(outcomes)

    async def _together(self, key: Key, calls: Iterable[tuple[Action, Call]]) -> list[Outcome]:
        return list(await asyncio.gather(*(self._try(key, action, call) for action, call in calls)))

    async def _try(self, key: Key, action: Action, call: Call) -> Outcome:
        try:
            async with self._slots:
                await call()
        except KubeError as error:
            refusal = error.refusal
            level = logging.DEBUG if refusal.namespace_ends else logging.WARNING
            log.log(level, "%s/%s: %s: not done: %s", *key, action.sentence, error)
            if not refusal.passing and error.code != 403:
                refusal = await self._look_again(key, action) or refusal
            return Outcome(action=action, refusal=refusal)
        log.info("%s/%s: %s", *key, action.sentence)
        return Outcome(action=action)

    async def _look_again(self, key: Key, action: Action) -> Refusal | None:
        """Read anew what an action found to be otherwise. When that is refused, nothing else can be known for now."""
        try:
            await self._gatherer.look_at(key, _place(action))
        except KubeError as error:
            return error.refusal
        return None

    async def _set_up(self, action: Create | Repair | SetRole) -> None:
        match action:
            case Create():
                await self._create(action.manifest)
            case Repair():
                await self._change(BY_NAME[action.kind], action.patch)
            case SetRole():
                await self._change(POD, action.patch)

    async def _create(self, manifest: Object) -> None:
        kind = BY_NAME[manifest["kind"]]
        self._cache.put(kind, await self._kube.create(kind, manifest))

    async def _change(self, kind: Kind, patch: Object) -> None:
        self._cache.put(kind, await self._kube.change(kind, patch))

    async def _delete(self, key: Key, action: Delete) -> None:
        kind = BY_NAME[action.kind]
        left = await self._kube.delete(
            kind,
            namespace=key[0],
            name=action.name,
            uid=action.uid,
            resource_version=action.resource_version,
            grace_seconds=action.grace_seconds,
        )
        if left is not None and left.get("kind") == action.kind and left["metadata"].get("deletionTimestamp"):
            self._cache.put(kind, left)
        else:
            gone = {"metadata": {"namespace": key[0], "name": action.name, "uid": action.uid}}
            self._cache.remove(kind, gone, certain=True)


async def _rendered(actions: Sequence[CreatePod]) -> list[Object]:
    """The pods to create. It takes as long as a call: a thread does it while the API server works on what stands around."""
    return await asyncio.to_thread(_pods, actions) if actions else []


def _pods(actions: Sequence[CreatePod]) -> list[Object]:
    """Each revision and role is rendered once."""
    first: dict[tuple[str, str], Object] = {}
    pods = []
    for action in actions:
        identity = action.identity
        kind = identity.revision, identity.role
        if kind not in first:
            first[kind] = engine(action.resolved.inputs.engine.type).render_pod(action.resolved, identity)
        pods.append(sibling(first[kind], identity))
    return pods


def _place(action: Action) -> tuple[str, str]:
    match action:
        case CreatePod():
            return POD.kind, action.identity.name
        case SetRole():
            return POD.kind, action.name
        case Delete():
            return action.kind, action.name
        case Repair():
            return action.kind, action.patch["metadata"]["name"]
        case Create():
            return action.manifest["kind"], action.manifest["metadata"]["name"]
