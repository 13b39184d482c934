"""The list of permissions: what is never in it, and what is made from it."""

from pathlib import Path

import pytest
import yaml

from permission_rules import main
from reference_docs import permissions_page
from vlm_operator.runtime.permissions import PERMISSIONS, Scope, rules, rules_by_scope

FILE = Path(__file__).parents[3] / "charts" / "vlm-operator" / "files" / "permissions.yaml"


def test_no_permission_is_there_twice() -> None:
    assert len({str(one) for one in PERMISSIONS}) == len(PERMISSIONS)


def test_no_permission_reads_secrets_or_leads_to_other_rights() -> None:
    resources = {(one.kind.group, one.kind.plural) for one in PERMISSIONS}
    assert not {group for group, _ in resources} & {"rbac.authorization.k8s.io", "certificates.k8s.io", "*"}
    assert not {plural for _, plural in resources} & {"secrets", "serviceaccounts", "*"}
    assert {one.verb for one in PERMISSIONS} <= {"get", "list", "watch", "create", "update", "patch", "delete"}
    assert {one.part for one in PERMISSIONS} == {"", "status", "finalizers"}
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
    found = {
        (scope, group, resource, verb, tuple(rule.get("resourceNames", ())))
        for scope, listed in yaml.safe_load(FILE.read_text()).items()
        for rule in listed
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert found == {(one.scope, one.kind.group, one.resource, one.verb, one.names) for one in PERMISSIONS}


def test_rules_with_names_stand_apart() -> None:
    leases = rules(one for one in PERMISSIONS if one.kind.plural == "leases")
    assert [(rule["verbs"], rule.get("resourceNames")) for rule in leases] == [
        (["create"], None),
        (["get", "patch"], ["vlm-operator"]),
    ]
    assert set(rules_by_scope()) == {"namespaced", "operatorNamespace", "cluster"}
