"""A revision is a hash of what shapes a pod, as it is meant and not as it is spelled."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import raw_supported_specs, specs
from unit.replicas.examples import OURS, PLACE, inputs, raw_spec, resolved
from unit.replicas.tables import table
from vlm_operator.api.resource import read_spec
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.engines.base import PodInputs
from vlm_operator.replicas.revision import HEX_DIGITS, canonical_inputs, revision_manifest, revision_of

# Never edit a hash below: a changed one restarts every replica in the world when the operator is upgraded. When a test
# fails here, mend the code (give a new field a default that is left out), not the table. New rows are welcome.
GOLDEN: list[tuple[str, str, dict[str, Any], str | None]] = [
    ("minimal", "5b7b9498a3", raw_spec(), None),
    ("restarted on demand", "f9cb517369", raw_spec(), "2027-01-15T08:00:00Z"),
    (
        "quantised on two GPUs",
        "e88a6c37b5",
        raw_spec(
            model={"name": "Qwen/Qwen2.5-VL-7B-Instruct", "size": "7B", "quantization": "AWQ", "maxModelLen": 32768},
            weights={"persistentVolumeClaim": {"claimName": "models", "path": "Qwen2.5-VL-7B-Instruct-AWQ"}},
            parallelism={"tensor": 2},
            multimodal={"limitsPerPrompt": {"image": 4, "video": 0}, "maxPixels": 1003520},
        ),
        None,
    ),
    (
        "everything about the engine",
        "2bcc97d1cf",
        raw_spec(
            engine={
                "version": "0.32",
                "image": "registry.example.com/vllm:v0.32.1",
                "startupTimeout": "1h30m",
                "verification": "Health",
                "maxNumSeqs": 64,
                "maxNumBatchedTokens": 8192,
                "args": ["--seed", "1"],
                "env": [
                    {"name": "VLLM_API_KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "api"}}},
                    {"name": "EMPTY", "value": ""},
                ],
            }
        ),
        None,
    ),
    (
        "names and a template beyond ASCII",
        "0f22a20ac1",
        raw_spec(
            model={
                "name": "org/model",
                "servedNames": ["b", "a"],
                "chatTemplate": {"configMapKeyRef": {"name": "templates", "key": "chat"}},
            },
            engine={"env": [{"name": "GREETING", "value": "grüß 👋"}]},
        ),
        None,
    ),
    (
        "data in a cache of its own",
        "25d47682fc",
        raw_spec(
            multimodal={"processorCache": "8Gi", "encoderParallelism": "Data", "allowedMediaDomains": ["a.example"]}
        ),
        None,
    ),
    (
        "certain GPUs, drained for long",
        "f1f1ea4ec9",
        raw_spec(gpu={"products": ["NVIDIA-L40S"], "memoryUtilization": 85}, drain={"timeout": "15m"}),
        None,
    ),
    (
        "a pod of its own shape",
        "ced3eb6269",
        raw_spec(
            podTemplate={
                "metadata": {"labels": {"team": "vision"}},
                "nodeSelector": {"zone": "a"},
                "tolerations": [{"key": "gpu", "operator": "Exists"}],
                "priorityClassName": "high",
                "securityContext": {"runAsUser": 1000},
                "resources": {"requests": {"cpu": 8, "memory": "64Gi"}, "limits": {"memory": "64Gi"}},
            }
        ),
        None,
    ),
    ("weights of another kind", "e65d924b90", raw_spec(weights={"huggingFace": {"revision": "main"}}), None),
]


@table("golden, raw, restarted_at", GOLDEN)
def test_a_revision_keeps_its_hash_for_ever(golden: str, raw: dict[str, Any], restarted_at: str | None) -> None:
    assert revision_of(PodInputs.of(VLMDeploymentSpec.model_validate(raw), restarted_at=restarted_at)) == golden


SAME: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("a cache", {"multimodal": {"processorCache": "4096Mi"}}, {"multimodal": {"processorCache": "4Gi"}}),
    ("a duration", {"engine": {"startupTimeout": "90m"}}, {"engine": {"startupTimeout": "1h30m"}}),
    ("a duration with zeros", {"drain": {"timeout": "0h5m0s"}}, {"drain": {"timeout": "300s"}}),
    ("a default duration", {"engine": {"startupTimeout": "1800s"}}, {}),
    ("CPUs as a number", {"podTemplate": {"resources": {"requests": {"cpu": 4}}}},
     {"podTemplate": {"resources": {"requests": {"cpu": "4000m"}}}}),
    ("a section without content", {"engine": {}, "gpu": {}, "multimodal": {}, "podTemplate": {}}, {}),
    ("empty lists and maps", {"engine": {"args": [], "env": []}, "podTemplate": {"nodeSelector": {}}}, {}),
    ("limits without a limit", {"multimodal": {"limitsPerPrompt": {}}}, {}),
    ("defaults written out", {
        "model": {"name": "org/model", "quantization": "None", "kvCacheDtype": "Auto", "trustRemoteCode": False},
        "weights": {"persistentVolumeClaim": {"claimName": "models", "path": ""}},
        "engine": {"type": "vLLM", "startupTimeout": "30m", "verification": "Request"},
        "parallelism": {"tensor": 1, "pipeline": 1, "data": 1},
        "gpu": {"resourceName": "nvidia.com/gpu", "memoryUtilization": 92},
        "multimodal": {"encoderParallelism": "Weights"},
        "drain": {"timeout": "5m"},
    }, {}),
]  # fmt: skip


@table("one, other", SAME)
def test_another_spelling_is_the_same_revision(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert revision_of(inputs(**one)) == revision_of(inputs(**other))


NO_MATTER: list[tuple[str, dict[str, Any]]] = [
    ("replicas", {"replicas": 7}),
    ("service", {"service": {"port": 80, "annotations": {"example.com/a": "b"}}}),
    ("scaling", {"scaling": {"maxReplicas": 8}}),
    ("warmPool", {"warmPool": {"size": 1}}),
    ("rollout", {"rollout": {"paused": True}}),
    ("checks", {"checks": "Warn"}),
    ("podDisruptionBudget", {"podDisruptionBudget": "None"}),
]


@table("change", NO_MATTER)
def test_what_does_not_shape_a_pod_makes_no_revision(change: dict[str, Any]) -> None:
    assert revision_of(inputs(**change)) == revision_of(inputs())


def test_every_field_of_a_spec_is_known_to_shape_a_pod_or_not_to() -> None:
    ignored = {row[0] for row in NO_MATTER}
    shaping = {field.alias for name, field in PodInputs.model_fields.items() if name != "restarted_at"}
    assert ignored | shaping == {field.alias for field in VLMDeploymentSpec.model_fields.values()}
    assert not ignored & shaping


FIELDS: list[tuple[str, dict[str, Any]]] = [
    ("model.name", {"model": {"name": "org/other"}}),
    ("model.servedNames", {"model": {"name": "org/model", "servedNames": ["a"]}}),
    ("model.maxModelLen", {"model": {"name": "org/model", "maxModelLen": 4096}}),
    ("model.quantization", {"model": {"name": "org/model", "quantization": "AWQ"}}),
    ("weights", {"weights": {"persistentVolumeClaim": {"claimName": "other"}}}),
    ("weights.path", {"weights": {"persistentVolumeClaim": {"claimName": "models", "path": "a"}}}),
    ("engine.version", {"engine": {"version": "0.32"}}),
    ("engine.args", {"engine": {"args": ["--seed", "1"]}}),
    ("engine.env", {"engine": {"env": [{"name": "A", "value": ""}]}}),
    ("parallelism", {"parallelism": {"tensor": 2}}),
    ("gpu", {"gpu": {"products": ["NVIDIA-L4"]}}),
    ("multimodal: 0 is not the same as unset", {"multimodal": {"limitsPerPrompt": {"image": 0}}}),
    ("drain", {"drain": {"timeout": "0s"}}),
    ("podTemplate", {"podTemplate": {"priorityClassName": "high"}}),
]


@table("change", FIELDS)
def test_what_shapes_a_pod_makes_a_revision(change: dict[str, Any]) -> None:
    assert revision_of(inputs(**change)) != revision_of(inputs())


def test_every_part_of_the_inputs_has_a_row_above() -> None:
    parts = {field.alias for name, field in PodInputs.model_fields.items() if name != "restarted_at"}
    assert {row[0].partition(".")[0].partition(":")[0] for row in FIELDS} == parts


def test_a_restart_on_demand_makes_a_revision() -> None:
    spec = VLMDeploymentSpec.model_validate(raw_spec())
    restarts = [None, "2027-01-15T08:00:00Z", "2027-01-15T08:00:01Z"]
    assert len({revision_of(PodInputs.of(spec, restarted_at=restart)) for restart in restarts}) == 3


@settings(max_examples=12)
@given(specs(), specs())
def test_two_specs_share_a_revision_only_if_they_mean_the_same_pod(
    one: VLMDeploymentSpec, two: VLMDeploymentSpec
) -> None:
    a, b = PodInputs.of(one), PodInputs.of(two)
    assert (revision_of(a) == revision_of(b)) == (canonical_inputs(a) == canonical_inputs(b))


@settings(max_examples=20)
@given(raw_supported_specs(), st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(raw: dict[str, Any], random: Any) -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shuffled(value[key]) for key in random.sample(sorted(value), len(value))}
        return [shuffled(part) for part in value] if isinstance(value, list) else value

    one, two = (PodInputs.of(VLMDeploymentSpec.model_validate(spec)) for spec in (raw, shuffled(raw)))
    assert revision_of(one) == revision_of(two)


@settings(max_examples=20)
@given(raw_supported_specs())
def test_a_spec_as_the_api_server_returns_it_is_the_same_revision(raw: dict[str, Any]) -> None:
    """The API server fills in the defaults of the schema and JSON keeps no spelling of numbers."""
    spec = VLMDeploymentSpec.model_validate(raw)
    with_defaults = json.loads(spec.model_dump_json(by_alias=True, exclude_none=True))
    returned, _ = read_spec(with_defaults)
    assert returned is not None
    assert revision_of(PodInputs.of(returned)) == revision_of(PodInputs.of(spec))


def test_a_revision_fits_into_names_and_labels() -> None:
    revision = revision_of(inputs())
    assert len(revision) == HEX_DIGITS == 10
    assert set(revision) <= set("0123456789abcdef")


def test_the_manifest_holds_all_that_pods_are_rendered_from() -> None:
    manifest = revision_manifest(**PLACE, revision="0123456789", number=3, resolved=resolved(), annotations={})
    assert manifest["metadata"]["name"] == "m-0123456789"
    assert manifest["metadata"]["labels"]["vlm.dev/revision"] == "0123456789"
    assert manifest["metadata"]["ownerReferences"] == [OURS | {"blockOwnerDeletion": True}]
    assert manifest["revision"] == 3
    assert type(resolved()).model_validate(json.loads(json.dumps(manifest["data"]["resolved"]))) == resolved()
