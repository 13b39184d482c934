"""The template gives exactly the pod that plain dicts give, whatever the resource holds."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2.exceptions import UndefinedError

from strategies import supported_specs
from unit.engines.golden_files import NAMES, inputs_of, rendered, resource_and_pod
from unit.engines.plain_pod import plain_pod
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.engines import rendering
from vlm_operator.engines.base import PodIdentity, PodInputs, Resolved, sibling
from vlm_operator.engines.registry import engine
from vlm_operator.engines.vllm.reserved import RESERVED_VARIABLES

TEMPLATES = Path(rendering.__file__).parent / "templates"

identities = st.builds(
    PodIdentity,
    deployment=st.from_regex(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?", fullmatch=True),
    namespace=st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True),
    uid=st.uuids().map(str),
    revision=st.from_regex(r"[0-9a-f]{10}", fullmatch=True),
    slot=st.integers(0, 999),
    role=st.sampled_from(["serving", "warm", "draining"]),
)


@settings(max_examples=40)
@given(supported_specs(), identities)
def test_the_rendered_pod_equals_the_plain_one_also_after_storage(
    spec: VLMDeploymentSpec, identity: PodIdentity
) -> None:
    vllm = engine("vLLM")
    resolved = vllm.resolve(PodInputs.of(spec), tensor_parallel=2)
    stored = Resolved.model_validate_json(resolved.model_dump_json(by_alias=True, exclude_defaults=True))
    assert vllm.render_pod(resolved, identity) == plain_pod(resolved, identity)
    assert vllm.render_pod(stored, identity) == plain_pod(resolved, identity)
    another = replace(identity, slot=identity.slot + 1)
    assert sibling(vllm.render_pod(resolved, identity), another) == vllm.render_pod(resolved, another)


@pytest.mark.parametrize("path", sorted(TEMPLATES.rglob("*.j2")), ids=lambda path: path.name)
def test_every_expression_is_a_whole_value(path: Path) -> None:
    without_statements = re.sub(r"\{#.*?#\}|\{%.*?%\}", "", path.read_text(), flags=re.DOTALL)
    for line in without_statements.splitlines():
        shown = re.sub(r"\{\{.*?\}\}(?!\})", "\0", line)
        for match in re.finditer("\0", shown):
            before, after = shown[: match.start()], shown[match.end() :]
            assert re.search(r"(^\s*|[:,\-] |\[|\{)$", before), line
            assert re.match(r"$|[,\]}]|: ", after), line


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="'name' is undefined"):
        rendering.render(engine("vLLM").template, {})


@pytest.mark.parametrize("name", NAMES)
def test_users_cannot_set_a_variable_that_the_pod_sets(name: str) -> None:
    resource, _ = resource_and_pod(name)
    theirs = {variable.name for variable in inputs_of(resource).engine.env}
    ours = {variable["name"] for variable in rendered(resource)["spec"]["containers"][0]["env"]} - theirs
    assert ours <= RESERVED_VARIABLES.keys()


def test_weights_of_another_kind_are_not_rendered() -> None:
    raw = {"model": {"name": "a/b"}, "weights": {"image": {"reference": "example.com/weights:1"}}}
    inputs = PodInputs.of(VLMDeploymentSpec.model_validate(raw))
    vllm = engine("vLLM")
    identity = PodIdentity(deployment="a", namespace="b", uid="c", revision="0123456789", slot=0, role="serving")
    with pytest.raises(ValueError, match="persistent volume claim"):
        vllm.render_pod(vllm.resolve(inputs), identity)
