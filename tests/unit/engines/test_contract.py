"""What every engine owes the operator, whichever it is. A new engine joins by being registered.

The toy stands for all that are not there yet: it keeps the contract with nothing of vLLM.
"""

import ast
import itertools
import json
import re
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import supported_specs
from unit.engines.toy_engine import Toy
from vlm_operator.api.engine import Engine as EngineSpec
from vlm_operator.api.findings import Finding
from vlm_operator.api.scalars import duration_seconds
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.engines.base import CONTAINER, Engine, PodIdentity, PodInputs, Resolved, sibling
from vlm_operator.engines.drain import Draining
from vlm_operator.engines.registry import engine, with_template
from vlm_operator.engines.rendering import template_names

TYPES: tuple[str, ...] = get_args(EngineSpec.model_fields["type"].annotation)
IDENTITY = PodIdentity(deployment="d", namespace="models", uid="u-1", revision="0123456789", slot=0, role="serving")
FLAG_LIKE = st.sampled_from(
    ["--seed", "--", "-", "-O3", "--a.b+", "--hf-token", "-cc", "--config=", "{", "--limit-mm-per-prompt"]
)

ENGINES: dict[str, Engine] = {type_: engine(type_) for type_ in TYPES} | {"toy": Toy()}
METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")

every_type = pytest.mark.parametrize("type_", TYPES)
every_engine = pytest.mark.parametrize("chosen", ENGINES.values(), ids=ENGINES)
thoroughly = settings(max_examples=40)


def inputs_with(**engine_fields: Any) -> PodInputs:
    """Minimal inputs, with these fields of `spec.engine`."""
    inputs = PodInputs.of(VLMDeploymentSpec.model_validate(minimal()))
    return inputs.model_copy(update={"engine": inputs.engine.model_copy(update=engine_fields)})


def versions(chosen: Engine) -> list[str]:
    """All that are supported, and the one that runs when none is named."""
    inputs = inputs_with()
    return [*chosen.sizing(inputs).supported, chosen.version(inputs)]


def resolved_by(chosen: Engine, inputs: PodInputs) -> Resolved:
    return chosen.resolve(inputs, tensor_parallel=2)


@every_type
def test_every_type_of_the_resource_has_an_engine(type_: str) -> None:
    assert engine(type_) is engine(type_)


def test_an_unknown_type_is_an_error() -> None:
    with pytest.raises(KeyError):
        engine("nothing")


@every_type
def test_the_template_of_an_engine_is_there_and_its_alone(type_: str) -> None:
    assert engine(type_).template in template_names()
    assert with_template(engine(type_).template) is engine(type_)


@every_engine
@thoroughly
@given(spec=supported_specs(), args=st.lists(st.text(max_size=20) | FLAG_LIKE, max_size=8))
def test_check_answers_with_findings_about_anything(chosen: Engine, spec: VLMDeploymentSpec, args: list[str]) -> None:
    inputs = PodInputs.of(spec)
    inputs = inputs.model_copy(update={"engine": inputs.engine.model_copy(update={"args": args})})
    findings = chosen.check(inputs)
    assert findings == chosen.check(inputs)
    for finding in findings:
        assert isinstance(finding, Finding)
        assert finding.field.startswith("spec.")
        assert finding.reason.isalnum()
        assert finding.message.strip() == finding.message != ""


@every_engine
@thoroughly
@given(spec=supported_specs())
def test_what_is_resolved_can_be_stored(chosen: Engine, spec: VLMDeploymentSpec) -> None:
    inputs = PodInputs.of(spec)
    resolved = resolved_by(chosen, inputs)
    assert Resolved.model_validate_json(resolved.model_dump_json(by_alias=True, exclude_defaults=True)) == resolved
    assert resolved.inputs == inputs
    assert resolved.engine_version == chosen.version(inputs)
    assert resolved.image
    assert resolved.tensor_parallel == (2 if inputs.parallelism.tensor == "Auto" else inputs.parallelism.tensor)
    assert resolved.args[len(resolved.args) - len(inputs.engine.args) :] == inputs.engine.args


