"""Rollouts that are given up, paused or wait for GPUs, as stories on the model cluster."""

import pytest

from unit.replicas.model_cluster import Cluster, Pod, new_cluster
from vlm_operator.engines.failures import Waiting
from vlm_operator.replicas.facts import Trouble


def serving(**sections: object) -> Cluster:
    cluster = new_cluster(replicas=2, **sections)
    cluster.settle(rounds=40)
    return cluster


def step(cluster: Cluster, *, seconds: float = 5, broken: str = "") -> None:
    """A look, and some time in which all pods get on but those of the broken revision."""
    cluster.look()
    for pod in list(cluster.pods.values()):
        if pod.terminating:
            cluster.vanish(pod)
        elif pod.stage == "pending" or pod.labels["vlm.dev/revision"] != broken:
            cluster.advance(pod)
    cluster.now += seconds


def revisions(cluster: Cluster) -> set[str]:
    return {pod.labels["vlm.dev/revision"] for pod in cluster.live()}


def break_revision(cluster: Cluster, length: int = 2048) -> str:
    """An edit whose revision never becomes ready; its name."""
    cluster.edit(length=length)
    cluster.look()
    return str(cluster.status["updatedRevision"])


STANDBY = {"warmPool": {"size": 1, "mode": "Standby"}}
SECTIONS = [{}, STANDBY, {"warmPool": {"size": 1}}, {"rollout": {"maxSurge": 0, "maxUnavailable": 1}}]


@pytest.mark.parametrize("sections", SECTIONS, ids=["surge", "standby", "in rotation", "unavailable"])
def test_a_rollout_that_does_not_get_on_is_rolled_back(sections: dict[str, object]) -> None:
    cluster = serving(**sections)
    good, before = cluster.status["currentRevision"], len(cluster.pods)
    broken = break_revision(cluster)
    for _ in range(400):
        step(cluster, broken=broken)
        assert len(cluster.ready()) >= 1
    assert cluster.status["rollout"]["phase"] == "RolledBack"
    assert (revisions(cluster), len(cluster.ready())) == ({good}, before)
    ready, progressing = cluster.condition("Ready"), cluster.condition("Progressing")
    assert (ready["status"], ready["reason"]) == ("False", "RolledBack")
    assert progressing["reason"] == "RolledBack"
    assert "ProgressDeadlineExceeded: no further replica became ready within 1800 s" in ready["message"]
    assert cluster.condition("Available")["status"] == "True"
    assert (cluster.status["currentRevision"], cluster.status["updatedRevision"]) == (good, broken)
    assert cluster.look().actions == (), "it is not tried again"


def test_what_waiting_cannot_mend_is_rolled_back_at_once() -> None:
    cluster = serving()
    good = cluster.status["currentRevision"]
    broken = break_revision(cluster)
    for _ in range(4):
        step(cluster, broken=broken)
    (pod,) = (pod for pod in cluster.live() if pod.labels["vlm.dev/revision"] == broken)
    pod.trouble = Trouble(reason="BadArgument", message="unrecognized arguments: --nope", waiting=Waiting.IS_VAIN)
    for _ in range(6):
        step(cluster, broken=broken)
    assert revisions(cluster) == {good}
    assert "BadArgument: unrecognized arguments: --nope" in cluster.condition("Ready")["message"]
    reasons = [event.reason for event in cluster.events]
    assert (reasons.count("BadArgument"), reasons.count("RolledBack")) == (1, 1)


def test_another_edit_is_tried_and_the_failed_one_may_be_tried_again_after_it() -> None:
    cluster = serving()
    broken = break_revision(cluster)
    for _ in range(400):
        step(cluster, broken=broken)
    cluster.edit(length=4096)
    cluster.settle(rounds=60)
    assert cluster.condition("Ready")["status"] == "True"
    cluster.edit(length=2048)
    cluster.settle(rounds=60)
    assert cluster.condition("Ready")["status"] == "True"
    assert revisions(cluster) == {broken}


def test_an_edit_back_during_a_rollout_needs_no_rollback() -> None:
    cluster = serving()
    broken = break_revision(cluster)
    for _ in range(5):
        step(cluster, broken=broken)
    cluster.edit(length=1024)
    cluster.settle(rounds=30)
    assert (cluster.condition("Ready")["status"], "rollout" in cluster.status) == ("True", False)


