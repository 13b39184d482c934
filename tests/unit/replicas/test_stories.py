"""Whole stories of one deployment, told step by step against a cluster in memory."""

import pytest

from unit.replicas.model_cluster import QUOTA, Cluster, new_cluster
from vlm_operator.replicas.plan import plan
from vlm_operator.replicas.size import decide_size


def serving(*, replicas: int) -> Cluster:
    """A deployment whose replicas all serve, told of nothing yet."""
    cluster = new_cluster(replicas=replicas)
    cluster.settle(rounds=5)
    cluster.events.clear()
    return cluster


def reasons(cluster: Cluster) -> list[str]:
    return [event.reason for event in cluster.events]


def test_a_deployment_comes_up() -> None:
    cluster = new_cluster(replicas=2)
    cluster.look()
    assert sorted(kind for kind, _ in cluster.objects) == [
        "ConfigMap",
        "ControllerRevision",
        "PodDisruptionBudget",
        "Service",
    ]
    assert [pod.name[-2:] for pod in cluster.live()] == ["-0", "-1"]
    assert cluster.condition("Ready")["reason"] == "Loading"

    for pod in cluster.live():
        cluster.advance(pod)
    cluster.look()
    assert cluster.condition("Available")["status"] == "False"

    for pod in cluster.live():
        cluster.advance(pod)
    cluster.look()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.condition("Progressing")["reason"] == "Complete"
    assert reasons(cluster) == ["ReplicaCreated", "Ready"]


def test_when_all_is_well_nothing_is_done_and_nothing_is_said() -> None:
    cluster = serving(replicas=3)
    before = cluster.status
    for _ in range(5):
        cluster.now += 600
        assert cluster.look().actions == ()
    assert cluster.status == before
    assert cluster.events == []


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_a_rollout_never_serves_with_fewer_and_never_takes_more_than_one_gpu_beside(replicas: int) -> None:
    cluster = serving(replicas=replicas)
    cluster.edit(length=2048)
    for _ in range(12 * replicas):
        cluster.look()
        cluster.now += 2
        assert len(cluster.ready()) >= replicas
        assert len(cluster.live()) <= replicas + 1
        for pod in list(cluster.pods.values()):
            if pod.terminating:
                cluster.vanish(pod)
            cluster.advance(pod)
    assert cluster.condition("Ready")["status"] == "True"
    assert len({pod.labels["vlm.dev/revision"] for pod in cluster.live()}) == 1
    assert cluster.status["currentRevision"] == cluster.status["updatedRevision"]


def test_a_revision_that_never_starts_leaves_the_old_one_serving() -> None:
    cluster = serving(replicas=2)
    before = cluster.status["currentRevision"]
    cluster.edit(length=2048)
    for _ in range(20):
        cluster.look()
        cluster.now += 60
    assert len(cluster.ready()) == 2
    assert len(cluster.live()) == 3
    assert cluster.status["currentRevision"] == before
    assert cluster.condition("Available")["status"] == "True"
    assert cluster.condition("Ready")["reason"] == "RollingOut"


def test_a_mistake_taken_back_costs_nothing() -> None:
    cluster = serving(replicas=2)
    names = set(cluster.pods)
    cluster.edit(length=2048)
    cluster.look()
    cluster.edit(length=1024)
    cluster.settle(rounds=5)
    assert set(cluster.pods) == names
    numbers = {
        obj["metadata"]["name"]: obj["revision"]
        for (kind, _), obj in cluster.objects.items()
        if kind == "ControllerRevision"
    }
    assert sorted(numbers.values()) == [2, 3], "the revision that is wanted again is the newest"


def test_a_rollout_ends_though_an_old_replica_hangs() -> None:
    cluster = serving(replicas=2)
    cluster.edit(length=2048)
    hangs = cluster.live()[0]
    cluster.flap(hangs)
    for _ in range(20):
        cluster.look()
        cluster.now += 60
        for pod in list(cluster.pods.values()):
            if pod.terminating:
                cluster.vanish(pod)
            elif pod is not hangs:
                cluster.advance(pod)
    assert cluster.condition("Ready")["status"] == "True"
    assert hangs.name not in cluster.pods


TROUBLEMAKERS = {
    "a node evicts them": lambda cluster, pod: cluster.end(pod),
    "a job force-deletes them": lambda cluster, pod: cluster.vanish(pod),
    "a job deletes them, and they take their time": lambda cluster, pod: cluster.delete(pod),
}


