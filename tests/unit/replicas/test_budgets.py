"""A second PodDisruptionBudget for the same pods is warned of: Kubernetes evicts none of them then."""

from typing import Any

from unit.replicas.examples import NAME, NAMESPACE, replica, spec, terminating
from unit.replicas.tables import table
from vlm_operator.api.names import WARM
from vlm_operator.replicas.budgets import overlapping_budgets, selects

LABELS = {"app": "vlm", "tier": "gpu"}
SELECTORS: list[tuple[str, Any, bool]] = [
    ("none", None, False),
    ("without a rule", {}, True),
    ("one label", {"matchLabels": {"app": "vlm"}}, True),
    ("a label with another value", {"matchLabels": {"app": "web"}}, False),
    ("a label that is missing", {"matchLabels": {"app": "vlm", "zone": "a"}}, False),
    ("in", {"matchExpressions": [{"key": "app", "operator": "In", "values": ["vlm", "web"]}]}, True),
    ("not in any", {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, False),
    ("not in", {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, True),
    ("not in, and missing", {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}, True),
    ("not in, and it is", {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["vlm"]}]}, False),
    ("there", {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, True),
    ("there, and missing", {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}, False),
    ("missing", {"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}, True),
    ("missing, and there", {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, False),
    (
        "both, of which one does not hold",
        {"matchLabels": {"app": "vlm"}, "matchExpressions": [{"key": "zone", "operator": "Exists"}]},
        False,
    ),
]


@table("selector, expected", SELECTORS)
def test_what_a_selector_selects(selector: Any, expected: bool) -> None:
    assert selects(selector, LABELS) is expected


def budget(name: str, selector: Any = None, **metadata: Any) -> dict[str, Any]:
    ours = {"matchLabels": {"vlm.dev/deployment": NAME}}
    return {"metadata": {"name": name, "namespace": NAMESPACE} | metadata, "spec": {"selector": selector or ours}}


def found(*budgets: dict[str, Any], of: Any = None, replicas: Any = None) -> list[str]:
    there = [replica()] if replicas is None else replicas
    return [f.sentence() for f in overlapping_budgets(of or spec(), there, budgets, deployment=NAME)]


def test_the_other_one_is_named_with_both_ways_out() -> None:
    assert found(budget(NAME), budget("mine")) == [
        (
            "spec.podDisruptionBudget: PodDisruptionBudget mine selects replicas that m, the one of this VLMDeployment, selects,"
            " too; Kubernetes evicts no pod with two, so kubectl drain fails; remove it with: kubectl delete poddisruptionbudget"
            " mine -n models; or keep it, and set spec.podDisruptionBudget to None"
        )
    ]


def test_each_is_named_once_in_an_order_that_stays() -> None:
    sentences = found(budget("b"), budget("a"), budget("b"))
    assert ["Budget a" in sentences[0], "Budget b" in sentences[1], len(sentences)] == [True, True, 2]
    assert sentences == found(budget("b"), budget("b"), budget("a"))


def test_where_there_is_no_own_one_the_other_is_welcome() -> None:
    assert found(budget("mine"), of=spec(podDisruptionBudget="None")) == []


def test_one_that_selects_others_or_goes_is_not_warned_of() -> None:
    going = budget("mine", deletionTimestamp="2027-01-15T08:00:00Z")
    assert found(budget("theirs", {"matchLabels": {"app": "web"}}), going) == []


def test_only_replicas_in_rotation_count() -> None:
    assert found(budget("mine"), replicas=[replica(role=WARM), terminating()]) == []


def test_a_spec_that_cannot_be_read_is_not_warned_about() -> None:
    assert list(overlapping_budgets(None, [replica()], [budget("mine")], deployment=NAME)) == []
