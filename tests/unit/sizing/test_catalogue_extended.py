"""What an admin of the cluster adds to the catalogue: good rows count, bad ones are named by their fields."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlm_operator.api.findings import INVALID_FIELD, Finding
from vlm_operator.api.patterns import BY_REGEX
from vlm_operator.sizing.catalogue.loading import ROW_REPEATED, Catalogue, builtin, extended
from vlm_operator.sizing.catalogue.rows import GpuRow, ModelRow, QuantizationRow

SIZES: dict[str, Any] = {
    "name": "OurVLForConditionalGeneration",
    "layers": 28,
    "hiddenSize": 3584,
    "attentionHeads": 28,
    "keyValueHeads": 4,
    "intermediateSize": 18944,
    "vocabularySize": 152064,
}
MODEL: dict[str, Any] = {
    "hfId": "our/vl-7b",
    "family": "Ours",
    "architectureName": "OurVLForConditionalGeneration",
    "architecture": SIZES,
    "totalParameters": 8_000_000_000,
    "marks": {"dimensions": "sourced"},
    "sources": ["OURS"],
}
GPU: dict[str, Any] = {
    "name": "X1",
    "vendor": "nvidia",
    "productLabels": ["NVIDIA-X1"],
    "memoryMib": 24564,
    "capability": "8.9",
}
AWQ = {"format": "AWQ", "bits": 4, "mark": "sourced"}


def extend(**document: Any) -> tuple[Catalogue, tuple[Finding, ...]]:
    return extended(builtin(), {"ours.yaml": document})


def test_models_gpus_and_sources_are_added() -> None:
    catalogue, findings = extend(models=[MODEL], gpus=[GPU], sources={"OURS": "our wiki"})
    assert findings == ()
    match = catalogue.model("our/vl-7b")
    assert match is not None
    assert match.row.total_parameters == 8_000_000_000
    assert catalogue.gpu("NVIDIA-X1") is not None
    assert catalogue.source("OURS") == "our wiki"
    assert len(catalogue.models) == len(builtin().models) + 1
    assert builtin().model("our/vl-7b") is None


def test_a_row_with_a_known_key_takes_its_place() -> None:
    catalogue, findings = extend(
        models=[MODEL | {"hfId": "Qwen/Qwen2.5-VL-7B-Instruct"}],
        gpus=[GPU | {"productLabels": ["Tesla-T4"]}],
    )
    assert findings == ()
    match = catalogue.model("Qwen/Qwen2.5-VL-7B-Instruct")
    assert match is not None
    assert match.row.family == "Ours"
    t4 = catalogue.gpu("Tesla-T4")
    assert t4 is not None
    assert t4.name == "X1"
    assert len(catalogue.models) == len(builtin().models)
    assert len(catalogue.gpus) == len(builtin().gpus)


def test_a_slice_can_be_given_its_true_memory() -> None:
    label = "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"
    catalogue, _ = extend(gpus=[GPU | {"productLabels": [label], "memoryMib": 9728}])
    row = catalogue.gpu(label)
    assert row is not None
    assert (row.memory_mib, row.nominal_memory) == (9728, False)


BAD_ROWS = [
    ("a field is missing", {"family": None}, "ours.yaml: models[1].family", "must be text"),
    ("text instead of a number", {"totalParameters": "8"}, "ours.yaml: models[1].totalParameters", "whole number"),
    ("an unknown field", {"familiy": "x"}, "ours.yaml: models[1].familiy", "is an unknown field"),
    ("a wrong mark", {"marks": {"vllm": "sure"}}, "ours.yaml: models[1].marks.vllm", "must be one of"),
    ("a release with a v", {"vllm": {"firstSeenIn": "v0.30"}}, "ours.yaml: models[1].vllm.firstSeenIn", "a release"),
    (
        "a size out of range",
        {"architecture": SIZES | {"layers": 0}},
        "ours.yaml: models[1].architecture.layers",
        "must be at least 1",
    ),
]


@pytest.mark.parametrize(("changes", "field", "words"), [row[1:] for row in BAD_ROWS], ids=[row[0] for row in BAD_ROWS])
def test_a_bad_row_is_named_and_the_good_ones_stay(changes: dict[str, Any], field: str, words: str) -> None:
    bad = MODEL | {"hfId": "our/bad"} | changes
    catalogue, findings = extend(models=[MODEL, bad])
    assert [(finding.field, finding.reason, finding.severity) for finding in findings] == [
        (field, INVALID_FIELD, "Error")
    ]
    assert words in findings[0].message
    assert catalogue.model("our/vl-7b") is not None
    assert catalogue.model("our/bad") is None


GPU = {"name": "X1", "vendor": "nvidia", "productLabels": ["NVIDIA-X1"], "memoryMib": 24564}


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"capability": "nine"}, "ours.yaml: gpus[0].capability", "a compute capability such as 8.9"),
        ({"mig": [{"profile": "foo", "count": 1}]}, "ours.yaml: gpus[0].mig[0].profile", "1g.10gb"),
        ({"capability": 8.9}, "ours.yaml: gpus[0].capability", "must be text"),
        ({"cudaGib": 0}, "ours.yaml: gpus[0].cudaGib", "greater than 0"),
    ],
)
def test_a_bad_gpu_is_named(changes: dict[str, Any], field: str, words: str) -> None:
    catalogue, findings = extend(gpus=[GPU | changes])
    assert [finding.field for finding in findings] == [field]
    assert words in findings[0].sentence()
    assert catalogue.gpu("NVIDIA-X1") is None


def test_every_pattern_of_a_row_is_told_in_words() -> None:
    texts = [str(kind.model_json_schema()) for kind in (ModelRow, GpuRow, QuantizationRow)]
    found = {regex for text in texts for regex in re.findall(r"'pattern': '([^']*)'", text)}
    assert {regex.replace(chr(92) * 2, chr(92)) for regex in found} <= BY_REGEX.keys()


BAD_DOCUMENTS = [
    ("nothing", None, "ours.yaml"),
    ("a list", [MODEL], "ours.yaml"),
    ("an unknown part", {"model": [MODEL]}, "ours.yaml: model"),
    ("a ConfigMap", {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a.yaml": "models: []"}}, "ours.yaml"),
    ("a map of models", {"models": {"a": MODEL}}, "ours.yaml: models"),
    ("sources that are no texts", {"sources": {"OURS": 1}}, "ours.yaml: sources"),
    ("a row that is no map", {"gpus": ["T4"]}, "ours.yaml: gpus[0]"),
]


@pytest.mark.parametrize(
    ("document", "field"), [row[1:] for row in BAD_DOCUMENTS], ids=[row[0] for row in BAD_DOCUMENTS]
)
def test_a_bad_document_is_named_and_the_built_in_catalogue_stays(document: object, field: str) -> None:
    catalogue, findings = extended(builtin(), {"ours.yaml": document, "more.yaml": {"gpus": [GPU]}})
    assert [finding.field for finding in findings] == [field]
    assert catalogue.models == builtin().models
    assert catalogue.gpu("NVIDIA-X1") is not None


def test_of_two_rows_with_one_key_the_later_counts_and_a_warning_says_so() -> None:
    documents = {"a.yaml": {"models": [MODEL]}, "b.yaml": {"models": [MODEL | {"family": "Later"}]}}
    catalogue, findings = extended(builtin(), documents)
    assert [(finding.reason, finding.severity, finding.field) for finding in findings] == [
        (ROW_REPEATED, "Warning", "b.yaml: models[0]")
    ]
    match = catalogue.model("our/vl-7b")
    assert match is not None
    assert match.row.family == "Later"


@pytest.mark.parametrize(
    ("document", "field", "message"),
    [
        (
            {"gpus": [GPU | {"productLabels": ["NVIDIA-X1", "NVIDIA-L4"]}]},
            "ours.yaml: gpus[0]",
            "NVIDIA-L4 has a row before; this one counts",
        ),
        (
            {"models": [MODEL | {"quantised": [AWQ | {"repo": "Qwen/Qwen2.5-VL-7B-Instruct"}]}]},
            "ours.yaml: models[0]",
            "Qwen/Qwen2.5-VL-7B-Instruct has a row before; this one counts",
        ),
        (
            {"models": [MODEL | {"hfId": "Qwen/Qwen2.5-VL-7B-Instruct-AWQ"}]},
            "ours.yaml: models[0]",
            "Qwen/Qwen2.5-VL-7B-Instruct-AWQ also names another row, that of Qwen/Qwen2.5-VL-7B-Instruct; this one counts",
        ),
    ],
    ids=["a GPU", "a repository", "a model"],
)
def test_a_name_that_is_taken_from_another_row_is_told(document: dict[str, Any], field: str, message: str) -> None:
    catalogue, findings = extend(**document)
    assert [(f.reason, f.severity, f.field, f.message) for f in findings] == [(ROW_REPEATED, "Warning", field, message)]
    name = message.split(" ", maxsplit=1)[0]
    found = catalogue.gpu(name) or catalogue.model(name)
    assert found is not None
    assert (found.name if isinstance(found, GpuRow) else found.row.family) in ("X1", "Ours")


def test_two_names_of_one_class_are_a_warning() -> None:
    catalogue, findings = extend(models=[MODEL | {"architectureName": "Other"}])
    assert [(finding.severity, finding.field) for finding in findings] == [
        ("Warning", "ours.yaml: models[0].architecture.name")
    ]
    assert catalogue.model("our/vl-7b") is not None


def test_more_memory_by_cuda_than_by_the_driver_is_a_warning() -> None:
    catalogue, findings = extend(gpus=[GPU | {"cudaGib": 24.1}])
    assert [(finding.severity, finding.field, finding.message) for finding in findings] == [
        ("Warning", "ours.yaml: gpus[0].cudaGib", "is 24.1 GiB, which is more than memoryMib 24564 = 23.99 GiB")
    ]
    assert catalogue.gpu("NVIDIA-X1") is not None
    assert extend(gpus=[GPU | {"cudaGib": 24.1, "otherMemoryMib": [24700]}])[1] == ()


def test_no_documents_change_nothing() -> None:
    assert extended(builtin(), {}) == (builtin(), ())


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["models", "gpus", "sources", "hfId", "productLabels", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=8), anything, max_size=3))
def test_any_document_gives_findings_and_never_fails(documents: dict[str, Any]) -> None:
    catalogue, _ = extended(builtin(), documents)
    assert {row.hf_id for row in catalogue.models} >= {row.hf_id for row in builtin().models}
