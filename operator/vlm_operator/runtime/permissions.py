"""What the operator may do in a cluster, and why: the one list that chart, manifests and reference page are made from.

A call that is not in this list is refused by the API server: whoever adds a call adds its line here, and `make generate`
writes the rest. Everybody may ask for the version, for what the API server serves and for what they may do; that needs no
line. No Secret is read.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from vlm_operator.api.names import OPERATOR
from vlm_operator.runtime.kinds import (
    BUDGET,
    CLAIM,
    CONFIG_MAP,
    CONTROLLER_REVISION,
    ENDPOINT_SLICE,
    EVENT,
    LEASE,
    NODE,
    POD,
    SERVICE,
    STORAGE_CLASS,
    VLM_DEPLOYMENT,
    Kind,
)


class Scope(StrEnum):
    """Where a permission is needed."""

    NAMESPACED = "namespaced"
    """In every namespace that is served."""
    OPERATOR_NAMESPACE = "operatorNamespace"
    """In the namespace of the operator itself."""
    CLUSTER = "cluster"
    """In the whole cluster. An installation without any of these works, and knows less."""


@dataclass(frozen=True, kw_only=True)
class Permission:
    """One verb on one resource."""

    verb: str
    kind: Kind
    part: str = ""
    """Subresource; empty for the object itself."""
    names: tuple[str, ...] = ()
    """The only objects that it is needed for; empty: any."""
    scope: Scope = Scope.NAMESPACED
    why: str

    @property
    def resource(self) -> str:
        """The resource as RBAC calls it."""
        return f"{self.kind.plural}/{self.part}" if self.part else self.kind.plural

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


def _children(kind: Kind, *, what: str, and_list_to: str = "") -> tuple[Permission, ...]:
    """What is needed for every kind that the operator creates."""
    why_list = f"know {what} before anything is planned, and find what a watch missed{and_list_to}"
    return (
        Permission(verb="list", kind=kind, why=why_list),
        Permission(verb="watch", kind=kind, why=f"see at once what becomes of {what}"),
        Permission(
            verb="get", kind=kind, why="look at one that lost its label, and at a stranger with the name of one"
        ),
        Permission(verb="create", kind=kind, why=f"create {what}"),
    )


PERMISSIONS: tuple[Permission, ...] = (
    Permission(verb="list", kind=VLM_DEPLOYMENT, why="know the VLMDeployments, and find what a watch missed"),
    Permission(verb="watch", kind=VLM_DEPLOYMENT, why="see edits of VLMDeployments at once"),
    Permission(verb="patch", kind=VLM_DEPLOYMENT, part="status", why="report status and conditions"),
    Permission(
        verb="get",
        kind=VLM_DEPLOYMENT,
        why="make nothing anew for one that was deleted, and report on one that was edited, though the watch is late",
    ),
    Permission(
        verb="update",
        kind=VLM_DEPLOYMENT,
        part="finalizers",
        why="be allowed owner references that block the deletion of a VLMDeployment in the foreground until its children are "
        "gone; the admission plugin OwnerReferencesPermissionEnforcement asks for it. No finalizer is set",
    ),
    *_children(POD, what="the replicas"),
    Permission(
        verb="patch", kind=POD, why="take replicas into rotation and out of it, put back labels and the engine's image"
    ),
    Permission(verb="delete", kind=POD, why="remove replicas that are surplus, outdated or have failed"),
    Permission(
        verb="get",
        kind=POD,
        part="log",
        why="tell why an engine failed: the cause of what fails in its processes stands in its log alone. Read is the end of "
        "the log of an engine that ended, once for each time",
    ),
    *_children(SERVICE, what="the Services"),
    Permission(verb="patch", kind=SERVICE, why="apply edits of spec.service, and put back what somebody changed"),
    *_children(CONFIG_MAP, what="the scripts of the replicas"),
    Permission(verb="patch", kind=CONFIG_MAP, why="bring the scripts up to date, and put back what somebody changed"),
    *_children(CONTROLLER_REVISION, what="the stored revisions"),
    Permission(
        verb="patch",
        kind=CONTROLLER_REVISION,
        why="number a revision that is wanted again as the newest, note that it was available or failed, put back labels",
    ),
    Permission(verb="delete", kind=CONTROLLER_REVISION, why="remove revisions beyond the history limit"),
    *_children(
        BUDGET,
        what="the PodDisruptionBudgets",
        and_list_to="; warn of those of others that select the same replicas",
    ),
    Permission(
        verb="patch", kind=BUDGET, why="follow the number of serving replicas, and put back what somebody changed"
    ),
    Permission(verb="delete", kind=BUDGET, why="remove one that spec.podDisruptionBudget does not want any more"),
    Permission(
        verb="list", kind=ENDPOINT_SLICE, why="tell whether clients are still sent to a replica that is to leave"
    ),
    Permission(verb="get", kind=CLAIM, why="tell whether the claim with the weights exists and is bound"),
    Permission(verb="create", kind=EVENT, why="record events about VLMDeployments"),
    Permission(
        verb="list",
        kind=EVENT,
        why="tell why a replica's containers are not created, such as a volume that cannot be mounted, and whether an autoscaler "
        "adds a node for one that has none; asked for pods only for which that takes long",
    ),
    Permission(verb="list", kind=LEASE, why="see other installations of the operator, and stand by for an older one"),
    Permission(verb="create", kind=LEASE, scope=Scope.OPERATOR_NAMESPACE, why="begin the leader election"),
    Permission(
        verb="get",
        kind=LEASE,
        names=(OPERATOR,),
        scope=Scope.OPERATOR_NAMESPACE,
        why="see which of several operators leads",
    ),
    Permission(
        verb="patch",
        kind=LEASE,
        names=(OPERATOR,),
        scope=Scope.OPERATOR_NAMESPACE,
        why="take the lead, keep it and give it back",
    ),
    Permission(
        verb="list",
        kind=NODE,
        scope=Scope.CLUSTER,
        why="refuse replicas with more GPUs than any node of the cluster has, and replace those on cordoned nodes",
    ),
    Permission(
        verb="get",
        kind=STORAGE_CLASS,
        scope=Scope.CLUSTER,
        why="tell a claim that waits for its first replica from one that nothing will ever bind",
    ),
)


def rules(permissions: Iterable[Permission]) -> list[dict[str, Any]]:
    """The permissions as rules of an RBAC role: one rule for each resource, and for each set of names."""
    verbs: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for permission in permissions:
        verbs.setdefault((permission.kind.group, permission.resource, permission.names), []).append(permission.verb)
    return [
        {"apiGroups": [group], "resources": [resource]}
        | ({"resourceNames": list(names)} if names else {})
        | {"verbs": allowed}
        for (group, resource, names), allowed in verbs.items()
    ]


def rules_by_scope() -> dict[str, list[dict[str, Any]]]:
    """All rules, under the names of their scopes."""
    return {scope.value: rules(p for p in PERMISSIONS if p.scope is scope) for scope in Scope}
