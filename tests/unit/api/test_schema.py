"""From types to structural schemas, one trait at a time."""

from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import Field, StringConstraints

from vlm_operator.api import patterns
from vlm_operator.api.base import ApiModel, Rule
from vlm_operator.api.scalars import LabelKey, Quantity, duration, matching
from vlm_operator.api.schema import structural_schema


class Inner(ApiModel):
    """An inner
    object.
    """

    size: Annotated[int, Field(gt=0, lt=10)] = 3
    """A size
    over two lines."""


class Sample(ApiModel):
    """A sample of everything."""

    word: Annotated[str, StringConstraints(max_length=8)]
    """Required text."""
    version: Annotated[str, matching(patterns.ENGINE_VERSION, max_length=14)] | None = None
    """Optional text with a pattern in need of words."""
    key: LabelKey | None = None
    """Optional text with a pattern that everybody knows."""
    fixed: Literal["On"] = "On"
    """One choice."""
    choice: Literal["None", "Some"] | None = None
    """An optional choice."""
    inner: Inner = Field(default_factory=Inner)
    """An object with defaults."""
    perhaps: Inner | None = None
    """An optional object."""
    timeout: duration("1s", "1h") = "5m"  # type: ignore[valid-type]
    """A duration."""
    amount: Quantity | None = None
    """A quantity."""
    labels: Annotated[dict[LabelKey, Annotated[str, StringConstraints(max_length=9)]], Field(max_length=4)] = Field(
        default_factory=dict
    )
    """A map."""
    items: Annotated[list[Inner], Field(max_length=5)] = Field(default_factory=list)
    """A list."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(cel="has(self.choice)", message="choose", holds=lambda s: s.choice is not None, field_path=".choice"),
    )


SCHEMA = structural_schema(Sample)


def field(name: str) -> dict[str, Any]:
    found: dict[str, Any] = SCHEMA["properties"][name]
    return found


def test_the_type_is_an_object_with_its_docstring_and_required_fields() -> None:
    assert (SCHEMA["type"], SCHEMA["description"], SCHEMA["required"]) == (
        "object",
        "A sample of everything.",
        ["word"],
    )
    assert "additionalProperties" not in SCHEMA
    assert "title" not in SCHEMA


def test_rules_are_validations_of_their_type() -> None:
    rule = {"rule": "has(self.choice)", "message": "choose", "fieldPath": ".choice"}
    assert SCHEMA["x-kubernetes-validations"] == [rule]


def test_optional_fields_are_neither_nullable_nor_null_by_default() -> None:
    assert field("choice") == {
        "description": "An optional choice.",
        "type": "string",
        "enum": ["None", "Some"],
    }


def test_one_choice_is_an_enum() -> None:
    assert field("fixed") == {"description": "One choice.", "type": "string", "enum": ["On"], "default": "On"}


def test_a_pattern_in_need_of_words_has_a_rule_with_them() -> None:
    (rule,) = field("version")["x-kubernetes-validations"]
    assert rule["rule"] == f"self.matches(r'{patterns.ENGINE_VERSION.regex}')"
    assert rule["message"] == patterns.ENGINE_VERSION.meaning
    assert field("version")["pattern"] == patterns.ENGINE_VERSION.regex


def test_a_familiar_pattern_stands_alone() -> None:
    assert field("key") == {
        "description": "Optional text with a pattern that everybody knows.",
        "type": "string",
        "pattern": patterns.LABEL_KEY.regex,
        "maxLength": 253,
    }


def test_an_object_with_defaults_is_an_empty_object_by_default() -> None:
    assert field("inner")["default"] == {}
    assert field("inner")["properties"]["size"]["default"] == 3
    assert "default" not in field("perhaps")


def test_a_field_describes_itself_and_an_item_its_type() -> None:
    assert field("inner")["description"] == "An object with defaults."
    assert field("items")["items"]["description"] == "An inner object."
    assert field("inner")["properties"]["size"]["description"] == "A size over two lines."


def test_exclusive_bounds_are_flags() -> None:
    size = field("inner")["properties"]["size"]
    assert (size["minimum"], size["exclusiveMinimum"]) == (0, True)
    assert (size["maximum"], size["exclusiveMaximum"]) == (10, True)


def test_a_duration_is_checked_by_one_rule_that_cannot_fail_itself() -> None:
    (rule,) = field("timeout")["x-kubernetes-validations"]
    assert rule["rule"].startswith("self.matches(")
    assert rule["rule"].endswith("duration(self) >= duration('1s') && duration(self) <= duration('1h')")
    assert field("timeout")["default"] == "5m"


def test_a_quantity_is_an_integer_or_a_string_without_a_type() -> None:
    amount = field("amount")
    assert amount["x-kubernetes-int-or-string"] is True
    assert "type" not in amount
    assert amount["pattern"] == patterns.QUANTITY.regex


def test_keys_of_a_map_are_checked_by_a_rule() -> None:
    labels = field("labels")
    (rule,) = labels["x-kubernetes-validations"]
    assert labels["maxProperties"] == 4
    assert labels["additionalProperties"] == {"type": "string", "maxLength": 9}
    assert rule["rule"] == f"self.all(key, key.matches(r'{patterns.LABEL_KEY.regex}') && key.size() <= 253)"


def test_defaults_are_kept_where_wanted_only() -> None:
    schema = structural_schema(Sample, keeps_default=lambda path: path == "inner.size")
    assert "default" not in schema["properties"]["inner"]
    assert schema["properties"]["inner"]["properties"]["size"]["default"] == 3
    assert "default" not in schema["properties"]["fixed"]


class Union(ApiModel):
    """A type that Kubernetes cannot express."""

    value: int | bool
    """Either."""


class Tuple(ApiModel):
    """Another one."""

    value: tuple[int, str]
    """Both."""


@pytest.mark.parametrize("cls", [Union, Tuple])
def test_what_cannot_be_expressed_is_refused(cls: type[ApiModel]) -> None:
    with pytest.raises(ValueError, match="no structural schema"):
        structural_schema(cls)
