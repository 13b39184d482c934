"""The parts of an operator around one deployment, and a small API server in memory."""

from typing import Any, cast

from unit.replicas.examples import NAME, NAMESPACE, NOW, raw_spec
from unit.runtime.small_api import SmallApi
from vlm_operator.engines.question import Verdict
from vlm_operator.engines.work import Work
from vlm_operator.runtime.apply import Applier
from vlm_operator.runtime.cache import Cache
from vlm_operator.runtime.gather import Gatherer
from vlm_operator.runtime.kinds import CLAIM, POD, VLM_DEPLOYMENT, Kind
from vlm_operator.runtime.kube import Kube
from vlm_operator.runtime.observe import Observer
from vlm_operator.runtime.pods import Pods
from vlm_operator.runtime.publish import Publisher
from vlm_operator.runtime.reconcile import Reconciler
from vlm_operator.sizing.catalogue.loading import builtin

KEY = (NAMESPACE, NAME)


class SmallPods:
    """What engines answer, by the addresses of their pods: they are idle and alive unless a test says otherwise."""

    def __init__(self) -> None:
        self.busy: dict[str, int | None] = {}
        self.dead: dict[str, str] = {}
        self.cache_tokens: int | None = None
        self.asked_for_cache = 0
        self.asked: list[str] = []

    async def work(self, address: str, **_: object) -> Work:
        self.asked.append(address)
        in_flight = self.busy.get(address, 0)
        return Work(in_flight=in_flight, running=in_flight, waiting=0, generated_tokens=0, alive=in_flight is not None)

    async def kv_cache_tokens(self, _: str, **__: object) -> int | None:
        self.asked_for_cache += 1
        return self.cache_tokens

    async def verify(self, address: str, **_: object) -> Verdict:
        self.asked.append(address)
        return Verdict(alive=address not in self.dead, message=self.dead.get(address, "answered"))


class House:
    """An operator's parts around one deployment with a bound claim."""

    def __init__(self, **sections: Any) -> None:
        self.cache = Cache()
        self.api = SmallApi(self.cache)
        self.engines = SmallPods()
        self.now = NOW
        self.crowded = False
        self.api.hold(
            CLAIM, {"metadata": {"name": "models", "namespace": NAMESPACE}, "spec": {}, "status": {"phase": "Bound"}}
        )
        self.create(**sections)
        self.start()

    def start(self) -> None:
        """A new operator, whose cache is full."""
        kube = cast("Kube", self.api)
        self.gatherer = Gatherer(kube, self.cache, builtin())
        applier = Applier(kube, self.cache, self.gatherer)
        publisher = Publisher(kube, self.cache, instance="test")
        self.woken: list[tuple[str, str]] = []
        self.observer = Observer(
            kube, cast("Pods", self.engines), self.cache, self.woken.append, clock=lambda: self.now
        )
        self.reconciler = Reconciler(
            self.gatherer,
            self.observer,
            applier,
            publisher,
            crowded=lambda: self.crowded,
            clock=lambda: self.now,
        )

    def create(self, **sections: Any) -> None:
        metadata = {"name": NAME, "namespace": NAMESPACE}
        self.api.hold(VLM_DEPLOYMENT, {"metadata": metadata, "spec": raw_spec(**sections)}, watched=True)

    def edit(self, *, watched: bool = True, **sections: Any) -> None:
        live = self.api.objects["VLMDeployment", NAME]
        metadata = live["metadata"] | {"generation": live["metadata"]["generation"] + 1}
        self.api.hold(VLM_DEPLOYMENT, live | {"metadata": metadata, "spec": raw_spec(**sections)}, watched=watched)

    def edit_child(self, kind: Kind, part: dict[str, Any]) -> None:
        """Somebody changes the spec of what is named as the deployment."""
        live = self.api.objects[kind.kind, NAME]
        self.api.hold(kind, live | {"spec": live["spec"] | part}, watched=True)

    def annotate(self, annotations: dict[str, str]) -> None:
        live = self.api.objects["VLMDeployment", NAME]
        self.api.hold(
            VLM_DEPLOYMENT, live | {"metadata": live["metadata"] | {"annotations": annotations}}, watched=True
        )

    async def look(self) -> float | None:
        return await self.reconciler.reconcile(KEY)

    async def looks(self) -> float | None:
        """Look until there is nothing to do at once."""
        while (later := await self.look()) == 0.0:
            pass
        return later

    def pods(self) -> list[str]:
        return sorted(name for kind, name in self.api.objects if kind == "Pod")

    def uids(self) -> list[str]:
        return [self.api.objects["Pod", name]["metadata"]["uid"] for name in self.pods()]

    def make_ready(self) -> None:
        for name in self.pods():
            pod = self.api.objects["Pod", name]
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2027-01-15T08:00:00Z"}
            engine = {"name": "engine", "started": True, "ready": True, "state": {"running": {}}}
            address = f"198.18.0.{name.rpartition('-')[2]}"
            status = {"phase": "Running", "podIP": address, "conditions": [ready], "containerStatuses": [engine]}
            self.api.hold(POD, pod | {"spec": pod["spec"] | {"nodeName": "n"}, "status": status}, watched=True)

    def fail(self, name: str) -> None:
        """A replica is not ready any more."""
        pod = self.api.objects["Pod", name]
        self.api.hold(POD, pod | {"status": {"phase": "Running"}}, watched=True)

    async def settled(self) -> "House":
        await self.looks()
        self.make_ready()
        await self.looks()
        self.api.calls.clear()
        return self

    def status(self) -> dict[str, Any]:
        return cast("dict[str, Any]", self.api.objects["VLMDeployment", NAME]["status"])

    def condition(self, kind: str) -> str:
        return next(f"{c['status']}/{c['reason']}" for c in self.status()["conditions"] if c["type"] == kind)

    def condition_message(self, kind: str) -> str:
        return next(str(c["message"]) for c in self.status()["conditions"] if c["type"] == kind)

    def reasons(self) -> list[str]:
        return [event["reason"] for event in self.api.events]
