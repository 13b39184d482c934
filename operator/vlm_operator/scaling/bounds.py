"""Between which sizes a decision may move, and how the warm pool counts within them.

minReplicas and schedules count replicas that carry load; maxReplicas caps all pods. A pool in rotation under work-based
scaling is headroom within the size, so the least size holds it too. Elsewhere it comes on top, as far as the ceiling
leaves room: serving replicas come before warm ones.
"""

from dataclasses import dataclass

from vlm_operator.scaling.decision import Reason
from vlm_operator.scaling.policy import Policy
from vlm_operator.scaling.state import Floor


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """Least and greatest size."""

    least: int
    why: Reason
    """What sets the least."""
    most: int

    def clamp(self, size: int) -> int:
        """The nearest size within them."""
        return min(max(size, self.least), self.most)


def bounds_of(policy: Policy, scheduled: Floor | None) -> Bounds:
    """The bounds in force. The ceiling is stronger than any floor."""
    by_schedule = scheduled is not None and scheduled.replicas > policy.min_replicas
    least = scheduled.replicas if by_schedule and scheduled is not None else policy.min_replicas
    if policy.work_based and not policy.pool.standby:
        least += policy.pool.size
    return Bounds(
        least=min(least, policy.max_replicas),
        why=Reason.SCHEDULE if by_schedule else Reason.FLOOR,
        most=policy.max_replicas,
    )


def standby_of(policy: Policy, replicas: int) -> int:
    """Warm replicas beside a size."""
    return min(policy.pool.size, max(0, policy.max_replicas - replicas)) if policy.pool.standby else 0