@pytest.mark.parametrize("case", TROUBLEMAKERS)
@pytest.mark.parametrize("replicas", [1, 3])
def test_replicas_that_others_keep_removing_do_not_make_a_loop(case: str, replicas: int) -> None:
    """For 20 minutes every replica is removed five seconds after it got its node."""
    cluster = new_cluster(replicas=replicas)
    for _ in range(240):
        cluster.look()
        for pod in list(cluster.pods.values()):
            if pod.terminating and cluster.now - pod.created_at >= 45:
                cluster.vanish(pod)
            elif pod.live and pod.stage == "loading":
                TROUBLEMAKERS[case](cluster, pod)
            else:
                cluster.advance(pod)
        cluster.now += 5
    assert 6 * replicas <= cluster.posts <= 10 * replicas, cluster.posts
    assert max(failure["count"] for failure in cluster.status["failures"]) >= 6


def test_a_new_revision_that_is_evicted_again_and_again_rests_while_the_old_one_serves() -> None:
    cluster = serving(replicas=2)
    cluster.now += 3600
    cluster.edit(length=2048)
    posts = cluster.posts
    for _ in range(240):
        cluster.look()
        for pod in list(cluster.pods.values()):
            if not pod.ready:
                cluster.end(pod)
        cluster.now += 5
    assert 6 <= cluster.posts - posts <= 10
    assert len(cluster.ready()) == 2
    assert cluster.condition("Available")["status"] == "True"


def test_a_rest_survives_a_restart_of_the_operator() -> None:
    cluster = new_cluster(replicas=1)
    while cluster.posts < 4:
        cluster.look()
        for pod in cluster.live():
            cluster.end(pod)
        cluster.now += 1
    cluster.look()
    assert cluster.pods == {}
    before = cluster.status
    cluster.restart()
    cluster.now += 1
    cluster.look()
    assert (cluster.status["failures"], cluster.pods) == (before["failures"], {})
    cluster.now += 60
    cluster.look()
    assert len(cluster.pods) == 1


def test_while_a_quota_is_full_one_replica_in_a_minute_asks_whether_it_still_is() -> None:
    cluster = new_cluster(replicas=50)
    cluster.refuse = QUOTA
    cluster.look()
    assert cluster.posts == 50
    for _ in range(600):
        cluster.look()
        cluster.now += 1
    assert 50 + 10 <= cluster.posts <= 50 + 16
    assert cluster.condition("Progressing")["reason"] == "AdmissionRefused"
    assert reasons(cluster).count("AdmissionRefused") <= 52

    cluster.refuse = None
    cluster.settle(rounds=80)
    assert len(cluster.ready()) == 50
    assert "failures" not in cluster.status


def test_a_lost_answer_does_not_make_a_second_pod() -> None:
    cluster = new_cluster(replicas=2)
    cluster.lose_answers = True
    cluster.look()
    cluster.lose_answers = False
    names = set(cluster.pods)
    cluster.look()
    assert set(cluster.pods) == names
    cluster.settle(rounds=5)
    assert set(cluster.pods) == names


def test_an_eviction_is_told_once_and_mended() -> None:
    cluster = serving(replicas=2)
    cluster.end(cluster.live()[0])
    cluster.look()
    assert sorted(reasons(cluster)) == ["Evicted", "Loading", "ReplicaCreated", "ReplicaRemoved"]
    cluster.settle(rounds=5)
    assert reasons(cluster)[4:] == ["Ready"]


def test_a_plan_of_equal_facts_is_equal() -> None:
    cluster = serving(replicas=3)
    cluster.edit(length=2048)
    facts = cluster.facts()
    assert plan(facts, decide_size(facts), now=cluster.now) == plan(
        cluster.facts(), decide_size(facts), now=cluster.now
    )


def test_a_replica_whose_admission_was_answered_too_late_holds_up_no_other() -> None:
    cluster = new_cluster(replicas=2)
    cluster.refuse = QUOTA
    cluster.look()
    cluster.refuse, cluster.lose_answers = None, True
    cluster.now += 30
    cluster.look()
    cluster.lose_answers = False
    cluster.unseen.clear()
    cluster.settle(rounds=40)
    assert len(cluster.ready()) == 2
