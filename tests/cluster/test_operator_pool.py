"""Warm pool, drain, rollout, rollback and disruptions on the real API server."""

import time
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from cluster.support.operator import Deployments, engines
from controlplane import ApiError, AuditTrail, ControlPlane, wait_until
from simengine import SimEngine

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

QUIET_SECONDS = 2.0
"""In which whatever goes round in circles would be seen."""
STANDBY = {"size": 1, "mode": "Standby"}


def roles(deployments: Deployments) -> Counter[str]:
    return Counter(pod["metadata"]["labels"]["vlm.dev/role"] for pod in deployments.pods().values())


def role(deployments: Deployments, name: str) -> str:
    return str(deployments.pods().get(name, {"metadata": {"labels": {}}})["metadata"]["labels"].get("vlm.dev/role", ""))


def named(deployments: Deployments, wanted: str) -> list[str]:
    """Names of the pods with a role."""
    return sorted(name for name in deployments.pods() if role(deployments, name) == wanted)


def engine_of(deployments: Deployments, name: str) -> SimEngine:
    return engines()[deployments.pods()[name]["status"]["podIP"]]


def endpoints(deployments: Deployments) -> set[str]:
    """Names of the ready pods to which the Service leads."""
    path = f"/apis/discovery.k8s.io/v1/namespaces/{deployments.namespace}/endpointslices"
    slices = deployments.api.get(f"{path}?labelSelector=kubernetes.io/service-name=qwen")["items"]
    found = (e for s in slices for e in s.get("endpoints") or () if e["conditions"]["ready"])
    return {endpoint["targetRef"]["name"] for endpoint in found}


def settled(deployments: Deployments, **spec: Any) -> None:
    deployments.create(**spec)
    deployments.until_ready()
    if "warmPool" in spec:
        deployments.until("WarmPoolReady", "True")


def test_a_lost_replica_is_replaced_from_the_pool_before_any_other_is_created(
    deployments: Deployments, control_plane: ControlPlane
) -> None:
    settled(deployments, replicas=2, warmPool=STANDBY)
    assert roles(deployments) == {"serving": 2, "warm": 1}
    assert deployments.status()["warmReplicas"] == 1
    lost, (warm,) = named(deployments, "serving")[0], named(deployments, "warm")
    assert endpoints(deployments) == set(named(deployments, "serving"))
    trail = AuditTrail(control_plane.audit_log)
    trail.news()
    deployments.api.delete(deployments.core("pods", lost), {"gracePeriodSeconds": 0})
    wait_until(lambda: warm in endpoints(deployments), "the warm replica serves")
    deployments.until("WarmPoolReady", "True")
    wait_until(lambda: roles(deployments) == {"serving": 2, "warm": 1}, "the pool is full again")
    calls = [call for call in trail.news() if (call.namespace, call.resource) == (deployments.namespace, "pods")]
    written = [call.verb for call in calls if call.verb in {"patch", "create"}]
    assert written.index("patch") < written.index("create")


def test_a_crashed_replica_is_replaced_at_once_and_joins_the_pool(deployments: Deployments) -> None:
    settled(deployments, replicas=1, warmPool=STANDBY)
    (serving,), (warm,) = named(deployments, "serving"), named(deployments, "warm")
    deployments.annotate_pod(serving, fault="restart", ready_after="5s")
    wait_until(lambda: role(deployments, warm) == "serving", "the warm replica serves")
    wait_until(lambda: role(deployments, serving) == "warm", "the crashed one is in the pool")
    deployments.until("WarmPoolReady", "True")
    assert set(deployments.pods()) == {serving, warm}, "nothing was created"


def test_a_replica_that_takes_long_to_leave_is_replaced_from_the_pool_at_once(deployments: Deployments) -> None:
    settled(deployments, replicas=1, warmPool=STANDBY)
    (serving,), (warm,) = named(deployments, "serving"), named(deployments, "warm")
    deployments.annotate_pod(serving, end_after="110s")
    deployments.api.delete(deployments.core("pods", serving), {"gracePeriodSeconds": 120})
    wait_until(lambda: role(deployments, warm) == "serving", "the warm replica serves")
    pods = deployments.until_pods(lambda pods: len(pods) == 2, "are two again")
    assert serving in deployments.children("pods"), "it is still leaving"
    assert serving not in pods
    deployments.until("WarmPoolReady", "True")


