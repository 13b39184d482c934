"""Rollouts that are given up, paused or wait for GPUs, as stories on the model cluster."""

import pytest

from unit.replicas.examples import NOW, facts, pending, stored
from unit.replicas.model_cluster import QUOTA, Cluster, Pod, new_cluster
from vlm_operator.engines.failures import Waiting
from vlm_operator.replicas.facts import Claim, Trouble
from vlm_operator.replicas.plan import plan
from vlm_operator.replicas.size import decide_size


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


def pass_time(cluster: Cluster, looks: int, broken: str) -> None:
    """Many looks, while a revision never becomes ready."""
    for _ in range(looks):
        step(cluster, broken=broken)


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
    pass_time(cluster, 400, broken)
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
    pass_time(cluster, 400, broken)
    assert revisions(cluster) == {broken}
    ready = cluster.condition("Ready")
    assert ready["reason"] == "ProgressDeadlineExceeded"
    assert "no other revision was ever available, so there is none to return to" in ready["message"]


def test_without_automatic_rollback_it_is_kept_and_that_is_said() -> None:
    cluster = serving(rollout={"autoRollback": False})
    broken = break_revision(cluster)
    pass_time(cluster, 400, broken)
    assert broken in revisions(cluster)
    assert "spec.rollout.autoRollback is off" in cluster.condition("Ready")["message"]


def test_time_without_a_gpu_does_not_count() -> None:
    cluster = serving()
    broken = break_revision(cluster)
    cluster.full = True
    pass_time(cluster, 1000, broken)
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
    pass_time(cluster, 400, broken)
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


def test_cordoned_nodes_do_not_take_all_replicas_at_once() -> None:
    cluster = serving(rollout={"type": "Recreate"}, warmPool={"size": 1})
    cluster.cordoned, cluster.full = {"node"}, True
    for _ in range(20):
        step(cluster)
    assert len([pod for pod in cluster.ready() if pod.labels["vlm.dev/role"] == "serving"]) >= 2


@pytest.mark.parametrize("sections", SECTIONS, ids=["surge", "standby", "in rotation", "unavailable"])
def test_a_rollout_away_from_engines_that_hang_gets_on(sections: dict[str, object]) -> None:
    cluster = serving(**sections)
    hanging = list(cluster.pods.values())
    for pod in hanging:
        cluster.flap(pod)
    cluster.edit(length=2048)
    for _ in range(400):
        cluster.look()
        for pod in list(cluster.pods.values()):
            if pod.terminating:
                cluster.vanish(pod)
            elif pod not in hanging:
                cluster.advance(pod)
        cluster.now += 5
    assert cluster.condition("Ready")["status"] == "True"
    assert revisions(cluster) == {cluster.status["updatedRevision"]}


def test_what_never_ran_is_not_the_current_revision() -> None:
    cluster = serving()
    good = cluster.status["currentRevision"]
    cluster.edit(replicas=0)
    cluster.settle(rounds=40)
    cluster.edit(length=2048)
    cluster.settle(rounds=20)
    assert cluster.status["currentRevision"] == good
    cluster.edit(replicas=2)
    cluster.look()
    broken = str(cluster.status["updatedRevision"])
    pass_time(cluster, 500, broken)
    assert (cluster.status["rollout"]["phase"], revisions(cluster)) == ("RolledBack", {good})


def test_one_replica_alone_tries_what_waiting_cannot_mend() -> None:
    cluster = new_cluster(replicas=4, rollout={"autoRollback": False})
    most = 0
    for round_ in range(300):
        cluster.look()
        for pod in list(cluster.pods.values()):
            if pod.terminating:
                cluster.vanish(pod)
            elif pod.stage == "pending":
                cluster.advance(pod)
            elif cluster.now - pod.created_at > 60:
                pod.trouble = Trouble(reason="BadArgument", message="no", waiting=Waiting.IS_VAIN)
        if round_ > 40:
            most = max(most, len(cluster.live()))
        cluster.now += 10
    assert most == 1


def test_an_operator_that_was_away_does_not_hold_the_time_against_a_rollout() -> None:
    cluster = serving()
    cluster.edit(length=2048)
    for _ in range(5):
        step(cluster)
    cluster.now += 2100
    cluster.restart()
    cluster.settle(rounds=60)
    assert cluster.condition("Ready")["status"] == "True"


def test_the_time_in_which_old_replicas_finish_their_requests_does_not_count() -> None:
    cluster = serving(drain={"timeout": "40m"}, warmPool={"size": 1})
    cluster.edit(length=2048)
    for pod in cluster.pods.values():
        pod.work = 1
    for _ in range(190):
        step(cluster, seconds=10)
    assert cluster.status["rollout"]["phase"] == "RollingOut"


def test_a_quota_that_is_used_up_is_no_failure_of_the_revision() -> None:
    cluster = serving()
    broken = break_revision(cluster)
    cluster.refuse = QUOTA
    for _ in range(500):
        step(cluster)
    cluster.refuse = None
    cluster.settle(rounds=60)
    assert (cluster.condition("Ready")["status"], revisions(cluster)) == ("True", {broken})


def test_while_a_replica_more_rests_for_lack_of_a_gpu_none_is_tried() -> None:
    cluster = serving()
    break_revision(cluster)
    cluster.full = True
    posts = []
    for _ in range(240):
        step(cluster)
        posts.append(cluster.posts)
    assert len(set(posts)) <= 4, "five minutes in which it waits, and five in which it rests"
    assert "WaitingForGPU" in {event.reason for event in cluster.events}
    cluster.full = False
    cluster.settle(rounds=120)
    assert cluster.condition("Ready")["status"] == "True"


