"""Sizes, context and images of a spec against those of the model."""

from typing import Any

import pytest

from unit.replicas.tables import table
from unit.sizing.subjects import LLAMA_VISION, QWEN_7B, STATED, only, subject
from vlm_operator.sizing import checks
from vlm_operator.sizing.checks import largest

MINICPM = "openbmb/MiniCPM-V-2_6"
VISION = {"layers": 2, "hiddenSize": 64, "attentionHeads": 2, "intermediateSize": 128}
FORCED = {"env": [{"name": "VLLM_ALLOW_LONG_MAX_MODEL_LEN", "value": "1"}]}


def reasons(*args: Any, **sections: Any) -> set[str]:
    """What is said about a spec, without what is said about its unknown GPU."""
    return {found.reason for found in checks.check(subject(*args, **sections))} - {"GpuUnknown"}


def check(*args: Any, **sections: Any) -> Any:
    return list(checks.check(subject(*args, **sections)))


def test_an_ordinary_spec_is_right() -> None:
    assert reasons(model={"size": "7B", "quantization": "AWQ", "maxModelLen": 32768}) == set()


def test_a_model_that_nobody_knows_is_told_once() -> None:
    found = only(check("me/other", model={"maxModelLen": 10}, multimodal={"maxPixels": 10**9}), "ModelUnknown")
    assert found.severity == "Warning"
    assert "fit, parallelism and images are not checked" in found.message
    assert reasons("me/other", model={"size": "9B"}, parallelism={"tensor": 3}) == {"ModelUnknown"}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Qwen/Qwen2.5-VL-7B", QWEN_7B),
        (QWEN_7B.lower(), QWEN_7B),
        ("unsloth/Qwen2.5-VL-7B-Instruct", QWEN_7B),
        ("Qwen/Qwen2.5VL-7B-Instruct", QWEN_7B),
        ("me/Qwen2.5-VL-7B-Instruct-GPTQ", QWEN_7B),
        ("me/other", None),
        ("me/q", None),
    ],
)
def test_for_an_unknown_name_the_nearest_known_one_is_proposed(name: str, meant: str | None) -> None:
    advice = only(check(name), "ModelUnknown").advice
    assert advice.startswith(f"did you mean {meant}? otherwise add " if meant else "add spec.model.architecture")


def test_a_model_of_the_catalogue_without_sizes_is_told_too() -> None:
    found = only(check("nvidia/NVIDIA-Nemotron-Nano-12B-v2-VL-BF16"), "ModelUnknown")
    assert "is in the catalogue without its sizes" in found.message
    stated = {"architecture": STATED | {"name": "NemotronH_Nano_VL_V2"}}
    assert reasons("nvidia/NVIDIA-Nemotron-Nano-12B-v2-VL-BF16", model=stated) == set()


def test_sizes_of_a_known_model_are_not_taken_from_the_spec() -> None:
    found = only(check(model={"architecture": STATED}), "ArchitectureIgnored")
    assert (found.severity, found.field) == ("Warning", "spec.model.architecture")


CONTRADICTIONS = [
    ("heads that do not share", {"keyValueHeads": 3}, "keyValueHeads", "28 attention heads cannot share 3"),
    ("heads of no whole size", {"hiddenSize": 3585}, "headSize", "hiddenSize 3585 / attentionHeads 28 is no whole"),
    ("more of a kind than layers", {"crossAttentionLayers": 29}, "crossAttentionLayers", "29 is more than layers 28"),
    (
        "more windows than layers",
        {"localAttention": {"window": 1024, "layers": 29}},
        "localAttention.layers",
        "29 is more than layers 28",
    ),
    (
        "patches so small that no image is taken",
        {"vision": VISION | {"patchSize": 1, "spatialMergeSize": 1}, "images": {"rule": "KimiVL"}},
        "images",
        "a model of the rule KimiVL would refuse every image",
    ),
    (
        "more active experts than experts",
        {"experts": {"count": 8, "active": 9, "intermediateSize": 768}},
        "experts.active",
        "9 is more than experts.count 8",
    ),
]


@table("changed, field, words", CONTRADICTIONS)
def test_stated_sizes_must_not_contradict_each_other(changed: dict[str, Any], field: str, words: str) -> None:
    findings = check("me/other", model={"architecture": STATED | changed}, parallelism={"tensor": 3})
    found = only(findings, "ArchitectureContradictory")
    assert (found.severity, found.field) == ("Error", f"spec.model.architecture.{field}")
    assert words in found.message
    assert {one.reason for one in findings} == {"ArchitectureContradictory", "GpuUnknown"}


def test_a_stated_head_size_needs_no_division() -> None:
    assert reasons("me/other", model={"architecture": STATED | {"hiddenSize": 3585, "headSize": 128}}) == set()


def test_sizes_that_are_not_used_need_not_make_sense() -> None:
    assert reasons(model={"architecture": STATED | {"keyValueHeads": 3}}) == {"ArchitectureIgnored"}


