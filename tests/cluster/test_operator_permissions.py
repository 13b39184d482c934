"""Each permission of the operator: without it something is said and the rest goes on, and with it it is made use of.

One operator with Roles only serves a namespace for each permission, in which that one is missing, and one in which none is.
"""

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from cluster.support.operator import CRD, Deployments, RunningOperator
from cluster.support.stuck import START_LATE, stuck
from controlplane import (
    OWNERS_ENFORCED,
    AuditTrail,
    Call,
    ControlPlane,
    ControlPlaneError,
    WaitTimeoutError,
    l4,
    wait_until,
)
from installation import (
    NAMESPACE,
    USERS,
    apply,
    operator_kubeconfig,
    role,
    service_account,
    wait_until_allowed,
    write_account_kubeconfig,
)
from vlm_operator.runtime.permissions import PERMISSIONS, Permission, Scope, rules

pytestmark = [pytest.mark.cluster, pytest.mark.forbidden]

ACCOUNT, WHOLE = "narrow", "whole"
NAMESPACED = [one for one in PERMISSIONS if one.scope is Scope.NAMESPACED]
LEASES = [one for one in PERMISSIONS if one.scope is Scope.OPERATOR_NAMESPACE]
APPS = "/apis/apps/v1"
POLICY = "/apis/policy/v1"
SLOW, TAINT = "gpu-slow", {"key": "slow", "effect": "NoSchedule"}
"""A node on which no pod starts, and that only those go to that want it."""
LATE = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "late"},
    "provisioner": "sim.vlm.dev",
    "volumeBindingMode": "WaitForFirstConsumer",
}


@dataclass(frozen=True, kw_only=True)
class World:
    """The operator, and the API server that it asks."""

    plane: ControlPlane
    operator: RunningOperator

    def at(self, namespace: str) -> Deployments:
        """The deployments of a namespace. There is one, `qwen`, in each."""
        return Deployments(control_plane=self.plane, namespace=namespace)

    def calls(self) -> list[Call]:
        """All that the operator has asked so far."""
        return [call for call in AuditTrail(self.plane.audit_log).news() if call.user == USERS + ACCOUNT]


def without(permission: Permission) -> str:
    """The namespace in which a permission is missing."""
    return f"no-{permission}".replace(" ", "-").replace("/", "-")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """All namespaces with a deployment each, before the first test looks at one of them."""
    allowed = {without(one): [other for other in NAMESPACED if other is not one] for one in NAMESPACED}
    allowed[WHOLE] = NAMESPACED
    with ControlPlane(apiserver_args=[OWNERS_ENFORCED]) as plane:
        plane.add_gpu_nodes(l4("gpu-l4", gpus=100), replace(l4(SLOW, gpus=4, labels=START_LATE), taints=(TAINT,)))
        plane.install_crd(CRD)
        apply(plane.kubectl, [_namespace(name) for name in (NAMESPACE, *allowed)])
        roles = [role(ACCOUNT, rules(these), namespace=name, account=ACCOUNT) for name, these in allowed.items()]
        apply(plane.kubectl, [service_account(ACCOUNT), *itertools.chain(*roles)])
        wait_until_allowed(plane.kubectl, "list", "pods", f"--namespace={WHOLE}", account=ACCOUNT)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: plane.bound_claim(name, "models"), allowed))
        path = tmp_path_factory.mktemp("account") / "kubeconfig"
        kubeconfig = write_account_kubeconfig(path, plane.kubectl, like=plane.kubeconfig, account=ACCOUNT)
        served = tuple(f"--namespace={name}" for name in allowed)
        operator = RunningOperator(plane, ACCOUNT, ("--resync-seconds=5", *served), kubeconfig).start()
        found = World(plane=plane, operator=operator)
        for name in allowed:
            found.at(name).create()
        yield found


