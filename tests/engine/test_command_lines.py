"""vLLM's own parser and configuration take what the operator renders. Opt-in: `make test-engine` makes ready what it needs."""

from functools import cache

import pytest

from engine_check.cases import (
    CPU_VERSION,
    Case,
    Verdict,
    files_of,
    inputs_of,
    is_refused,
    judge,
    resources,
    with_degree,
    words_of,
)
from engine_check.configs import SHAPES
from vlm_operator.engines.vllm.versions import KNOWN_VERSIONS, facts_version, release_of, version_of
from vlm_operator.sizing.catalogue.loading import builtin

pytestmark = pytest.mark.timeout(1800)  # an import of vLLM takes up to a minute on a busy machine

RESOURCES = resources()
REFUSED_BY_CPU = (
    "fp8",  # for weights and for the KV cache
    "Invalid attention backend for CPU",
    "World size",  # more processes than the machine has memory nodes
    "not supported on CPU",
)
"""What the CPU platform says about things that only GPUs have."""
LATER = {"0.10.2": ["--watchdog-config"], "0.30": ["--watchdog-config"]}
"""Flags that a version must not know, to see that its own parser is asked."""


@cache
def verdicts(version: str) -> dict[str, Verdict]:
    """Of all resources that the operator accepts under a version."""
    accepted = {name: inputs_of(resource, version=version) for name, resource in RESOURCES.items()}
    cases = [Case(name=name, words=words_of(inputs)) for name, inputs in accepted.items() if not is_refused(inputs)]
    later = [Case(name=f"later {flag}", words=["/models", flag, "{}"]) for flag in LATER.get(version, [])]
    return judge([*cases, *later], release=release_of(version))


@pytest.mark.parametrize("name", RESOURCES)
def test_the_parser_of_its_own_version_takes_a_resource(name: str) -> None:
    version = version_of(inputs_of(RESOURCES[name]).engine)
    verdict = verdicts(facts_version(version))[name]  # 0.33.1 is known as 0.33
    assert verdict == Verdict(stage="validate", error=None)


@pytest.mark.parametrize("version", KNOWN_VERSIONS)
def test_every_known_version_takes_what_the_operator_accepts_for_it(version: str) -> None:
    judged = {name: verdict for name, verdict in verdicts(version).items() if not name.startswith("later ")}
    assert len(judged) >= len(RESOURCES) // 2
    assert {name: verdict.error for name, verdict in judged.items() if verdict.error} == {}


@pytest.mark.parametrize("version", LATER)
def test_each_version_is_asked_itself(version: str) -> None:
    for flag in LATER[version]:
        assert "unrecognized arguments" in (verdicts(version)[f"later {flag}"].error or "")


@cache
def configured() -> dict[str, Verdict]:
    """How the CPU build configures itself for every resource whose model's configuration can be made."""
    cases = []
    for name, resource in RESOURCES.items():
        inputs = inputs_of(resource, version=CPU_VERSION)
        files = files_of(inputs.model.name, quantization=inputs.model.quantization)
        if files and not is_refused(inputs):
            cases.append(Case(name=name, words=words_of(inputs), files=files))
    for row in builtin().models:
        cases += [case for degree in (1, 3) if (case := with_degree(row.hf_id, degree))]
    return judge(cases)


@pytest.mark.parametrize("name", RESOURCES)
def test_the_engine_configures_itself_for_a_resource(name: str) -> None:
    verdict = configured().get(name)
    if verdict is None:
        pytest.skip("no config.json can be made for its model, or 0.32 lacks one of its fields")
    if verdict.stage == "config" and any(words in (verdict.error or "") for words in REFUSED_BY_CPU):
        pytest.skip(f"the CPU platform refuses it: {verdict.error}")
    assert verdict == Verdict(stage="config", error=None)


MODELS = [row.hf_id for row in builtin().models if row.architecture_name in SHAPES]


@pytest.mark.parametrize("model", MODELS)
def test_the_engine_takes_the_configuration_of_a_model_of_the_catalogue(model: str) -> None:
    assert configured()[f"{model} on 1"].error is None


@pytest.mark.parametrize("model", MODELS)
def test_the_engine_refuses_a_degree_that_does_not_divide_the_heads(model: str) -> None:
    match = builtin().model(model)
    assert match is not None
    assert match.architecture is not None
    heads = match.architecture.attention_heads
    error = configured()[f"{model} on 3"].error or ""
    assert ("divisible" in error) == (heads % 3 != 0), error
