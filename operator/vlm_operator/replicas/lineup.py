"""Which replicas are to serve, which stand by and which leave: the choice, whatever they do at the moment.

What is wanted is chosen afresh at each look from what there is, so no order of events can lead astray. `steer` then brings
roles and replicas there, one safe step at a time.

A replica is outdated when its revision is not the wanted one, or when its node is to be emptied and a pool can replace it.
It is lost when it has been out of order for so long that another must take its place.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from vlm_operator.api.names import DRAINING, SERVING, WARM
from vlm_operator.replicas.facts import Replica
from vlm_operator.replicas.rollout import Rules
from vlm_operator.replicas.sizes import Sizes
from vlm_operator.replicas.victims import Retirement, choose_victims

STEADY_AFTER = 60.0
"""Seconds for which a replica has to be ready, to be preferred to others that are."""
PATIENCE_WITH_POOL, PATIENCE = 60.0, 600.0
"""Seconds for which a replica that served may be not ready before it is given up: soon where a warm one has taken its place."""


@dataclass(frozen=True, kw_only=True)
class Lineup:
    """The wanted place of every live replica."""

    serve: tuple[Replica, ...]
    """To be in rotation."""
    stand_by: tuple[Replica, ...]
    """To wait: warm ones, and ones that load to replace an outdated one."""
    leave: tuple[Retirement, ...]
    """To go, worst first."""
    missing: int
    """How many replicas there should be more."""


def line_up(live: Iterable[Replica], sizes: Sizes, rules: Rules, *, now: float) -> Lineup:
    """Choose among the live replicas."""
    everyone = sorted(live, key=lambda r: r.name)
    if sizes.total == 0:
        leave = tuple(Retirement(replica=r, reason="none are wanted") for r in everyone)
        return Lineup(serve=(), stand_by=(), leave=leave, missing=0)
    lost = _lost(everyone, sizes, rules, now=now)
    sound = _without(everyone, lost)
    fresh = [r for r in sound if not rules.outdated(r)]
    stale = [r for r in sound if rules.outdated(r)]
    spare_role = WARM if sum(r.role == WARM for r in fresh) > sizes.warm else SERVING
    surplus = choose_victims(
        fresh,
        surplus=max(0, len(fresh) - sizes.total),
        revision="" if rules.paused else rules.revision,
        spare_role=spare_role,
    )
    kept = _without(fresh, [victim.replica for victim in surplus])
    serve = _serving(kept, [] if rules.at_once else stale, sizes, rules, now=now)
    serve = _without(serve, _dispensable(serve, kept, sizes, rules, now=now))
    return Lineup(
        serve=tuple(serve),
        stand_by=tuple(_without(kept, serve)),
        leave=(
            *(Retirement(replica=r, reason=_why_lost(r, now=now)) for r in lost),
            *(Retirement(replica=r, reason=_why_outdated(r, rules)) for r in _without(stale, serve)),
            *surplus,
        ),
        missing=sizes.total - len(kept),
    )


def _without(replicas: Iterable[Replica], others: Iterable[Replica]) -> list[Replica]:
    uids = {r.uid for r in others}
    return [r for r in replicas if r.uid not in uids]


def _serving(kept: list[Replica], stale: list[Replica], sizes: Sizes, rules: Rules, *, now: float) -> list[Replica]:
    """The best for the service. Outdated ones that leave are called back only where the promise needs them."""
    order = _order(rules, now=now)
    # What never served is not waited for, if it is outdated.
    candidates = sorted((*kept, *(r for r in stale if not r.loading)), key=order)
    chosen: list[Replica] = []
    for replica in candidates:
        called_back = replica.role == DRAINING and rules.outdated(replica)
        if len(chosen) < (rules.floor(sizes) if called_back else sizes.serving):
            chosen.append(replica)
    return chosen


def _order(rules: Rules, *, now: float) -> Any:
    """Ready ones first; of those, such as stay, have been ready for a while, and serve already."""

    def key(r: Replica) -> tuple[Any, ...]:
        # One that became ready in what is now the future did so before the clock was set back.
        steady = r.ready_since is not None and not 0 <= now - r.ready_since < STEADY_AFTER
        quality = (rules.outdated(r), not steady) if r.ready else (r.loading, not r.scheduled)
        return (not r.ready, r.role == DRAINING, *quality, r.role != SERVING, r.created_at, r.slot, r.name)

    return key


def _dispensable(serve: list[Replica], kept: list[Replica], sizes: Sizes, rules: Rules, *, now: float) -> list[Replica]:
    """Outdated ones in the service that go though nothing has taken their place, as far as the rollout may do without."""
    if rules.at_once:
        return []
    # One that no node takes waits for the GPU of one that goes.
    needed = sizes.total - sum(r.scheduled or r.trouble is None for r in kept)
    outdated = [r for r in serve if rules.outdated(r)]
    # What has not been ready for a while keeps no promise: nothing is lost with it.
    idle = [r for r in outdated if not r.ready and r.revision != rules.revision and _not_ready_for_long(r, now=now)]
    if not rules.may_do_without(sizes):
        return idle[: max(0, needed)]
    ready = [r for r in outdated if r.ready]
    spare = sum(r.ready for r in serve) - rules.floor(sizes)
    victims = choose_victims(ready, surplus=max(0, min(spare, needed - len(idle), len(ready))), revision="")
    return [*idle[: max(0, needed)], *(victim.replica for victim in victims)]


def _not_ready_for_long(replica: Replica, *, now: float) -> bool:
    return replica.not_ready_since is not None and now - replica.not_ready_since >= PATIENCE_WITH_POOL


def _lost(everyone: list[Replica], sizes: Sizes, rules: Rules, *, now: float) -> list[Replica]:
    """Replicas that served once and have been not ready for too long. None while most are: then it is not their fault."""
    served = [r for r in everyone if r.started and r.role == SERVING]
    if 2 * sum(not r.ready for r in served) > len(served):
        return _longest_lost(everyone, now=now)
    replaced = sum(r.ready and r.role != DRAINING for r in everyone) >= sizes.serving
    patience = PATIENCE_WITH_POOL if replaced and rules.pooled(sizes) else PATIENCE
    return [
        r
        for r in everyone
        if r.started and not r.ready and r.not_ready_since is not None and now - r.not_ready_since >= patience
    ]


def _longest_lost(everyone: list[Replica], *, now: float) -> list[Replica]:
    """Where most are not ready it is hardly their fault: one after the other is given up, when none loads to replace one.

    One that waits for a GPU may wait for theirs.
    """
    if any((r.loading and r.scheduled) or r.role == DRAINING for r in everyone):
        return [r for r in everyone if r.role == DRAINING and r.started and not r.ready]
    waiting = [r for r in everyone if r.started and not r.ready and r.not_ready_since is not None]
    longest = sorted(waiting, key=lambda r: (r.not_ready_since or now, r.name))[:1]
    return [r for r in longest if now - (r.not_ready_since or now) >= PATIENCE]


def _why_lost(replica: Replica, *, now: float) -> str:
    passed = now - (replica.not_ready_since or now)
    return f"it has not been ready for {passed:.0f} s"


def _why_outdated(replica: Replica, rules: Rules) -> str:
    if replica.revision == rules.revision:
        return f"its node {replica.node} is cordoned"
    return "its revision is outdated" + (" and it does not serve" if replica.loading else "")
