"""How far a replica that finishes its requests has got.

It is done when clients are not sent to it any more and two reads of the replica itself, some seconds apart, found nothing in
flight; or when its time is over. What cannot be read is busy: an overloaded engine takes seconds to answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from vlm_operator.api.scalars import duration_seconds
from vlm_operator.replicas.facts import Facts, Replica

READ_AGAIN = 2.0
"""Seconds between two reads of a replica that finishes its requests."""
CLOCK_TOLERANCE = 5.0
"""Seconds by which a start that was noted may lie in the future, since clocks differ."""


@dataclass(frozen=True, kw_only=True)
class Drain:
    """The state of one drain."""

    done: bool
    ends: float
    """When it is over at the latest."""
    waits_for: str
    """In words, which stay the same while it waits for the same."""
    left: str
    """What would be cut now, in words."""
    misdated: bool = False
    """It was begun in what is now the future: the clock was set back."""


def drain_of(replica: Replica, facts: Facts, idle_since: Mapping[str, float], *, now: float) -> Drain:
    """How far the drain of a replica has got."""
    if replica.loading:
        return Drain(done=True, ends=now, waits_for="", left="")
    begun = replica.drain_started_at
    misdated = begun is None or begun > now + CLOCK_TOLERANCE
    ends = (now if begun is None or misdated else begun) + drain_timeout(replica, facts)
    since, read_at = idle_since.get(replica.uid), replica.read_at
    idle = since is not None and read_at is not None and read_at - since >= READ_AGAIN
    waits_for, left = _left(replica)
    return Drain(done=idle or now >= ends, ends=ends, waits_for=waits_for, left=left, misdated=misdated)


def drain_timeout(replica: Replica, facts: Facts) -> float:
    """The longest time in seconds that a replica has for its requests: as its revision says."""
    stored = next((known for known in facts.revisions if known.revision == replica.revision), None)
    inputs = stored.resolved.inputs if stored is not None else facts.inputs
    return duration_seconds(inputs.drain.timeout) if inputs is not None else 0.0


def idle_since(facts: Facts) -> dict[str, float]:
    """When each draining replica was first read with nothing in flight, unless it had something since."""
    known = facts.memory.idle_since
    return {
        r.uid: min(known.get(r.uid, r.read_at), r.read_at)
        for r in facts.replicas
        if r.live
        and r.drain_started_at is not None
        and r.routed is False
        and r.in_flight == 0
        and r.read_at is not None
    }


def _left(replica: Replica) -> tuple[str, str]:
    if replica.routed is not False:
        known = (
            "clients are still sent to it" if replica.routed else "whether clients are still sent to it is not known"
        )
        return known, known
    if replica.in_flight is None:
        return ("its requests in flight cannot be read",) * 2
    waits_for = "it has requests in flight" if replica.in_flight else "it has had no request in flight for a moment"
    return waits_for, f"{replica.in_flight} requests in flight"
