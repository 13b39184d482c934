"""What the operator says of vLLM's code is so in each known version. Opt-in: `make test-engine` makes ready what it needs."""

import pytest

from engine_check import source
from vlm_operator.engines.vllm.observing import OLD_KV_CACHE_USAGE, drain, metrics
from vlm_operator.engines.vllm.sizing import ENCODER_DATA, WHOLE_IMAGES
from vlm_operator.engines.vllm.versions import KNOWN_VERSIONS, release_of
from vlm_operator.sizing.catalogue.loading import builtin

pytestmark = pytest.mark.timeout(1800)

WHOLE = {
    "bagel": {"BagelForConditionalGeneration"},
    "gemma3": {"Gemma3ForConditionalGeneration"},
    "molmo2": {"Molmo2ForConditionalGeneration"},
    "moondream3": {"HfMoondream", "Moondream3ForCausalLM"},
    "paligemma": {"PaliGemmaForConditionalGeneration"},
}
"""Type of a model -> its classes."""

every_version = pytest.mark.parametrize("version", KNOWN_VERSIONS)


@every_version
def test_its_metrics_are_called_so(version: str) -> None:
    named, known = metrics(version), source.metric_names(release_of(version))
    for names in (named.running, named.waiting, named.kv_cache_usage, named.generated_tokens):
        assert {name.removesuffix("_total") for name in names} <= {name.removesuffix("_total") for name in known}
    assert (OLD_KV_CACHE_USAGE in named.kv_cache_usage) is (OLD_KV_CACHE_USAGE in known)


@every_version
def test_it_tells_its_work_in_flight(version: str) -> None:
    assert drain(version).load_path == "/load"
    assert source.tells_load(release_of(version))


@every_version
def test_it_takes_what_is_to_be_around_its_server(version: str) -> None:
    assert source.takes_middleware(release_of(version))


@every_version
def test_these_vision_towers_can_be_kept_whole(version: str) -> None:
    ours = {row.architecture_name for row in builtin().models}
    assert ENCODER_DATA[version] == source.classes_with(release_of(version), "supports_encoder_tp_data") & ours


@every_version
def test_these_images_are_never_divided(version: str) -> None:
    types = source.types_with_whole_images(release_of(version))
    assert types <= WHOLE.keys()
    assert {name for type_ in types for name in WHOLE[type_]} == {
        name for name in WHOLE_IMAGES[version] if "Deepseek" not in name
    }
    assert WHOLE_IMAGES[version] - {"DeepseekV4ForCausalLM"} <= source.registered(release_of(version)).keys()