def _namespace(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


# -- what makes the operator want a permission --------------------------------------------------------------------------
def nothing(_: Deployments) -> None:
    """Being there is enough."""


def strip(kind: str, *, group: str = "/api/v1") -> Callable[[Deployments], None]:
    """Take the label by which it is watched from a child."""
    return relabel(kind, group=group, label="vlm.dev/deployment", value=None)


def relabel(
    kind: str, *, group: str = "/api/v1", label: str = "app.kubernetes.io/component", value: str | None = "other"
) -> Callable[[Deployments], None]:
    """Change a label of a child, once there is one."""

    def act(there: Deployments) -> None:
        name = min(wait_until(lambda: there.children(kind, group=group), f"there is one of {kind}"))
        path = f"{group}/namespaces/{there.namespace}/{kind}/{name}"
        there.api.merge_patch(path, {"metadata": {"labels": {label: value}}})

    return act


def when_ready(act: Callable[[Deployments], None]) -> Callable[[Deployments], None]:
    """Do it to a deployment that is ready."""

    def later(there: Deployments) -> None:
        there.until_ready()
        act(there)

    return later


def scale_up(there: Deployments) -> None:
    """Make a replica missing of what was looked at before."""
    wait_until(there.status, "it was looked at")
    there.patch(replicas=2)


def scale_to_none(there: Deployments) -> None:
    """Make the replicas surplus."""
    there.patch(replicas=0)


def move_port(there: Deployments) -> None:
    """Edit the Service."""
    there.patch(service={"port": 9000})


def want_no_budget(there: Deployments) -> None:
    """Make the PodDisruptionBudget surplus."""
    there.patch(podDisruptionBudget="None")


def edit_often(there: Deployments) -> None:
    """Make more revisions than are kept."""
    there.patch(replicas=0)
    for length in range(2048, 2048 + 7 * 1024, 1024):
        before = there.status().get("updatedRevision")
        there.patch(model={"maxModelLen": length})
        wait_until(lambda: there.status().get("updatedRevision") != before, "the revision is another")  # noqa: B023 # at once


def end_without_a_word(there: Deployments) -> None:
    """Let an engine end whose message does not tell the cause, until it is known what its log says."""
    message = "RuntimeError: Engine core initialization failed. See root cause above."
    there.annotate_pod(min(there.pods()), fault="exit", exit_code="1", message=message)
    told = "the end of its log could not be read"  # imitated nodes have no logs
    wait_until(lambda: told in there.condition("Available").get("message", ""), "it is told")


def start_late(there: Deployments) -> None:
    """Hold up a new replica, until it is known what its events say."""
    toleration = {"key": TAINT["key"], "operator": "Exists"}
    there.patch(podTemplate={"nodeSelector": {"kubernetes.io/hostname": SLOW}, "tolerations": [toleration]})
    stuck(there)
    told = {"MountFailed", "EventsUnreadable"}
    wait_until(lambda: there.condition("Ready").get("reason") in told, "it is told")


# -- where it is said that it is missing ---------------------------------------------------------------------------------
def condition(kind: str, found: str) -> Callable[[World, Permission], bool]:
    """In a condition, which has this status and reason."""

    def look(world: World, permission: Permission) -> bool:
        said = world.at(without(permission)).condition(kind)
        return f"{said.get('status')}/{said.get('reason')}" == found and _names(said["message"], permission)

    return look


def log(world: World, permission: Permission) -> bool:
    """In a line of the log, with the namespace."""
    lines = world.operator.text().splitlines()
    return any(without(permission) in line and _names(line, permission) for line in lines)


def _names(text: str, permission: Permission) -> bool:
    return f'cannot {permission.verb} resource "{permission.resource}"' in text or f"give {permission} to" in text


STUCK, NOT_AVAILABLE, UNKNOWN = (
    condition("Progressing", "False/PermissionMissing"),
    condition("Available", "False/PermissionMissing"),
    condition("Ready", "Unknown/PermissionMissing"),
)


# -- what goes on --------------------------------------------------------------------------------------------------------
def ready(there: Deployments) -> object:
    """Everything."""
    return there.condition("Ready").get("status") == "True"


def serves(there: Deployments) -> object:
    """What runs."""
    return there.condition("Available").get("status") == "True"


def runs(there: Deployments) -> object:
    """The pod, if not its status."""
    return there.ready_pods()


def elsewhere(there: Deployments) -> object:
    """Other namespaces."""
    return ready(Deployments(control_plane=there.control_plane, namespace=WHOLE))


def has(kind: str) -> Callable[[Deployments], object]:
    """What does not need it."""
    return lambda there: there.children(kind)


Loss = tuple[Callable[[Deployments], None], Callable[[World, Permission], bool], Callable[[Deployments], object]]
LOSSES: dict[str, Loss] = {
    "list vlmdeployments": (nothing, log, elsewhere),
    "watch vlmdeployments": (nothing, log, ready),
    "get vlmdeployments": (scale_up, UNKNOWN, elsewhere),
    "patch vlmdeployments/status": (nothing, log, runs),
    "update vlmdeployments/finalizers": (nothing, NOT_AVAILABLE, elsewhere),
    "list pods": (nothing, UNKNOWN, elsewhere),
    "watch pods": (nothing, log, ready),
    "get pods": (when_ready(strip("pods")), UNKNOWN, has("services")),
    "create pods": (nothing, NOT_AVAILABLE, has("services")),
    "patch pods": (when_ready(relabel("pods")), STUCK, serves),
    "delete pods": (when_ready(scale_to_none), STUCK, serves),
    "list services": (nothing, UNKNOWN, elsewhere),
    "watch services": (nothing, log, ready),
    "get services": (when_ready(strip("services")), STUCK, serves),
    "create services": (nothing, NOT_AVAILABLE, has("configmaps")),
    "patch services": (when_ready(move_port), STUCK, serves),
    "list configmaps": (nothing, UNKNOWN, elsewhere),
    "watch configmaps": (nothing, log, ready),
    "get configmaps": (when_ready(strip("configmaps")), STUCK, serves),
    "create configmaps": (nothing, NOT_AVAILABLE, has("services")),
    "patch configmaps": (when_ready(relabel("configmaps")), STUCK, serves),
    "list controllerrevisions": (nothing, UNKNOWN, elsewhere),
    "watch controllerrevisions": (nothing, log, ready),
    "get controllerrevisions": (when_ready(strip("controllerrevisions", group=APPS)), STUCK, serves),
    "create controllerrevisions": (nothing, NOT_AVAILABLE, has("services")),
    "patch controllerrevisions": (when_ready(relabel("controllerrevisions", group=APPS)), STUCK, serves),
    "delete controllerrevisions": (when_ready(edit_often), STUCK, serves),
    "list poddisruptionbudgets": (nothing, UNKNOWN, elsewhere),
    "watch poddisruptionbudgets": (nothing, log, ready),
    "get poddisruptionbudgets": (when_ready(strip("poddisruptionbudgets", group=POLICY)), STUCK, serves),
    "create poddisruptionbudgets": (nothing, NOT_AVAILABLE, has("services")),
    "patch poddisruptionbudgets": (when_ready(relabel("poddisruptionbudgets", group=POLICY)), STUCK, serves),
    "delete poddisruptionbudgets": (when_ready(want_no_budget), STUCK, serves),
    "list endpointslices": (when_ready(scale_to_none), log, runs),
    "get persistentvolumeclaims": (nothing, condition("WeightsReady", "Unknown/ClaimUnreadable"), ready),
    "create events": (nothing, log, ready),
    "list leases": (nothing, log, ready),
    # These two leave replicas that do not serve.
    "get pods/log": (when_ready(end_without_a_word), condition("Available", "False/EngineDied"), has("services")),
    "list events": (start_late, condition("Ready", "False/EventsUnreadable"), has("services")),
}


@pytest.mark.parametrize("permission", NAMESPACED, ids=str)
def test_without_it_that_is_said_and_the_rest_goes_on(world: World, permission: Permission) -> None:
    provoke, told, goes_on = LOSSES[str(permission)]
    there = world.at(without(permission))
    provoke(there)
    try:
        wait_until(lambda: told(world, permission), "it is said")
        wait_until(lambda: goes_on(there), "the rest goes on")
    except WaitTimeoutError as error:
        error.add_note(f"the status is {there.status()}")
        raise


def test_each_is_made_use_of_and_none_is_lacking(world: World) -> None:
    there = world.at(WHOLE)
    for provoke, _, _ in LOSSES.values():
        there.patch(replicas=1)
        provoke(there)
    there.patch(replicas=0)
    there.until("Progressing", "False", reason="Complete", timeout_seconds=60)
    calls = world.calls()
    used = {f"{call.verb} {call.resource}" for call in calls if call.namespace == WHOLE and call.allowed}
    # The API server itself asks for this one, of the plugin that looks after owner references.
    assert used | {"update vlmdeployments/finalizers"} == {str(one) for one in NAMESPACED} == set(LOSSES)
    assert [str(call) for call in calls if call.namespace == WHOLE and not call.allowed] == []


def test_a_permission_that_is_given_later_takes_effect(world: World) -> None:
    (listing,) = (one for one in NAMESPACED if str(one) == "list pods")
    there = world.at(without(listing))
    there.until("Ready", "Unknown")
    apply(world.plane.kubectl, role(ACCOUNT, rules(NAMESPACED), namespace=there.namespace, account=ACCOUNT))
    there.until_ready()


def test_roles_are_enough_and_what_only_a_cluster_role_allows_is_said_once(world: World) -> None:
    there = world.at(WHOLE)
    there.api.post("/apis/storage.k8s.io/v1/storageclasses", LATE)
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "late"}, "spec": claim}
    there.api.post(there.core("persistentvolumeclaims"), body)
    there.create("late", weights={"persistentVolumeClaim": {"claimName": "late"}})
    said = there.until("WeightsReady", "Unknown", reason="StorageClassUnreadable", name="late")
    assert 'cannot get resource "storageclasses"' in said["message"]
    assert world.operator.text().count('cannot list resource "nodes"') == 1
    asked = {call for call in world.calls() if not call.namespace and not call.resource.startswith("/")}
    cluster_wide = {call for call in asked if call.resource != "selfsubjectaccessreviews"}  # everybody may
    assert {f"{call.verb} {call.resource}" for call in cluster_wide} == {
        str(one) for one in PERMISSIONS if one.scope is Scope.CLUSTER
    }


