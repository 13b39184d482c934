"""The catalogue of the package: every row with its provenance, found by every name, unknown values as None."""

import json
import re
from pathlib import Path

import pytest

from vlm_operator.sizing.catalogue.loading import Match, builtin, gpu_slice
from vlm_operator.sizing.catalogue.rows import GpuRow, ModelRow

CATALOGUE = builtin()
STATED = json.loads((Path(__file__).parent / "stated.json").read_text())
GIB = 2**30

every_model = pytest.mark.parametrize("row", CATALOGUE.models, ids=[row.hf_id for row in CATALOGUE.models])
every_gpu = pytest.mark.parametrize("row", CATALOGUE.gpus, ids=[row.name for row in CATALOGUE.gpus])


def model(name: str) -> Match:
    match = CATALOGUE.model(name)
    assert match is not None
    return match


def gpu(label: str) -> GpuRow:
    row = CATALOGUE.gpu(label)
    assert row is not None
    return row


def test_all_rows_are_there() -> None:
    assert len(CATALOGUE.models) == len({row.hf_id for row in CATALOGUE.models}) == 60
    assert len(CATALOGUE.gpus) == 33
    assert len(CATALOGUE.methods) == 14
    assert len(CATALOGUE.kv_caches) == 5
    assert set(STATED) == {row.hf_id for row in CATALOGUE.models}


@every_model
def test_every_group_of_values_of_a_model_has_a_mark(row: ModelRow) -> None:
    sizes = row.architecture
    there = {"vllm", "parameters"}
    if sizes is not None:
        there |= {"dimensions", "vision", "maxContext"}
        there |= {"images"} if sizes.images else set()
        there |= {"experts"} if sizes.experts else set()
        there |= {"localAttention"} if sizes.local_attention else set()
        there |= {"crossAttention"} if sizes.cross_attention_layers else set()
    there |= {"video"} if row.video else set()
    there |= {"activeParameters"} if row.active_parameters else set()
    assert there <= set(row.marks)
    assert row.sources


@every_gpu
def test_every_value_of_a_gpu_has_a_mark(row: GpuRow) -> None:
    there = {"productLabels", "capability"}
    there |= {"memory"} if row.memory_mib or row.vram_label else set()
    there |= {"cudaTotal"} if row.cuda_gib else set()
    there |= {"speed"} if row.bandwidth else set()
    there |= {"mig"} if row.mig else set()
    assert there <= set(row.marks)
    assert row.sources


def test_every_source_is_told_in_words() -> None:
    lists = [row.sources for row in CATALOGUE.models] + [row.sources for row in CATALOGUE.gpus]
    keys = {key for sources in lists for key in sources}
    assert keys == set(CATALOGUE.sources)
    assert CATALOGUE.source("TF") == CATALOGUE.sources["TF"] != "TF"
    assert CATALOGUE.source("measured by ourselves") == "measured by ourselves"


def test_the_methods_name_their_sources_and_cover_every_format_of_the_resource() -> None:
    assert all(row.sources for row in CATALOGUE.methods)
    formats = {form for row in CATALOGUE.methods for form in row.formats}
    assert formats == {"AWQ", "GPTQ", "INT4", "INT8", "FP8", "NVFP4", "MXFP4"}


def test_no_value_is_zero_where_it_is_unknown() -> None:
    assert CATALOGUE.model("nvidia/NVIDIA-Nemotron-Nano-12B-v2-VL-BF16") == Match(row=CATALOGUE.models[-1])
    assert CATALOGUE.models[-1].architecture is None
    assert CATALOGUE.models[-1].total_parameters is None
    phi = model("microsoft/Phi-4-multimodal-instruct").architecture
    assert phi is not None
    assert phi.images is None
    assert phi.vision_parameters is None
    unknown_context = model("OpenGVLab/InternVL3_5-8B").architecture
    assert unknown_context is not None
    assert unknown_context.max_context is None
    assert gpu("AMD_Instinct_MI300X_OAM").memory_mib is None
    assert gpu("NVIDIA-A30").cuda_gib is None


@every_model
def test_class_and_parameters_agree_within_a_row(row: ModelRow) -> None:
    sizes = row.architecture
    if sizes is None:
        return
    assert sizes.name == row.architecture_name
    if row.total_parameters is not None:
        assert sizes.language_parameters is not None
        assert sizes.vision_parameters is not None
        # each of the three was rounded to 0.1 million
        assert row.total_parameters == pytest.approx(sizes.language_parameters + sizes.vision_parameters, abs=200_000)


@every_model
def test_the_parameters_give_the_stated_weights(row: ModelRow) -> None:
    stated = STATED[row.hf_id]
    if row.total_parameters is None:
        assert stated["weightGib"] is None
    else:
        assert 2 * row.total_parameters / GIB == pytest.approx(stated["weightGib"], abs=0.006)
    if stated["publishedParameters"]:
        assert row.total_parameters == pytest.approx(stated["publishedParameters"], rel=0.005)


@every_model
def test_a_model_is_found_by_its_name_and_by_those_of_its_quantised_repositories(row: ModelRow) -> None:
    assert model(row.hf_id) == Match(row=row)
    for repo in row.quantised:
        assert model(repo.repo) == Match(row=row, repo=repo)


def test_a_model_is_found_by_its_exact_name_only() -> None:
    assert CATALOGUE.model("qwen/qwen2.5-vl-7b-instruct") is None
    assert CATALOGUE.model("Qwen2.5-VL-7B") is None
    assert CATALOGUE.model("") is None


