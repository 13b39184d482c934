"""What the API server's words say about a refusal. The words are those of Kubernetes 1.36."""

import pytest

from unit.replicas.tables import table
from vlm_operator.replicas.refusal import ADMISSION_REFUSED, PERMISSION_MISSING, Refusal

ROLE = (
    'pods is forbidden: User "system:serviceaccount:vlm-system:vlm-operator" cannot create resource "pods" in API group ""'
    ' in the namespace "a"'
)
OWNER = (
    'services "m" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can\'t set'
    " finalizers on: , <nil>"
)
NEW_CRD = (
    'services "m" is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion'
    " vlm.dev/v1alpha1 Kind VLMDeployment: no matches"
)
QUOTA = 'pods "m-0" is forbidden: exceeded quota: gpus, requested: pods=1, used: pods=2, limited: pods=2'
ENDS = 'configmaps "m" is forbidden: unable to create new content in namespace a because it is being terminated'

WORDS = [
    ("the role lacks a permission", ROLE, PERMISSION_MISSING, f"{ROLE}; give this permission to the operator's ServiceAccount"),
    ("the owner must not block deletions", OWNER, PERMISSION_MISSING,
     f"{OWNER}; give update vlmdeployments/finalizers to the operator's ServiceAccount"),
    ("a quota is full", QUOTA, ADMISSION_REFUSED, QUOTA),
    ("a policy quotes a user", 'denied: User "x" is no friend', ADMISSION_REFUSED, 'denied: User "x" is no friend'),
]  # fmt: skip


@table("message, reason, sentence", WORDS)
def test_what_admission_and_roles_refuse(message: str, reason: str, sentence: str) -> None:
    refusal = Refusal(code=403, message=message)
    assert refusal.by_admission
    assert (refusal.reason, refusal.sentence) == (reason, sentence)


def test_an_owner_whose_crd_is_new_is_accepted_a_little_later() -> None:
    refusal = Refusal(code=403, message=NEW_CRD)
    assert (refusal.passing, refusal.by_admission, refusal.lacks_permission) == (True, False, False)


@pytest.mark.parametrize("code", [0, 400, 403, 404, 409, 422, 429, 500, 503])
@pytest.mark.parametrize("message", ["no", ENDS, NEW_CRD, ROLE, OWNER])
def test_a_refusal_is_of_one_kind_at_most(code: int, message: str) -> None:
    refusal = Refusal(code=code, message=message)
    assert [refusal.by_admission, refusal.namespace_ends, refusal.passing].count(True) <= 1
    assert not refusal.lacks_permission or refusal.by_admission
