"""Several operators, of which one acts: what happens when the leader dies, stands still, ends, or wakes up too late."""

import itertools
import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cluster.support.operator import CRD, Deployments, Object, RunningOperator, cli, launching
from controlplane import ControlPlane, Timing, l4, wait_until
from faultproxy import WRITES, FaultProxy, Keep, KeepEvents, Rule
from installation import allow_lease, operator_kubeconfig
from vlm_operator.api.names import OPERATOR
from vlm_operator.runtime.connection import connect
from vlm_operator.runtime.kinds import POD, SERVICE, VLM_DEPLOYMENT
from vlm_operator.runtime.kube import NOT_LEADER, Kube, KubeError
from vlm_operator.runtime.settings import Settings

pytestmark = pytest.mark.cluster

_serial = itertools.count(1)
LEASE, RETRY = 6, 0.5
ELECT = (
    "--leader-elect",
    "--leader-elect-namespace=ops",
    f"--leader-elect-lease-seconds={LEASE}",
    "--leader-elect-deadline-seconds=4",
    f"--leader-elect-retry-seconds={RETRY}",
)
SLACK = 2.0
"""Seconds that a look, a full list and a busy machine may add."""
SET_BACK = Path(__file__).parent / "support" / "set_back.py"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/ops/leases"


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane of this module's own, with the namespace of the lease."""
    with ControlPlane(timing=Timing()) as cluster:
        cluster.add_gpu_nodes(l4("gpu-l4", gpus=8))
        cluster.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ops"}})
        cluster.install_crd(CRD)
        operator_kubeconfig(cluster)
        allow_lease(cluster.kubectl, "ops")
        yield cluster


@pytest.fixture
def work(plane: ControlPlane) -> Iterator[Deployments]:
    """A fresh namespace to serve. Afterwards its pods, and with them their GPUs, are given back at once."""
    name = f"work-{next(_serial)}"
    plane.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    plane.bound_claim(name, "models")
    yield Deployments(control_plane=plane, namespace=name)
    plane.api.delete(f"/api/v1/namespaces/{name}")
    plane.api.delete(f"/api/v1/namespaces/{name}/pods", {"gracePeriodSeconds": 0})


@pytest.fixture
def start(plane: ControlPlane) -> Iterator[Callable[..., RunningOperator]]:
    """Launches candidates, and ends what is left of them."""
    with launching(plane) as launch:
        yield lambda name, *arguments, **how: launch(name, *ELECT, *arguments, **how)


def _ready(operator: RunningOperator) -> bool:
    return operator.answer("/readyz") == (200, "ok")


def _leads(operator: RunningOperator) -> bool:
    return "vlm_operator_leader 1.0" in operator.answer("/metrics")[1]


def _pair(start: Callable[..., RunningOperator], name: str, **how: Any) -> tuple[RunningOperator, RunningOperator]:
    """A leader, started as is said, and a warm follower."""
    leader = start(f"{name}-1", **how)
    wait_until(lambda: _leads(leader), "the first leads")
    follower = start(f"{name}-2")
    wait_until(lambda: _ready(follower), "the second is ready")
    assert "vlm_operator_leader 0.0" in follower.answer("/metrics")[1]
    return leader, follower


def _holder(plane: ControlPlane) -> str:
    return str(plane.api.get(f"{LEASES}/{OPERATOR}")["spec"].get("holderIdentity"))


def _uids(pods: dict[str, Object]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods.values()}


def test_a_killed_leader_is_followed_within_the_lease(
    plane: ControlPlane, work: Deployments, start: Callable[..., RunningOperator]
) -> None:
    leader, follower = _pair(start, "killed")
    work.create(replicas=2)
    work.until_ready()
    before = _uids(work.pods())
    plane.signal_program(leader.name, signal.SIGKILL)
    killed = time.monotonic()
    work.patch(replicas=3)
    wait_until(lambda: _leads(follower), "the second leads", timeout_seconds=LEASE + SLACK)
    assert time.monotonic() - killed > LEASE - SLACK
    work.until_ready()
    assert before < _uids(work.pods())
    assert len(work.pods()) == 3


