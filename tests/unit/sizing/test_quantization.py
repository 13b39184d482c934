"""Every allowed GPU must run the stored format in the version of the engine; what was not read is a warning."""

from typing import Any

import pytest

from unit.replicas.tables import table
from unit.sizing.subjects import INTERNVL_78B, QWEN_7B, QWEN_72B, only, sentences, subject
from vlm_operator.sizing import quantization
from vlm_operator.sizing.catalogue.loading import builtin
from vlm_operator.sizing.catalogue.rows import Format
from vlm_operator.sizing.quantization import group_size

T4, V100, A100, L40S = "Tesla-T4", "Tesla-V100-SXM2-16GB", "NVIDIA-A100-SXM4-80GB", "NVIDIA-L40S"
H100, B200, MI300X = "NVIDIA-H100-80GB-HBM3", "NVIDIA-B200", "AMD_Instinct_MI300X_OAM"


def on(*products: str, stored: str, version: str = "0.33", **model: Any) -> Any:
    about = subject(version=version, model={"quantization": stored, **model}, gpu={"products": list(products)})
    return [one for one in quantization.check(about) if one.reason != "QuantizedRepositoryUnknown"]


VERDICTS = [
    ("AWQ from 7.5 in 0.33", T4, "AWQ", "0.33", None, ""),
    (
        "AWQ from 8.0 in 0.10.2",
        T4,
        "AWQ",
        "0.10.2",
        "QuantizationUnsupported",
        "AWQ needs compute capability 8.0 in vLLM 0.10.2",
    ),
    (
        "AWQ on 7.5 between the two",
        T4,
        "AWQ",
        "0.31",
        "QuantizationUncertain",
        "needs compute capability 8.0 in some versions of vLLM; 0.31 was not read",
    ),
    (
        "AWQ on 7.0",
        V100,
        "AWQ",
        "0.33",
        "QuantizationUnsupported",
        "has compute capability 7.0 (unsourced), and AWQ needs compute capability 7.5",
    ),
    ("AWQ on 7.0 between the two", V100, "AWQ", "0.31", "QuantizationUnsupported", "needs compute capability 7.5"),
    (
        "GPTQ on 7.0, by a slow kernel",
        V100,
        "GPTQ",
        "0.33",
        "QuantizationUncertain",
        "whether vLLM runs GPTQ there was not verified",
    ),
    ("MXFP4 on 7.5", T4, "MXFP4", "0.33", "QuantizationUnsupported", "MXFP4 needs compute capability 8.0"),
    ("FP8 from 8.9 natively", L40S, "FP8", "0.33", None, ""),
    (
        "FP8 before 8.9",
        A100,
        "FP8",
        "0.33",
        "QuantizationNotNative",
        "FP8 is computed natively from compute capability 8.9 on",
    ),
    ("NVFP4 before Blackwell", H100, "NVFP4", "0.33", "QuantizationNotNative", "natively from compute capability 10.0"),
    ("NVFP4 on Blackwell", B200, "NVFP4", "0.33", None, ""),
    ("INT8 on Blackwell, which nobody verified", B200, "INT8", "0.33", "QuantizationUncertain", "was not verified"),
    ("MXFP4 on AMD", MI300X, "MXFP4", "0.33", None, ""),
    (
        "AWQ on AMD",
        MI300X,
        "AWQ",
        "0.33",
        "QuantizationUncertain",
        "whether vLLM runs AWQ on MI300X (gfx942) is not known",
    ),
    ("16 bit on anything", V100, "None", "0.33", None, ""),
    ("a GPU that nobody knows", "NVIDIA-X", "NVFP4", "0.33", None, ""),
]


@table("product, stored, version, reason, words", VERDICTS)
def test_a_format_on_a_gpu(product: str, stored: str, version: str, reason: str | None, words: str) -> None:
    findings = on(product, stored=stored, version=version)
    assert [one.reason for one in findings] == ([reason] if reason else [])
    for found in findings:
        assert words in found.message
        assert found.severity == ("Error" if reason == "QuantizationUnsupported" else "Warning")


