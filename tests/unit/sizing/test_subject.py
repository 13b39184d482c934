"""What a spec is about: rows of the catalogue, else what the spec states, else nothing."""

from typing import Any

import pytest

from unit.sizing.subjects import QWEN_7B, QWEN_72B, STATED, subject
from vlm_operator.sizing.subject import choices


def test_the_catalogue_goes_before_the_spec() -> None:
    about = subject(model={"architecture": STATED})
    assert about.architecture is not None
    assert about.architecture.max_context == 128000
    assert about.class_name == "Qwen2_5_VLForConditionalGeneration"


def test_a_quantised_repository_is_its_model_with_its_own_padding() -> None:
    about = subject(f"{QWEN_72B}-AWQ")
    assert about.row is not None
    assert about.row.hf_id == QWEN_72B
    assert about.architecture is not None
    assert about.architecture.intermediate_size == 29696


def test_outside_the_catalogue_the_spec_is_believed() -> None:
    about = subject("me/other", model={"architecture": STATED})
    assert about.architecture is not None
    assert (about.architecture.layers, about.class_name, about.row) == (28, "OtherForConditionalGeneration", None)
    assert about.versions is None


def test_nothing_is_known_of_a_name_alone() -> None:
    about = subject("me/other")
    assert (about.architecture, about.class_name, about.versions, about.repo) == (None, None, None, None)


SLICES: list[tuple[str, str, str | None]] = [
    ("NVIDIA-A100-SXM4-80GB", "nvidia.com/mig-1g.10gb", "1g.10gb"),
    ("NVIDIA-A100-SXM4-80GB", "nvidia.com/mig-1g.10gb.me", "1g.10gb"),
    ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "nvidia.com/gpu", "1g.10gb"),
    ("NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu", None),
]


@pytest.mark.parametrize(("product", "resource", "profile"), SLICES)
def test_slices_are_known_by_label_or_by_resource(product: str, resource: str, profile: str | None) -> None:
    (found,) = subject(gpu={"products": [product], "resourceName": resource}).products
    assert found.row is not None
    assert found.row.mig_profile == profile


def test_a_slice_that_a_gpu_does_not_have_is_unknown() -> None:
    (found,) = subject(gpu={"products": ["NVIDIA-L40S"], "resourceName": "nvidia.com/mig-1g.10gb"}).products
    assert found.row is None


@pytest.mark.parametrize(
    ("values", "words"), [((1,), "1"), ((1, 2), "1 or 2"), ((1, 2, 4), "1, 2 or 4"), (("a", "b"), "a or b")]
)
def test_choices_are_told_in_words(values: tuple[Any, ...], words: str) -> None:
    assert choices(values) == words


def test_doubt_is_about_the_catalogue_alone() -> None:
    assert subject("OpenGVLab/InternVL3-8B").doubt("maxContext") == " (unsourced)"
    assert subject(QWEN_7B).doubt("maxContext") == ""
    assert subject("me/other", model={"architecture": STATED}).doubt("maxContext") == ""