def test_a_leader_that_wakes_up_after_its_lease_does_no_harm_and_ends(
    plane: ControlPlane, work: Deployments, start: Callable[..., RunningOperator]
) -> None:
    leader, follower = _pair(start, "slept")
    work.create(replicas=2)
    work.until_ready()
    plane.signal_program(leader.name, signal.SIGSTOP)
    # All this lies in its sockets when it wakes up: work that it would do at once.
    work.create("more", replicas=2)
    work.patch(replicas=3)
    work.api.delete(work.core("pods", min(work.pods())), {"gracePeriodSeconds": 0})
    wait_until(lambda: _leads(follower), "the second leads", timeout_seconds=LEASE + SLACK)
    work.until_ready()
    work.until_ready("more")
    work.until("Progressing", "False", name="more")
    settled = [(work.get(name)["metadata"]["resourceVersion"], work.pods(name)) for name in ("qwen", "more")]
    said = len(leader.text())
    plane.signal_program(leader.name, signal.SIGCONT)
    wait_until(lambda: leader.name in plane.ended_programs(), "the first has ended")
    assert plane.ended_programs()[leader.name] == 1
    last = leader.text()[said:]
    assert "vlm-operator: the lease ops/vlm-operator is lost: it was not renewed for 4 s" in last
    assert "Traceback" not in last
    assert "created" not in last
    assert _leads(follower)
    assert settled == [(work.get(name)["metadata"]["resourceVersion"], work.pods(name)) for name in ("qwen", "more")]


async def test_calls_of_an_old_leader_that_arrive_late_are_refused(
    plane: ControlPlane, work: Deployments, start: Callable[..., RunningOperator]
) -> None:
    leader, follower = _pair(start, "late")
    work.create(replicas=2)
    work.until_ready()
    # What the old leader saw, and would act on.
    seen, pods, service = work.get(), work.pods(), work.api.get(work.core("services", "qwen"))
    lost = min(pods)
    leader.stop()
    wait_until(lambda: _leads(follower), "the second leads")
    work.patch(replicas=3, service={"port": 9000})
    # A replica that ended is replaced under its own name; one that leaves still holds it, and another name would be taken.
    work.annotate_pod(lost, fault="evict")
    work.until_pods(
        lambda now: len(now) == 3 and lost in now and pods[lost]["metadata"]["uid"] not in _uids(now), "are three"
    )
    work.until_ready()
    work.until("Progressing", "False")
    settled = work.get()["metadata"]["resourceVersion"], work.pods(), work.api.get(work.core("services", "qwen"))

    kube = Kube(await connect(Settings(kubeconfig=operator_kubeconfig(plane))))
    try:
        again = {**pods[lost], "metadata": {"name": lost, "namespace": work.namespace}}
        patch = {"metadata": {**_seen_as(service), "labels": {"late": "yes"}}}
        place = {"namespace": work.namespace, "name": lost}
        old = {"uid": pods[lost]["metadata"]["uid"], "resource_version": pods[lost]["metadata"]["resourceVersion"]}
        status = {"servingReplicas": 77}
        version = seen["metadata"]["resourceVersion"]
        for call in (
            kube.create(POD, again),
            kube.change(SERVICE, patch),
            kube.delete(POD, **place, **old, grace_seconds=0),
            kube.patch_status(
                VLM_DEPLOYMENT, namespace=work.namespace, name="qwen", resource_version=version, status=status
            ),
        ):
            with pytest.raises(KubeError) as refused:
                await call
            assert refused.value.code == 409
    finally:
        await kube.close()
    assert settled == (
        work.get()["metadata"]["resourceVersion"],
        work.pods(),
        work.api.get(work.core("services", "qwen")),
    )


async def test_without_a_lease_nothing_is_sent(plane: ControlPlane, work: Deployments) -> None:
    left = 5.0
    kube = Kube(await connect(Settings(kubeconfig=operator_kubeconfig(plane))), time_left=lambda: left)
    try:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "fenced", "namespace": work.namespace},
            "spec": {"containers": [{"name": "one", "image": "one:1"}]},
        }
        made = await kube.create(POD, pod)
        left = 0.0
        place = {"namespace": work.namespace, "name": "fenced"}
        version = made["metadata"]["resourceVersion"]
        for call in (
            kube.create(POD, {**pod, "metadata": {"name": "another", "namespace": work.namespace}}),
            kube.change(POD, {"metadata": {**_seen_as(made), "labels": {"late": "yes"}}}),
            kube.delete(POD, **place, uid=made["metadata"]["uid"], resource_version=version, grace_seconds=0),
            kube.patch_status(POD, **place, resource_version=version, status={"reason": "Late"}),
        ):
            with pytest.raises(KubeError) as refused:
                await call
            assert (refused.value.code, refused.value.reason) == (0, NOT_LEADER)
        live = await kube.get(POD, **place)
        assert live is not None
        assert "late" not in (live["metadata"].get("labels") or {})
        assert "deletionTimestamp" not in live["metadata"]
        assert await kube.get(POD, namespace=work.namespace, name="another") is None
    finally:
        await kube.close()
        plane.api.delete(f"/api/v1/namespaces/{work.namespace}/pods/fenced", {"gracePeriodSeconds": 0})


