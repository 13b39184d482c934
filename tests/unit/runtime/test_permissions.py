"""The list of permissions: what is never in it, and what is made from it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import installation
from permission_rules import main
from reference_docs import permissions_page
from vlm_operator.runtime.permissions import PERMISSIONS, Permission, Scope, rules, rules_by_scope

ACCOUNT = {"kind": "ServiceAccount", "name": installation.ACCOUNT, "namespace": installation.NAMESPACE}
FILE = Path(__file__).parents[3] / "charts" / "vlm-operator" / "files" / "permissions.yaml"


def test_no_permission_is_there_twice() -> None:
    assert len({str(one) for one in PERMISSIONS}) == len(PERMISSIONS)


def test_no_permission_reads_secrets_or_leads_to_other_rights() -> None:
    resources = {(one.kind.group, one.kind.plural) for one in PERMISSIONS}
    assert not {group for group, _ in resources} & {"rbac.authorization.k8s.io", "certificates.k8s.io", "*"}
    assert not {plural for _, plural in resources} & {"secrets", "serviceaccounts", "*"}
    assert {one.verb for one in PERMISSIONS} <= {"get", "list", "watch", "create", "update", "patch", "delete"}
    assert {one.part for one in PERMISSIONS} == {"", "status", "finalizers", "log"}
    assert not [str(one) for one in PERMISSIONS if one.scope is Scope.CLUSTER and one.verb not in {"get", "list"}]


def test_an_object_is_updated_by_patches_alone() -> None:
    assert [str(one) for one in PERMISSIONS if one.verb == "update"] == ["update vlmdeployments/finalizers"]


def test_every_permission_says_why() -> None:
    page = permissions_page()
    for one in PERMISSIONS:
        assert len(one.why.split()) >= 3
        assert f"{one.verb} | {one.why} |" in page


def test_the_file_of_the_chart_holds_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    assert capsys.readouterr().out == FILE.read_text()
    listed = yaml.safe_load(FILE.read_text())
    assert set(listed) == set(Scope)
    for scope, its_rules in listed.items():
        assert allowed_by(its_rules) == {in_rbac(one) for one in PERMISSIONS if one.scope == scope}


def test_the_manifests_give_the_operator_exactly_the_list() -> None:
    objects = {(one["kind"], one["metadata"]["name"]): one for one in installation.objects()}
    bound = {
        scope: [
            rule
            for (kind, _), binding in objects.items()
            if kind == f"{scope}Binding" and binding["subjects"] == [ACCOUNT]
            for rule in objects[scope, binding["roleRef"]["name"]]["rules"]
        ]
        for scope in ("ClusterRole", "Role")
    }
    own = {in_rbac(one) for one in PERMISSIONS if one.scope is Scope.OPERATOR_NAMESPACE}
    assert allowed_by(bound["Role"]) == own
    assert allowed_by(bound["ClusterRole"]) == {in_rbac(one) for one in PERMISSIONS} - own


def allowed_by(its_rules: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
    return {
        (group, resource, verb, tuple(rule.get("resourceNames", ())))
        for rule in its_rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def in_rbac(permission: Permission) -> tuple[Any, ...]:
    return permission.kind.group, permission.resource, permission.verb, permission.names


def test_rules_with_names_stand_apart() -> None:
    leases = rules(one for one in PERMISSIONS if one.kind.plural == "leases")
    assert [(rule["verbs"], rule.get("resourceNames")) for rule in leases] == [
        (["list", "create"], None),
        (["get", "patch"], ["vlm-operator"]),
    ]
    assert set(rules_by_scope()) == {"namespaced", "operatorNamespace", "cluster"}
