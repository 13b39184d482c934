"""What a rollout may do: which replicas it replaces, how many may be missing and how many more there may be meanwhile."""

from collections.abc import Iterable
from dataclasses import dataclass

from vlm_operator.replicas.facts import Replica
from vlm_operator.replicas.settings import Settings
from vlm_operator.replicas.sizes import Sizes
from vlm_operator.replicas.target import Target


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules of one deployment, for rollouts and for nodes that are emptied."""

    revision: str
    """The revision that is wanted."""
    settings: Settings
    paused: bool = False
    """Every replica keeps the revision that it has."""

    @classmethod
    def of(cls, target: Target, settings: Settings) -> "Rules":
        """The rules for a target."""
        return cls(revision=target.revision, settings=settings, paused=target.paused)

    @property
    def at_once(self) -> bool:
        """Whether all outdated replicas go before the first new one comes."""
        return self.settings.rollout.type == "Recreate"

    def outdated(self, replica: Replica) -> bool:
        """Whether another is to take its place."""
        if replica.revision != self.revision and not self.paused:
            return True
        # To replace all at once is for revisions: a node is emptied one by one, or not at all.
        return replica.cordoned and self.settings.pool_size > 0 and not self.at_once

    def replaces(self, live: Iterable[Replica]) -> bool:
        """Whether any of the replicas is outdated."""
        return any(self.outdated(replica) for replica in live)

    def rolls_out(self, live: Iterable[Replica]) -> bool:
        """Whether any of the replicas has another revision than the wanted one."""
        return not self.paused and any(replica.revision != self.revision for replica in live)

    def pooled(self, sizes: Sizes) -> bool:
        """Whether warm replicas are there for it, so that it needs no further GPU."""
        return sizes.warm > 0 or sizes.serving > sizes.needed

    def surge(self, sizes: Sizes) -> int:
        """Replicas above the wanted number."""
        return 0 if self.at_once or self.pooled(sizes) else self.settings.max_surge

    def floor(self, sizes: Sizes) -> int:
        """Ready replicas in rotation that no step of the operator goes below while it replaces others."""
        return 0 if self.at_once else max(0, sizes.needed - self.settings.max_unavailable)

    def may_do_without(self, sizes: Sizes) -> bool:
        """Whether fewer than the wanted number may be in rotation for a while."""
        return self.floor(sizes) < sizes.serving
