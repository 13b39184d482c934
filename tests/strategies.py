"""Hypothesis strategies for the resource, derived from its types: what they generate, the types accept.

`specs()` and `supported_specs()` give typed values; `raw_specs()` and `raw_supported_specs()` give them as a user writes
them, with any spelling of durations and quantities.
"""

from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Le, MinLen
from hypothesis import strategies as st
from pydantic import StringConstraints, ValidationError
from pydantic.fields import FieldInfo

from vlm_operator.api import patterns
from vlm_operator.api.base import ApiModel
from vlm_operator.api.engine import EnvVar, EnvVarSource
from vlm_operator.api.hardware import TensorDegree
from vlm_operator.api.lists import ATOMIC, ListType
from vlm_operator.api.patterns import Pattern
from vlm_operator.api.pod_template import (
    STANDARD_RESOURCES,
    LabelRequirement,
    NodeRequirement,
    Resources,
    Toleration,
)
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.api.support import acted_on, leads_to_acted_on
from vlm_operator.api.weights import Weights

Raw = dict[str, Any]
Wanted = Callable[[str], bool]
"""Tells for the path of a field whether it may be generated."""
Constraints = dict[type, Any]

ITEMS = 3
"""Most items that a generated list or map has: enough to differ, few enough to be quick."""


def raw_specs() -> st.SearchStrategy[Raw]:
    """Any valid spec as a user writes it."""
    return _obeying(VLMDeploymentSpec, "", _anything)


def specs() -> st.SearchStrategy[VLMDeploymentSpec]:
    """Any valid spec."""
    return raw_specs().map(VLMDeploymentSpec.model_validate)


def raw_supported_specs() -> st.SearchStrategy[Raw]:
    """Any valid spec with nothing but fields that the operator acts on, as a user writes it."""
    return _obeying(VLMDeploymentSpec, "", _supported)


def supported_specs() -> st.SearchStrategy[VLMDeploymentSpec]:
    """Any valid spec with nothing but fields that the operator acts on."""
    return raw_supported_specs().map(VLMDeploymentSpec.model_validate)


def _anything(_: str) -> bool:
    return True


def _supported(path: str) -> bool:
    return acted_on(path) or leads_to_acted_on(path)


def durations() -> st.SearchStrategy[str]:
    """Durations from 1m to 24h, which every field takes."""
    return st.one_of(
        st.integers(1, 24).map("{}h".format),
        st.integers(1, 1440).map("{}m".format),
        st.integers(60, 86_400).map("{}s".format),
        st.integers(60_000, 86_400_000).map("{}ms".format),
        st.builds("{}h{}m{}s".format, st.integers(0, 22), st.integers(1, 59), st.integers(0, 59)),
        st.builds("{}.{}h".format, st.integers(1, 23), st.integers(0, 999)),
    )


def memory_sizes() -> st.SearchStrategy[str]:
    """Memory from 1Gi up, which every field takes."""
    return st.one_of(
        st.builds("{}{}".format, st.integers(2, 999), st.sampled_from(["Gi", "Ti", "G", "T"])),
        st.builds("{}.{}Gi".format, st.integers(1, 999), st.integers(0, 999)),
        st.builds("{}{}".format, st.integers(1100, 99_999), st.sampled_from(["Mi", "M"])),
        st.integers(2**30, 10**15 - 1).map(str),
    )


def quantities() -> st.SearchStrategy[str | int]:
    """Quantities of anything, as text or as whole numbers."""
    return st.one_of(
        st.integers(0, 10**15 - 1),
        memory_sizes(),
        st.integers(0, 10**18 - 1).map("{}m".format),
        st.builds("{}.{}".format, st.integers(0, 10**6), st.integers(0, 999)),
    )


_WORDS = st.text(alphabet="abz059", min_size=1, max_size=6)
"""A word that is a name of anything; drawing from the patterns themselves takes ten times as long."""

