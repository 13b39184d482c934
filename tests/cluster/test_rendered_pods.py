"""What is rendered passes the real API server: strict field validation, Pod Security `restricted`, admission."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from controlplane import Api, ApiError, ControlPlane, wait_until
from strategies import supported_specs
from unit.engines.golden_files import NAMES, rendered, rendered_from, resource_and_pod
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.engines.base import PodInputs

pytestmark = pytest.mark.cluster

EXISTING = ("serviceAccountName", "priorityClassName", "runtimeClassName", "imagePullSecrets")
"""Fields of a pod that name objects which admission wants to exist."""
PRIORITY = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "serving"},
    "value": 1000,
}
RUNTIME = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "nvidia"}


@pytest.fixture(scope="module")
def classes(control_plane: ControlPlane) -> Iterator[None]:
    """The classes that a golden pod names: admission wants them to exist."""
    paths = {"/apis/scheduling.k8s.io/v1/priorityclasses": PRIORITY, "/apis/node.k8s.io/v1/runtimeclasses": RUNTIME}
    for path, body in paths.items():
        control_plane.api.post(path, body)
    yield
    for path, body in paths.items():
        control_plane.api.delete(f"{path}/{body['metadata']['name']}")  # type: ignore[index]


@pytest.fixture
def restricted(control_plane: ControlPlane, namespace: str, classes: None) -> str:  # noqa: ARG001 # it must exist
    """A namespace that enforces Pod Security `restricted`, with the ServiceAccounts that golden pods use."""
    api, path = control_plane.api, f"/api/v1/namespaces/{namespace}"
    api.merge_patch(path, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
    api.post(f"{path}/serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "engine"}})
    wait_until(lambda: api.get(f"{path}/serviceaccounts/default"), "the default ServiceAccount exists")
    return namespace


def create_dry(api: Api, namespace: str, pod: dict[str, Any]) -> dict[str, Any]:
    """What the API server would store."""
    moved = pod | {"metadata": pod["metadata"] | {"namespace": namespace}}
    stored: dict[str, Any] = api.post(f"/api/v1/namespaces/{namespace}/pods?dryRun=All&fieldValidation=Strict", moved)
    return stored


def without_additions(ours: Any, stored: Any) -> Any:
    """`stored` reduced to the fields that `ours` has: the API server adds defaults, admission adds tolerations.

    An empty text is not stored at all.
    """
    if isinstance(ours, dict) and isinstance(stored, dict):
        return {key: without_additions(value, stored.get(key, "")) for key, value in ours.items()}
    if isinstance(ours, list) and isinstance(stored, list):
        return [without_additions(one, other) for one, other in zip(ours, stored, strict=False)]
    return stored


def test_every_golden_pod_passes_and_is_stored_as_written(control_plane: ControlPlane, restricted: str) -> None:
    for name in NAMES:
        pod = rendered(resource_and_pod(name)[0])
        stored = create_dry(control_plane.api, restricted, pod)
        assert without_additions(pod["spec"], stored["spec"]) == pod["spec"], name
        assert stored["metadata"]["labels"] == pod["metadata"]["labels"], name
        assert stored["metadata"].get("annotations", {}) == pod["metadata"]["annotations"], name


@settings(max_examples=40, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(spec=supported_specs())
def test_the_pod_of_any_spec_is_a_restricted_one(
    control_plane: ControlPlane, restricted: str, spec: VLMDeploymentSpec
) -> None:
    if spec.parallelism.tensor == "Auto":
        spec = spec.model_copy(update={"parallelism": spec.parallelism.model_copy(update={"tensor": 1})})
    pod = rendered_from(PodInputs.of(spec), "any")
    for name in EXISTING:
        pod["spec"].pop(name, None)
    del pod["spec"]["containers"][0]["resources"]  # numbers at random do not go together
    create_dry(control_plane.api, restricted, pod)


def test_the_namespace_refuses_a_pod_with_more_rights(control_plane: ControlPlane, restricted: str) -> None:
    pod = rendered(resource_and_pod("minimal")[0])
    del pod["spec"]["containers"][0]["securityContext"]
    with pytest.raises(ApiError, match="violates PodSecurity"):
        create_dry(control_plane.api, restricted, pod)


def test_the_validation_refuses_an_unknown_field(control_plane: ControlPlane, restricted: str) -> None:
    pod = rendered(resource_and_pod("minimal")[0])
    pod["spec"]["enableServiceLink"] = False
    with pytest.raises(ApiError, match="unknown field"):
        create_dry(control_plane.api, restricted, pod)
