"""What an installation gives to the operator in a cluster: a ServiceAccount and its rights. For tests, demo and benches.

They run the operator from the checkout, but as this account and with these rights, never as administrator.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml

from controlplane import Call, ControlPlane, ControlPlaneError, wait_until
from controlplane.kubeconfig import write_token_kubeconfig
from vlm_operator.runtime.permissions import rules_by_scope

Object = dict[str, Any]
Kubectl = Callable[..., str]
"""Runs kubectl as administrator, with `input` if given, and returns what it prints."""

BASE = Path(__file__).parents[1] / "manifests" / "base"
ACCESS = {"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
"""Kinds of objects that give rights."""
NAMESPACE, ACCOUNT = "vlm-system", "vlm-operator"
USERS = f"system:serviceaccount:{NAMESPACE}:"
"""How the API server calls the account, and those of installations with fewer rights."""
TOKEN_HOURS = 720
"""Longer than any control plane runs."""


def operator_kubeconfig(plane: ControlPlane) -> Path:
    """A kubeconfig of the operator's ServiceAccount, which is installed first if it is not there."""
    path = plane.dir / "operator.kubeconfig"
    if not path.exists():
        install_account(plane.kubectl)
        write_account_kubeconfig(path, plane.kubectl, like=plane.kubeconfig)
    return path


def install_account(kubectl: Kubectl) -> None:
    """Install the account with its rights, and return when they are in force."""
    apply(kubectl, objects())
    wait_until_allowed(kubectl, "list", "pods", "--all-namespaces")
    wait_until_allowed(kubectl, "create", "leases", f"--namespace={NAMESPACE}")


def allow_lease(kubectl: Kubectl, namespace: str) -> None:
    """Let the account have its Lease in another namespace than its own."""
    apply(kubectl, role(ACCOUNT, rules_by_scope()["operatorNamespace"], namespace=namespace))
    wait_until_allowed(kubectl, "create", "leases", f"--namespace={namespace}")


def write_account_kubeconfig(path: Path, kubectl: Kubectl, *, like: Path, account: str = ACCOUNT) -> Path:
    """Write a kubeconfig of an account for the cluster that `like` names."""
    token = kubectl("create", "token", account, f"--namespace={NAMESPACE}", f"--duration={TOKEN_HOURS}h").strip()
    return write_token_kubeconfig(path, like=like, user=account, token=token)


def refused(calls: Iterable[Call]) -> list[str]:
    """Those of the calls that the operator had no right to make."""
    return [str(call) for call in calls if not call.allowed and call.user.startswith(USERS)]


def objects() -> list[Object]:
    """Of what an installation with kustomize has: the account, its namespace, its roles and what binds them."""
    files = (BASE / name for name in ("namespace.yaml", "vlm-operator.yaml"))
    found = [found for file in files for found in yaml.safe_load_all(file.read_text()) if found]
    return [one for one in found if one["kind"] in ACCESS]


def service_account(name: str) -> Object:
    """A ServiceAccount in the namespace of the operator."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}}


def role(name: str, rules: list[Object], *, namespace: str = "", account: str = ACCOUNT) -> list[Object]:
    """A Role, or without a namespace a ClusterRole, and its binding to an account in the operator's namespace."""
    kind, place = ("Role", {"namespace": namespace}) if namespace else ("ClusterRole", {})
    group = "rbac.authorization.k8s.io"
    head = {"apiVersion": f"{group}/v1", "metadata": {"name": name, **place}}
    return [
        head | {"kind": kind, "rules": rules},
        head
        | {
            "kind": f"{kind}Binding",
            "roleRef": {"apiGroup": group, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
        },
    ]


def apply(kubectl: Kubectl, items: list[Object]) -> None:
    """Create or change objects."""
    kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def wait_until_allowed(kubectl: Kubectl, *what: str, account: str = ACCOUNT) -> None:
    """Return when an account may do something, in the words of `kubectl auth can-i`."""

    def look() -> bool:
        try:
            return kubectl("auth", "can-i", *what, f"--as={USERS}{account}").strip() == "yes"
        except ControlPlaneError:  # "no" is an exit status, too
            return False

    wait_until(look, "the rights are in force")
