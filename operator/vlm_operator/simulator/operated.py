"""A VLMDeployment under the operator: its own decide() and plan(), on simulated replicas.

The scaling sees what scrapes brought, never the replicas themselves. The plan is made when a size, a replica or a timer asks
for it, and what it says is done at once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from vlm_operator.api.names import DRAINING, SERVING, WARM, pod_labels
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.engines.base import PodInputs
from vlm_operator.replicas.actions import Action, Create, CreatePod, Delete, Repair, SetRole
from vlm_operator.replicas.facts import Decision, Facts, Replica
from vlm_operator.replicas.ownership import Ownership
from vlm_operator.replicas.plan import plan
from vlm_operator.replicas.reading import read_revision
from vlm_operator.scaling import signals
from vlm_operator.scaling.decide import decide
from vlm_operator.scaling.policy import Policy
from vlm_operator.scaling.signals import Gauge, Phase, Sample, Signals
from vlm_operator.scaling.state import NEW
from vlm_operator.simulator.duty import DutyCycles
from vlm_operator.simulator.fleet import Fleet
from vlm_operator.simulator.scraping import Scraper
from vlm_operator.simulator.view import Life, Seen

NAME, NAMESPACE, UID = "simulated", "default", "simulated"
BEGINNING = 1_800_230_400.0
"""When a trace begins, in seconds since the epoch: a Monday, 00:00 UTC."""
PHASES = {SERVING: Phase.READY, WARM: Phase.STANDBY, DRAINING: Phase.DRAINING}
"""Of replicas that are ready, by role."""
DRAINS_SECONDS = 60.0
"""After which a plan is made though all that drain are busy: their time may be over."""
MOST_PLANS = 20
"""Plans in a row at one moment, each after the actions of the one before."""


class Operated:
    """The replicas of a VLMDeployment."""

    def __init__(self, fleet: Fleet, scraper: Scraper, spec: VLMDeploymentSpec, policy: Policy, *, start: int) -> None:
        self._fleet, self._scraper, self._policy = fleet, scraper, policy
        self._facts = Facts(
            name=NAME,
            namespace=NAMESPACE,
            uid=UID,
            generation=1,
            # Nobody evicts replicas here: a budget would only cost time.
            spec=spec.model_copy(update={"pod_disruption_budget": "None"}),
            inputs=PodInputs.of(spec),
            findings=(),
        )
        self._objects: dict[tuple[str, str], dict[str, Any]] = {}
        self._pods: dict[int, Replica] = {}
        """By number."""
        self._read: dict[int, signals.Replica] = {}
        """What the scaling knows of them."""
        self._duty = DutyCycles()
        self._seen: tuple[signals.Replica, ...] | None = None
        """The same, as it was given to the scaling last; None: it has changed since."""
        self._counts: list[int] = []
        """Replicas by what they do, at the last look."""
        self._state, self._size = NEW, start
        self._taken_at = scraper.taken_at
        self._in_force = Decision(replicas=start, reason="Start", message="the size to start with")
        self._asked: Decision | None = None
        """What the last plan was made for."""
        self._look_at: float | None = None
        self._drains_at = 0.0
        self._plan(loaded=True)

    @property
    def period_seconds(self) -> float:
        """Time between two decisions."""
        return self._policy.tick_seconds

    @property
    def standby(self) -> int:
        """Replicas that are meant to stand by."""
        return sum(pod.role == WARM for pod in self._pods.values())

    def act(self) -> int:
        """Decide on the size, and do what the plan for it says; gives the size."""
        changed = self._follow()
        self._size = self._decide()
        if changed or self._in_force != self._asked or self._due():
            self._plan()
        return self._size

    # -- the decision --------------------------------------------------------------------------------------------------
    def _decide(self) -> int:
        if self._scraper.taken_at != self._taken_at:
            self._taken_at = self._scraper.taken_at
            self._take_in()
        if self._seen is None:
            self._seen = tuple(self._read.values())
        # Advisory or not: a replay shows what the decision would do.
        at = Signals(size=self._size, replicas=self._seen, held=float(self._fleet.held))
        decision, self._state = decide(self._policy, self._state, at, self._now)
        if decision.replicas != self._in_force.replicas:
            message = decision.message
            self._in_force = Decision(replicas=decision.replicas, reason=decision.reason, message=message)
        return decision.replicas

    def _take_in(self) -> None:
        time, self._seen = BEGINNING + self._taken_at, None
        shares = self._duty.shares(self._scraper.taken, time)
        for seen in self._scraper.taken:
            known = self._read.get(seen.number)
            if known is not None:
                self._read[seen.number] = signals.Replica(
                    uid=known.uid,
                    phase=known.phase,
                    created_at=known.created_at,
                    ready_at=known.ready_at,
                    sample=_sample(seen, time),
                    gpu=Gauge(time=time, value=shares.get(seen.number)),
                )

    @property
    def _now(self) -> float:
        return BEGINNING + self._fleet.now

    # -- the plan ------------------------------------------------------------------------------------------------------
    def _due(self) -> bool:
        """Whether a timer of the plan is over; those of drains matter once nothing is in flight, or now and then."""
        if self._look_at is None or self._now < self._look_at:
            return False
        draining = [pod for pod in self._pods.values() if pod.drain_started_at is not None]
        return not draining or self._now >= self._drains_at or any(pod.in_flight == 0 for pod in draining)

    def _follow(self) -> bool:
        """Take in what became of the replicas; gives whether any of them changed in a way that a plan may turn on."""
        counts = self._fleet.counts()
        if counts == self._counts and not counts[Life.DRAINING]:
            return False
        self._counts = counts
        lives = {seen.number: seen for seen in self._fleet.seen()}
        gone = [number for number in self._pods if number not in lives]
        for number in gone:
            self._forget(number)
        changed = bool(gone)
        for number, pod in self._pods.items():
            seen = lives[number]
            if not pod.ready and seen.life != Life.STARTING:
                ready_at = BEGINNING + seen.ready_at
                self._keep(number, replace(pod, started=True, ready=True, ready_since=ready_at, routed=True))
                changed = True
            elif pod.drain_started_at is not None:
                self._pods[number] = replace(pod, in_flight=seen.in_flight, read_at=self._now)
        return changed

    def _plan(self, *, loaded: bool = False) -> None:
        """Plans, until one asks for nothing."""
        for _ in range(MOST_PLANS):
            made = plan(self._known(), self._in_force, now=self._now)
            if made.undecided:
                busy = {seen.number: seen.in_flight for seen in self._fleet.seen()}
                for number, pod in self._pods.items():
                    self._pods[number] = replace(pod, in_flight=busy[number], read_at=self._now)
                made = plan(self._known(), self._in_force, now=self._now)
            self._facts = replace(self._facts, memory=made.memory)
            if not made.actions:
                break
            for action in made.actions:
                self._do(action, loaded=loaded)
        else:
            message = f"the plan does not come to rest: {'; '.join(action.sentence for action in made.actions)}"
            raise RuntimeError(message)
        self._asked, self._look_at = self._in_force, made.next_look
        self._counts, self._drains_at = self._fleet.counts(), self._now + DRAINS_SECONDS

    def _known(self) -> Facts:
        return replace(
            self._facts,
            replicas=tuple(self._pods.values()),
            revisions=tuple(self._revisions()),
            objects=self._objects,
        )

    def _revisions(self) -> Iterator[Any]:
        for (kind, _), obj in self._objects.items():
            if kind == "ControllerRevision":
                revision = read_revision(obj, deployment=NAME, uid=UID)
                if revision is not None:
                    yield revision

    # -- what the plan says --------------------------------------------------------------------------------------------
    def _do(self, action: Action, *, loaded: bool) -> None:
        match action:
            case Create():
                metadata = action.manifest["metadata"]
                held = metadata | {"uid": metadata["name"], "resourceVersion": "1"}
                self._objects[action.manifest["kind"], metadata["name"]] = action.manifest | {"metadata": held}
            case Repair():
                self._repair(action.kind, action.patch["metadata"])
            case CreatePod():
                self._create(action, loaded=loaded)
            case SetRole():
                self._set_role(int(action.patch["metadata"]["uid"]), action.role)
            case Delete():
                number = int(action.uid)
                self._fleet.end(number)
                self._forget(number)

    def _repair(self, kind: str, metadata: Mapping[str, Any]) -> None:
        """Annotations are all that ever changes of objects that nobody else touches."""
        obj = self._objects[kind, metadata["name"]]
        annotations = (obj["metadata"].get("annotations") or {}) | (metadata.get("annotations") or {})
        self._objects[kind, metadata["name"]] = obj | {"metadata": obj["metadata"] | {"annotations": annotations}}

    def _create(self, action: CreatePod, *, loaded: bool) -> None:
        identity = action.identity
        number = self._fleet.start(standby=identity.role == WARM, loaded=loaded)
        pod = Replica(
            name=identity.name,
            uid=str(number),
            resource_version="1",
            slot=identity.slot,
            revision=identity.revision,
            role=identity.role,
            ownership=Ownership.OURS,
            created_at=self._now,
            scheduled=True,
            started=False,
            ready=False,
            ready_since=None,
            terminating=False,
            ended=False,
            labels=pod_labels(NAME, role=identity.role, revision=identity.revision, slot=identity.slot),
            image=action.resolved.image,
            trouble=None,
            node="node",
        )
        self._keep(number, pod)

    def _set_role(self, number: int, role: str) -> None:
        pod = self._pods[number]
        labels = {**pod.labels, **pod_labels(NAME, role=role, revision=pod.revision, slot=pod.slot)}
        begun = self._now if role == DRAINING else None
        self._keep(number, replace(pod, role=role, labels=labels, drain_started_at=begun, routed=role == SERVING))
        if role == SERVING:
            self._fleet.serve(number)
        elif role == WARM:
            self._fleet.stand_by(number)
        elif pod.ready:
            self._fleet.drain(number, then_end=False)

    def _keep(self, number: int, pod: Replica) -> None:
        self._pods[number], self._seen = pod, None
        before = self._read.get(number)
        self._read[number] = signals.Replica(
            uid=pod.uid,
            phase=PHASES[pod.role] if pod.ready else Phase.STARTING,
            created_at=pod.created_at,
            ready_at=pod.ready_since,
            sample=before.sample if before is not None else None,
            gpu=before.gpu if before is not None else None,
        )

    def _forget(self, number: int) -> None:
        del self._pods[number], self._read[number]
        self._seen = None


def _sample(seen: Seen, time: float) -> Sample:
    return Sample(
        time=time,
        running=seen.running,
        waiting=seen.waiting,
        in_flight=seen.in_flight,
        kv_usage=seen.kv_usage,
        prompt_tokens=seen.prompt_tokens,
        first_tokens=seen.first_tokens,
        finished=seen.finished,
        images=seen.images,
    )
