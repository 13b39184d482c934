"""What vLLM tells the sizing: by version what its code does with models, by arguments what the user changes."""

from typing import Any

import pytest

from unit.engines.test_arguments import inputs
from vlm_operator.engines.vllm.sizing import ENCODER_DATA, READINGS, WHOLE_IMAGES, engine_facts
from vlm_operator.engines.vllm.versions import KNOWN_VERSIONS
from vlm_operator.sizing.catalogue.loading import builtin
from vlm_operator.sizing.engine_facts import EngineFacts
from vlm_operator.sizing.versions import parse_version

GEMMA, INTERN, MOONDREAM = "Gemma3ForConditionalGeneration", "InternVLChatModel", "Moondream3ForCausalLM"


def facts(*args: str, version: str = "0.33", **engine: Any) -> EngineFacts:
    return engine_facts(inputs(engine={"version": version, "args": list(args), **engine}))


def test_the_newest_release_that_was_read_is_that_of_the_catalogue() -> None:
    seen = [row.vllm.last_seen_in for row in builtin().models if row.vllm.last_seen_in]
    assert max(map(parse_version, seen)) == READINGS.newest


def test_every_known_version_has_its_facts() -> None:
    assert ENCODER_DATA.keys() == WHOLE_IMAGES.keys() == set(KNOWN_VERSIONS)


@pytest.mark.parametrize(
    ("version", "images", "encoder"),
    [("0.33.1", True, True), ("0.40", True, True), ("0.30", True, True), ("0.10.2", False, False)],
)
def test_what_the_code_does_with_models_is_that_of_the_version(version: str, images: bool, encoder: bool) -> None:
    found = facts(version=version)
    assert ({GEMMA, MOONDREAM} <= found.whole_images) is images
    assert found.encoder_data is not None
    assert (INTERN in found.encoder_data) is encoder
    assert "Glm4vForConditionalGeneration" in found.encoder_data


SETTINGS: list[tuple[list[str], dict[str, str]]] = [
    ([], {}),
    (["--seed", "1"], {}),
    (["--enforce-eager"], {"Eager": "--enforce-eager"}),
    (["--enforce_eager"], {"Eager": "--enforce-eager"}),
    (["--enforce-eager", "--no-enforce-eager"], {}),
    (["--no-enforce-eager", "--enforce-eager"], {"Eager": "--enforce-eager"}),
    (["-ep"], {"WholeExperts": "-ep"}),
    (["--disable-chunked-mm-input"], {"WholeImages": "--disable-chunked-mm-input"}),
    (["--enable-chunked-mm-input"], {}),
    (["--cpu-offload-gb", "4"], {"OtherSum": "--cpu-offload-gb"}),
    (["--cpu-offload-gb=0"], {}),
    (
        ["--hf-overrides.max_position_embeddings", "8192"],
        {"LongerContext": "--hf-overrides", "OtherSum": "--hf-overrides"},
    ),
    (["--seed", "--enforce", "enforce-eager"], {}),
]


@pytest.mark.parametrize(
    ("args", "settings"), SETTINGS, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_what_the_users_arguments_change(args: list[str], settings: dict[str, str]) -> None:
    assert facts(*args).settings == settings


VARIABLES: list[tuple[dict[str, Any], bool]] = [
    ({"value": "1"}, True),
    ({"value": " True"}, True),
    ({"value": "0"}, False),
    ({"value": "yes"}, False),
    ({"valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}, True),
]


@pytest.mark.parametrize(("value", "on"), VARIABLES, ids=str)
def test_a_variable_allows_a_longer_context_when_it_is_on(value: dict[str, Any], on: bool) -> None:
    found = facts(env=[{"name": "VLLM_ALLOW_LONG_MAX_MODEL_LEN", **value}])
    assert ("LongerContext" in found.settings) is on