def test_a_busy_replica_is_waited_for_and_called_back(deployments: Deployments) -> None:
    settled(deployments, replicas=2)
    for name in deployments.pods():
        engine_of(deployments, name).in_flight = 2
    deployments.patch(replicas=1)
    (draining,) = wait_until(lambda: named(deployments, "draining"), "one drains")
    wait_until(lambda: draining not in endpoints(deployments), "no client is sent to it")
    deployments.until("Progressing", "True", reason="Draining")
    wait_until(
        lambda: "it has requests in flight" in deployments.condition("Progressing")["message"],
        "it says what it waits for",
    )
    deployments.patch(replicas=2)
    wait_until(lambda: draining in endpoints(deployments), "it is called back")
    deployments.patch(replicas=1)
    wait_until(lambda: named(deployments, "draining"), "one drains")
    for name in deployments.pods():
        engine_of(deployments, name).in_flight = 0
    deployments.until_pods(lambda pods: len(pods) == 1, "has gone")
    deployments.until_ready()


def test_a_rollout_goes_through_the_pool_without_a_further_gpu(deployments: Deployments) -> None:
    settled(deployments, replicas=2, warmPool=STANDBY)
    old = set(deployments.pods())
    deployments.patch(model={"name": "Qwen/Qwen2.5-VL-7B-Instruct", "maxModelLen": 4096})
    seen_most, seen_least = 0, 2

    def done() -> bool:
        nonlocal seen_most, seen_least
        pods = deployments.children("pods")
        seen_most = max(seen_most, len(pods))
        seen_least = min(seen_least, len(endpoints(deployments)))
        return not old & pods.keys() and roles(deployments) == {"serving": 2, "warm": 1}

    wait_until(done, "all are new", timeout_seconds=180, every_seconds=0.2)
    deployments.until_ready()
    assert (seen_most, seen_least) == (3, 2)


def roll_out_in_vain(deployments: Deployments) -> tuple[str, str]:
    """Edit the spec so that its revision breaks, and wait until it is rolled back; the good revision and the broken one."""
    good = deployments.revision()
    deployments.patch(engine={"args": ["--seed=1"]})
    wait_until(lambda: deployments.revision() != good, "a new revision is wanted")
    broken = deployments.revision()
    (name,) = deployments.until_pods(lambda pods: any(broken in name for name in pods), "has a new one").keys() - {
        f"qwen-{good}-0"
    }
    deployments.annotate_pod(
        name, fault="exit", exit_code="2", message="vllm: error: unrecognized arguments: --no-such-flag"
    )
    ready = deployments.until("Ready", "False", reason="RolledBack")
    assert "BadArgument" in ready["message"]
    wait_until(lambda: set(deployments.pods()) == {f"qwen-{good}-0"}, "the good one is left")
    return good, broken


def test_a_broken_revision_is_rolled_back_with_its_cause(deployments: Deployments) -> None:
    settled(deployments, replicas=1)
    good, broken = roll_out_in_vain(deployments)
    status = deployments.status()
    assert (status["currentRevision"], status["updatedRevision"]) == (good, broken)
    assert deployments.condition("Available")["status"] == "True"
    deployments.patch(engine={"args": ["--seed=2"]})
    deployments.until_ready()


def test_without_a_history_the_revision_to_return_to_is_kept_while_it_is_needed(deployments: Deployments) -> None:
    def stored() -> set[str]:
        return set(deployments.children("controllerrevisions", group="/apis/apps/v1"))

    settled(deployments, replicas=1, rollout={"revisionHistoryLimit": 0})
    good, broken = roll_out_in_vain(deployments)
    assert stored() == {f"qwen-{good}", f"qwen-{broken}"}
    deployments.patch(engine={"args": ["--seed=2"]})
    deployments.until_ready()
    wait_until(lambda: stored() == {f"qwen-{deployments.revision()}"}, "only the new one is stored")


def test_an_edit_during_a_pause_is_what_the_rollout_goes_on_with(deployments: Deployments) -> None:
    settled(deployments, replicas=2)
    first = deployments.revision()
    deployments.patch(model={"maxModelLen": 4096})
    wait_until(lambda: deployments.revision() != first, "another revision is wanted")
    second = deployments.revision()
    deployments.patch(rollout={"paused": True})
    deployments.patch(model={"maxModelLen": 8192})
    deployments.until("Progressing", "False", reason="Paused")
    third = deployments.revision()
    assert not [name for name in deployments.pods() if third in name]
    lost = min(deployments.pods())
    deployments.api.delete(deployments.core("pods", lost), {"gracePeriodSeconds": 0})
    deployments.until("Available", "True")
    assert not [name for name in deployments.pods() if third in name]
    deployments.patch(rollout={"paused": False})
    deployments.until_ready()
    assert all(third in name for name in deployments.pods())
    assert len({first, second, third}) == 3


