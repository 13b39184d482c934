"""From a pydantic type to the structural schema that Kubernetes wants in a CRD.

Kubernetes takes a part of OpenAPI 3.0 and gives some things another spelling: no references, no `null`, no `const`,
keys of maps checked by CEL only. What this module does not know how to express it refuses, instead of letting it through.
"""

from collections.abc import Callable
from typing import Any, cast

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from vlm_operator.api.base import ApiModel, Rule
from vlm_operator.api.docstrings import field_docs, fold
from vlm_operator.api.patterns import BY_REGEX

Schema = dict[str, Any]
RULES = "x-kubernetes-validations"
INT_OR_STRING = "x-kubernetes-int-or-string"

_KEPT = (
    "description",
    "type",
    INT_OR_STRING,
    "format",
    "enum",
    "default",
    "pattern",
    *("minLength", "maxLength", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"),
    *("minItems", "maxItems", "minProperties", "maxProperties"),
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "required",
)
_NESTED = ("properties", "items", "additionalProperties", RULES)
# A CRD prunes what it does not know, and strict validation refuses it: additionalProperties: false has no place in it.
_DROPPED = ("title", "anyOf", "$ref")


def structural_schema(cls: type[ApiModel], *, keeps_default: Callable[[str], bool] = lambda _: True) -> Schema:
    """Return the structural schema of `cls`.

    `keeps_default` tells for the path of a field (`engine.type`) whether its default is written into stored objects.
    Raises ValueError for a type that has no structural schema.
    """
    schema = cls.model_json_schema(by_alias=True, schema_generator=_Generator)
    definitions = schema.pop("$defs", {})
    return _structural(schema, path="", definitions=definitions, keeps_default=keeps_default)


def validation(rule: Rule) -> Schema:
    """Return a rule as the API server wants it."""
    told = {"rule": rule.cel, "message": rule.message}
    return told | ({"fieldPath": rule.field_path} if rule.field_path else {})


class _Generator(GenerateJsonSchema):
    """JSON schema without null and const, with descriptions, rules and the defaults of nested objects."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        return {"type": "string", "enum": list(schema["expected"])}

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        described = super().default_schema(schema)
        return {key: value for key, value in described.items() if (key, value) != ("default", None)}

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        described: JsonSchemaValue = {"type": "object"}
        described["additionalProperties"] = self.generate_inner(schema["values_schema"])
        keys = self.generate_inner(schema["keys_schema"])
        described[RULES] = [_key_rule(keys)]
        self.update_with_validations(described, schema, self.ValidationsMapping.object)
        return described

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        described = super().model_schema(schema)
        cls = cast("type[ApiModel]", schema["cls"])
        described["description"] = fold(cls.__doc__ or "")
        described[RULES] = [validation(rule) for rule in cls.rules]
        docs = field_docs(cls)
        for name, field in cls.model_fields.items():
            property_ = described["properties"][field.alias or name]
            property_["description"] = docs[name]
            if isinstance(field.get_default(call_default_factory=True), ApiModel):
                property_["default"] = {}  # the API server then fills in the defaults within
        return described


def _key_rule(keys: Schema) -> Schema:
    """Check the keys of a map, for which a structural schema has no other means."""
    conditions = [f"key.matches(r'{keys['pattern']}')"] if "pattern" in keys else []
    conditions += [f"key.size() >= {keys['minLength']}"] if "minLength" in keys else []
    conditions += [f"key.size() <= {keys['maxLength']}"]
    meaning = BY_REGEX[keys["pattern"]].meaning if "pattern" in keys else "must not be empty"
    message = f"each key {meaning}; at most {keys['maxLength']} characters"
    return {"rule": f"self.all(key, {' && '.join(conditions)})", "message": message}


def _structural(
    node: Schema, *, path: str, definitions: dict[str, Schema], keeps_default: Callable[[str], bool]
) -> Schema:
    def below(child: Schema, name: str = "") -> Schema:
        inner = f"{path}.{name}".strip(".")
        return _structural(child, path=inner, definitions=definitions, keeps_default=keeps_default)

    if "$ref" in node:
        node = definitions[node["$ref"].rpartition("/")[2]] | node
    node = _respelled(node)
    if unknown := set(node) - {*_KEPT, *_NESTED, *_DROPPED}:
        raise ValueError(f"{path}: no structural schema for {sorted(unknown)}")
    schema = {key: node[key] for key in _KEPT if key in node}
    if not keeps_default(path):
        schema.pop("default", None)
    if rules := node.get(RULES) or _meaning(node):
        schema[RULES] = rules
    if "properties" in node:
        schema["properties"] = {name: below(child, name) for name, child in node["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            schema[key] = below(node[key])
    return schema


def _respelled(node: Schema) -> Schema:
    node = dict(node)
    if node.get(INT_OR_STRING):
        node.pop("type", None)
    elif "anyOf" in node:
        raise ValueError(f"a union other than integer or string has no structural schema: {node['anyOf']}")
    # JSON Schema gives the bound itself here, OpenAPI 3.0 a flag beside the bound.
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if exclusive in node:
            node[bound], node[exclusive] = node[exclusive], True
    return node


def _meaning(node: Schema) -> list[Schema]:
    """Say in words what the pattern of a text field means; alone, the API server would show the bare pattern."""
    pattern = BY_REGEX.get(node.get("pattern", ""))
    if pattern is None or pattern.familiar:
        return []
    return [{"rule": f"self.matches(r'{pattern.regex}')", "message": pattern.meaning}]
