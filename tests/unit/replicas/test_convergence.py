"""Whatever happens, in whatever order: the plan keeps its promises, and once the world is quiet it gets where it should.

A state machine makes the cluster of `model_cluster` go through creations, crashes, evictions, deletions, edits, refusals,
lost answers and restarts of the operator, and has the operator look in between.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from unit.replicas.model_cluster import QUOTA, Pod, new_cluster
from vlm_operator.replicas.plan import plan
from vlm_operator.replicas.rollout import SURGE
from vlm_operator.replicas.size import decide_size

LENGTHS = (1024, 2048, 4096)
SIZES = st.integers(0, 4)
QUIET_ROUNDS = 40
"""A rollout of four replicas takes two rounds for each, and rests in between take one."""
choices = st.integers(0, 7)


class Operations(RuleBasedStateMachine):
    """One deployment, its operator and the world around them."""

    @initialize(replicas=SIZES)
    def create(self, replicas: int) -> None:
        self.cluster = new_cluster(replicas=replicas)
        self.cluster.on_delete = self.deletion_is_safe

    def chosen(self, choice: int) -> Pod:
        pods = sorted(self.cluster.pods.values(), key=lambda pod: pod.name)
        return pods[choice % len(pods)]

    def has_pods(self) -> bool:
        return bool(self.cluster.pods)

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
        if not self.cluster.unseen:
            wanted = self.cluster.wanted.replicas
            assert len(self.cluster.live()) <= wanted + (SURGE if wanted else 0)

    def deletion_is_safe(self, pod: Pod) -> None:
        """The operator is about to delete a pod."""
        if pod.live and pod.ready:
            others = [other for other in self.cluster.ready() if other is not pod]
            assert len(others) >= self.cluster.wanted.replicas

    @rule()
    def restart(self) -> None:
        self.cluster.restart()

    # -- the user ------------------------------------------------------------------------------------------------------
    @rule(replicas=SIZES)
    def resize(self, replicas: int) -> None:
        self.cluster.edit(replicas=replicas)

    @rule(length=st.sampled_from(LENGTHS))
    def change_revision(self, length: int) -> None:
        self.cluster.edit(length=length)

    # -- the world -----------------------------------------------------------------------------------------------------
    @rule(seconds=st.sampled_from([1, 30, 700]))
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
        cluster.refuse, cluster.lose_answers = None, False
        cluster.unseen.clear()
        cluster.settle(rounds=QUIET_ROUNDS)
        assert len(cluster.pods) == len(cluster.ready()) == cluster.wanted.replicas
        assert {pod.labels["vlm.dev/revision"] for pod in cluster.ready()} <= {cluster.status["updatedRevision"]}
        assert {pod.labels["vlm.dev/role"] for pod in cluster.ready()} <= {"serving"}
        assert [cluster.condition(kind)["status"] for kind in ("Accepted", "Available", "Ready")] == ["True"] * 3
        assert cluster.condition("Progressing")["reason"] == "Complete"
        events = len(cluster.events)
        assert cluster.look().actions == ()
        assert len(cluster.events) == events


TestOperations = Operations.TestCase
TestOperations.settings = settings(max_examples=50, stateful_step_count=40)
