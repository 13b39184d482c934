"""PodDisruptionBudgets of others that select our replicas: the API server evicts no pod that two of them select."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vlm_operator.api.findings import Finding
from vlm_operator.api.names import SERVING
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.replicas.facts import Replica
from vlm_operator.replicas.settings import Settings

BUDGETS_OVERLAP = "BudgetsOverlap"
"""Another PodDisruptionBudget selects replicas that ours selects."""


def overlapping_budgets(
    spec: VLMDeploymentSpec | None,
    replicas: Iterable[Replica],
    budgets: Iterable[Mapping[str, Any]],
    *,
    deployment: str,
) -> Iterator[Finding]:
    """A warning for each of the `budgets` of the namespace that selects a replica in rotation, as the deployment's own does."""
    if spec is None or not Settings.of(spec).managed_budget:
        return
    in_rotation = [replica for replica in replicas if replica.live and replica.role == SERVING]
    by_name = {budget["metadata"]["name"]: budget for budget in budgets}
    for name, budget in sorted(by_name.items()):
        selector = (budget.get("spec") or {}).get("selector")
        if name == deployment or budget["metadata"].get("deletionTimestamp"):
            continue
        if any(selects(selector, replica.labels) for replica in in_rotation):
            where = f"-n {budget['metadata']['namespace']}"
            yield Finding(
                reason=BUDGETS_OVERLAP,
                severity="Warning",
                field="spec.podDisruptionBudget",
                message=f"PodDisruptionBudget {name} selects replicas that {deployment}, the one of this VLMDeployment, selects,"
                " too; Kubernetes evicts no pod with two, so kubectl drain fails",
                advice=f"remove it with: kubectl delete poddisruptionbudget {name} {where}; or keep it, and set"
                " spec.podDisruptionBudget to None",
            )


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector of Kubernetes selects these labels: without any rule all, and none where it is absent."""
    if selector is None:
        return False
    equal = (selector.get("matchLabels") or {}).items() <= labels.items()
    return equal and all(_holds(rule, labels) for rule in selector.get("matchExpressions") or ())


def _holds(rule: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(rule["key"]), rule.get("values") or ()
    match rule["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case _:
            return value is None
