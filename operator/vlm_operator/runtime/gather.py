"""Gathers the facts about one deployment: from the cache, and by a read where nothing is watched."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.engines.base import Engine
from vlm_operator.engines.registry import engine
from vlm_operator.replicas.budgets import overlapping_budgets
from vlm_operator.replicas.evaluate import Judgement, evaluate, findings_that_count
from vlm_operator.replicas.evidence import Evidence
from vlm_operator.replicas.facts import Claim, Facts, GpuNode, Replica, Seen, StoredRevision
from vlm_operator.replicas.load_time import short_deadline
from vlm_operator.replicas.ownership import Ownership, ownership
from vlm_operator.replicas.reading import read_replica, read_revision, revision_of
from vlm_operator.runtime.budgets import ForeignBudgets
from vlm_operator.runtime.cache import Cache, Key, key_of
from vlm_operator.runtime.evidence import PATIENCE, EvidenceReader
from vlm_operator.runtime.kinds import BUDGET, BY_NAME, CLAIM, CONTROLLER_REVISION, POD, STORAGE_CLASS, VLM_DEPLOYMENT
from vlm_operator.runtime.kube import Kube, KubeError
from vlm_operator.runtime.nodes import Nodes
from vlm_operator.sizing.catalogue.loading import Catalogue

READY_CLAIM_TRUSTED = 300.0
"""Seconds for which a bound claim is not read again."""
OTHER_CLAIM_TRUSTED = 1.0
JUDGEMENTS_KEPT = 64
"""Deployments whose last judgement is kept. Several looks in a row at one of them are common; most rest for days."""


Objects = Mapping[tuple[str, str], Mapping[str, Any]]
"""Objects by kind and name."""


@dataclass
class _Known:
    claim: Claim
    read_at: float


class Gatherer:
    """Reads; never writes. `look_again` is called with a deployment of which more is known than at the last look.

    `patience`: the seconds that a look waits for logs and events.
    """

    def __init__(
        self,
        kube: Kube,
        cache: Cache,
        catalogue: Catalogue,
        *,
        look_again: Callable[[Key], None] = lambda _: None,
        patience: float = PATIENCE,
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._catalogue = catalogue
        self._judged: dict[str, tuple[object, Judgement]] = {}
        self.nodes = Nodes(kube)
        self.budgets = ForeignBudgets(kube)
        self._claims: dict[tuple[str, str], _Known] = {}
        self._evidence = EvidenceReader(kube, look_again=look_again, patience=patience)
        self._pods: dict[Key, dict[str, tuple[object, Replica | None]]] = {}
        """What was read of each pod, by its uid, and what it was read from."""
        self._strangers: dict[Key, set[tuple[str, str]]] = {}
        self._found_by_cordons: defaultdict[str, set[str]] = defaultdict(set)
        """Uids of the pods that were on a node when it was cordoned, by its name."""
        self.unlisted: Mapping[str, KubeError] = {}
        """Namespaces ("" for all) of which something could not be listed, and the API server's answer."""

    async def gather(self, key: Key, *, expected: Iterable[Seen] = ()) -> Facts | None:
        """The facts; None when there is nothing to act on: no such deployment, or one that is being deleted.

        Raises `KubeError` where not all facts can be had: a plan without them could do harm.

        An `expected` replica that the cache does not show is read: to a watch by label, one that lost its label is gone.
        """
        await self._look_at_strangers(key)
        resource = self._cache.deployment(key)
        if resource is None or resource["metadata"].get("deletionTimestamp"):
            self._strangers.pop(key, None)
            self._pods.pop(key, None)
            self._evidence.forget(key)
            return None
        unlisted = self.unlisted.get(key[0]) or self.unlisted.get("")
        if unlisted is not None:
            raise unlisted
        await self._look_for(key, expected)
        judged = self._judge(resource, await self.nodes.gpu_nodes())
        claim = await self._claim(key[0], judged.spec)
        children = self._cache.children(key)
        uid = resource["metadata"]["uid"]
        revisions = _revisions(children, deployment=key[1], uid=uid)
        engines = {known.revision: engine(known.resolved.inputs.engine.type) for known in revisions}
        read = await self._evidence.read(key, _our_pods(children, engines, deployment=key[1], uid=uid))
        pods = self._replicas(key, children, uid=uid, engines=engines, read=read)
        replicas = tuple(sorted((self._placed(pod) for pod in pods if pod is not None), key=lambda pod: pod.name))
        return Facts(
            name=key[1],
            namespace=key[0],
            uid=uid,
            generation=resource["metadata"]["generation"],
            spec=judged.spec,
            inputs=judged.inputs,
            findings=(
                *findings_that_count(judged, revisions=revisions, claim=claim, status=resource.get("status")),
                *short_deadline(judged.spec, replicas),
                *overlapping_budgets(
                    judged.spec, replicas, await self._other_budgets(key[0], children), deployment=key[1]
                ),
            ),
            assessment=judged.assessment,
            replicas=replicas,
            revisions=revisions,
            objects={place: obj for place, obj in children.items() if place[0] != POD.kind},
            claim=claim,
            status=resource.get("status") or {},
        )

    def _replicas(
        self,
        key: Key,
        children: Objects,
        *,
        uid: str,
        engines: Mapping[str, Engine],
        read: Mapping[str, Evidence],
    ) -> Iterator[Replica | None]:
        """The pods as replicas. Of many most are as they were at the last look, and so is what was read of them."""
        before, self._pods[key] = self._pods.get(key, {}), {}
        for (kind, _), pod in children.items():
            if kind != POD.kind:
                continue
            metadata = pod["metadata"]
            of = (metadata["resourceVersion"], uid, engines, read.get(metadata["uid"]))
            known, replica = before.get(metadata["uid"], (None, None))
            if known != of:
                replica = read_replica(pod, deployment=key[1], uid=uid, engines=engines, read=read)
            self._pods[key][metadata["uid"]] = (of, replica)
            yield replica

    async def look_at(self, key: Key, place: tuple[str, str]) -> None:
        """Read an object whose name we need and that no watch shows, and keep an eye on it."""
        kind, name = BY_NAME[place[0]], place[1]
        known = self._cache.children(key).get(place)
        live = await self._kube.get(kind, namespace=key[0], name=name)
        if live is not None:
            self._cache.put(kind, live, key=key)
            watched = kind.selector in (live["metadata"].get("labels") or {}) and key_of(kind, live) == key
            strangers = self._strangers.setdefault(key, set())
            (strangers.discard if watched else strangers.add)(place)
            return
        self._strangers.get(key, set()).discard(place)
        if known is not None:
            self._cache.remove(kind, known, certain=True)

    async def read_again(self, key: Key) -> Mapping[str, Any] | None:
        """Read the deployment itself, whose events may be late; None when it is gone."""
        known = self._cache.deployment(key)
        live = await self._kube.get(VLM_DEPLOYMENT, namespace=key[0], name=key[1])
        if live is not None:
            self._cache.put(VLM_DEPLOYMENT, live)
        elif known is not None:
            self._cache.remove(VLM_DEPLOYMENT, known, certain=True)
        return live

    def _judge(self, resource: Mapping[str, Any], nodes: tuple[GpuNode, ...]) -> Judgement:
        metadata = resource["metadata"]
        read = (metadata["generation"], metadata.get("annotations"), nodes)
        known, judged = self._judged.pop(metadata["uid"], (None, None))
        if judged is None or known != read:
            judged = evaluate(resource, catalogue=self._catalogue, nodes=nodes)
        self._judged[metadata["uid"]] = (read, judged)
        if len(self._judged) > JUDGEMENTS_KEPT:
            del self._judged[next(iter(self._judged))]
        return judged

    async def _look_at_strangers(self, key: Key) -> None:
        for place in tuple(self._strangers.get(key, ())):
            await self.look_at(key, place)

    async def _look_for(self, key: Key, expected: Iterable[Seen]) -> None:
        there = self._cache.uids(key)
        for seen in expected:
            if seen.uid not in there:
                await self.look_at(key, (POD.kind, seen.name))

    async def follow_cordons(self) -> set[Key]:
        """Read which nodes are cordoned; returns the deployments for which that is news.

        To be replaced are the replicas that a cordon finds on its node. One that comes there later tolerates it, or the cordon
        has just been lifted: to replace that would bring the next one to the same place.
        """
        changed = await self.nodes.changed_cordons()
        news = set()
        for key in self._cache.deployments() if changed else ():
            for (kind, _), pod in self._cache.children(key).items():
                node = (pod.get("spec") or {}).get("nodeName") if kind == POD.kind else None
                if node in changed:
                    news.add(key)
                    if node in self.nodes.cordoned:
                        self._found_by_cordons[node].add(pod["metadata"]["uid"])
        for node in changed - self.nodes.cordoned:
            self._found_by_cordons.pop(node, None)
        return news

    def _placed(self, replica: Replica) -> Replica:
        found = replica.uid in self._found_by_cordons.get(replica.node, ())
        return replace(replica, cordoned=True) if found else replica

    async def _other_budgets(self, namespace: str, children: Objects) -> tuple[Mapping[str, Any], ...]:
        """Those of others in the namespace; that the deployment's own is among them does not matter."""
        labelled = (obj for (kind, _), obj in children.items() if kind == BUDGET.kind)
        return (*labelled, *await self.budgets.of(namespace))

    async def _claim(self, namespace: str, spec: VLMDeploymentSpec | None) -> Claim | None:
        source = spec.weights.persistent_volume_claim if spec is not None else None
        if source is None:
            return None
        known = self._claims.get((namespace, source.claim_name))
        if known is not None:
            trusted = READY_CLAIM_TRUSTED if known.claim.phase == "Bound" else OTHER_CLAIM_TRUSTED
            if time.monotonic() - known.read_at < trusted:
                return known.claim
        claim = await self._read_claim(namespace, source.claim_name)
        self._claims[namespace, source.claim_name] = _Known(claim=claim, read_at=time.monotonic())
        return claim

    async def _read_claim(self, namespace: str, name: str) -> Claim:
        try:
            live = await self._kube.get(CLAIM, namespace=namespace, name=name)
        except KubeError as error:
            if error.code != 403:
                raise
            return Claim(name=name, exists=False, refused=error.message)
        if live is None:
            return Claim(name=name, exists=False)
        phase = (live.get("status") or {}).get("phase", "Pending")
        modes = tuple(live["spec"].get("accessModes") or ())
        claim = Claim(name=name, exists=True, phase=phase, access_modes=modes)
        storage_class = live["spec"].get("storageClassName")
        return await self._with_class(claim, storage_class) if phase == "Pending" and storage_class else claim

    async def _with_class(self, claim: Claim, storage_class: str) -> Claim:
        try:
            live = await self._kube.get(STORAGE_CLASS, namespace=None, name=storage_class)
        except KubeError as error:
            if error.code != 403:
                raise
            return replace(claim, class_refused=error.message)
        late = live is not None and live.get("volumeBindingMode") == "WaitForFirstConsumer"
        return replace(claim, waits_for_consumer=late)


def _revisions(children: Objects, *, deployment: str, uid: str) -> tuple[StoredRevision, ...]:
    """Our revisions, the oldest first."""
    found = (
        read_revision(obj, deployment=deployment, uid=uid)
        for (kind, _), obj in children.items()
        if kind == CONTROLLER_REVISION.kind
    )
    return tuple(sorted((one for one in found if one is not None), key=lambda one: one.number))


def _our_pods(
    children: Objects, engines: Mapping[str, Engine], *, deployment: str, uid: str
) -> Iterator[tuple[Mapping[str, Any], Engine]]:
    """Our pods, each with the engine that it runs, where that is known."""
    for (kind, _), obj in children.items():
        if kind == POD.kind and ownership(obj, deployment=deployment, uid=uid) is Ownership.OURS:
            revision = revision_of(obj, deployment=deployment)
            if revision in engines:
                yield obj, engines[revision]
