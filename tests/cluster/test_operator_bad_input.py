"""What users and clusters do wrong: each is named with a way out, nothing is lost and nothing crashes."""

import random
import re
from typing import Any

import pytest

from cluster.support.operator import Deployments, RunningOperator
from controlplane import ApiError, wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


@pytest.mark.parametrize(
    ("field", "spec"),
    [
        ("spec.scaling.policy", {"scaling": {"maxReplicas": 4, "policy": "Targets"}}),
        ("spec.scaling.targets", {"scaling": {"maxReplicas": 4, "targets": {"queueDepth": 4}}}),
        ("spec.scaling.behavior", {"scaling": {"maxReplicas": 4, "behavior": {"scaleDown": {}}}}),
        (
            "spec.scaling.schedules",
            {"scaling": {"maxReplicas": 4, "schedules": [{"schedule": "0 7 * * *", "minReplicas": 1}]}},
        ),
        ("spec.weights.csi", {"weights": {"csi": {"driver": "s3.csi.example.com"}}}),
        ("spec.weights.image", {"weights": {"image": {"reference": "models/qwen:1"}}}),
        ("spec.weights.huggingFace", {"weights": {"huggingFace": {}}}),
        (
            "spec.weights.persistentVolumeClaim.prefetch",
            {"weights": {"persistentVolumeClaim": {"claimName": "models", "prefetch": {"uri": "s3://bucket/folder"}}}},
        ),
        ("spec.podTemplate.compileCache", {"podTemplate": {"compileCache": {"claimName": "cache"}}}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_field_that_nothing_acts_on_yet_is_refused(
    deployments: Deployments, field: str, spec: dict[str, Any]
) -> None:
    deployments.create(**spec)
    refused = deployments.until("Accepted", "False", reason="NotSupportedYet")
    assert field in refused["message"]
    assert "not supported yet" in refused["message"]
    assert deployments.condition("Ready")["reason"] == "NotSupportedYet"
    assert not deployments.pods()


def test_an_argument_that_fights_a_field_is_refused(deployments: Deployments) -> None:
    deployments.create(engine={"args": ["--tensor-parallel-size", "2"]})
    refused = deployments.until("Accepted", "False")
    assert "spec.engine.args[0]" in refused["message"]
    assert "parallelism.tensor" in refused["message"]


def test_a_refused_edit_changes_nothing_that_runs(deployments: Deployments) -> None:
    deployments.create(replicas=2)
    deployments.until_ready()
    revision, uids = deployments.revision(), _uids(deployments)
    later = {"scaling": {"maxReplicas": 9, "policy": "Targets"}}
    deployments.patch(replicas=5, model={"maxModelLen": 4096}, service={"port": 9000}, **later)
    deployments.until("Accepted", "False")
    assert deployments.condition("Available")["status"] == "True"
    assert deployments.condition("Ready")["status"] == "False"
    assert (_uids(deployments), deployments.revision()) == (uids, revision)
    # What fails meanwhile is still replaced, from the revision that was accepted, and the Service still repaired.
    name = min(deployments.pods())
    deployments.api.delete(deployments.core("pods", name), {"gracePeriodSeconds": 0})
    deployments.api.delete(deployments.core("services", "qwen"))
    pods = deployments.until_pods(lambda pods: len(pods) == 2 and _uids(deployments) != uids, "are two again")
    assert all(revision in name for name in pods)
    wait_until(lambda: deployments.api.get(deployments.core("services", "qwen")), "the Service is there")
    assert deployments.api.get(deployments.core("services", "qwen"))["spec"]["ports"][0]["port"] == 8000
    deployments.patch(scaling=None)
    deployments.until_ready(timeout_seconds=60)
    assert len(deployments.ready_pods()) == 5


@pytest.mark.parametrize("name", ["qwen.2", "Qwen", "q" * 41, "2qwen", "-qwen", "qwen-"])
def test_names_that_cannot_name_pods_and_a_service_are_refused(deployments: Deployments, name: str) -> None:
    with pytest.raises(ApiError, match="lower") as refused:
        deployments.create(name)
    assert refused.value.status == 422


def test_a_claim_that_does_not_exist_is_named(deployments: Deployments) -> None:
    deployments.create(weights={"persistentVolumeClaim": {"claimName": "nowhere"}})
    missing = deployments.until("WeightsReady", "False", reason="ClaimNotFound")
    assert "nowhere" in missing["message"]
    assert "spec.weights.persistentVolumeClaim.claimName" in missing["message"]
    waiting = deployments.until("Available", "False", reason="Unschedulable")
    assert 'persistentvolumeclaim "nowhere" not found' in waiting["message"]
    deployments.control_plane.bound_claim(deployments.namespace, "nowhere")
    deployments.until_ready(timeout_seconds=60)
    deployments.until("WeightsReady", "True", reason="ClaimBound")


def test_an_exhausted_quota_is_told_in_the_servers_words_and_retried_without_a_storm(
    operator: RunningOperator, deployments: Deployments
) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "gpus"}}
    hard = {"requests.nvidia.com/gpu": "1"}
    deployments.api.post(deployments.core("resourcequotas"), quota | {"spec": {"hard": hard}})
    wait_until(
        lambda: deployments.api.get(deployments.core("resourcequotas", "gpus"))["status"].get("hard"), "the quota holds"
    )
    deployments.create(replicas=3)
    refused = deployments.until("Available", "False", reason="AdmissionRefused")
    assert "exceeded quota: gpus" in refused["message"]
    assert len(deployments.pods()) == 1
    failures = deployments.status()["failures"]
    assert {failure["reason"] for failure in failures} == {"AdmissionRefused"}
    tries = len(re.findall(rf"{deployments.namespace}/qwen: create replica .*: not done", operator.text()))
    assert tries <= 4
    more = {"spec": {"hard": {"requests.nvidia.com/gpu": "3"}}}
    deployments.api.merge_patch(deployments.core("resourcequotas", "gpus"), more)
    deployments.until_ready(timeout_seconds=90)
    assert not deployments.status().get("failures")


def test_a_limit_range_that_forbids_the_pod_is_told(deployments: Deployments) -> None:
    limits = [{"type": "Container", "max": {"memory": "512Mi"}}]
    body = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}, "spec": {"limits": limits}}
    deployments.api.post(deployments.core("limitranges"), body)
    deployments.create()
    refused = deployments.until("Available", "False", reason="AdmissionRefused")
    assert "memory" in refused["message"]


