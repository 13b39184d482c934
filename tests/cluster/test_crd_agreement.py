"""What the API server and the types think of the same spec, over everything that the schema says and at random."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.crd.cases import ACCEPTED, manifest
from cluster.crd.server import CRD_FILE, Server
from cluster.crd.violations import Place, Violation, changed, edges, field_by_server, field_by_types, places, violations
from controlplane import ControlPlane
from strategies import raw_specs
from vlm_operator.api.base import ApiModel
from vlm_operator.api.crd import crd
from vlm_operator.api.resource import read_spec

pytestmark = pytest.mark.cluster

SCHEMA = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]

quick = settings(max_examples=100)


@pytest.fixture(scope="module")
def server(control_plane: ControlPlane) -> Server:
    control_plane.install_crd(CRD_FILE)
    return Server(control_plane, "default")


def all_violations() -> Iterator[Violation]:
    seen: set[str] = set()
    for case in ACCEPTED:
        yield from violations(case.spec, SCHEMA, seen)


VIOLATIONS = list(all_violations())
KINDS = sorted({violation.kind for violation in VIOLATIONS})


def fields_blamed_by_types(spec: Any) -> set[str]:
    found, findings = read_spec(spec)
    return set() if found else {finding.field for finding in findings}


def test_there_is_a_violation_of_everything() -> None:
    assert len(VIOLATIONS) > 500
    assert set(KINDS) == {
        *("type", "x-kubernetes-int-or-string", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength"),
        *("minItems", "maxItems", "maxProperties", "required", "unknown"),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_both_refuse_each_violation_and_blame_the_same_field(server: Server, kind: str) -> None:
    wrong = []
    for violation in (violation for violation in VIOLATIONS if violation.kind == kind):
        by_server = {complaint.field for complaint in server.judge(manifest(violation.spec)).complaints}
        by_types = fields_blamed_by_types(violation.spec)
        if field_by_server(violation.place) not in by_server or field_by_types(violation.place) not in by_types:
            wrong.append((violation.place, by_server, by_types))
    assert wrong == []


def test_both_judge_the_ends_of_ranges_alike(server: Server) -> None:
    (everything,) = (case for case in ACCEPTED if case.name == "everything")
    accepted, wrong = 0, []
    for place, spec in edges(everything.spec, SCHEMA):
        verdict, blamed = server.judge(manifest(spec)), fields_blamed_by_types(spec)
        accepted += verdict.accepted
        if verdict.accepted == bool(blamed):
            wrong.append((place, verdict.complaints, blamed))
    assert wrong == []
    assert accepted > 100, "few ends break a rule over several fields"


@quick
@given(raw=raw_specs())
def test_what_the_types_generate_the_server_accepts_and_stores_as_the_same(server: Server, raw: dict[str, Any]) -> None:
    verdict = server.judge(manifest(raw))
    assert verdict.complaints == ()
    assert read_spec(verdict.stored["spec"])[0] == read_spec(raw)[0]


# 2.0 is left out: the types take it for 2, the API server too, except in replicas and where text may stand as well.
JUNK: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([None, True, -1, 0, 1, 2**31, 2**63, 10**15, 0.5, "", "None", "1", "a/b", "../a", "\n", [], {}]),
    st.text(max_size=6),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=4), st.text(max_size=4), min_size=1, max_size=2),
)
RULES = tuple({rule.field_path for cls in ApiModel.__subclasses__() for rule in cls.rules if rule.field_path})


@st.composite
def damages(draw: st.DrawFn) -> tuple[Place, dict[str, Any]]:
    """A valid spec with junk in one place."""
    raw = draw(raw_specs())
    _, place, _ = draw(st.sampled_from([found for found in places(raw, SCHEMA) if found[1]]))
    return place, changed(raw, place, draw(JUNK))


def explains(blamed: str, damaged: Place) -> bool:
    """Whether `blamed` is the damaged field, a part of it, what it is a part of, or at the other end of a rule."""
    damaged_field = field_by_types(damaged)
    return blamed.startswith(damaged_field) or damaged_field.startswith(blamed) or blamed.endswith(RULES)


@settings(quick, max_examples=200)
@given(damage=damages())
def test_both_judge_damaged_specs_alike_and_the_types_blame_the_damage(
    server: Server, damage: tuple[Place, dict[str, Any]]
) -> None:
    place, spec = damage
    verdict = server.judge(manifest(spec))
    blamed = fields_blamed_by_types(spec)
    assert verdict.accepted == (not blamed), (verdict.complaints, blamed)
    assert all(explains(field, place) for field in blamed), (field_by_types(place), blamed)
