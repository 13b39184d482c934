"""What the items of a list are to each other: declared once for the API server and checked alike when a spec is read.

Without a declaration a list is atomic: its items may repeat, and server-side apply replaces it as a whole.
"""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError
from pydantic_core.core_schema import no_info_after_validator_function


@dataclass(frozen=True, kw_only=True)
class ListType:
    """Annotation of a list field: `x-kubernetes-list-type`, with the key of the items for a map."""

    kind: Literal["atomic", "set", "map"]
    key: str = ""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check that no item comes twice."""
        schema = handler(source)
        return schema if self.kind == "atomic" else no_info_after_validator_function(self._unique, schema)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Declare the type of the list."""
        declared: JsonSchemaValue = {"x-kubernetes-list-type": self.kind}
        if self.kind == "map":
            declared["x-kubernetes-list-map-keys"] = [self.key]
        return handler(schema) | declared

    def _unique(self, items: list[Any]) -> list[Any]:
        names = [getattr(item, self.key) if self.key else item for item in items]
        for index, name in enumerate(names):
            if name in names[:index]:
                message = f"{name} is given more than once"
                raise PydanticCustomError("rule", "{message}", {"message": message, "field": f"[{index}]"})
        return items


ATOMIC = ListType(kind="atomic")
SET = ListType(kind="set")
MAP_BY_NAME = ListType(kind="map", key="name")
MAP_BY_TYPE = ListType(kind="map", key="type")
