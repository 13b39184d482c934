"""How many replicas go and come at once while their number or revision changes: the arithmetic of the promises in `steer`.

A replica is outdated when its revision is not the wanted one, and current otherwise. It loads until it is ready.
"""

from vlm_operator.replicas.facts import Facts, Replica
from vlm_operator.replicas.slots import free_slots
from vlm_operator.replicas.victims import Retirement, choose_victims

SURGE = 1
"""Replicas above the wanted number while a revision rolls out."""


def retire(live: list[Replica], *, wanted: int, revision: str) -> tuple[Retirement, ...]:
    """The live replicas to give up now."""
    current = [r for r in live if r.revision == revision]
    outdated = [r for r in live if r.revision != revision]
    useful = [r for r in outdated if r.ready or r.started]
    never_served = [r for r in outdated if not (r.ready or r.started)]
    useless = (Retirement(replica=r, reason="its revision is outdated and it does not serve") for r in never_served)
    if wanted == 0:
        return *useless, *(Retirement(replica=r, reason="none are wanted") for r in (*current, *useful))
    surplus = choose_victims(current, surplus=_surplus(current, useful, wanted=wanted), revision=revision)
    ready = sum(r.ready for r in current) - sum(victim.replica.ready for victim in surplus)
    return *useless, *surplus, *_replaced(useful, current=len(current), ready=ready, wanted=wanted)


def _surplus(current: list[Replica], useful: list[Replica], *, wanted: int) -> int:
    """How many current replicas are too many: more than wanted, or more that load than fit beside those that are ready."""
    ready = sum(r.ready for r in (*current, *useful))
    loading = sum(not r.ready for r in current)
    room = wanted + SURGE - min(ready, wanted)
    return max(0, len(current) - wanted, loading - room)


def _replaced(useful: list[Replica], *, current: int, ready: int, wanted: int) -> tuple[Retirement, ...]:
    """Outdated replicas that are not needed beside the `current` ones, of which `ready` are: never one that keeps the promise."""
    if ready >= wanted:
        return tuple(Retirement(replica=r, reason="enough replicas of the new revision are ready") for r in useful)
    spare = max(0, ready + sum(r.ready for r in useful) - wanted)
    idle = sum(not r.ready for r in useful)
    # What was ready once may be so again, and goes only to make room for one that loads, or for the next one that will.
    crowd = max(current, ready + 1) + len(useful) - (wanted + SURGE)
    victims = choose_victims(useful, surplus=max(spare, min(spare + idle, crowd)), revision="")
    reason = "its revision is outdated and enough others are ready"
    return tuple(Retirement(replica=victim.replica, reason=reason) for victim in victims)


def slots_to_fill(facts: Facts, staying: list[Replica], *, wanted: int, revision: str) -> tuple[int, ...]:
    """Slots for new replicas: all that are missing, but one at a time where outdated ones still serve."""
    current = [r for r in staying if r.revision == revision]
    missing = wanted - len(current)
    if len(current) < len(staying):
        below = max(0, wanted - len(staying))
        surge = 0 if any(not r.ready for r in current) else wanted + SURGE - len(staying)
        missing = min(missing, max(below, min(surge, SURGE)))
    # One that has ended is removed before its slot is filled again.
    taken = {r.slot for r in facts.replicas if r.revision == revision and not r.over}
    return free_slots(taken, count=max(0, missing))