def test_a_paused_rollout_waits_until_it_is_resumed(deployments: Deployments) -> None:
    settled(deployments, replicas=1, rollout={"paused": True})
    before = set(deployments.pods())
    deployments.patch(model={"name": "Qwen/Qwen2.5-VL-7B-Instruct", "maxModelLen": 4096})
    deployments.until("Progressing", "False", reason="Paused")
    assert set(deployments.pods()) == before
    deployments.patch(rollout={"paused": False})
    deployments.until_ready()
    assert not before & deployments.pods().keys()


@pytest.mark.parametrize(
    ("replicas", "sections"),
    [
        (1, {}),
        (3, {}),
        (3, {"scaling": {"mode": "Active", "minReplicas": 1, "maxReplicas": 4}}),
        (3, {"warmPool": {"size": 1, "mode": "InRotation"}}),
    ],
    ids=["one", "fixed", "scaled", "in rotation"],
)
def test_evictions_take_one_replica_at_a_time(
    deployments: Deployments, replicas: int, sections: dict[str, Any]
) -> None:
    in_rotation = replicas + 1 if "warmPool" in sections else replicas
    settled(deployments, replicas=replicas, **sections)
    path = f"/apis/policy/v1/namespaces/{deployments.namespace}/poddisruptionbudgets/qwen"
    budget = wait_until(
        lambda: deployments.api.get(path).get("status", {}).get("expectedPods") and deployments.api.get(path),
        "it counts",
    )
    assert budget["spec"]["minAvailable"] == in_rotation - 1
    done = 0
    for name in sorted(deployments.pods()):
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        try:
            deployments.api.post(deployments.core("pods", f"{name}/eviction"), body)
        except ApiError as error:
            assert "disruption budget" in str(error)  # noqa: PT017 -- some are evicted, some are not
        else:
            done += 1
    assert done == 1
    deployments.until_ready()


def test_what_drains_is_counted_out_of_the_budget(deployments: Deployments) -> None:
    settled(deployments, replicas=3)
    busy = [pod["status"]["podIP"] for pod in deployments.pods().values()]
    for address in busy:
        engines()[address].in_flight = 1
    path = f"/apis/policy/v1/namespaces/{deployments.namespace}/poddisruptionbudgets/qwen"

    def counted() -> tuple[int, ...]:
        status = deployments.api.get(path).get("status", {})
        return tuple(status.get(name, 0) for name in ("expectedPods", "currentHealthy", "disruptionsAllowed"))

    wait_until(lambda: counted() == (3, 3, 1), "all are counted")
    deployments.patch(replicas=2)
    wait_until(lambda: named(deployments, "draining"), "one drains")
    wait_until(lambda: counted() == (2, 2, 1), "it is not counted any more")
    for address in busy:
        engines().forget(address)
    deployments.until_pods(lambda pods: len(pods) == 2, "has gone")
    wait_until(lambda: "annotations" not in deployments.api.get(path)["metadata"], "nobody drains")


def test_without_a_budget_there_is_none_and_the_rest_is_as_before(deployments: Deployments) -> None:
    settled(deployments, replicas=2)
    path = f"/apis/policy/v1/namespaces/{deployments.namespace}/poddisruptionbudgets"
    assert [item["metadata"]["name"] for item in deployments.api.get(path)["items"]] == ["qwen"]
    deployments.patch(podDisruptionBudget="None")
    wait_until(lambda: not deployments.api.get(path)["items"], "it is removed")


def test_a_cordoned_node_is_emptied_through_the_pool(deployments: Deployments, control_plane: ControlPlane) -> None:
    settled(deployments, replicas=1, warmPool=STANDBY)
    (serving,) = named(deployments, "serving")
    node = deployments.pods()[serving]["spec"]["nodeName"]
    try:
        control_plane.kubectl("cordon", node)

        def emptied() -> bool:
            pods = deployments.pods().values()
            return len(pods) == 2 and all(pod["spec"].get("nodeName") not in {node, None} for pod in pods)

        wait_until(emptied, "no replica is left on the node", timeout_seconds=120)
        deployments.until("WarmPoolReady", "True")
        deployments.until_ready()
    finally:
        control_plane.kubectl("uncordon", node)