def test_a_namespace_that_enforces_the_restricted_standard_takes_the_pods(deployments: Deployments) -> None:
    _label_namespace(deployments, {"pod-security.kubernetes.io/enforce": "restricted"})
    deployments.create()
    deployments.until_ready()


def test_a_policy_that_refuses_the_pod_is_told_in_its_words_and_asked_again(
    operator: RunningOperator, deployments: Deployments
) -> None:
    # The pods obey the strictest Pod Security standard, so a policy of the cluster's own stands in for it.
    name = f"no-gpus-{deployments.namespace}"
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    group = "/apis/admissionregistration.k8s.io/v1"
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": "false", "message": "GPU pods need a cost centre"}],
        },
    }
    selector = {"matchLabels": {"kubernetes.io/metadata.name": deployments.namespace}}
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": selector},
        },
    }
    deployments.api.post(f"{group}/validatingadmissionpolicies", policy)
    deployments.api.post(f"{group}/validatingadmissionpolicybindings", binding)
    probe = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe"},
        "spec": {"containers": [{"name": "probe", "image": "probe:1"}]},
    }
    wait_until(lambda: _refused(deployments, probe), "the policy is in force")
    deployments.create(replicas=2)
    refused = deployments.until("Available", "False", reason="AdmissionRefused")
    assert "GPU pods need a cost centre" in refused["message"]
    tries = len(re.findall(rf"{deployments.namespace}/qwen: create replica .*: not done", operator.text()))
    assert tries <= 4
    deployments.api.delete(f"{group}/validatingadmissionpolicybindings/{name}")
    deployments.api.delete(f"{group}/validatingadmissionpolicies/{name}")
    deployments.until_ready(timeout_seconds=90)


def _label_namespace(deployments: Deployments, labels: dict[str, str]) -> None:
    deployments.api.merge_patch(f"/api/v1/namespaces/{deployments.namespace}", {"metadata": {"labels": labels}})


def _refused(deployments: Deployments, pod: dict[str, Any]) -> bool:
    try:
        deployments.api.post(f"{deployments.core('pods')}?dryRun=All", pod)
    except ApiError:
        return True
    return False


def test_an_image_that_cannot_be_pulled_is_explained(deployments: Deployments) -> None:
    deployments.create(weights={"persistentVolumeClaim": {"claimName": "later"}})
    name = min(deployments.until_pods(len, "are one"))
    deployments.annotate_pod(name, fault="image-pull")
    deployments.control_plane.bound_claim(deployments.namespace, "later")
    explained = deployments.until("Available", "False", reason="ImagePull", timeout_seconds=60)
    assert "vllm/vllm-openai" in explained["message"]


def test_an_engine_that_exits_is_explained(deployments: Deployments) -> None:
    deployments.create()
    deployments.until_ready()
    message = "ValueError: No available memory for the cache blocks."
    deployments.annotate_pod(min(deployments.pods()), fault="exit", exit_code="1", message=message)
    explained = deployments.until("Available", "False", reason="KVCacheTooSmall")
    assert "code 1: ValueError: No available memory for the cache blocks." in explained["message"]
    assert "lower spec.model.maxModelLen" in explained["message"]


def test_five_hundred_edits_in_a_row_end_in_the_right_state(deployments: Deployments) -> None:
    deployments.create()
    randomness = random.Random(20261130)
    for _ in range(500):
        edit = randomness.choice(
            [
                {"replicas": randomness.randint(0, 4)},
                {"model": {"maxModelLen": randomness.choice([2048, 4096, 8192])}},
                {"service": {"port": randomness.choice([8000, 9000])}},
                {"drain": {"timeout": randomness.choice(["10s", "20s"])}},
                {"warmPool": randomness.choice([None, {"size": 1, "mode": "Standby"}])},
            ]
        )
        deployments.patch(**edit)
    deployments.patch(
        replicas=2, model={"maxModelLen": 16384}, service={"port": 8443}, drain={"timeout": "1s"}, warmPool=None
    )
    deployments.until_ready(timeout_seconds=120)
    pods = deployments.until_pods(lambda pods: len(pods) == 2, "are two")
    arguments = next(iter(pods.values()))["spec"]["containers"][0]["args"]
    assert arguments[arguments.index("--max-model-len") + 1] == "16384"
    assert deployments.api.get(deployments.core("services", "qwen"))["spec"]["ports"][0]["port"] == 8443
    stored = deployments.children("controllerrevisions", group="/apis/apps/v1")
    wait_until(
        lambda: len(deployments.children("controllerrevisions", group="/apis/apps/v1")) <= 6,
        f"of {len(stored)} six are left",
    )


def _uids(deployments: Deployments) -> set[str]:
    return {pod["metadata"]["uid"] for pod in deployments.pods().values()}
