"""Sizes from a `config.json`: files as the families write them give the rows of the catalogue."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.sizing.config_files import (
    INTERNVL3_78B,
    LLAVA_15_7B,
    QWEN3_VL_30B,
    QWEN25_VL_7B,
    SAME_AS_THE_CATALOGUE,
    Config,
)
from vlm_operator.api.architecture import Architecture
from vlm_operator.sizing.catalogue.loading import builtin
from vlm_operator.sizing.config_format import read_stored_format
from vlm_operator.sizing.config_json import read_config
from vlm_operator.sizing.config_section import INVALID_CONFIG
from vlm_operator.sizing.images import image_tokens

same = pytest.mark.parametrize(
    ("name", "config"), SAME_AS_THE_CATALOGUE, ids=[name for name, _ in SAME_AS_THE_CATALOGUE]
)


def plain(sizes: Architecture) -> dict[str, Any]:
    """The sizes without what a file does not hold, and with defaults spelled out."""
    values = sizes.model_dump(exclude={"language_parameters", "vision_parameters"})
    values["headSize"] = values["headSize"] or values["hiddenSize"] // values["attentionHeads"]
    values["vision"]["spatialMergeSize"] = values["vision"]["spatialMergeSize"] or 1
    return values


@same
def test_a_file_of_each_family_gives_the_row_of_the_catalogue(name: str, config: Config) -> None:
    sizes, findings = read_config(config)
    match = builtin().model(name)
    assert match is not None
    assert match.architecture is not None
    assert findings == ()
    assert sizes is not None
    assert plain(sizes) == plain(match.architecture)


@same
def test_numbers_in_quotes_are_taken_with_a_warning_each(name: str, config: Config) -> None:
    del name
    quoted = quote(config)
    expected, _ = read_config(config)
    sizes, findings = read_config(quoted)
    assert sizes == expected
    assert findings
    assert {(finding.reason, finding.severity) for finding in findings} == {(INVALID_CONFIG, "Warning")}
    assert "without quotes" in findings[0].sentence()


TAKEN_AS_THEY_ARE = ("max_dynamic_patch", "mlp_ratio", "mm_tokens_per_image", "image_size")


def quote(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: part if name in TAKEN_AS_THEY_ARE else quote(part) for name, part in value.items()}
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def changed(path: str, value: Any) -> Config:
    """QWEN3_VL_30B with one value replaced; None takes it out."""
    config = copy.deepcopy(QWEN3_VL_30B)
    *parents, last = path.split(".")
    part = config
    for name in parents:
        part = part[name]
    part[last] = value
    return config


BROKEN = [
    ("text_config.num_hidden_layers", None, "is missing, also as n_layer"),
    ("architectures", None, "is missing"),
    ("architectures", [], "must be a list"),
    ("architectures", ["no class!"], "must be a class name"),
    ("text_config", [], "must be a map"),
    ("text_config.num_hidden_layers", 1.5, "is 1.5 but must be a whole number"),
    ("text_config.num_hidden_layers", "many", 'is "many" but must be a whole number'),
    ("text_config.num_hidden_layers", True, "is true but must be a whole number"),
    ("text_config.num_hidden_layers", 0, "is 0 but must be at least 1"),
    ("text_config.num_hidden_layers", -48, "must be at least 1"),
    ("text_config.num_hidden_layers", 10**6, "must be at most 1024"),
    ("text_config.num_hidden_layers", 10**400, "must be a whole number below 10^18"),
    ("text_config.num_hidden_layers", {"a": 1}, "is a map but must be a whole number"),
    ("text_config.num_experts", 10**6, "must be at most 4096"),
    ("tie_word_embeddings", "yes", "must be true or false"),
]


@pytest.mark.parametrize(("path", "value", "words"), BROKEN)
def test_what_is_missing_or_wrong_is_named_by_its_path(path: str, value: Any, words: str) -> None:
    sizes, findings = read_config(changed(path, value))
    assert sizes is None
    errors = [finding for finding in findings if finding.severity == "Error"]
    assert errors[0].field.startswith(path)
    assert words in errors[0].message
    assert len(errors) == 1 or path == "text_config"


def test_an_empty_file_names_every_missing_value_once() -> None:
    sizes, findings = read_config({})
    assert sizes is None
    assert [finding.field for finding in findings] == [
        "architectures",
        "num_hidden_layers",
        "hidden_size",
        "num_attention_heads",
        "intermediate_size",
        "vocab_size",
        "vision_config",
    ]


BROKEN_VISION = [
    ("vision_config.patch_size", None, "vision_config.patch_size"),
    ("vision_config.num_heads", "x", "vision_config.num_heads"),
    ("vision_config.depth", 0, "vision_config.depth"),
    ("vision_config.intermediate_size", None, "vision_config.intermediate_size"),
    ("vision_config", None, "vision_config"),
    ("vision_config", 7, "vision_config"),
]


@pytest.mark.parametrize(("path", "value", "field"), BROKEN_VISION)
def test_a_broken_vision_tower_is_left_out_with_a_warning(path: str, value: Any, field: str) -> None:
    sizes, findings = read_config(changed(path, value))
    assert sizes is not None
    assert sizes.vision is None
    assert [(finding.field, finding.severity) for finding in findings] == [(field, "Warning")]


@pytest.mark.parametrize("data", [None, [], "x", 7, [QWEN25_VL_7B]])
def test_what_is_no_map_is_refused(data: object) -> None:
    assert read_config(data)[0] is None
    assert len(read_config(data)[1]) == 1
    assert read_stored_format(data) == (None, ())


def test_an_unknown_class_has_sizes_but_no_way_to_make_tokens() -> None:
    sizes, findings = read_config(QWEN25_VL_7B | {"architectures": ["NewVLForConditionalGeneration"]})
    assert sizes is not None
    assert [(finding.field, finding.severity) for finding in findings] == [("architectures[0]", "Warning")]
    assert "spec.model.architecture.images.rule" in findings[0].advice
    assert sizes.images is None
    assert sizes.vision is not None


def test_pixtral_in_the_class_of_llava_makes_tokens_like_pixtral() -> None:
    sizes, _ = read_config(LLAVA_15_7B | {"vision_config": {"model_type": "pixtral"}})
    assert sizes is not None
    assert sizes.images is not None
    assert sizes.images.rule == "Pixtral"
    assert sizes.vision is not None
    assert sizes.vision.hidden_size == 1024


def test_internvl_in_the_class_of_transformers_is_internvl() -> None:
    vision = {"hidden_size": 1024, "image_size": [448, 448], "intermediate_size": 4096, "num_attention_heads": 16}
    vision |= {"num_hidden_layers": 24, "patch_size": [14, 14]}
    text = QWEN25_VL_7B | {"vision_config": None}
    config = {"architectures": ["InternVLForConditionalGeneration"], "downsample_ratio": 0.5}
    sizes, findings = read_config(config | {"text_config": text, "vision_config": vision})
    assert findings == ()
    assert sizes is not None
    assert sizes.images is not None
    assert image_tokens(sizes.images, 1024, 1024, vision=sizes.vision) == 2560


LLAVA_NEXT = LLAVA_15_7B | {"architectures": ["LlavaNextForConditionalGeneration"]}
PINPOINTS = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]


def test_the_grids_of_llava_next_are_known_and_others_are_told() -> None:
    sizes, findings = read_config(LLAVA_NEXT | {"image_grid_pinpoints": PINPOINTS})
    assert findings == ()
    assert sizes is not None
    assert sizes.images is not None
    assert image_tokens(sizes.images, 672, 672, vision=sizes.vision) == 2928
    sizes, (told,) = read_config(LLAVA_NEXT | {"image_grid_pinpoints": [*PINPOINTS, [336, 1344]]})
    assert sizes is not None
    assert sizes.images is None
    assert "LlavaNextForConditionalGeneration makes tokens of images is not known" in told.message


def test_tiles_are_those_of_the_file() -> None:
    sizes, _ = read_config(INTERNVL3_78B | {"max_dynamic_patch": 6})
    assert sizes is not None
    assert sizes.images is not None
    assert sizes.images.max_tiles == 6


def test_more_tiles_than_can_be_counted_are_told() -> None:
    sizes, (told,) = read_config(INTERNVL3_78B | {"max_dynamic_patch": 4096})
    assert sizes is not None
    assert sizes.images is not None
    assert sizes.images.max_tiles == 12
    assert told.severity == "Warning"
    assert told.sentence() == "max_dynamic_patch: is 4096 but must be at most 64: 12 is taken"


WINDOWS = [
    (
        "a list of layers",
        {"sliding_window": 512, "layer_types": ["sliding_attention", "full_attention"] * 14},
        (512, 14),
    ),
    ("all layers", {"sliding_window": 512}, (512, 28)),
    ("from a layer on", {"sliding_window": 512, "use_sliding_window": True, "max_window_layers": 20}, (512, 8)),
    ("a pattern", {"sliding_window": 512, "sliding_window_pattern": 4}, (512, 21)),
    ("switched off", {"sliding_window": 512, "use_sliding_window": False}, None),
    ("wider than the context", {"sliding_window": 200_000}, None),
    ("none", {"sliding_window": None}, None),
]


@pytest.mark.parametrize(("values", "expected"), [row[1:] for row in WINDOWS], ids=[row[0] for row in WINDOWS])
def test_windows(values: Config, expected: tuple[int, int] | None) -> None:
    base = {key: value for key, value in QWEN25_VL_7B.items() if "window" not in key} | {"model_type": "new"}
    sizes, _ = read_config(base | values)
    assert sizes is not None
    local = sizes.local_attention
    assert (local and (local.window, local.layers)) == expected


EXPERTS = [
    ("listed plain layers", {"mlp_only_layers": [0, 1, 2]}, {"dense_layers": 3}),
    ("a mark per layer", {"moe_layer_freq": [0, 0, 1, 1]}, {"dense_layers": 2}),
    ("every second layer", {"decoder_sparse_step": 2}, {"every": 2}),
    ("a wide shared expert", {"shared_expert_intermediate_size": 3072}, {"shared": 4}),
]


@pytest.mark.parametrize(("values", "expected"), [row[1:] for row in EXPERTS], ids=[row[0] for row in EXPERTS])
def test_experts(values: Config, expected: dict[str, int]) -> None:
    sizes, _ = read_config(QWEN3_VL_30B | {"text_config": QWEN3_VL_30B["text_config"] | values})
    assert sizes is not None
    assert sizes.experts is not None
    assert {name: getattr(sizes.experts, name) for name in expected} == expected


def test_no_experts_are_a_dense_model() -> None:
    sizes, _ = read_config(changed("text_config.num_experts", 0))
    assert sizes is not None
    assert sizes.experts is None


numbers = (
    st.integers() | st.floats() | st.integers(0, 10**6) | st.sampled_from([10**400, -1, 0, 1e300, "28", "-3", "1e5"])
)
NAMES = sorted(
    {
        name
        for _, config in SAME_AS_THE_CATALOGUE
        for part in (config, *(value for value in config.values() if isinstance(value, dict)))
        for name in part
    }
    | {"quantization_config", "quant_method", "config_groups", "layer_types", "slice_config", "mlp_ratio"}
)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=4), inner, max_size=6)
    ),
    max_leaves=20,
)


@given(json_values)
def test_any_json_is_read_without_failing(data: object) -> None:
    sizes, findings = read_config(data)
    assert sizes is not None or findings
    read_stored_format(data)


@given(st.sampled_from([config for _, config in SAME_AS_THE_CATALOGUE]), st.data())
def test_a_file_with_any_values_replaced_is_read_without_failing(config: Config, data: st.DataObject) -> None:
    spoiled = copy.deepcopy(config)
    for part in (spoiled, *(value for value in spoiled.values() if isinstance(value, dict))):
        for name in data.draw(st.lists(st.sampled_from(NAMES), max_size=3)):
            part[name] = data.draw(json_values)
    sizes, findings = read_config(spoiled)
    assert sizes is not None or any(finding.severity == "Error" for finding in findings)
    assert all(finding.field and finding.message for finding in findings)