@pytest.mark.parametrize(
    "what",
    [
        "get secrets",
        "list secrets",
        "create pods --subresource=exec",
        "create serviceaccounts --subresource=token",
        "create rolebindings.rbac.authorization.k8s.io",
        "patch clusterroles.rbac.authorization.k8s.io",
        "impersonate serviceaccounts",
        "patch nodes",
        "patch vlmdeployments.vlm.dev",
        "delete vlmdeployments.vlm.dev",
        "delete services",
        "delete persistentvolumeclaims",
    ],
)
def test_an_installation_does_not_give_it_the_right(world: World, what: str) -> None:
    operator_kubeconfig(world.plane)
    with pytest.raises(ControlPlaneError, match="no"):
        world.plane.kubectl("auth", "can-i", *what.split(), "--all-namespaces", f"--as={USERS}vlm-operator")


@pytest.mark.parametrize("permission", LEASES, ids=str)
def test_without_it_there_is_no_leader_and_that_is_said(world: World, permission: Permission, tmp_path: Path) -> None:
    account, plane = without(permission), world.plane
    apply(plane.kubectl, [service_account(account), _namespace(account)])
    left = rules(one for one in LEASES if one is not permission)
    apply(plane.kubectl, role(account, left, namespace=account, account=account))
    apply(plane.kubectl, role(account, rules(NAMESPACED), namespace=WHOLE, account=account))
    wait_until_allowed(plane.kubectl, "list", "pods", f"--namespace={WHOLE}", account=account)
    kubeconfig = write_account_kubeconfig(tmp_path / "k", plane.kubectl, like=plane.kubeconfig, account=account)
    elect = ("--leader-elect", f"--leader-elect-namespace={account}", f"--namespace={WHOLE}")
    quick = ("--leader-elect-deadline-seconds=3", "--leader-elect-retry-seconds=0.5")
    operator = RunningOperator(plane, account, (*elect, *quick), kubeconfig)
    operator.launch()
    words = f'cannot {permission.verb} resource "leases"'
    if permission.verb == "patch":
        # It could begin to lead, and cannot stay the leader.
        wait_until(lambda: account in plane.ended_programs(), "it has ended")
        assert "is lost: it was not renewed for 3 s" in operator.text().splitlines()[-1]
        assert words in operator.text().splitlines()[-1]
    else:
        wait_until(lambda: words in operator.answer("/readyz")[1], "it is said")
        assert operator.answer("/readyz")[0] == 503
        assert operator.answer("/healthz") == (200, "ok")
    operator.stop()