def test_kubectl_drain_takes_a_node_away_from_replicas_without_a_pool(
    deployments: Deployments, control_plane: ControlPlane
) -> None:
    settled(deployments, replicas=2)
    node = next(iter(deployments.pods().values()))["spec"]["nodeName"]
    try:
        control_plane.kubectl(
            "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=90s",
            "--pod-selector=vlm.dev/deployment=qwen", timeout=120,
        )  # fmt: skip
        deployments.until_ready()
        assert node not in {pod["spec"]["nodeName"] for pod in deployments.pods().values()}
    finally:
        control_plane.kubectl("uncordon", node)


def test_replicas_that_tolerate_a_cordon_are_replaced_once(
    deployments: Deployments, control_plane: ControlPlane
) -> None:
    tolerant = {
        "tolerations": [{"operator": "Exists"}],
        "nodeSelector": {"kubernetes.io/hostname": "gpu-l4"},
        "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}},
    }
    settled(deployments, replicas=1, warmPool=STANDBY, podTemplate=tolerant)
    before = {pod["metadata"]["uid"] for pod in deployments.pods().values()}
    trail = AuditTrail(control_plane.audit_log)
    trail.news()
    control_plane.kubectl("cordon", "gpu-l4")
    try:
        deployments.until_pods(
            lambda pods: len(pods) == 2 and not before & {pod["metadata"]["uid"] for pod in pods.values()},
            "are others",
        )
        deployments.until_ready()
        deployments.until("WarmPoolReady", "True")
    finally:
        control_plane.kubectl("uncordon", "gpu-l4")
    time.sleep(QUIET_SECONDS)
    calls = [call for call in trail.news() if (call.namespace, call.resource) == (deployments.namespace, "pods")]
    assert sum(call.verb == "create" for call in calls) <= 3


def test_scaling_bounds_hold_the_size_and_kubectl_scale_has_no_effect_but_zero(
    deployments: Deployments, control_plane: ControlPlane
) -> None:
    settled(deployments, replicas=1, scaling={"minReplicas": 2, "maxReplicas": 3}, warmPool=STANDBY)
    assert roles(deployments) == {"serving": 2, "warm": 1}
    where = f"--namespace={deployments.namespace}"
    control_plane.kubectl("scale", "vlmd/qwen", "--replicas=3", where)
    wait_until(
        lambda: "spec.replicas is 3 now; scaling began with 1" in deployments.condition("Accepted").get("message", ""),
        "it is told that this has no effect",
    )
    assert deployments.status()["desiredReplicas"] == 2
    control_plane.kubectl("scale", "vlmd/qwen", "--replicas=0", where)
    deployments.until_pods(lambda pods: not pods, "have gone")
    deployments.until("Ready", "True", reason="ScaledToZero")
    control_plane.kubectl("scale", "vlmd/qwen", "--replicas=3", where)
    wait_until(lambda: roles(deployments)["serving"] == 3, "it starts with the new size")


def test_somebody_elses_budget_of_the_name_is_left_alone(deployments: Deployments) -> None:
    budgets = f"/apis/policy/v1/namespaces/{deployments.namespace}/poddisruptionbudgets"
    theirs = {"spec": {"minAvailable": 0, "selector": {"matchLabels": {"a": "b"}}}}
    head = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "qwen"}}
    deployments.api.post(budgets, head | theirs)
    deployments.create()
    found = deployments.until("Ready", "False", reason="PodDisruptionBudgetNameTaken")
    assert f"kubectl delete poddisruptionbudget qwen -n {deployments.namespace}" in found["message"]
    assert deployments.api.get(f"{budgets}/qwen")["spec"]["selector"] == theirs["spec"]["selector"]
    deployments.api.delete(f"{budgets}/qwen")
    deployments.until_ready()


def test_a_pod_of_somebody_with_our_labels_is_neither_counted_nor_touched(deployments: Deployments) -> None:
    settled(deployments, replicas=1, warmPool=STANDBY)
    labels = {"vlm.dev/deployment": "qwen", "vlm.dev/role": "warm", "vlm.dev/slot": "5", "vlm.dev/revision": "x"}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "mine", "labels": labels},
        "spec": {"containers": [{"name": "engine", "image": "mine"}]},
    }
    deployments.api.post(deployments.core("pods"), body)
    deployments.patch(replicas=2)
    wait_until(lambda: deployments.status().get("servingReplicas") == 2, "another serves")
    deployments.until("WarmPoolReady", "True")
    assert labels.items() <= deployments.pods()["mine"]["metadata"]["labels"].items()