_NAMES: dict[Pattern, tuple[str, ...]] = {
    patterns.DNS_LABEL: ("a", "0-9", "a" * 63),
    patterns.SUBDOMAIN: ("models", "a.b-c.d", "0", "x" * 253),
    patterns.DATA_KEY: (".dockerconfigjson", "A_b-c.d", "-", "k" * 253),
    patterns.LABEL_KEY: ("team", "example.com/a.b_C-d", "x/y", "A", "topology.kubernetes.io/zone"),
    patterns.LABEL_VALUE: ("", "NVIDIA-L40S", "a_b.c", "v" * 63),
}
_TEXTS: dict[Pattern, st.SearchStrategy[Any]] = {
    **{pattern: st.sampled_from(names) | _WORDS for pattern, names in _NAMES.items()},
    patterns.DURATION: durations(),
    patterns.MEMORY: memory_sizes(),
    patterns.QUANTITY: quantities(),
    patterns.EXTENDED_RESOURCE: st.sampled_from(["nvidia.com/gpu", "amd.com/gpu", "nvidia.com/mig-1g.10gb"]),
    patterns.MODEL_NAME: st.sampled_from(["llava", "Qwen/Qwen2.5-VL-7B-Instruct", "0/a_"]) | _WORDS,
    patterns.MODEL_SIZE: st.sampled_from(["7B", "0.5B", "256M", "1.1T", "9999.999B"]),
    patterns.ARCHITECTURE_NAME: st.sampled_from(["Qwen2_5_VLForConditionalGeneration", "_"]),
    patterns.ENGINE_VERSION: st.sampled_from(["0.33", "0.32.0", "1.0"]),
    patterns.IMAGE_REFERENCE: st.sampled_from(
        ["vllm", "registry.example.com:5000/a/b:0.33", f"vllm/vllm-openai@sha256:{'0' * 64}"]
    ),
    patterns.RELATIVE_PATH: st.sampled_from(["", "a", "Qwen2.5-VL/AWQ", ".hidden/..x/c=d@e", "x..y"]),
    patterns.URI: st.sampled_from(["s3://bucket/folder", "https://example.com/a?b=c&d=[e]", "hf://Qwen/Q"]),
    patterns.GIT_REVISION: st.sampled_from(["main", "refs/pr/1", "0" * 40]),
    patterns.CRON: st.sampled_from(["0 7 * * 1-5", "*/5 0,12 1  JAN ?", "0 0 1 1 sun"]),
    patterns.TIME_ZONE: st.sampled_from(["UTC", "Europe/Berlin", "Etc/GMT+5"]),
    patterns.ENV_NAME: st.sampled_from(["VLLM_LOGGING_LEVEL", "_", "a1", "HF_HUB_OFFLINE"]),
}


def _values(annotation: Any, metadata: tuple[Any, ...], path: str, wanted: Wanted) -> st.SearchStrategy[Any]:
    if metadata == get_args(TensorDegree)[1:]:
        return st.integers(1, 64) | st.just("Auto")
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _values(arguments[0], (*arguments[1:], *metadata), path, wanted)
    if origin in {Union, UnionType}:
        (given,) = (part for part in arguments if part is not NoneType)
        return _values(given, metadata, path, wanted)
    return _plain_values(annotation, _flat(metadata), path, wanted)


def _plain_values(annotation: Any, constraints: Constraints, path: str, wanted: Wanted) -> st.SearchStrategy[Any]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is list:
        return _lists(_values(arguments[0], (), path, wanted), constraints)
    if origin is dict:
        keys, values = (_values(part, (), path, wanted) for part in arguments)
        return st.dictionaries(keys, values, max_size=ITEMS)
    if issubclass(annotation, ApiModel):
        return _obeying(annotation, path, wanted)
    return _scalars(annotation, constraints)


def _flat(metadata: tuple[Any, ...]) -> Constraints:
    """Single constraints by type; pydantic keeps some of them in groups."""
    parts = [part for item in metadata for part in (item.metadata if isinstance(item, FieldInfo) else [item])]
    return {type(part): part for part in parts}


def _lists(items: st.SearchStrategy[Any], constraints: Constraints) -> st.SearchStrategy[list[Any]]:
    fewest = constraints[MinLen].min_length if MinLen in constraints else 0
    kind = constraints.get(ListType, ATOMIC)
    if kind == ATOMIC:
        return st.lists(items, min_size=fewest, max_size=ITEMS)
    return st.lists(items, max_size=ITEMS, unique_by=lambda item: item[kind.key] if kind.key else item)


def _scalars(annotation: type, constraints: Constraints) -> st.SearchStrategy[Any]:
    if annotation is bool:
        return st.booleans()
    if annotation is int:
        least = constraints[Ge].ge if Ge in constraints else 0
        return st.integers(least, constraints[Le].le if Le in constraints else 10**9)
    text = constraints[StringConstraints]
    if text.pattern is None:
        return st.text(min_size=text.min_length or 0, max_size=min(text.max_length, 20))
    made = _TEXTS[patterns.BY_REGEX[text.pattern]]
    return made.filter(lambda value: len(value) >= text.min_length) if text.min_length else made


