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
    kept = _in_force(facts)
    return Decision(replicas=kept, reason=FROZEN, message=f"the spec is refused; {kept} replicas stay")


def _in_force(facts: Facts) -> int:
    """The size before the spec was refused: as it was reported, else as many as there are. Unknown is not 0."""
    reported = facts.status.get("desiredReplicas")
    return sum(replica.live for replica in facts.replicas) if reported is None else int(reported)
