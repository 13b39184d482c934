"""A cluster and an operator in memory, stepped by hand: what the stories and the state machine drive the plan against.

It keeps the rules of Kubernetes that the plan relies on (unique names, preconditions, graceful deletion, pods that end but
stay) and lets a test do to the pods what nodes, users and other controllers do.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from edits import merged
from unit.replicas.examples import NAME, NAMESPACE, NOW, OURS, PLACE, UID, of_length, spec
from vlm_operator.api.names import OPERATOR, SERVING, pod_labels
from vlm_operator.api.rollout import Rollout
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.api.status import VLMDeploymentStatus
from vlm_operator.engines.base import PodInputs
from vlm_operator.replicas.actions import Action, Create, CreatePod, Delete, Outcome, Plan, Repair, SetRole
from vlm_operator.replicas.evaluate import Judgement, evaluate, findings_that_count
from vlm_operator.replicas.facts import Decision, Facts, Memory, Replica, Trouble
from vlm_operator.replicas.kept import own_annotations
from vlm_operator.replicas.plan import carried_out, plan
from vlm_operator.replicas.reading import read_replica, read_revision
from vlm_operator.replicas.recall import recall
from vlm_operator.replicas.refusal import Refusal
from vlm_operator.replicas.size import decide_size
from vlm_operator.sizing.catalogue.loading import builtin
from vlm_operator.status.events import Event, deeds, turns, warnings
from vlm_operator.status.summary import summarise

Object = dict[str, Any]
STAGES = ("pending", "loading", "ready")
TAKEN = Refusal(code=409, message="already exists")
QUOTA = Refusal(code=403, message="exceeded quota: gpus")
NO_ANSWER = Refusal(code=0, message="the API server did not answer")


@dataclass
class Pod:
    """One pod as the cluster knows it."""

    name: str
    uid: str
    labels: dict[str, str]
    image: str
    created_at: float
    version: int = 1
    stage: str = "pending"
    verified: bool = False
    ready_since: float = 0.0
    terminating: bool = False
    ended: bool = False
    annotations: dict[str, str] = field(default_factory=dict)
    restarts: int = 0
    work: int = 0
    """Requests in flight."""
    readable: bool = True
    node: str = "node"
    trouble: Trouble | None = None
    """Instead of what its status says."""
    sick: str = ""
    grace: int = 0
    deleted_at: float = 0.0

    @property
    def live(self) -> bool:
        return not self.terminating and not self.ended

    @property
    def ready(self) -> bool:
        return self.stage == "ready" and not self.ended

    def as_object(self) -> Object:
        metadata: Object = {
            "name": self.name,
            "uid": self.uid,
            "resourceVersion": str(self.version),
            "creationTimestamp": _timestamp(self.created_at),
            "labels": self.labels,
            "annotations": self.annotations,
            "ownerReferences": [OURS],
        }
        if self.terminating:
            metadata["deletionTimestamp"] = _timestamp(self.deleted_at + self.grace)
        pod_spec: Object = {"containers": [{"name": "engine", "image": self.image}]}
        if self.stage != "pending":
            pod_spec["nodeName"] = self.node
        return {"metadata": metadata, "spec": pod_spec, "status": self._status()}

    def _status(self) -> Object:
        if self.ended:
            return {"phase": "Failed", "reason": "Evicted", "message": "the node was low on memory"}
        since = _timestamp(self.ready_since)
        ready = {"type": "Ready", "status": "True" if self.ready else "False", "lastTransitionTime": since}
        engine: Object = {
            "name": "engine",
            "started": self.verified,
            "ready": self.ready,
            "restartCount": self.restarts,
            "state": {"running": {}},
        }
        if self.restarts and not self.ready:
            engine["lastState"] = {"terminated": {"exitCode": 1, "reason": "Error", "message": "it broke"}}
        return {"phase": "Running", "conditions": [ready], "containerStatuses": [engine]}


@dataclass
class Cluster:
    """The cluster, and what the operator remembers of it."""

    wanted: VLMDeploymentSpec
    judged: Judgement | None = None
    """What the resource asks for, where it was written as a whole."""
    now: float = NOW
    generation: int = 1
    pods: dict[str, Pod] = field(default_factory=dict)
    objects: dict[tuple[str, str], Object] = field(default_factory=dict)
    status: Object = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
    unseen: set[str] = field(default_factory=set)
    """Names of pods that the operator's cache does not show yet."""
    events: list[Event] = field(default_factory=list)
    posts: int = 0
    """Pods that the operator tried to create."""
    refuse: Refusal | None = None
    """The answer to every new pod."""
    lose_answers: bool = False
    """Pods are created, but the answer is lost on its way."""
    on_delete: Callable[[Pod], None] = lambda _: None
    on_create: Callable[[], None] = lambda: None
    on_role: Callable[[Pod, str], None] = lambda _, __: None
    full: bool = False
    """No node takes a further pod."""
    cordoned: set[str] = field(default_factory=set)
    decision: Decision | None = None
    """Instead of what the spec says."""
    _serial: int = 0

    # -- the operator --------------------------------------------------------------------------------------------------
    def facts(self) -> Facts:
        seen = (pod for pod in self.pods.values() if pod.name not in self.unseen)
        replicas = (self._replica(pod) for pod in seen)
        found = (read_revision(obj, deployment=NAME, uid=UID) for obj in self._of_kind("ControllerRevision"))
        revisions = tuple(revision for revision in found if revision is not None)
        judged = self.judged or Judgement(spec=self.wanted, inputs=PodInputs.of(self.wanted), findings=())
        return Facts(
            name=NAME,
            namespace=NAMESPACE,
            uid=UID,
            generation=self.generation,
            spec=judged.spec,
            inputs=judged.inputs,
            findings=findings_that_count(judged, revisions=revisions, status=self.status),
            assessment=judged.assessment,
            replicas=tuple(replica for replica in replicas if replica is not None),
            revisions=revisions,
            objects=dict(self.objects),
            memory=self.memory,
            status=self.status,
        )

    def _replica(self, pod: Pod, *, read: bool = False) -> Replica | None:
        """A pod as the operator reads it: one that drains is asked for its work, others when it matters."""
        found = read_replica(pod.as_object(), deployment=NAME, uid=UID)
        if found is None:
            return None
        asked = read or found.drain_started_at is not None
        return replace(
            found,
            cordoned=found.node in self.cordoned,
            routed=found.role == SERVING and found.ready,
            in_flight=pod.work if asked and pod.readable and pod.ready else None,
            read_at=self.now,
            sick=pod.sick,
            trouble=pod.trouble or found.trouble,
            node_is_added=False,
        )

    def look(self) -> Plan:
        """One look of the operator at the deployment, from facts to status."""
        facts = self.facts()
        decision = self.decision or decide_size(facts)
        made = plan(facts, decision, now=self.now)
        if made.undecided:
            read = {r.uid for r in made.undecided}
            known = [
                self._replica(pod, read=pod.uid in read) for pod in self.pods.values() if pod.name not in self.unseen
            ]
            facts = replace(facts, replicas=tuple(replica for replica in known if replica is not None))
            made = plan(facts, decision, now=self.now)
        outcomes = tuple(self._carry_out(made.actions))
        done = carried_out(made, outcomes, now=self.now)
        self.memory = done.memory
        self._publish(facts, decision, done, outcomes)
        return done

    def restart(self) -> None:
        """The operator starts anew and knows only what the API server holds."""
        self.memory = recall(self.status)
        self.unseen.clear()

    def _publish(self, before: Facts, decision: Decision, done: Plan, outcomes: tuple[Outcome, ...]) -> None:
        after = replace(self.facts(), memory=done.memory)
        status = summarise(after, decision, done, now=self.now)
        VLMDeploymentStatus.model_validate(status)
        self.events += deeds(outcomes, known=before.memory, memory=done.memory)
        self.events += turns(before=self.status, after=status)
        self.events += warnings(after.findings, before=self.status, after=status)
        self.status = status

    def _carry_out(self, actions: tuple[Action, ...]) -> Iterator[Outcome]:
        """Surroundings first, then deletions, then new pods, as the runtime does."""
        order = (Create | Repair | SetRole, Delete, CreatePod)
        for kinds in order:
            for action in actions:
                if isinstance(action, kinds):
                    yield Outcome(action=action, refusal=self._do(action))

    def _do(self, action: Action) -> Refusal | None:
        match action:
            case Create():
                return self._create(action.manifest)
            case Repair():
                return self._repair(action)
            case SetRole():
                return self._set_role(action)
            case CreatePod():
                return self._create_pod(action)
            case Delete():
                return self._delete(action)

    # -- the API server ------------------------------------------------------------------------------------------------
    def _of_kind(self, kind: str) -> Iterator[Object]:
        return (obj for (held, _), obj in self.objects.items() if held == kind)

    def _create(self, manifest: Object) -> Refusal | None:
        place = manifest["kind"], manifest["metadata"]["name"]
        if place in self.objects:
            return TAKEN
        self._serial += 1
        held = {"uid": f"object-{self._serial}", "resourceVersion": "1"}
        self.objects[place] = _managed(manifest | {"metadata": manifest["metadata"] | held}, manifest)
        return None

    def _repair(self, action: Repair) -> Refusal | None:
        name = action.patch["metadata"]["name"]
        if action.kind != "Pod":
            held = self.objects[action.kind, name]
            assert held["metadata"]["uid"] == action.patch["metadata"]["uid"]
            self.objects[action.kind, name] = _managed(merged(held, action.patch), action.patch)
            return None
        pod = self.pods.get(name)
        if pod is None or str(pod.version) != action.patch["metadata"]["resourceVersion"]:
            return TAKEN
        pod.labels = pod.labels | action.patch["metadata"]["labels"]
        pod.version += 1
        return None

    def _set_role(self, action: SetRole) -> Refusal | None:
        metadata = action.patch["metadata"]
        pod = self.pods.get(metadata["name"])
        if pod is None or (pod.uid, str(pod.version)) != (metadata["uid"], metadata["resourceVersion"]):
            return TAKEN
        self.on_role(pod, action.role)
        pod.labels = merged(pod.labels, metadata["labels"])
        pod.annotations = merged(pod.annotations, metadata["annotations"])
        pod.version += 1
        return None

    def _create_pod(self, action: CreatePod) -> Refusal | None:
        self.posts += 1
        identity = action.identity
        if identity.name in self.pods:
            self.unseen.discard(identity.name)
            return TAKEN
        if self.refuse is not None:
            return self.refuse
        self._serial += 1
        self.pods[identity.name] = Pod(
            name=identity.name,
            uid=f"pod-{self._serial}",
            labels=pod_labels(NAME, role=identity.role, revision=identity.revision, slot=identity.slot),
            image=action.resolved.image,
            created_at=self.now,
        )
        self.on_create()
        if self.lose_answers:
            self.unseen.add(identity.name)
            return NO_ANSWER
        return None

    def _delete(self, action: Delete) -> Refusal | None:
        if action.kind != "Pod":
            del self.objects[action.kind, action.name]
            return None
        pod = self.pods.get(action.name)
        if pod is None:
            return None
        if (pod.uid, str(pod.version)) != (action.uid, action.resource_version):
            return TAKEN
        self.on_delete(pod)
        self.delete(pod, grace=action.grace_seconds or 0)
        return None

    # -- what happens to pods ------------------------------------------------------------------------------------------
    def delete(self, pod: Pod, *, grace: int = 0) -> None:
        """A deletion by anybody. What has no node or has ended is gone at once, the others take their time."""
        if pod.ended or pod.stage == "pending":
            self.vanish(pod)
        elif not pod.terminating:
            pod.terminating, pod.grace, pod.deleted_at = True, grace, self.now
            pod.version += 1

    def vanish(self, pod: Pod) -> None:
        """It is gone, as after its grace period or a forced deletion."""
        del self.pods[pod.name]
        self.unseen.discard(pod.name)

    def advance(self, pod: Pod) -> None:
        """One stage nearer to serving."""
        if pod.stage == "pending" and self.full:
            pod.trouble = Trouble(
                reason="Unschedulable", message="0/1 nodes are available: 1 Insufficient nvidia.com/gpu"
            )
        elif pod.live and pod.stage != "ready":
            pod.trouble = None
            pod.stage = STAGES[STAGES.index(pod.stage) + 1]
            pod.verified = pod.ready
            pod.ready_since = self.now
            pod.version += 1

    def flap(self, pod: Pod) -> None:
        """A ready pod is not ready any more, though its engine was verified."""
        if pod.ready:
            pod.stage = "loading"
            pod.ready_since = self.now
            pod.version += 1

    def restart_engine(self, pod: Pod) -> None:
        """Its engine crashes and is started again by the kubelet."""
        if pod.stage != "pending" and not pod.ended:
            pod.stage, pod.verified, pod.restarts, pod.work = "loading", False, pod.restarts + 1, 0
            pod.ready_since = self.now
            pod.version += 1

    def end(self, pod: Pod) -> None:
        """It is evicted: it has ended and stays."""
        pod.ended = True
        pod.version += 1

    # -- what happens to the deployment --------------------------------------------------------------------------------
    def edit(
        self, *, replicas: int | None = None, length: int | None = None, rest: VLMDeploymentSpec | None = None
    ) -> None:
        """The user changes the spec; another length of the context is another revision, the rest is not."""
        changes: Object = {} if replicas is None else {"replicas": replicas}
        if rest is not None:
            changes |= {
                name: getattr(rest, name) for name in ("scaling", "warm_pool", "rollout", "pod_disruption_budget")
            }
        if length is not None:
            changes["model"] = of_length(length).model
        self.wanted = self.wanted.model_copy(update=changes)
        self.generation += 1

    def write(self, resource: Object) -> None:
        """The user writes the resource as a whole."""
        self.judged = evaluate(resource, catalogue=builtin())
        self.wanted = self.judged.spec or self.wanted
        self.generation += 1

    def pause(self, paused: bool) -> None:
        """The user stops the rollout, or lets it go on."""
        rollout = self.wanted.rollout or Rollout.defaults()
        self.wanted = self.wanted.model_copy(update={"rollout": rollout.model_copy(update={"paused": paused})})
        self.generation += 1

    # -- what can be asked ---------------------------------------------------------------------------------------------
    def replicas(self) -> list[Replica]:
        found = (read_replica(pod.as_object(), deployment=NAME, uid=UID) for pod in self.pods.values())
        return [replica for replica in found if replica is not None]

    def live(self) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.live]

    def ready(self) -> list[Pod]:
        return [pod for pod in self.live() if pod.ready]

    def condition(self, kind: str) -> Mapping[str, Any]:
        return next(c for c in self.status["conditions"] if c["type"] == kind)

    def settle(self, *, rounds: int) -> int:
        """Let every pod do its best and look again, until nothing is left to do; the number of rounds that it took."""
        for number in range(rounds):
            done = self.look()
            moving = [pod for pod in self.pods.values() if pod.terminating or not pod.ready]
            if not done.actions and not moving and done.next_look is None:
                return number
            for pod in list(self.pods.values()):
                if pod.terminating:
                    self.vanish(pod)
                self.advance(pod)
            self.now = self.now + 1 if moving or done.actions else max(self.now + 1, done.next_look or 0.0)
        raise AssertionError(f"not settled after {rounds} rounds: {self.pods}")


def new_cluster(*, replicas: int, length: int = 1024, **sections: Any) -> Cluster:
    """A cluster in which the user has just created a deployment."""
    return Cluster(wanted=spec(replicas=replicas, **sections).model_copy(update={"model": of_length(length).model}))


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat()


def _managed(obj: Object, written: Object) -> Object:
    """The object with the annotations noted as the operator's that it has just written, or wrote before."""
    metadata = obj["metadata"]
    mine = own_annotations(metadata) | (written["metadata"].get("annotations") or {}).keys()
    fields = {"f:metadata": {"f:annotations": {f"f:{name}": {} for name in mine}}}
    return obj | {"metadata": metadata | {"managedFields": [{"manager": OPERATOR, "fieldsV1": fields}]}}


__all__ = ["NOW", "PLACE", "QUOTA", "Cluster", "Pod", "new_cluster"]