SIZES = [
    ("the one in the name", QWEN_7B, "7B", None),
    ("the total, which is not in the name", QWEN_7B, "8.3B", "7B in its name; set size to 7B"),
    ("the total of a mixture of experts", "Qwen/Qwen3-VL-30B-A3B-Instruct", "30B", None),
    ("its active part", "Qwen/Qwen3-VL-30B-A3B-Instruct", "3B", "30B in its name"),
    (
        "the active part that stands in the name",
        "meta-llama/Llama-4-Scout-17B-16E-Instruct",
        "17B",
        "108.6B parameters",
    ),
    ("a rounded total", MINICPM, "8B", None),
    ("a total with a decimal", MINICPM, "8.1B", None),
    ("neither", MINICPM, "7B", "8.1B parameters in all; set size to 8.1B or 8B, or name another model"),
    ("millions", "HuggingFaceTB/SmolVLM2-256M-Video-Instruct", "0.256B", None),
    ("anything of an unknown model", "me/other", "1T", None),
]


@table("name, size, words", SIZES)
def test_the_size_of_a_model(name: str, size: str, words: str | None) -> None:
    findings = [found for found in check(name, model={"size": size}) if found.reason == "SizeMismatch"]
    assert bool(findings) == (words is not None)
    for found in findings:
        assert str(words) in found.sentence()
        assert (found.severity, found.field) == ("Error", "spec.model.size")


CONTEXTS = [
    ("all of it", {"model": {"maxModelLen": 128000}}, None),
    ("more", {"model": {"maxModelLen": 128001}}, "Error"),
    ("more, forced by a variable", {"model": {"maxModelLen": 200000}, "engine": FORCED}, "Warning"),
    (
        "more, by another configuration",
        {"model": {"maxModelLen": 200000}, "engine": {"args": ["--hf-overrides", "{}"]}},
        "Warning",
    ),
    (
        "more, by a part of it",
        {"model": {"maxModelLen": 200000}, "engine": {"args": ["--hf_overrides.a=1"]}},
        "Warning",
    ),
    ("more, beside other arguments", {"model": {"maxModelLen": 200000}, "engine": {"args": ["--seed=1"]}}, "Error"),
]


@table("sections, severity", CONTEXTS)
def test_the_context_of_a_model(sections: dict[str, Any], severity: str | None) -> None:
    findings = [found for found in check(**sections) if found.reason == "ContextTooLong"]
    assert [found.severity for found in findings] == ([severity] if severity else [])
    for found in findings:
        assert "the model's longest context is 128000 tokens" in found.message
        assert found.advice == "set maxModelLen to 128000 or less"


IMAGES = [
    (
        "fewer tokens than the largest image that the model allows",
        {"model": {"maxModelLen": 8192}},
        "Warning",
        "spec.multimodal.maxPixels",
    ),
    (
        "fewer than the largest image that the spec allows",
        {"model": {"maxModelLen": 8192}, "multimodal": {"maxPixels": 12845056}},
        "Error",
        "spec.multimodal.maxPixels",
    ),
    ("fewer than an ordinary image", {"model": {"maxModelLen": 1024}}, "Error", "spec.multimodal.maxPixels"),
    (
        "as many, which leaves none for a question",
        {"model": {"maxModelLen": 16384}},
        "Warning",
        "spec.multimodal.maxPixels",
    ),
    ("more", {"model": {"maxModelLen": 16385}}, None, ""),
    ("enough for smaller images", {"model": {"maxModelLen": 2048}, "multimodal": {"maxPixels": 1003520}}, None, ""),
    (
        "too few even for them",
        {"model": {"maxModelLen": 1024}, "multimodal": {"maxPixels": 1003520}},
        "Error",
        "spec.multimodal.maxPixels",
    ),
    (
        "few, without images",
        {"model": {"maxModelLen": 1024}, "multimodal": {"limitsPerPrompt": {"image": 0}}},
        None,
        "",
    ),
]


@table("sections, severity, field", IMAGES)
def test_a_request_must_hold_the_largest_image(sections: dict[str, Any], severity: str | None, field: str) -> None:
    findings = [found for found in check(**sections) if found.reason == "ImageExceedsContext"]
    assert [(found.severity, found.field) for found in findings] == ([(severity, field)] if severity else [])


def test_the_advised_pixels_make_the_image_fit() -> None:
    found = only(check(model={"maxModelLen": 8192}), "ImageExceedsContext")
    assert found.sentence() == (
        "spec.multimodal.maxPixels: the largest image allowed (3584x3584) takes 16384 tokens, and a request has 8192 at"
        " most: such images are refused one by one; set maxPixels to 3211264, with which an image takes half of that, or"
        " set maxModelLen above 16384"
    )
    image = largest(subject(model={"maxModelLen": 8192}, multimodal={"maxPixels": 3211264}))
    assert image is not None
    assert image.tokens <= 4096