def test_the_first_revision_has_nothing_to_return_to() -> None:
    cluster = new_cluster(replicas=2)
    cluster.look()
    broken = str(cluster.status["updatedRevision"])
    for _ in range(400):
        step(cluster, broken=broken)
    assert revisions(cluster) == {broken}
    ready = cluster.condition("Ready")
    assert ready["reason"] == "ProgressDeadlineExceeded"
    assert "no other revision was ever available, so there is none to return to" in ready["message"]


def test_without_automatic_rollback_it_is_kept_and_that_is_said() -> None:
    cluster = serving(rollout={"autoRollback": False})
    broken = break_revision(cluster)
    for _ in range(400):
        step(cluster, broken=broken)
    assert broken in revisions(cluster)
    assert "spec.rollout.autoRollback is off" in cluster.condition("Ready")["message"]


def test_time_without_a_gpu_does_not_count() -> None:
    cluster = serving()
    broken = break_revision(cluster)
    cluster.full = True
    for _ in range(1000):
        step(cluster, broken=broken)
    assert cluster.status["rollout"]["phase"] == "WaitingForGPU"
    assert cluster.condition("Available")["status"] == "True"
    cluster.full = False
    cluster.settle(rounds=60)
    assert (cluster.condition("Ready")["status"], revisions(cluster)) == ("True", {broken})


def test_a_replica_more_for_which_there_is_no_gpu_is_withdrawn_with_advice_and_tried_again() -> None:
    cluster = serving()
    broken = break_revision(cluster)
    cluster.full = True
    told = set()
    for _ in range(300):
        step(cluster, broken=broken)
        told.add(cluster.condition("Ready")["message"])
    posts = cluster.posts
    assert 3 <= posts <= 8, "it is tried again, but seldom"
    assert any("spec.rollout.maxUnavailable: 1" in message for message in told)
    assert len(cluster.ready()) == 2


def test_a_paused_rollout_keeps_every_replica_on_its_revision() -> None:
    cluster = serving()
    cluster.edit(length=2048)
    for _ in range(7):
        step(cluster)
    assert len(revisions(cluster)) == 2
    before = {pod.name: pod.labels["vlm.dev/revision"] for pod in cluster.live()}
    good = cluster.status["currentRevision"]
    cluster.pause(True)
    for _ in range(500):
        step(cluster)
    assert {pod.labels["vlm.dev/revision"] for pod in cluster.live()} <= set(before.values())
    assert (cluster.condition("Progressing")["reason"], cluster.status["rollout"]["phase"]) == ("Paused", "Paused")
    cluster.edit(replicas=3)
    for _ in range(5):
        step(cluster)
    assert len(cluster.ready()) == 3
    assert [pod.labels["vlm.dev/revision"] for pod in cluster.live()].count(good) >= 2, "what is added is not new"
    cluster.pause(False)
    cluster.settle(rounds=80)
    assert (cluster.condition("Ready")["status"], len(revisions(cluster))) == ("True", 1)


def test_no_history_keeps_the_revision_to_return_to_while_it_may_be_needed() -> None:
    cluster = serving(rollout={"revisionHistoryLimit": 0, "type": "Recreate"})
    good = cluster.status["currentRevision"]
    broken = break_revision(cluster)
    for _ in range(400):
        step(cluster, broken=broken)
    assert (revisions(cluster), cluster.status["rollout"]["phase"]) == ({good}, "RolledBack")
    cluster.edit(length=4096)
    cluster.settle(rounds=60)
    assert len([kind for kind, _ in cluster.objects if kind == "ControllerRevision"]) == 1


def crashed(cluster: Cluster, pod: Pod, times: int) -> None:
    for _ in range(times):
        cluster.restart_engine(pod)
        cluster.look()
        cluster.now += 20


def test_an_engine_that_crashes_three_times_without_being_ready_is_given_up() -> None:
    cluster = serving()
    pod = cluster.live()[0]
    crashed(cluster, pod, 2)
    assert not pod.terminating
    crashed(cluster, pod, 1)
    assert pod.terminating
    assert cluster.status["failures"][0]["reason"] == "EngineExited"


def test_crashes_of_long_ago_do_not_count() -> None:
    cluster = serving()
    pod = cluster.live()[0]
    for _ in range(5):
        crashed(cluster, pod, 2)
        cluster.settle(rounds=20)
    assert not pod.terminating
    assert pod.restarts == 10
