"""Lists whose items must differ say so to the API server and when they are read."""

from typing import Annotated

import pytest
from pydantic import Field, ValidationError

from vlm_operator.api.base import ApiModel
from vlm_operator.api.lists import ATOMIC, MAP_BY_NAME, SET


class Item(ApiModel):
    """An item."""

    name: str
    """Its name."""
    value: int = 0
    """Its value."""


class Lists(ApiModel):
    """Lists of each kind."""

    atomic: Annotated[list[str], ATOMIC] = Field(default_factory=list)
    """May repeat."""
    words: Annotated[list[str], SET] = Field(default_factory=list)
    """A set."""
    items: Annotated[list[Item], MAP_BY_NAME] = Field(default_factory=list)
    """A map."""


def test_the_kind_is_declared() -> None:
    properties = Lists.model_json_schema()["properties"]
    assert properties["atomic"]["x-kubernetes-list-type"] == "atomic"
    assert properties["words"]["x-kubernetes-list-type"] == "set"
    assert properties["items"]["x-kubernetes-list-type"] == "map"
    assert properties["items"]["x-kubernetes-list-map-keys"] == ["name"]


def test_items_of_an_atomic_list_may_repeat() -> None:
    assert Lists.model_validate({"atomic": ["a", "a"]}).atomic == ["a", "a"]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"words": ["a", "b", "a"]}, "a is given more than once"),
        ({"items": [{"name": "a"}, {"name": "a", "value": 1}]}, "a is given more than once"),
    ],
)
def test_items_of_a_set_and_names_of_a_map_must_differ(raw: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Lists.model_validate(raw)


def test_different_items_are_kept_in_order() -> None:
    assert Lists.model_validate({"words": ["b", "a"]}).words == ["b", "a"]