def test_no_pixels_at_all_are_not_advised() -> None:
    found = only(check(model={"maxModelLen": 1}), "ImageExceedsContext")
    assert found.advice == "set maxModelLen above 16384"


def test_where_pixels_have_no_effect_they_are_not_advised() -> None:
    found = only(check("llava-hf/llava-onevision-qwen2-7b-ov-hf", model={"maxModelLen": 4096}), "ImageExceedsContext")
    assert found.field == "spec.model.maxModelLen"
    assert found.advice == "set maxModelLen above 7371"


def test_images_outside_the_context_do_not_count() -> None:
    assert reasons(LLAMA_VISION, version="0.10.2", model={"maxModelLen": 4096}) == set()


def test_a_model_that_does_not_say_its_context_is_not_judged_by_it() -> None:
    silent = {name: value for name, value in STATED.items() if name != "maxContext"}
    from vlm_operator.api.architecture import Architecture

    about = subject("me/other")
    about.__dict__["architecture"] = Architecture.model_validate(silent | {"images": {"rule": "Qwen2VL"}})
    assert {found.reason for found in checks.check(about)} == {"GpuUnknown"}


def test_more_images_than_a_request_holds_are_remarked() -> None:
    found = only(check(multimodal={"limitsPerPrompt": {"image": 20}}), "ImagesExceedContext")
    assert (found.severity, found.field) == ("Warning", "spec.multimodal.limitsPerPrompt.image")
    assert "take 20 x 16384 = 327680 tokens, and a request has 128000 at most" in found.message
    assert "set image to 7 or lower maxPixels" in found.advice
    assert reasons(multimodal={"limitsPerPrompt": {"image": 7}}) == set()


STEPS = [
    ("divided, as is usual", {"maxNumBatchedTokens": 4096}, False),
    ("undivided", {"maxNumBatchedTokens": 4096, "args": ["--disable-chunked-mm-input"]}, True),
    ("undivided, with underscores", {"maxNumBatchedTokens": 4096, "args": ["--disable_chunked_mm_input"]}, True),
    (
        "undivided, in steps that are long enough",
        {"maxNumBatchedTokens": 16384, "args": ["--disable-chunked-mm-input"]},
        False,
    ),
]


@table("engine, wrong", STEPS)
def test_an_image_that_must_not_be_divided_needs_a_step_for_itself(engine: dict[str, Any], wrong: bool) -> None:
    assert ("ImageExceedsEncoderBudget" in reasons(engine=engine)) == wrong


PIXELS = [
    ("limits of free resolution", QWEN_7B, {"minPixels": 3136, "maxPixels": 1003520}, set()),
    ("limits where there is none", MINICPM, {"minPixels": 1, "maxPixels": 100000}, {"PixelLimitsUnused"}),
    ("less than the model's own least", QWEN_7B, {"maxPixels": 1000}, {"PixelLimitsCrossed"}),
    ("more than the model's own most", QWEN_7B, {"minPixels": 20_000_000}, {"PixelLimitsCrossed"}),
    ("both, however small", QWEN_7B, {"minPixels": 100, "maxPixels": 1000}, set()),
    ("none", MINICPM, {}, set()),
    ("no images", QWEN_7B, {"limitsPerPrompt": {"image": 0}}, {"ImagesTurnedOff"}),
    ("an unknown way of resizing", "microsoft/Phi-4-multimodal-instruct", {"maxPixels": 1000}, set()),
]


@table("name, multimodal, expected", PIXELS)
def test_limits_in_pixels(name: str, multimodal: dict[str, Any], expected: set[str]) -> None:
    assert reasons(name, multimodal=multimodal) == expected


def test_what_is_unsourced_is_said() -> None:
    found = only(check("OpenGVLab/InternVL3-8B", model={"maxModelLen": 65536}), "ContextTooLong")
    assert "32768 tokens (unsourced)" in found.message


GEMMA = "google/gemma-3-4b-it"


def test_images_that_the_engine_never_divides_need_a_step_without_any_flag() -> None:
    found = only(checks.check(subject(GEMMA, engine={"maxNumBatchedTokens": 128})), "ImageExceedsEncoderBudget")
    assert (found.severity, found.field) == ("Error", "spec.engine.maxNumBatchedTokens")
    assert "(896x896) takes 256 tokens, a step has 128, and vLLM does not divide images of Gemma3" in found.message
    assert found.advice == "set maxNumBatchedTokens to 256 or more"
    assert "ImageExceedsEncoderBudget" not in reasons(GEMMA, engine={"maxNumBatchedTokens": 256})


def test_fewer_pixels_are_not_advised_below_the_least() -> None:
    about = subject(model={"maxModelLen": 8192}, multimodal={"minPixels": 20_000_000})
    assert only(checks.check(about), "ImageExceedsContext").advice.startswith("set minPixels and maxPixels to ")