def test_a_quantised_repository_may_pad_the_mlp() -> None:
    plain = model("Qwen/Qwen2.5-VL-72B-Instruct").architecture
    padded = model("Qwen/Qwen2.5-VL-72B-Instruct-AWQ").architecture
    assert plain is not None
    assert padded is not None
    assert (plain.intermediate_size, padded.intermediate_size) == (29568, 29696)
    assert padded.layers == plain.layers
    same = model("Qwen/Qwen2.5-VL-7B-Instruct-AWQ")
    assert same.architecture == same.row.architecture


PROSE_TURNED_INTO_FIELDS = [
    ("google/gemma-3-4b-it", "local_attention", (1024, 29)),
    ("google/gemma-3-27b-it", "local_attention", (1024, 52)),
    ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "local_attention", (8192, 36)),
    ("Qwen/Qwen2.5-VL-7B-Instruct", "local_attention", None),
]


@pytest.mark.parametrize(("name", "field", "expected"), PROSE_TURNED_INTO_FIELDS)
def test_windows_are_fields(name: str, field: str, expected: tuple[int, int] | None) -> None:
    local = getattr(model(name).architecture, field)
    assert (local and (local.window, local.layers)) == expected


def test_what_only_some_models_have_is_a_field() -> None:
    llama = model("meta-llama/Llama-3.2-90B-Vision-Instruct").architecture
    assert llama is not None
    assert llama.cross_attention_layers == 20
    intern = model("OpenGVLab/InternVL3-78B").architecture
    assert intern is not None
    assert intern.vision is not None
    assert intern.vision.pads_heads
    kimi = model("moonshotai/Kimi-VL-A3B-Instruct").architecture
    assert kimi is not None
    assert kimi.experts is not None
    assert kimi.experts.dense_layers == 1
    assert kimi.latent_attention is not None
    assert (kimi.latent_attention.rank, kimi.latent_attention.rope_size) == (512, 64)


@every_gpu
def test_a_gpu_is_found_by_each_of_its_labels(row: GpuRow) -> None:
    assert [CATALOGUE.gpu(label) for label in row.product_labels] == [row] * len(row.product_labels)


def test_an_unknown_label_finds_nothing() -> None:
    assert CATALOGUE.gpu("NVIDIA-H900") is None
    assert CATALOGUE.gpu("") is None
    assert CATALOGUE.gpu("-SHARED") is None
    assert CATALOGUE.gpu("NVIDIA-H900-MIG-1g.10gb") is None


def test_the_h20_with_141_gb_is_not_the_one_with_96() -> None:
    assert gpu("NVIDIA-H20").memory_mib == 97871
    assert gpu("NVIDIA-H20-3e").memory_mib == 143771


def test_a_slice_has_its_nominal_memory_and_says_so() -> None:
    part = gpu("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb")
    whole = gpu("NVIDIA-A100-SXM4-80GB")
    assert part.memory_mib == 9536  # 10^10 bytes
    assert part.nominal_memory
    assert part.mig_profile == "1g.10gb"
    assert part.marks["memory"] == "unsourced"
    assert part.capability == whole.capability == "8.0"
    assert (part.cuda_gib, part.bandwidth) == (None, None)
    assert not whole.nominal_memory


def test_a_slice_with_media_engines_is_found_too() -> None:
    assert gpu("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb.me") == gpu("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb")


@every_gpu
def test_every_slice_of_the_table_is_found(row: GpuRow) -> None:
    for slices in row.mig:
        part = gpu(f"{row.product_labels[0]}-MIG-{slices.profile}")
        assert part == gpu_slice(row, slices.profile)
        assert part.memory_mib is not None
        assert row.memory_mib is not None
        # never more than the GPU has, however many
        assert part.memory_mib * slices.count <= row.memory_mib


NO_SLICES = [
    ("a GPU without slices", "NVIDIA-L4", "1g.6gb"),
    ("more than the GPU has", "NVIDIA-A30", "1g.48gb"),
    ("no memory", "NVIDIA-A30", "1g.0gb"),
    ("not a profile", "NVIDIA-A30", "all"),
]


@pytest.mark.parametrize(("label", "profile"), [row[1:] for row in NO_SLICES], ids=[row[0] for row in NO_SLICES])
def test_what_is_no_slice(label: str, profile: str) -> None:
    assert gpu_slice(gpu(label), profile) is None
    assert CATALOGUE.gpu(f"{label}-MIG-{profile}") is None


def test_a_gpu_in_turns_is_marked_as_shared() -> None:
    assert gpu("Tesla-T4-SHARED") == gpu("Tesla-T4").model_copy(update={"shared": True})
    part = gpu("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED")
    assert (part.shared, part.memory_mib) == (True, 9536)
    assert not gpu("Tesla-T4").shared


SEARCHES = [("qwen2.5-vl", 4), ("QWEN2.5 awq", 4), ("mllama", 2), ("no-such-model", 0), ("", 60)]


@pytest.mark.parametrize(("text", "found"), SEARCHES)
def test_models_are_searched_by_words(text: str, found: int) -> None:
    assert len(CATALOGUE.search_models(text)) == found


def test_gpus_are_searched_by_words() -> None:
    assert {row.name for row in CATALOGUE.search_gpus("a100 pcie")} == {"A100-40GB PCIe", "A100-80GB PCIe"}
    assert {row.vendor for row in CATALOGUE.search_gpus("amd")} == {"amd"}
    assert len(CATALOGUE.search_gpus("amd")) == 3


def test_the_data_names_no_file_of_a_machine() -> None:
    package = Path(__file__).parents[3] / "operator" / "vlm_operator" / "sizing" / "catalogue"
    for path in package.glob("*.json"):
        assert not re.search(r"/work|/tmp|/home|huggingface\.co|this project", path.read_text())
