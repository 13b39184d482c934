"""How many serving replicas there should be. Signals will decide here; until then the spec does, within its bounds."""

from vlm_operator.api.names import WARM
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.replicas.facts import Decision, Facts
from vlm_operator.replicas.settings import Settings

AS_SPECIFIED = "AsSpecified"
WITHIN_BOUNDS = "StartingSize"
"""No signal is read yet: the size is the one to start with, within the bounds of spec.scaling."""
FROZEN = "SpecRefused"
"""The spec is refused, so the size that was in force stays."""


def decide_size(facts: Facts) -> Decision:
    """The size in force."""
    if not facts.accepted or facts.spec is None:
        kept = _in_force(facts)
        return Decision(replicas=kept, reason=FROZEN, message=f"the spec is refused; the size stays {kept}")
    asked, scaling = facts.spec.replicas, facts.spec.scaling
    if scaling is None or scaling.mode == "Advisory" or asked == 0:
        return Decision(replicas=asked, reason=AS_SPECIFIED, message=f"spec.replicas is {asked}")
    start, low, high = starting_size(facts), _least(facts.spec), scaling.max_replicas
    message = f"the size to start with is {start}, spec.scaling allows {low} to {high}"
    return Decision(replicas=min(max(start, low), high), reason=WITHIN_BOUNDS, message=message)


def _least(spec: VLMDeploymentSpec) -> int:
    """The smallest size: work-based scaling keeps a pool in rotation as headroom within the size."""
    settings = Settings.of(spec)
    least = spec.scaling.min_replicas or 1 if spec.scaling is not None else 1
    within = settings.by_work and not settings.standby
    return least + settings.pool_size if within else least


def starting_size(facts: Facts) -> int:
    """spec.replicas as it was when scaling took over: edits afterwards do not count, but for 0, which turns everything off."""
    recorded = (facts.status.get("scaling") or {}).get("startingReplicas")
    asked = facts.spec.replicas if facts.spec is not None else 0
    return int(recorded) if recorded else asked


def _in_force(facts: Facts) -> int:
    """The size before the spec was refused: as it was reported, else as many as there are. Unknown is not 0."""
    reported = facts.status.get("desiredReplicas")
    there = sum(replica.live and replica.role != WARM for replica in facts.replicas)
    return there if reported is None else int(reported)
