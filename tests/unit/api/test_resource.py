"""Reading a spec: what the API server accepts is read, what it refuses is refused with a finding for the same field."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.crd.cases import ACCEPTED, MINIMAL, REFUSED, Case
from strategies import raw_specs, raw_supported_specs, specs, supported_specs
from vlm_operator.api.findings import INVALID_FIELD
from vlm_operator.api.resource import read_spec
from vlm_operator.api.spec import VLMDeploymentSpec

LATER = " is not supported yet"


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.name)
def test_what_the_server_accepts_is_read(case: Case) -> None:
    spec, findings = read_spec(case.spec)
    assert spec is not None, [finding.sentence() for finding in findings]


@pytest.mark.parametrize("case", [case for case in REFUSED if not case.metadata], ids=lambda case: case.name)
def test_what_the_server_refuses_is_refused_with_one_finding(case: Case) -> None:
    spec, findings = read_spec(case.spec)
    assert spec is None
    assert [finding.field for finding in findings] == [case.blamed_by_types]
    assert case.words_of_types in findings[0].sentence()
    assert (findings[0].reason, findings[0].severity) == (INVALID_FIELD, "Error")


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (None, "spec: is empty but must be a map of fields"),
        ([], "spec: is a list but must be a map of fields"),
        ("all", 'spec: is "all" but must be a map of fields'),
        (MINIMAL | {"model": [{"name": "llava"}]}, "spec.model: is a list but must be a map of fields"),
        (MINIMAL | {1: 2}, "spec[1]: is 1 but must be a name; remove it"),
        (MINIMAL | {None: 2}, "spec[(null)]: is an empty key but must be a name; remove it"),
        (
            MINIMAL | {"podTemplate": {"nodeSelector": {None: "a"}}},
            "spec.podTemplate.nodeSelector[(null)]: is empty but must be text",
        ),
        (
            MINIMAL | {"parallelism": {"tensor": "3"}},
            'spec.parallelism.tensor: is "3" but must be a whole number from 1 to 64, or Auto; write it without quotes',
        ),
        (
            MINIMAL | {"parallelism": {"tensor": "auto"}},
            'spec.parallelism.tensor: is "auto" but must be a whole number from 1 to 64, or Auto; did you mean Auto?',
        ),
        (
            MINIMAL | {"multimodal": {"minPixels": 9, "maxPixels": 4}},
            "spec.multimodal.minPixels: minPixels is 9 and maxPixels is 4, but minPixels must not be greater than maxPixels",
        ),
        (
            MINIMAL | {"engine": {"env": [{"name": "A", "value": "secret", "valueFrom": {}}]}},
            "spec.engine.env[0].valueFrom: valueFrom needs exactly one of secretKeyRef and configMapKeyRef",
        ),
        (MINIMAL | {"engine": {"image": b"a"}}, "spec.engine.image: is something else but must be text"),
        (MINIMAL | {"engine": {"args": {}}}, "spec.engine.args: is a map but must be a list"),
        (MINIMAL | {"replicas": float("nan")}, "spec.replicas: is NaN but must be a whole number"),
        (MINIMAL | {"replicas": float("inf")}, "spec.replicas: is Infinity but must be a whole number"),
        (
            MINIMAL | {"model": {"name": "x" * 300}},
            "spec.model.name: must not be longer than 192 characters",
        ),
        (
            MINIMAL | {"model": {"name": "a b " * 40}},
            'spec.model.name: is "' + ("a b " * 40)[:79] + "... but must be a model name of one or two parts,"
            " for example Qwen/Qwen2.5-VL-7B-Instruct",
        ),
        (
            MINIMAL | {"engine": {"args": ["--a"] * 129}},
            "spec.engine.args: must have at most 128 items, not 129",
        ),
        (
            MINIMAL | {"replicas": -1},
            "spec.replicas: is -1 but must be at least 0",
        ),
        (
            MINIMAL | {"warmPool": {"size": 1, "mode": "Asleep"}},
            'spec.warmPool.mode: is "Asleep" but must be one of InRotation, Standby',
        ),
        (
            MINIMAL | {"warmPool": {"size": 1, "mode": "standby"}},
            'spec.warmPool.mode: is "standby" but must be one of InRotation, Standby; did you mean Standby?',
        ),
        (MINIMAL | {"warmPool": {"size": None}}, "spec.warmPool.size: is required; set it"),
        (
            MINIMAL | {"scaling": {"maxReplicas": 2, "policy": "x"}},
            'spec.scaling.policy: is "x" but must be one of WorkBased, Targets; remove it, it' + LATER,
        ),
        (
            MINIMAL | {"weights": {"csi": {}}},
            "spec.weights.csi.driver: is required; remove spec.weights.csi, which" + LATER,
        ),
        (
            MINIMAL | {"scaling": {"maxReplicas": 2, "targets": []}},
            "spec.scaling.targets: is a list but must be a map of fields; remove it, it" + LATER,
        ),
        (
            MINIMAL | {"gpu": {"memory": 48}},
            'spec.gpu.memory: is 48 but must be text; put it in quotes: "48"',
        ),
        (
            MINIMAL | {"weights": {"csi": {"driver": 5}}},
            "spec.weights.csi.driver: is 5 but must be text; remove spec.weights.csi, which is not supported yet",
        ),
        (
            MINIMAL | {"service": {"annotations": {"a": "b" * 99999}}},
            "spec.service.annotations.a: must not be longer than 4096 characters",
        ),
        (
            MINIMAL | {"model": {"name": "llava", "trustRemoteCode": "maybe"}},
            'spec.model.trustRemoteCode: is "maybe" but must be true or false',
        ),
        (
            MINIMAL | {"gpu": {"memoryUtilization": "92%"}},
            'spec.gpu.memoryUtilization: is "92%" but must be a whole number',
        ),
        (
            MINIMAL | {"podTemplate": {"tolerations": [{"key": "gpu", "efect": "NoSchedule"}]}},
            "spec.podTemplate.tolerations[0].efect: is an unknown field; did you mean effect?",
        ),
        (
            MINIMAL | {"parallelism": {"tensor": []}},
            "spec.parallelism.tensor: must be a whole number from 1 to 64, or Auto",
        ),
    ],
)
def test_a_finding_is_a_sentence_with_field_value_rule_and_way_out(raw: Any, sentence: str) -> None:
    spec, findings = read_spec(raw)
    assert spec is None
    assert [finding.sentence() for finding in findings] == [sentence]


@pytest.mark.parametrize(
    ("overlay", "advice"),
    [
        ({"model": {"name": "llava", "size": "7b"}}, "did you mean 7B?"),
        ({"model": {"name": "llava", "size": "0.5 b"}}, "did you mean 0.5B?"),
        ({"model": {"name": "llava", "quantization": "awq"}}, "did you mean AWQ?"),
        ({"multimodal": {"processorCache": "4gib"}}, "did you mean 4Gi?"),
        ({"multimodal": {"processorCache": "4 GB"}}, "did you mean 4G?"),
        ({"drain": {"timeout": "5 M"}}, "did you mean 5m?"),
        ({"engine": {"version": "v0.33"}}, "did you mean 0.33?"),
        ({"engine": {"version": "latest"}}, ""),
        ({"model": {"name": "My Model"}}, ""),
    ],
)
def test_a_misspelt_value_is_told_with_the_right_spelling(overlay: dict[str, Any], advice: str) -> None:
    _, (finding,) = read_spec(MINIMAL | overlay)
    assert finding.advice == advice


@pytest.mark.parametrize("version", ["00.33", "0.033", "0.33.01"])
def test_a_version_has_one_spelling(version: str) -> None:
    _, (finding,) = read_spec(MINIMAL | {"engine": {"version": version}})
    assert finding.field == "spec.engine.version"


def test_a_key_cannot_write_lines_of_its_own_into_a_log() -> None:
    _, (finding,) = read_spec({**MINIMAL, "x\n\x1b[31mERROR": 1})
    assert finding.field == 'spec["x\\n\\u001b[31mERROR"]'


def test_every_wrong_field_has_its_finding() -> None:
    _, findings = read_spec({"model": {}, "replicas": "two", "gpu": {"memory": "48GB", "brand": "x"}})
    assert {finding.field for finding in findings} == {
        "spec.model.name",
        "spec.weights",
        "spec.replicas",
        "spec.gpu.memory",
        "spec.gpu.brand",
    }


def test_python_names_are_unknown_fields() -> None:
    _, findings = read_spec(MINIMAL | {"pod_template": {}})
    assert [finding.field for finding in findings] == ["spec.pod_template"]


def test_whole_numbers_may_come_as_floats() -> None:
    spec, _ = read_spec(MINIMAL | {"replicas": 2.0, "parallelism": {"tensor": 4.0}})
    assert spec is not None
    assert (spec.replicas, spec.parallelism.tensor) == (2, 4)
    assert isinstance(spec.replicas, int)


def test_nulls_count_as_absent() -> None:
    bare, _ = read_spec(MINIMAL)
    nulls = dict.fromkeys(("engine", "replicas", "checks", "podTemplate"))
    assert read_spec(MINIMAL | nulls | {"gpu": {"memory": None, "resourceName": None}})[0] == bare


def test_the_specs_as_written_and_as_stored_are_equal() -> None:
    written, _ = read_spec(MINIMAL | {"drain": {"timeout": "60m"}, "multimodal": {"processorCache": "4096Mi"}})
    stored, _ = read_spec(MINIMAL | {"drain": {"timeout": "1h"}, "multimodal": {"processorCache": "4Gi"}})
    assert written == stored


@settings(max_examples=40)
@given(specs())
def test_a_spec_survives_being_stored_and_read(spec: VLMDeploymentSpec) -> None:
    assert VLMDeploymentSpec.model_validate(spec.model_dump(mode="json")) == spec
    assert VLMDeploymentSpec.model_validate_json(spec.model_dump_json(exclude_none=True)) == spec
    assert VLMDeploymentSpec.model_validate_json(spec.model_dump_json(exclude_defaults=True)) == spec


@settings(max_examples=40)
@given(raw_specs())
def test_reading_takes_any_valid_spec(raw: dict[str, Any]) -> None:
    spec, findings = read_spec(raw)
    assert spec == VLMDeploymentSpec.model_validate(raw)
    assert {finding.reason for finding in findings} <= {"NotSupportedYet"}


@settings(max_examples=40)
@given(raw_supported_specs(), supported_specs())
def test_supported_specs_are_free_of_findings(raw: dict[str, Any], spec: VLMDeploymentSpec) -> None:
    assert read_spec(raw)[1] == ()
    assert read_spec(spec.model_dump(mode="json", exclude_defaults=True))[1] == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from([str(field.alias) for field in VLMDeploymentSpec.model_fields.values()])


@given(st.dictionaries(FIELDS, JSON, max_size=6) | JSON)
def test_no_input_crashes_the_reading(raw: Any) -> None:
    spec, findings = read_spec(raw)
    assert (spec is None) == any(finding.reason == INVALID_FIELD for finding in findings)
    assert all(finding.field.startswith("spec") and finding.message for finding in findings)
