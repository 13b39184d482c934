"""How many replicas of each role there should be, by the size that was decided and the warm pool."""

from dataclasses import dataclass

from vlm_operator.replicas.facts import Decision
from vlm_operator.replicas.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Wanted numbers of replicas."""

    serving: int
    """With the role serving: in rotation, the warm ones too."""
    needed: int
    """Of those, the ones that carry the load: the operator itself never takes more out of service."""
    warm: int
    """On standby."""
    ceiling: int
    """Most live ones of any role. The surge of a rollout comes on top."""

    @property
    def total(self) -> int:
        """Of both roles."""
        return self.serving + self.warm


def sizes_of(decision: Decision, settings: Settings) -> Sizes:
    """The numbers for a decision. Under the ceiling serving replicas come before warm ones."""
    size, pool = decision.replicas, settings.pool_size
    if size == 0:
        return Sizes(serving=0, needed=0, warm=0, ceiling=0)
    scaling = settings.scaling
    ceiling = max(size, scaling.max_replicas) if scaling is not None and settings.active else size + pool
    if settings.standby:
        return Sizes(serving=size, needed=size, warm=min(pool, ceiling - size), ceiling=ceiling)
    if scaling is not None and settings.by_work:
        # Work-based scaling keeps the pool as headroom within its decision.
        needed = min(size, max(scaling.min_replicas or 1, size - pool))
        return Sizes(serving=size, needed=needed, warm=0, ceiling=ceiling)
    return Sizes(serving=min(size + pool, ceiling), needed=size, warm=0, ceiling=ceiling)
