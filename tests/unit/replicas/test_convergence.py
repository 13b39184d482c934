"""Whatever happens, in whatever order: the plan keeps its promises, and once the world is quiet it gets where it should.

A state machine makes the cluster of `model_cluster` go through creations, crashes, evictions, deletions, edits, refusals,
lost answers and restarts of the operator, and has the operator look in between.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from unit.replicas.examples import spec
from unit.replicas.model_cluster import QUOTA, Pod, new_cluster
from vlm_operator.api.names import DRAINING, SERVING, WARM
from vlm_operator.api.scalars import duration_seconds
from vlm_operator.replicas.plan import plan
from vlm_operator.replicas.settings import Settings
from vlm_operator.replicas.size import decide_size
from vlm_operator.replicas.sizes import Sizes, sizes_of
from vlm_operator.replicas.times import epoch

LENGTHS = (1024, 2048, 4096)
REPLICAS = st.integers(0, 4)
QUIET_ROUNDS = 150
"""A rollout of four replicas takes six rounds for each, and rests in between take one."""
choices = st.integers(0, 7)
shapes = st.sampled_from(
    [
        {},
        {"warmPool": {"size": 1, "mode": "Standby"}},
        {"warmPool": {"size": 2, "mode": "Standby"}, "podDisruptionBudget": "None"},
        {"warmPool": {"size": 1}},
        {"warmPool": {"size": 2, "mode": "InRotation"}, "scaling": {"mode": "Advisory", "maxReplicas": 9}},
        {"rollout": {"maxSurge": 0, "maxUnavailable": 1}},
        {"rollout": {"maxSurge": 2, "maxUnavailable": 1, "autoRollback": False}},
        {"rollout": {"type": "Recreate", "revisionHistoryLimit": 0}},
        {"scaling": {"minReplicas": 2, "maxReplicas": 4}, "warmPool": {"size": 1, "mode": "Standby"}},
        {"scaling": {"maxReplicas": 4}, "warmPool": {"size": 1, "mode": "InRotation"}},
    ]
)
"""What else the spec says."""


class Operations(RuleBasedStateMachine):
    """One deployment, its operator and the world around them."""

    @initialize(replicas=REPLICAS, shape=shapes)
    def create(self, replicas: int, shape: dict[str, Any]) -> None:
        self.cluster = new_cluster(replicas=replicas, **shape)
        self.cluster.on_delete = self.deletion_is_safe
        self.cluster.on_role = self.role_is_safe
        self.cluster.on_create = self.creation_is_within_the_ceiling

    def chosen(self, choice: int) -> Pod:
        pods = sorted(self.cluster.pods.values(), key=lambda pod: pod.name)
        return pods[choice % len(pods)]

    def has_pods(self) -> bool:
        return bool(self.cluster.pods)

    def sizes(self) -> Sizes:
        return sizes_of(decide_size(self.cluster.facts()), Settings.of(self.cluster.wanted))

    # -- the operator --------------------------------------------------------------------------------------------------
    @rule(random=st.randoms(use_true_random=False))
    def look(self, random: Any) -> None:
        facts = self.cluster.facts()
        mixed = facts.__class__(
            **{
                **vars(facts),
                "replicas": tuple(random.sample(facts.replicas, len(facts.replicas))),
                "revisions": tuple(random.sample(facts.revisions, len(facts.revisions))),
            }
        )
        decision, now = decide_size(facts), self.cluster.now
        assert plan(facts, decision, now=now) == plan(mixed, decision, now=now)
        self.cluster.look()

    def keeps_the_promise(self, pod: Pod) -> None:
        """The operator is about to take a pod out of rotation."""
        if pod.live and pod.ready and pod.labels["vlm.dev/role"] == SERVING:
            others = [p for p in self.cluster.ready() if p is not pod and p.labels["vlm.dev/role"] == SERVING]
            chosen = Settings.of(self.cluster.wanted)
            least = 0 if chosen.rollout.type == "Recreate" else self.sizes().needed - chosen.max_unavailable
            assert len(others) >= least

    def role_is_safe(self, pod: Pod, role: str) -> None:
        if role != SERVING:
            self.keeps_the_promise(pod)
        if role == WARM:
            assert not pod.verified or pod.labels["vlm.dev/role"] == DRAINING

    def deletion_is_safe(self, pod: Pod) -> None:
        """The operator is about to delete a pod."""
        self.keeps_the_promise(pod)
        if pod.live and pod.work:
            begun = epoch(pod.annotations["vlm.dev/drain-started-at"])
            assert begun is not None
            assert self.cluster.now >= begun + duration_seconds(self.cluster.wanted.drain.timeout)

    def creation_is_within_the_ceiling(self) -> None:
        if not self.cluster.unseen:
            surge = Settings.of(self.cluster.wanted).max_surge
            assert len(self.cluster.live()) <= self.sizes().ceiling + surge

    @rule()
    def restart(self) -> None:
        self.cluster.restart()

    # -- the user ------------------------------------------------------------------------------------------------------
    @rule(replicas=REPLICAS)
    def resize(self, replicas: int) -> None:
        self.cluster.edit(replicas=replicas)

    @rule(length=st.sampled_from(LENGTHS))
    def change_revision(self, length: int) -> None:
        self.cluster.edit(length=length)

    @rule(shape=shapes)
    def change_the_rest(self, shape: dict[str, Any]) -> None:
        self.cluster.edit(rest=spec(**shape))

    @rule(paused=st.booleans())
    def pause_or_go_on(self, paused: bool) -> None:
        self.cluster.pause(paused)

    # -- the world -----------------------------------------------------------------------------------------------------
    @rule(seconds=st.sampled_from([1, 30, 90, 700, 2000]))
    def time_passes(self, seconds: int) -> None:
        self.cluster.now += seconds

    @rule()
    def everything_gets_on(self) -> None:
        for pod in self.cluster.pods.values():
            self.cluster.advance(pod)

    @precondition(has_pods)
    @rule(choice=choices)
    def one_gets_on(self, choice: int) -> None:
        self.cluster.advance(self.chosen(choice))

    @precondition(has_pods)
    @rule(choice=choices)
    def one_is_not_ready_any_more(self, choice: int) -> None:
        self.cluster.flap(self.chosen(choice))

    @precondition(has_pods)
    @rule(choice=choices)
    def an_engine_crashes(self, choice: int) -> None:
        self.cluster.restart_engine(self.chosen(choice))

    @precondition(has_pods)
    @rule(choice=choices, work=st.integers(0, 3))
    def requests_come_or_end(self, choice: int, work: int) -> None:
        pod = self.chosen(choice)
        if pod.ready and (work < pod.work or pod.labels["vlm.dev/role"] == SERVING):
            pod.work = work

    @precondition(has_pods)
    @rule(choice=choices)
    def an_engine_does_not_tell_its_work(self, choice: int) -> None:
        self.chosen(choice).readable = False

    @precondition(has_pods)
    @rule(choice=choices, sick=st.sampled_from(["", "it does not answer"]))
    def one_does_not_answer_when_it_is_verified_again(self, choice: int, sick: str) -> None:
        self.chosen(choice).sick = sick

    @rule(full=st.booleans())
    def no_node_takes_one_more(self, full: bool) -> None:
        self.cluster.full = full

    @rule(cordoned=st.booleans())
    def a_node_is_cordoned(self, cordoned: bool) -> None:
        self.cluster.cordoned = {"node"} if cordoned else set()

    @precondition(has_pods)
    @rule(choice=choices)
    def one_is_evicted(self, choice: int) -> None:
        self.cluster.end(self.chosen(choice))

    @precondition(has_pods)
    @rule(choice=choices)
    def somebody_deletes_one(self, choice: int) -> None:
        self.cluster.delete(self.chosen(choice))

    @precondition(has_pods)
    @rule(choice=choices)
    def one_is_gone(self, choice: int) -> None:
        self.cluster.vanish(self.chosen(choice))

    @precondition(has_pods)
    @rule(choice=choices, label=st.sampled_from(["vlm.dev/role", "vlm.dev/slot", "vlm.dev/revision"]))
    def somebody_edits_a_label(self, choice: int, label: str) -> None:
        pod = self.chosen(choice)
        pod.labels = pod.labels | {label: "7"}
        pod.version += 1

    @rule(full=st.booleans())
    def the_quota_changes(self, full: bool) -> None:
        self.cluster.refuse = QUOTA if full else None

    @rule(lost=st.booleans())
    def answers_are_lost(self, lost: bool) -> None:
        self.cluster.lose_answers = lost

    @rule()
    def the_cache_catches_up(self) -> None:
        self.cluster.unseen.clear()

    # -- what always holds ---------------------------------------------------------------------------------------------
    @invariant()
    def a_slot_has_one_live_replica(self) -> None:
        held = [(replica.revision, replica.slot) for replica in self.cluster.replicas() if replica.live]
        assert len(held) == len(set(held))

    def teardown(self) -> None:
        """The world becomes quiet, and the operator gets to exactly what is wanted."""
        if not hasattr(self, "cluster"):
            return
        cluster = self.cluster
        cluster.refuse, cluster.lose_answers, cluster.cordoned, cluster.full = None, False, set(), False
        cluster.pause(False)
        cluster.unseen.clear()
        for pod in cluster.pods.values():
            pod.work, pod.readable, pod.sick = 0, True, ""
        cluster.settle(rounds=QUIET_ROUNDS)
        sizes = self.sizes()
        assert len(cluster.pods) == len(cluster.ready()) == sizes.total
        roles = [pod.labels["vlm.dev/role"] for pod in cluster.ready()]
        assert (roles.count(SERVING), roles.count(WARM)) == (sizes.serving, sizes.warm)
        revisions = {pod.labels["vlm.dev/revision"] for pod in cluster.ready()}
        rolled_back = cluster.status.get("rollout", {}).get("phase") == "RolledBack"
        assert len(revisions) <= 1
        assert rolled_back == bool(revisions - {cluster.status["updatedRevision"]})
        assert [cluster.condition(kind)["status"] for kind in ("Accepted", "Available")] == ["True"] * 2
        assert cluster.condition("Ready")["status"] == ("False" if rolled_back else "True")
        assert cluster.condition("Progressing")["reason"] == ("RolledBack" if rolled_back else "Complete")
        events = len(cluster.events)
        assert cluster.look().actions == ()
        assert len(cluster.events) == events


TestOperations = Operations.TestCase
TestOperations.settings = settings(
    max_examples=20_000 if settings.get_current_profile_name() == "explore" else 200, stateful_step_count=50
)
"""Ten thousand steps in every run, a million in `make soak`."""