def test_a_leader_that_alone_loses_the_api_server_is_followed_and_its_late_calls_do_no_harm(
    plane: ControlPlane, work: Deployments, start: Callable[..., RunningOperator]
) -> None:
    with FaultProxy(operator_kubeconfig(plane)) as proxy:
        leader, follower = _pair(start, "cut-off", kubeconfig=proxy.kubeconfig)
        work.create(replicas=2)
        work.until_ready()
        # What tells that the others are ready may still be on its way, and goes through.
        with proxy.inject(Rule(Keep(), verbs=WRITES, resources={"pods", "leases"})) as kept:
            work.patch(replicas=3)
            wait_until(lambda: any(target.resource == "pods" for target in kept.hits), "a third replica is on the way")
            proxy.inject(Rule(Keep()))
            proxy.inject(Rule(KeepEvents()))
            wait_until(lambda: leader.name in plane.ended_programs(), "it has ended")
            wait_until(lambda: _leads(follower), "the second leads")
            work.until_ready()
            work.until("Progressing", "False")
            settled = work.get()["metadata"]["resourceVersion"], work.pods()
        late = [call for call in proxy.writes() if call.fault == "Keep"]
        wait_until(lambda: all(call.code for call in late), "all that was on the way has arrived")
    assert plane.ended_programs()[leader.name] == 1
    assert "the lease ops/vlm-operator is lost: it was not renewed for 4 s" in leader.text()
    assert "Traceback" not in leader.text()
    of_interest = {call.target.resource: call.code for call in late if call.target.resource != "events"}
    assert of_interest == {"pods": 409, "leases": 409} | (
        {"vlmdeployments": 409} if "vlmdeployments" in of_interest else {}
    )
    assert settled == (work.get()["metadata"]["resourceVersion"], work.pods())


def test_a_leader_whose_clock_is_set_back_an_hour_leads_on_and_works_on(
    plane: ControlPlane, work: Deployments, start: Callable[..., RunningOperator], tmp_path: Path
) -> None:
    off = tmp_path / "seconds"
    leader, follower = _pair(start, "set-back", program=("-P", SET_BACK, off))
    work.create(replicas=2)
    work.until_ready()
    _let_a_slot_rest(work)
    off.write_text("-3600")
    renewals: set[str] = set()

    def renewed_for_longer_than_the_lease() -> bool:
        spec = plane.api.get(f"{LEASES}/{OPERATOR}")["spec"]
        if datetime.fromisoformat(spec["renewTime"]) < datetime.now(UTC) - timedelta(minutes=50):
            renewals.add(spec["renewTime"])
        assert not _leads(follower)
        return len(renewals) > LEASE / RETRY

    wait_until(renewed_for_longer_than_the_lease, "it has renewed the lease for longer than that lasts")
    assert _leads(leader)
    # Its slot rested when the clock was set, and is not left for an hour.
    work.until_pods(lambda pods: len(pods) == 2, "are two again")
    work.patch(replicas=3)
    work.until_ready()
    plane.signal_program(leader.name, signal.SIGKILL)
    wait_until(lambda: _leads(follower), "the second leads")


def test_a_clock_that_is_set_back_an_hour_holds_up_neither_a_rollout_nor_the_pool(
    plane: ControlPlane, work: Deployments, start: Callable[..., RunningOperator], tmp_path: Path
) -> None:
    off = tmp_path / "seconds"
    start("set-back-in-a-rollout", program=("-P", SET_BACK, off))
    work.create(replicas=2, warmPool={"size": 1, "mode": "Standby"})
    work.until_ready()
    work.until("WarmPoolReady", "True")
    old = set(work.pods())
    work.patch(engine={"maxNumSeqs": 64})
    wait_until(lambda: work.pods().keys() - old, "the rollout has begun")
    off.write_text("-3600")
    work.until_ready(timeout_seconds=120)
    work.until("WarmPoolReady", "True")
    assert not old & work.pods().keys()
    warm, serving = _by_role(work, "warm"), _by_role(work, "serving")
    plane.api.delete(work.core("pods", serving[0]), {"gracePeriodSeconds": 0})
    wait_until(lambda: set(warm) <= set(_by_role(work, "serving")), "the warm replica serves")
    work.until("WarmPoolReady", "True")
    assert len(_by_role(work, "serving")) == 2


