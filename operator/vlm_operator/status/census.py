"""The replicas of a deployment, counted by what they are."""

from dataclasses import dataclass

from vlm_operator.api.names import DRAINING, SERVING, WARM
from vlm_operator.replicas.facts import Decision, Facts, Replica
from vlm_operator.replicas.ownership import Ownership
from vlm_operator.replicas.settings import Settings
from vlm_operator.replicas.sizes import Sizes
from vlm_operator.replicas.target import target_of


@dataclass(frozen=True, kw_only=True)
class Census:
    """Replicas by state. `current` are those of the wanted revision; all but `draining` are live."""

    target: str | None
    """The revision that new replicas get."""
    asked: str | None
    """The revision that the spec asks for."""
    wanted: int
    live: tuple[Replica, ...]
    current: tuple[Replica, ...]
    outdated: tuple[Replica, ...]
    current_ready: tuple[Replica, ...]
    serving: tuple[Replica, ...]
    warm: tuple[Replica, ...]
    """On standby and ready."""
    draining: tuple[Replica, ...]
    """Finish their requests, or end."""
    gpus: int
    """GPUs held, also by replicas that are leaving."""


def warm_and_ready(census: Census, sizes: Sizes, settings: Settings) -> int:
    """Ready replicas that the load does not need: those on standby, in rotation those beyond the needed number."""
    return len(census.warm) if settings.standby else max(0, len(census.serving) - sizes.needed)


def count(facts: Facts, decision: Decision) -> Census:
    """Count the replicas of a deployment."""
    target = target_of(facts)
    revision = target.revision if target is not None else None
    ours = [replica for replica in facts.replicas if replica.ownership is Ownership.OURS and not replica.ended]
    live = tuple(replica for replica in ours if replica.live)
    current = tuple(replica for replica in live if replica.revision == revision)
    gpus = {known.revision: known.gpus for known in facts.revisions}
    return Census(
        target=revision,
        asked=target.asked.revision if target is not None else None,
        wanted=decision.replicas,
        live=live,
        current=current,
        outdated=tuple(replica for replica in live if replica.revision != revision),
        current_ready=tuple(replica for replica in current if replica.ready),
        serving=tuple(replica for replica in live if replica.role == SERVING and replica.ready),
        warm=tuple(replica for replica in live if replica.role == WARM and replica.ready),
        draining=tuple(replica for replica in ours if replica.terminating or replica.role == DRAINING),
        gpus=sum(gpus.get(replica.revision, 0) for replica in ours if replica.scheduled),
    )