@every_engine
def test_auto_without_a_degree_is_an_error(chosen: Engine) -> None:
    spec = VLMDeploymentSpec.model_validate(minimal() | {"parallelism": {"tensor": "Auto"}})
    with pytest.raises(ValueError, match="degree"):
        chosen.resolve(PodInputs.of(spec))


@every_engine
@thoroughly
@given(spec=supported_specs())
def test_a_pod_is_complete(chosen: Engine, spec: VLMDeploymentSpec) -> None:
    inputs = PodInputs.of(spec)
    resolved = resolved_by(chosen, inputs)
    pod = chosen.render_pod(resolved, IDENTITY)
    (container,) = pod["spec"]["containers"]
    assert (pod["apiVersion"], pod["kind"], pod["metadata"]["name"]) == ("v1", "Pod", IDENTITY.name)
    assert [owner["uid"] for owner in pod["metadata"]["ownerReferences"]] == [IDENTITY.uid]
    assert container["image"] == resolved.image
    assert container["command"]
    gpus = resolved.tensor_parallel * inputs.parallelism.pipeline * inputs.parallelism.data
    assert container["resources"]["limits"][inputs.gpu.resource_name] == str(gpus)
    assert container["name"] == CONTAINER
    assert_probes(container)
    assert_drain(chosen.drain(resolved.engine_version), pod["spec"], resolved)
    assert_mounts(pod["spec"], container)


@every_engine
@thoroughly
@given(spec=supported_specs(), slot=st.integers(1, 999))
def test_slots_differ_in_name_and_slot_alone(chosen: Engine, spec: VLMDeploymentSpec, slot: int) -> None:
    resolved = resolved_by(chosen, PodInputs.of(spec))
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
def test_the_scripts_that_a_pod_runs_are_there_and_are_python(chosen: Engine) -> None:
    scripts = chosen.scripts()
    (container,) = chosen.render_pod(resolved_by(chosen, inputs_with()), IDENTITY)["spec"]["containers"]
    words = [
        *container["command"],
        *container.get("args", []),
        *container["startupProbe"].get("exec", {}).get("command", []),
    ]
    run = [word.removeprefix("/scripts/") for word in words if word.startswith("/scripts/")]
    assert set(run) <= scripts.keys()
    for text in scripts.values():
        assert ast.get_docstring(ast.parse(text))


@every_engine
@thoroughly
@given(spec=supported_specs(), args=st.lists(FLAG_LIKE, max_size=4))
def test_the_sizing_learns_what_runs_and_what_the_user_changes(
    chosen: Engine, spec: VLMDeploymentSpec, args: list[str]
) -> None:
    inputs = PodInputs.of(spec)
    inputs = inputs.model_copy(update={"engine": inputs.engine.model_copy(update={"args": args})})
    facts = chosen.sizing(inputs)
    assert facts == chosen.sizing(inputs)
    assert facts.version == chosen.version(inputs)
    assert facts.name
    words = [*(word.replace("_", "-") for word in args), *(variable.name for variable in inputs.engine.env)]
    assert all(any(word.startswith(source) for word in words) for source in facts.settings.values())


@every_engine
def test_each_supported_version_can_be_run_and_no_other_is_advised(chosen: Engine) -> None:
    supported = chosen.sizing(inputs_with()).supported
    assert supported
    for version in supported:
        assert about_version(chosen, version) == []
    for having in ((supported[0],), supported[-1:], supported):
        (finding,) = about_version(chosen, "0.0", having=having)
        assert finding.severity == "Error"
        named = {version for version in supported if version in finding.advice}
        assert named
        assert named <= set(having)
    (hopeless,) = about_version(chosen, "0.0", having=())
    assert "another model" in hopeless.advice


