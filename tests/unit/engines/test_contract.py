"""What every engine owes the operator, whichever it is. A new engine joins by being registered."""

import ast
import itertools
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strategies import supported_specs
from vlm_operator.api.engine import Engine as EngineSpec
from vlm_operator.api.findings import Finding
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.engines.base import Engine, PodIdentity, PodInputs, Resolved, sibling
from vlm_operator.engines.registry import engine

TYPES: tuple[str, ...] = get_args(EngineSpec.model_fields["type"].annotation)
IDENTITY = PodIdentity(deployment="d", namespace="models", uid="u-1", revision="0123456789", slot=0, role="serving")
FLAG_LIKE = st.sampled_from(
    ["--seed", "--", "-", "-O3", "--a.b+", "--hf-token", "-cc", "--config=", "{", "--limit-mm-per-prompt"]
)

every_engine = pytest.mark.parametrize("type_", TYPES)
thoroughly = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=40)


def of(spec: VLMDeploymentSpec, type_: str) -> PodInputs:
    inputs = PodInputs.of(spec)
    return inputs.model_copy(update={"engine": inputs.engine.model_copy(update={"type": type_})})


def resolved_by(chosen: Engine, inputs: PodInputs) -> Resolved:
    return chosen.resolve(inputs, tensor_parallel=2)


@every_engine
def test_every_type_of_the_resource_has_an_engine(type_: str) -> None:
    assert engine(type_) is engine(type_)


def test_an_unknown_type_is_an_error() -> None:
    with pytest.raises(KeyError):
        engine("nothing")


@every_engine
@thoroughly
@given(spec=supported_specs(), args=st.lists(st.text(max_size=20) | FLAG_LIKE, max_size=8))
def test_check_answers_with_findings_about_anything(type_: str, spec: VLMDeploymentSpec, args: list[str]) -> None:
    inputs = of(spec, type_)
    inputs = inputs.model_copy(update={"engine": inputs.engine.model_copy(update={"args": args})})
    findings = engine(type_).check(inputs)
    assert findings == engine(type_).check(inputs)
    for finding in findings:
        assert isinstance(finding, Finding)
        assert finding.field.startswith("spec.")
        assert finding.reason.isalnum()
        assert finding.message.strip() == finding.message != ""


@every_engine
@thoroughly
@given(spec=supported_specs())
def test_what_is_resolved_can_be_stored(type_: str, spec: VLMDeploymentSpec) -> None:
    inputs = of(spec, type_)
    resolved = resolved_by(engine(type_), inputs)
    assert Resolved.model_validate_json(resolved.model_dump_json(by_alias=True, exclude_defaults=True)) == resolved
    assert resolved.inputs == inputs
    assert resolved.engine_version == engine(type_).version(inputs)
    assert resolved.image
    assert resolved.tensor_parallel == (2 if inputs.parallelism.tensor == "Auto" else inputs.parallelism.tensor)
    assert resolved.args[len(resolved.args) - len(inputs.engine.args) :] == inputs.engine.args


@every_engine
def test_auto_without_a_degree_is_an_error(type_: str) -> None:
    spec = VLMDeploymentSpec.model_validate(minimal() | {"parallelism": {"tensor": "Auto"}})
    with pytest.raises(ValueError, match="degree"):
        engine(type_).resolve(of(spec, type_))


@every_engine
@thoroughly
@given(spec=supported_specs())
def test_a_pod_is_complete(type_: str, spec: VLMDeploymentSpec) -> None:
    chosen, inputs = engine(type_), of(spec, type_)
    resolved = resolved_by(chosen, inputs)
    pod = chosen.render_pod(resolved, IDENTITY)
    (container,) = pod["spec"]["containers"]
    assert (pod["apiVersion"], pod["kind"], pod["metadata"]["name"]) == ("v1", "Pod", IDENTITY.name)
    assert [owner["uid"] for owner in pod["metadata"]["ownerReferences"]] == [IDENTITY.uid]
    assert container["image"] == resolved.image
    assert container["command"]
    gpus = resolved.tensor_parallel * inputs.parallelism.pipeline * inputs.parallelism.data
    assert container["resources"]["limits"][inputs.gpu.resource_name] == str(gpus)
    assert_probes(container)
    assert_mounts(pod["spec"], container)


@every_engine
@thoroughly
@given(spec=supported_specs(), slot=st.integers(1, 999))
def test_slots_differ_in_name_and_slot_alone(type_: str, spec: VLMDeploymentSpec, slot: int) -> None:
    chosen = engine(type_)
    resolved = resolved_by(chosen, of(spec, type_))
    other = PodIdentity(
        deployment=IDENTITY.deployment,
        namespace=IDENTITY.namespace,
        uid=IDENTITY.uid,
        revision=IDENTITY.revision,
        slot=slot,
        role=IDENTITY.role,
    )
    assert chosen.render_pod(resolved, other) == sibling(chosen.render_pod(resolved, IDENTITY), other)


@every_engine
def test_the_scripts_that_a_pod_runs_are_there_and_are_python(type_: str) -> None:
    chosen = engine(type_)
    scripts = chosen.scripts()
    spec = VLMDeploymentSpec.model_validate(minimal())
    (container,) = chosen.render_pod(resolved_by(chosen, of(spec, type_)), IDENTITY)["spec"]["containers"]
    words = [
        *container["command"],
        *container.get("args", []),
        *container["startupProbe"].get("exec", {}).get("command", []),
    ]
    run = [word.removeprefix("/scripts/") for word in words if word.startswith("/scripts/")]
    assert set(run) <= scripts.keys()
    for text in scripts.values():
        assert ast.get_docstring(ast.parse(text))


def minimal() -> dict[str, Any]:
    return {"model": {"name": "org/model"}, "weights": {"persistentVolumeClaim": {"claimName": "models"}}}


def assert_probes(container: dict[str, Any]) -> None:
    """A replica is watched from its start, on a port that it opens."""
    ports = {port["name"] for port in container["ports"]}
    for probe in (container["startupProbe"], container["readinessProbe"]):
        assert probe["periodSeconds"] > 0
        assert probe["failureThreshold"] > 0
        assert probe.keys() & {"exec", "httpGet"}
        assert probe.get("httpGet", {"port": next(iter(ports))})["port"] in ports


def assert_mounts(spec: dict[str, Any], container: dict[str, Any]) -> None:
    """Every mount has its volume, no volume is left over, and no two stand in the same place."""
    mounts = container["volumeMounts"]
    assert {mount["name"] for mount in mounts} == {volume["name"] for volume in spec["volumes"]}
    for first, second in itertools.combinations((mount["mountPath"] for mount in mounts), 2):
        assert first != second