def test_every_product_is_judged_at_its_own_place() -> None:
    findings = on(L40S, V100, A100, stored="FP8")
    assert [(one.field, one.severity) for one in findings] == [
        ("spec.gpu.products[1]", "Error"),
        ("spec.gpu.products[2]", "Warning"),
    ]
    assert findings[0].advice == f"remove {V100}, or use weights in another format"


def test_weights_quantised_while_loading_are_judged_as_what_they_become() -> None:
    (found,) = on(A100, stored="None", onlineQuantization="FP8")
    assert found.reason == "QuantizationNotNative"


MISMATCHES = [
    (
        "nothing said",
        {},
        "quantization is None, but Qwen/Qwen2.5-VL-72B-Instruct-AWQ holds AWQ; set quantization to AWQ",
    ),
    ("another format said", {"quantization": "GPTQ"}, "quantization is GPTQ, but"),
]


@table("model, words", MISMATCHES)
def test_the_format_must_be_that_of_the_named_repository(model: dict[str, Any], words: str) -> None:
    found = only(quantization.check(subject(f"{QWEN_72B}-AWQ", model=model)), "QuantizationMismatch")
    assert words in found.sentence()
    assert (found.severity, found.field) == ("Error", "spec.model.quantization")


def test_the_format_of_the_named_repository_is_right() -> None:
    assert list(quantization.check(subject(f"{QWEN_72B}-AWQ", model={"quantization": "AWQ"}))) == []


def test_what_the_catalogue_only_believes_does_not_refuse() -> None:
    believed = [repo for row in builtin().models for repo in row.quantised if repo.mark == "unsourced"]
    found = only(quantization.check(subject(believed[0].repo)), "QuantizationMismatch")
    assert found.severity == "Warning"
    assert "(unsourced)" in found.message


def test_a_format_that_cannot_be_said_is_not_advised() -> None:
    unsayable = [repo for row in builtin().models for repo in row.quantised if repo.format == "BitsAndBytes"]
    for repo in unsayable:
        found = only(quantization.check(subject(repo.repo)), "QuantizationMismatch")
        assert found.advice == "name the repository whose weights you serve"


def test_a_format_without_a_known_repository_is_remarked() -> None:
    found = only(
        quantization.check(subject(INTERNVL_78B, model={"quantization": "GPTQ"})), "QuantizedRepositoryUnknown"
    )
    assert found.severity == "Warning"
    assert "groups of 128 weights are assumed" in found.message


@pytest.mark.parametrize(
    ("name", "stored", "size"),
    [
        (QWEN_7B, "None", None),
        (QWEN_7B, "FP8", None),
        (QWEN_7B, "AWQ", 128),
        (INTERNVL_78B, "GPTQ", 128),
        ("me/other", "INT4", 128),
    ],
)
def test_groups_are_those_of_the_repository_or_the_usual_ones(name: str, stored: str, size: int | None) -> None:
    assert group_size(subject(name, model={"quantization": stored})) == size


def test_a_repository_with_groups_of_its_own_is_believed() -> None:
    catalogue = builtin()
    row = catalogue.model(QWEN_7B).row  # type: ignore[union-attr]
    small = row.quantised[0].model_copy(update={"repo": "me/small-groups", "format": "GPTQ", "group_size": 32})
    rows = (row.model_copy(update={"quantised": [small]}),)
    changed = type(catalogue)(models=rows, gpus=catalogue.gpus, methods=catalogue.methods)
    assert group_size(subject(model={"quantization": "GPTQ"}, catalogue=changed)) == 32


@pytest.mark.parametrize("stored", Format.__args__)  # type: ignore[attr-defined]
def test_every_format_of_a_spec_has_a_method(stored: str) -> None:
    assert sentences(on(V100, stored=stored)), "a GPU this old is good for no format without a word"