def warnings(deployments: Deployments, field: str) -> list[str] | None:
    """What the condition Accepted says about a field; None while it says nothing about the present spec."""
    message = deployments.condition("Accepted").get("message")
    return message and [sentence for sentence in message.split(" | ") if sentence.startswith(f"{field}: ")]


def until_warned(deployments: Deployments, field: str, reason: str) -> str:
    """Wait for a warning about a field, in the condition and as one event; returns it."""
    (sentence,) = wait_until(lambda: warnings(deployments, field), f"{field} is warned of") or ()
    wait_until(
        lambda: [e["note"] for e in deployments.events() if e["reason"] == reason] == [sentence],
        f"the event {reason} says the same",
    )
    return sentence


def until_content(deployments: Deployments, field: str) -> None:
    """Wait until nothing is said about a field any more."""
    wait_until(lambda: warnings(deployments, field) == [], f"nothing is said about {field}")


def test_a_second_budget_makes_evictions_fail_and_is_warned_of(deployments: Deployments) -> None:
    budgets = f"/apis/policy/v1/namespaces/{deployments.namespace}/poddisruptionbudgets"
    theirs = {"minAvailable": 1, "selector": {"matchLabels": {"vlm.dev/deployment": "qwen"}}}
    head = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "mine"}}
    deployments.api.post(budgets, head | {"spec": theirs})
    settled(deployments, replicas=2)
    told = until_warned(deployments, "spec.podDisruptionBudget", "BudgetsOverlap")
    assert "PodDisruptionBudget mine selects replicas that qwen" in told
    assert f"kubectl delete poddisruptionbudget mine -n {deployments.namespace}" in told
    name = min(deployments.pods())
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    with pytest.raises(ApiError, match="more than one PodDisruptionBudget"):
        deployments.api.post(deployments.core("pods", f"{name}/eviction"), eviction)
    deployments.patch(podDisruptionBudget="None")
    until_content(deployments, "spec.podDisruptionBudget")
    # Of two that select a pod, Kubernetes may have counted it for the other one only.
    deployments.api.merge_patch(f"{budgets}/mine", {"metadata": {"annotations": {"example.com/counted": "anew"}}})

    def evicted() -> bool:
        try:
            deployments.api.post(deployments.core("pods", f"{name}/eviction"), eviction)
        except ApiError as error:
            assert "disruption budget" in str(error)  # noqa: PT017 -- it may not have counted the replicas yet
            return False
        return True

    wait_until(evicted, "one can be evicted")
    deployments.until_ready()


def test_a_deadline_within_which_no_replica_becomes_ready_is_warned_of(deployments: Deployments) -> None:
    settled(deployments, replicas=1, rollout={"progressDeadline": "1m"})
    until_content(deployments, "spec.rollout.progressDeadline")
    (name,) = deployments.pods()
    path = deployments.core("pods", f"{name}/status")
    conditions = {condition["type"]: condition for condition in deployments.api.get(path)["status"]["conditions"]}
    ready = datetime.fromisoformat(conditions["Ready"]["lastTransitionTime"])
    placed = conditions["PodScheduled"] | {"lastTransitionTime": f"{ready - timedelta(seconds=95):%Y-%m-%dT%H:%M:%SZ}"}
    conditions["PodScheduled"] = placed
    deployments.api.merge_patch(path, {"status": {"conditions": list(conditions.values())}})
    told = until_warned(deployments, "spec.rollout.progressDeadline", "ProgressDeadlineShort")
    assert "1m is not longer than the 95 s that a replica took" in told
    assert told.endswith("set it to 4m")
    deployments.patch(rollout={"progressDeadline": "4m"})
    until_content(deployments, "spec.rollout.progressDeadline")


def test_the_time_of_a_rollout_runs_once_its_replica_is_loading(deployments: Deployments) -> None:
    """What stood still before it had a node is no part of the status any more, and does not come back from there."""
    settled(deployments, replicas=1)
    deployments.patch(podTemplate={"metadata": {"annotations": {"sim.vlm.dev/fault": "never-ready"}}})

    def loads() -> bool:
        rollout = deployments.status().get("rollout") or {}
        return rollout.get("phase") == "RollingOut" and "waitingSince" not in rollout

    wait_until(loads, "the rollout's time runs")
    got_on = deployments.status()["rollout"]["lastProgressTime"]
    for note in ("one", "another"):
        deployments.merge("qwen", {"metadata": {"annotations": {"example.com/poke": note}}})
        time.sleep(QUIET_SECONDS)
        assert deployments.status()["rollout"]["lastProgressTime"] == got_on
    assert loads()