def about_version(chosen: Engine, version: str, *, having: tuple[str, ...] | None = None) -> list[Finding]:
    findings = chosen.check(inputs_with(version=version), having=having)
    return [finding for finding in findings if finding.field == "spec.engine.version"]


@every_engine
def test_metrics_have_names_that_prometheus_takes_and_no_two_meanings(chosen: Engine) -> None:
    for version in versions(chosen):
        metrics = chosen.metrics(version)
        assert metrics.path.startswith("/")
        assert METRIC.fullmatch(metrics.model_label)
        meanings = (metrics.running, metrics.waiting, metrics.kv_cache_usage, metrics.generated_tokens)
        names = [name for meaning in meanings for name in meaning]
        assert all(meanings)
        assert all(METRIC.fullmatch(name) for name in names)
        assert len(set(names)) == len(names)


@every_engine
@pytest.mark.parametrize("answer", ["", "busy", "{}", "[]", "null", "-1", "1.5", '"3"', "[" * 100_000, "<html>"])
def test_an_answer_about_the_load_that_says_nothing_is_not_taken_for_idle(chosen: Engine, answer: str) -> None:
    for version in versions(chosen):
        draining = chosen.drain(version)
        assert draining.load_path.startswith("/")
        assert draining.in_flight(answer) is None


@every_engine
@pytest.mark.parametrize("answer", ["", "no", "{}", "[]", "null", '{"choices": []}', '{"choices": 1}', "[" * 100_000])
def test_an_answer_to_the_question_that_is_none_is_wrong(chosen: Engine, answer: str) -> None:
    for version in versions(chosen):
        question = chosen.question(version, model="org/model")
        assert question.path.startswith("/")
        assert question.health_path.startswith("/")
        assert "org/model" in json.dumps(json.loads(question.body))
        assert question.wrong(answer)


HEALTHY = """\
(APIServer pid=1) WARNING 11-30 10:00:00 [system_utils.py:255] Found ulimit of 20000 and failed to automatically increase \
with error current limit exceeds maximum limit. This can cause fd limit errors like `OSError: [Errno 24] Too many open files`.
INFO:     Application startup complete.
INFO:     10.0.0.1:58808 - "GET /health HTTP/1.1" 200 OK
"""


@every_engine
@thoroughly
@given(text=st.text() | st.text(alphabet="abc: '[]()\n"), code=st.none() | st.integers(-128, 255))
def test_a_failure_is_told_in_the_engines_own_words(chosen: Engine, text: str, code: int | None) -> None:
    failure = chosen.failure(code, text)
    if failure is not None:
        assert failure.reason.isalnum()
        assert failure.evidence in text
        assert failure.advice
    assert chosen.failure(1, HEALTHY) is None
    assert chosen.failure(None, "") is None


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


def assert_drain(draining: Draining, spec: dict[str, Any], resolved: Resolved) -> None:
    """The kubelet waits for all that the engine needs to come to an end, and the engine knows how long it has."""
    timeout = -int(-duration_seconds(resolved.inputs.drain.timeout) // 1)
    (container,) = spec["containers"]
    assert draining.grace_seconds(timeout) >= draining.leave_seconds + timeout + draining.teardown_seconds > timeout
    assert spec["terminationGracePeriodSeconds"] == draining.grace_seconds(timeout)
    assert container["lifecycle"] == {"preStop": {"sleep": {"seconds": draining.leave_seconds}}}
    if draining.timeout_flag is not None:
        at = resolved.args.index(draining.timeout_flag)
        assert resolved.args[at + 1] == str(timeout)


def assert_mounts(spec: dict[str, Any], container: dict[str, Any]) -> None:
    """Every mount has its volume, no volume is left over, and no two stand in the same place."""
    mounts = container["volumeMounts"]
    assert {mount["name"] for mount in mounts} == {volume["name"] for volume in spec["volumes"]}
    for first, second in itertools.combinations((mount["mountPath"] for mount in mounts), 2):
        assert first != second