def _by_role(work: Deployments, role: str) -> list[str]:
    return sorted(name for name, pod in work.pods().items() if pod["metadata"]["labels"]["vlm.dev/role"] == role)


def _let_a_slot_rest(work: Deployments) -> None:
    """Let a replica end, and the one in its place. One is left."""
    lasting, ended = max(work.pods()), set()
    for times in (1, 2):
        pods = work.until_pods(lambda now: len(now) == 2 and not ended & _uids(now), "are two")
        (name,) = set(pods) - {lasting}
        ended.add(pods[name]["metadata"]["uid"])
        work.annotate_pod(name, fault="evict")
        _wait_for_failures(work, times)


def _uids(pods: dict[str, Any]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods.values()}


def _wait_for_failures(work: Deployments, times: int) -> None:
    def told() -> bool:
        return [failure["count"] for failure in work.status().get("failures", ())] == [times]

    wait_until(told, f"one slot has failed {times} times")


def test_of_several_that_start_at_once_one_leads(
    plane: ControlPlane, work: Deployments, start: Callable[..., RunningOperator]
) -> None:
    _forget_lease(plane)
    candidates = [start(f"race-{number}") for number in range(3)]
    wait_until(lambda: all(_ready(one) for one in candidates), "all are ready", timeout_seconds=60)
    wait_until(lambda: any(_leads(one) for one in candidates), "one leads")
    work.create(replicas=2)
    work.until_ready()
    assert [_leads(one) for one in candidates].count(True) == 1
    assert sum("created replica" in one.text() or "create replica" in one.text() for one in candidates) == 1
    (leader,) = (one for one in candidates if _leads(one))
    assert leader.text().count(_holder(plane)) == 1


def test_a_clean_end_hands_over_at_once(
    plane: ControlPlane, work: Deployments, start: Callable[..., RunningOperator]
) -> None:
    leader, follower = _pair(start, "clean")
    work.create()
    work.until_ready()
    plane.signal_program(leader.name, signal.SIGTERM)
    wait_until(lambda: _leads(follower), "the second leads", timeout_seconds=2 + SLACK)
    wait_until(lambda: leader.name in plane.ended_programs(), "the first has ended")
    assert plane.ended_programs()[leader.name] == 0
    assert "gave the lease ops/vlm-operator back" in leader.text()
    follower.stop()
    assert _holder(plane) == ""


@pytest.mark.forbidden
def test_a_namespace_that_does_not_exist_is_told(start: Callable[..., RunningOperator], plane: ControlPlane) -> None:
    operator = start("lost", "--leader-elect-namespace=nowhere")
    words = 'cannot get resource "leases" in API group "coordination.k8s.io" in the namespace "nowhere"'
    wait_until(lambda: words in operator.answer("/readyz")[1], "it says what is missing")
    code, told = operator.answer("/readyz")
    assert code == 503
    assert "give this permission to the operator's ServiceAccount, or correct --leader-elect-namespace nowhere" in told
    assert not _leads(operator)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "nowhere"}}
    plane.api.post("/api/v1/namespaces", space)
    allow_lease(plane.kubectl, "nowhere")
    wait_until(lambda: _leads(operator) and _ready(operator), "it leads")


def test_outside_a_pod_the_namespace_must_be_given(plane: ControlPlane) -> None:
    done = cli("run", f"--kubeconfig={operator_kubeconfig(plane)}", "--leader-elect", "--health-port=0")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("vlm-operator: --leader-elect: ")
    assert "set --leader-elect-namespace" in done.stderr


def _seen_as(obj: Object) -> Object:
    return {field: obj["metadata"][field] for field in ("namespace", "name", "uid", "resourceVersion")}


def _forget_lease(plane: ControlPlane) -> None:
    plane.kubectl("delete", "lease", OPERATOR, "--namespace=ops", "--ignore-not-found")
