"""Which replicas to give up first when there are more than wanted."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Any

from vlm_operator.api.names import DRAINING
from vlm_operator.replicas.facts import Replica

Key = Callable[[Replica], Any]


@dataclass(frozen=True, kw_only=True)
class Retirement:
    """One replica to give up, with the reason in words."""

    replica: Replica
    reason: str


def victim_order(revision: str, spare_role: str = "") -> tuple[tuple[str, Key], ...]:
    """The order: first difference wins, smaller goes first. Its last key makes it total, so that two looks never disagree.

    `revision` is the wanted one; the others are outdated. `spare_role` is the role of which there are too many.
    """
    return (
        ("it holds no GPU yet", lambda r: r.scheduled),
        ("its engine fails", lambda r: r.trouble is None),
        ("it is not ready", lambda r: r.ready),
        ("its revision is outdated", lambda r: r.revision == revision),
        ("it is leaving already", lambda r: r.role != DRAINING),
        (f"there are enough with the role {spare_role}", lambda r: r.role != spare_role),
        ("it has the least in flight", lambda r: inf if r.in_flight is None else r.in_flight),
        ("it is the youngest", lambda r: -r.created_at),
        ("its slot is the highest", lambda r: -r.slot),
        ("its name comes last", lambda r: tuple(-ord(letter) for letter in r.name)),
    )


def choose_victims(
    replicas: Iterable[Replica], *, surplus: int, revision: str, spare_role: str = ""
) -> tuple[Retirement, ...]:
    """The `surplus` (>= 0) replicas to give up, worst first.

    Each reason names the key that set the victim apart from the best replica that stays.
    """
    if surplus == 0:
        return ()
    order = victim_order(revision, spare_role)
    ordered = sorted(replicas, key=lambda r: tuple(key(r) for _, key in order))
    victims, kept = ordered[:surplus], ordered[surplus:]
    return tuple(Retirement(replica=r, reason=_difference(r, kept, order)) for r in victims)


def _difference(victim: Replica, kept: list[Replica], order: tuple[tuple[str, Key], ...]) -> str:
    if not kept:
        return "none are wanted"
    return next((words for words, key in order if key(victim) < key(kept[-1])), "one fewer is wanted")
