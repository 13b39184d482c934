"""What all types of the resource share: how they are spelled, and rules that hold both here and on the API server.

A `Rule` states one constraint twice, as CEL for the generated CRD and as a Python check, so that the two stand side by
side and a property test can hold them to each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Self, cast, get_args

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One constraint over the fields of a type."""

    cel: str
    """The constraint as a CEL expression over `self`; it must guard optional fields with `has()`."""
    message: str
    """What is wrong and what to do, for a person. Shown by the API server as it stands."""
    holds: Callable[[Any], bool]
    """The same constraint over the Python value."""
    field_path: str | None = None
    """The field to blame, relative to the type, as the API server wants it (`.size`)."""
    values: tuple[str, ...] = ()
    """Fields of the type whose values a finding shows; none that may hold a secret."""

    def broken_by(self, value: "ApiModel") -> str:
        """What is wrong with this value in particular: the message with the values that break the rule."""
        shown = [f"{to_camel(name)} is {given}" for name in self.values if (given := getattr(value, name)) is not None]
        return f"{' and '.join(shown)}, but {self.message}" if shown else self.message


class ApiModel(BaseModel):
    """Base of every type in `spec` and `status`: camelCase on the wire, immutable, unknown fields refused."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=True,
        serialize_by_alias=True,
        extra="forbid",
        frozen=True,
        strict=True,
        defer_build=True,  # most types are only ever read as parts of others
    )

    rules: ClassVar[tuple[Rule, ...]] = ()

    @classmethod
    def defaults(cls) -> Self:
        """Return the value in which every field has its default: made once, as it is frozen, and without a validator."""
        return cast("Self", _defaults(cls))

    @model_validator(mode="after")
    def _obey_rules(self) -> Self:
        for rule in self.rules:
            if not rule.holds(self):
                field = (rule.field_path or "").removeprefix(".")
                raise PydanticCustomError("rule", "{message}", {"message": rule.broken_by(self), "field": field})
        return self


@cache
def _defaults(model: type[ApiModel]) -> ApiModel:
    return model.model_construct()


def model_in(annotation: Any) -> type[ApiModel] | None:
    """Return the type of the resource that an annotation is about (`Engine | None`, `list[Engine]`); None for plain values."""
    if isinstance(annotation, type) and issubclass(annotation, ApiModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := model_in(part))), None)


def no_items() -> list[Any]:
    """Return the default of a list. Pydantic reads the signature of every default factory, that of `list` slowly."""
    return []
