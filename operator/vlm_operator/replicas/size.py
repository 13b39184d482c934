"""How many replicas there should be. Scaling will decide here; until then the spec does."""

from vlm_operator.replicas.facts import Decision, Facts

AS_SPECIFIED = "AsSpecified"
FROZEN = "SpecRefused"
"""The spec is refused, so the size that was in force stays."""


def decide_size(facts: Facts) -> Decision:
    """The size in force."""
    if facts.accepted and facts.spec is not None:
        return Decision(
            replicas=facts.spec.replicas, reason=AS_SPECIFIED, message=f"spec.replicas is {facts.spec.replicas}"
        )
    kept = int(facts.status.get("desiredReplicas") or 0)
    return Decision(replicas=kept, reason=FROZEN, message=f"the spec is refused; {kept} replicas stay")