@st.composite
def _obeying(draw: st.DrawFn, cls: type[ApiModel], path: str, wanted: Wanted) -> Raw:
    """Raw values of `cls` that obey its rules. As a composite it has a short name in reports of failures."""
    return draw(_made(cls, path, wanted))


@cache
def _made(cls: type[ApiModel], path: str, wanted: Wanted) -> st.SearchStrategy[Raw]:
    """Values made to obey the rules where chance would seldom find some, and filtered."""
    made = _MADE.get(cls, _fields)(cls, path, wanted)
    return made.filter(lambda raw: _obeys(cls, raw)) if cls.rules else made


def _obeys(cls: type[ApiModel], raw: Raw) -> bool:
    try:
        cls.model_validate(raw)
    except ValidationError as error:
        if any(details["type"] != "rule" for details in error.errors()):
            raise  # a mistake in this file: the value itself is wrong
        return False
    return True


def _strategies(cls: type[ApiModel], path: str, wanted: Wanted) -> dict[bool, dict[str, st.SearchStrategy[Any]]]:
    """One strategy for each wanted field by its JSON name: the required ones under True, the others under False."""
    found: dict[bool, dict[str, st.SearchStrategy[Any]]] = {True: {}, False: {}}
    for field in cls.model_fields.values():
        inner = f"{path}.{field.alias}".strip(".")
        if wanted(inner):
            values = _values(field.annotation, tuple(field.metadata), inner, wanted)
            found[field.is_required()][str(field.alias)] = values
    return found


def _fields(cls: type[ApiModel], path: str, wanted: Wanted) -> st.SearchStrategy[Raw]:
    fields = _strategies(cls, path, wanted)
    # Each optional field half of the time; `optional=` of fixed_dictionaries would leave nearly all of them out.
    perhaps = {name: st.none() | values for name, values in fields[False].items()}
    given = st.fixed_dictionaries(fields[True] | perhaps)
    return given.map(lambda raw: {name: value for name, value in raw.items() if value is not None})


def _one_of(cls: type[ApiModel], path: str, wanted: Wanted) -> st.SearchStrategy[Raw]:
    """Exactly one of the optional fields, together with all required ones."""
    fields = _strategies(cls, path, wanted)
    return st.one_of([st.fixed_dictionaries({**fields[True], name: given}) for name, given in fields[False].items()])


def _requirements(cls: type[ApiModel], path: str, wanted: Wanted) -> st.SearchStrategy[Raw]:
    names = st.lists(_WORDS, min_size=1, max_size=ITEMS)
    numbers = st.integers(0, 10**6).map(lambda number: [str(number)])
    values = {"In": names, "NotIn": names, "Gt": numbers, "Lt": numbers}
    without_values = _fields(cls, path, lambda inner: not inner.endswith(".values") and wanted(inner))
    return without_values.flatmap(
        lambda raw: values.get(raw["operator"], st.just([])).map(lambda given: {**raw, "values": given})
    )


def _tolerations(cls: type[ApiModel], path: str, wanted: Wanted) -> st.SearchStrategy[Raw]:
    def repaired(raw: Raw) -> Raw:
        effect = {"effect": "NoExecute"} if "tolerationSeconds" in raw else {}
        if "key" in raw and raw.get("operator") != "Exists":
            return raw | effect
        return {name: value for name, value in raw.items() if name != "value"} | effect | {"operator": "Exists"}

    return _fields(cls, path, wanted).map(repaired)


def _resources(_: type[ApiModel], __: str, ___: Wanted) -> st.SearchStrategy[Raw]:
    standard = st.sampled_from(STANDARD_RESOURCES)
    others = st.sampled_from(["hugepages-2Mi", "example.com/device", "rdma/hca"])
    limits = st.dictionaries(standard | others, quantities(), max_size=ITEMS)
    requests = st.dictionaries(standard, quantities(), max_size=ITEMS)
    return st.fixed_dictionaries({}, optional={"limits": limits, "requests": requests})


_MADE: dict[type[ApiModel], Callable[[type[ApiModel], str, Wanted], st.SearchStrategy[Raw]]] = {
    EnvVar: _one_of,
    EnvVarSource: _one_of,
    LabelRequirement: _requirements,
    NodeRequirement: _requirements,
    Resources: _resources,
    Toleration: _tolerations,
    Weights: _one_of,
}