@pytest.mark.parametrize(("replicas", "hang"), [(1, 1), (3, 2)])
def test_replicas_that_hang_are_replaced_one_after_the_other_though_most_do(replicas: int, hang: int) -> None:
    cluster = new_cluster(replicas=replicas)
    cluster.settle(rounds=40)
    hanging = cluster.live()[:hang]
    for pod in hanging:
        cluster.flap(pod)
    cluster.look()
    assert f"{hang} not ready any more" in cluster.condition("Progressing")["message"]
    for _ in range(600):
        cluster.look()
        assert len([pod for pod in hanging if pod.terminating and cluster.pods.get(pod.name) is pod]) <= 1
        for pod in list(cluster.pods.values()):
            if pod.terminating:
                cluster.vanish(pod)
            elif pod not in hanging:
                cluster.advance(pod)
        cluster.now += 5
    assert len(cluster.ready()) == replicas


def test_a_lone_replica_that_hangs_is_replaced_though_its_pool_waits_for_a_gpu() -> None:
    cluster = new_cluster(replicas=1, warmPool={"size": 1, "mode": "Standby"})
    cluster.full = True
    cluster.look()
    hanging = cluster.live()[0]
    cluster.full = False
    while not hanging.ready:
        cluster.advance(hanging)
    cluster.full = True
    cluster.look()
    cluster.flap(hanging)
    for _ in range(300):
        cluster.look()
        for pod in list(cluster.pods.values()):
            if pod.terminating:
                cluster.vanish(pod)
                cluster.full = False
            elif pod is not hanging:
                cluster.advance(pod)
        cluster.now += 5
    assert hanging not in cluster.live()
    assert cluster.condition("Available")["status"] == "True"


@pytest.mark.parametrize(
    "sections", [{}, {"rollout": {"maxSurge": 0, "maxUnavailable": 1}}], ids=["surge", "unavailable"]
)
def test_a_return_to_a_revision_that_was_good_once_is_judged_like_any_other(sections: dict[str, object]) -> None:
    cluster = serving(**sections)
    first = cluster.status["currentRevision"]
    cluster.edit(length=2048)
    cluster.settle(rounds=80)
    second = cluster.status["currentRevision"]
    cluster.edit(length=1024)
    pass_time(cluster, 500, first)
    assert (cluster.status["rollout"]["phase"], revisions(cluster)) == ("RolledBack", {second})


def test_a_pause_lets_go_what_goes_and_keeps_what_is_new() -> None:
    cluster = serving()
    cluster.edit(length=2048)
    for _ in range(4):
        step(cluster)
    (leaving,) = (pod for pod in cluster.live() if pod.labels["vlm.dev/role"] == "draining")
    leaving.work = 1
    new = {pod.name for pod in cluster.live() if pod.labels["vlm.dev/revision"] == cluster.status["updatedRevision"]}
    cluster.pause(True)
    for _ in range(4):
        cluster.look()
        cluster.now += 2
    assert leaving.labels["vlm.dev/role"] == "draining"
    assert {pod.name for pod in cluster.live() if pod.labels["vlm.dev/role"] == "serving"} >= new


def test_a_first_revision_loads_though_rollouts_are_paused() -> None:
    cluster = new_cluster(replicas=1, rollout={"paused": True})
    cluster.look()
    assert cluster.condition("Progressing")["reason"] == "Loading"
    cluster.settle(rounds=20)
    assert cluster.condition("Ready")["status"] == "True"


def test_a_clock_that_is_set_back_does_not_make_every_look_write() -> None:
    cluster = serving()
    break_revision(cluster)
    for _ in range(5):
        step(cluster, broken=str(cluster.status["updatedRevision"]))
    cluster.now -= 3600
    cluster.look()
    statuses = []
    for _ in range(10):
        cluster.now += 5
        cluster.look()
        statuses.append(cluster.status)
    assert statuses == [statuses[0]] * 10


def test_sick_replicas_on_standby_are_replaced_one_at_a_time() -> None:
    cluster = serving(warmPool={"size": 2, "mode": "Standby"})
    warm = [pod for pod in cluster.live() if pod.labels["vlm.dev/role"] == "warm"]
    for pod in warm:
        pod.sick = "answered with 500"
    for _ in range(3):
        cluster.look()
        cluster.now += 1
    assert len([pod for pod in warm if pod.terminating]) == 1
    for pod in list(cluster.pods.values()):
        if pod.terminating:
            cluster.vanish(pod)
    cluster.settle(rounds=80)
    assert not any(pod.name in cluster.pods and cluster.pods[pod.name] is pod for pod in warm)
    assert cluster.condition("WarmPoolReady")["status"] == "True"


@pytest.mark.parametrize(("exists", "phase"), [(True, "WaitingForGPU"), (False, "RollingOut")])
def test_where_the_claim_is_missing_no_gpu_is_waited_for(exists: bool, phase: str) -> None:
    trouble = Trouble(reason="Unschedulable", message="no node takes it")
    stuck = pending(revision=stored().revision, trouble=trouble)
    known = facts(claim=Claim(name="models", exists=exists), replicas=(stuck,), revisions=(stored(),))
    progress = plan(known, decide_size(known), now=NOW).progress
    assert progress is not None
    assert progress.phase == phase
