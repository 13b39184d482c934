"""What the operator owns is compared field by field and put back; what others add is neither a difference nor touched."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.replicas.examples import PLACE
from unit.replicas.tables import table
from vlm_operator.api.spec import Service
from vlm_operator.replicas.children import service_manifest
from vlm_operator.replicas.drift import first_difference, patch_to

WANTED = service_manifest(**PLACE, service=Service.model_validate({"annotations": {"example.com/a": "1"}}))


def live(*path: str | int, value: Any) -> dict[str, Any]:
    """The Service as the API server holds it, with one value changed or added."""
    ports = [dict(WANTED["spec"]["ports"][0])]
    metadata = {key: dict(part) if isinstance(part, dict) else part for key, part in WANTED["metadata"].items()}
    obj: dict[str, Any] = {
        "metadata": metadata
        | {"uid": "u", "resourceVersion": "1", "ownerReferences": [dict(metadata["ownerReferences"][0])]},
        "spec": WANTED["spec"]
        | {"clusterIP": "10.0.0.7", "selector": dict(WANTED["spec"]["selector"]), "ports": ports},
        "status": {"loadBalancer": {}},
    }
    part: Any = obj
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return obj


CASES: list[tuple[str, dict[str, Any], str | None]] = [
    ("defaults of the API server", live("spec", "sessionAffinity", value="None"), None),
    ("a node port that the API server chose", live("spec", "ports", 0, "nodePort", value=30000), None),
    ("somebody's label", live("metadata", "labels", "team", value="vision"), None),
    ("somebody's annotation", live("metadata", "annotations", "example.com/b", value="2"), None),
    ("an annotation of ours that was changed", live("metadata", "annotations", "example.com/a", value="2"),
     "metadata.annotations.example.com/a"),
    ("annotations that are gone", live("metadata", "annotations", value=None), "metadata.annotations"),
    ("a label of ours that was changed", live("metadata", "labels", "vlm.dev/deployment", value="x"),
     "metadata.labels.vlm.dev/deployment"),
    ("a selector that was changed", live("spec", "selector", "vlm.dev/role", value="x"), "spec.selector.vlm.dev/role"),
    ("a selector with a further label", live("spec", "selector", "team", value="vision"), "spec.selector"),
    ("a selector that is gone", live("spec", "selector", value=None), "spec.selector"),
    ("another port", live("spec", "ports", 0, "port", value=9000), "spec.ports[0].port"),
    ("no port", live("spec", "ports", value=[]), "spec.ports"),
    ("another type", live("spec", "type", value="NodePort"), "spec.type"),
    ("another owner", live("metadata", "ownerReferences", 0, "uid", value="x"), "metadata.ownerReferences[0].uid"),
]  # fmt: skip


@table("found, path", CASES)
def test_the_first_difference(found: dict[str, Any], path: str | None) -> None:
    wanted = {key: part for key, part in WANTED.items() if key not in {"apiVersion", "kind"}}
    assert first_difference(wanted, found) == path


words = st.text("abc", min_size=1, max_size=3)
values = st.recursive(
    st.integers() | words | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
)


@settings(max_examples=50)
@given(values)
def test_nothing_differs_from_itself(value: Any) -> None:
    assert first_difference(value, value) is None


@settings(max_examples=40)
@given(st.dictionaries(words, values, max_size=4), st.dictionaries(words, values, max_size=4))
def test_what_only_the_live_object_has_never_counts(wanted: dict[str, Any], others: dict[str, Any]) -> None:
    assert first_difference(wanted, others | wanted) is None


@settings(max_examples=40)
@given(st.dictionaries(words, values, min_size=1, max_size=4), words, st.integers())
def test_what_the_live_object_lacks_is_named(wanted: dict[str, Any], key: str, value: int) -> None:
    found = {name: part for name, part in wanted.items() if name != key}
    assert first_difference(found | {key: value}, found) == key


def merged(live: Any, patch: Any) -> Any:
    """What a JSON merge patch (RFC 7386) makes of an object."""
    if not isinstance(patch, dict):
        return patch
    kept = dict(live) if isinstance(live, dict) else {}
    for key, part in patch.items():
        if part is None:
            kept.pop(key, None)
        else:
            kept[key] = merged(kept.get(key), part)
    return kept


@pytest.mark.parametrize("found", [row[1] for row in CASES], ids=[row[0] for row in CASES])
def test_the_patch_puts_everything_back_and_leaves_the_rest(found: dict[str, Any]) -> None:
    wanted = {key: part for key, part in WANTED.items() if key not in {"apiVersion", "kind"}}
    repaired = merged(found, patch_to(wanted, found))
    assert first_difference(wanted, repaired) is None
    assert repaired["status"] == found["status"]
    assert repaired["spec"]["clusterIP"] == "10.0.0.7"
    assert set(found["metadata"]["labels"]) <= set(repaired["metadata"]["labels"])


without_null = st.recursive(
    st.integers() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, min_size=1, max_size=3),
)


@settings(max_examples=60)
@given(st.dictionaries(words, without_null, max_size=4), st.dictionaries(words, without_null, max_size=4))
def test_any_object_can_be_put_right(wanted: dict[str, Any], found: dict[str, Any]) -> None:
    assert first_difference(wanted, merged(found, patch_to(wanted, found))) is None
