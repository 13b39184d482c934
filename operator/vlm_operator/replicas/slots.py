"""Slots: which number a new replica takes, and how long a slot rests after its replicas failed."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import count as count_up
from itertools import islice

from vlm_operator.engines.failures import Waiting
from vlm_operator.replicas.actions import CreatePod, Outcome
from vlm_operator.replicas.facts import WAITING_FOR_GPU, Facts, Memory, Replica, Seen, SlotFailure, Trouble
from vlm_operator.replicas.refusal import REFUSED

POD_VANISHED = "PodVanished"
"""A replica was deleted by somebody else."""

FIRST_DELAY, LONGEST_DELAY = 10.0, 300.0
"""Rest of a slot in seconds: none after one failure, then 10 s, doubling, at most 5 minutes."""
FIRST_PERMANENT_DELAY, LONGEST_PERMANENT_DELAY = 300.0, 3600.0
"""Rest in seconds after a failure that waiting cannot mend: somebody has to change something first."""
FIRST_REFUSAL_DELAY, LONGEST_REFUSAL_DELAY = 5.0, 60.0
"""Rest after a refusal in seconds. It ends without any event that we could see (a raised quota), hence the short ceiling."""
RESTARTS = 3
"""Restarts of an engine without its being ready, after which its replica is given up."""
HEALTHY_AFTER = 600.0
"""A replica that lived this long, in seconds, clears the failures of its slot."""


def free_slots(taken: Iterable[int], *, count: int) -> tuple[int, ...]:
    """The `count` lowest slots that are not taken."""
    occupied = set(taken)
    return tuple(islice((slot for slot in count_up() if slot not in occupied), count))


def failed(
    previous: SlotFailure | None, *, slot: int, reason: str, message: str, now: float, permanent: bool = False
) -> SlotFailure:
    """The record of a slot after one more failure."""
    count = 1 if previous is None else previous.count + 1
    if permanent:
        delay = min(FIRST_PERMANENT_DELAY * 2 ** min(count - 1, 16), LONGEST_PERMANENT_DELAY)
    elif reason == WAITING_FOR_GPU:
        delay = LONGEST_DELAY
    elif reason in REFUSED:
        delay = min(FIRST_REFUSAL_DELAY * 2 ** min(count - 1, 16), LONGEST_REFUSAL_DELAY)
    else:
        delay = 0.0 if count == 1 else min(FIRST_DELAY * 2 ** min(count - 2, 16), LONGEST_DELAY)
    return SlotFailure(
        slot=slot, reason=reason, message=message, count=count, next_retry=now + delay, permanent=permanent
    )


def rests(failure: SlotFailure, *, now: float) -> bool:
    """Whether the slot is to be left alone. A rest longer than any was begun before the clock was set back."""
    return now < failure.next_retry <= now + (LONGEST_PERMANENT_DELAY if failure.permanent else LONGEST_DELAY)


def remember(facts: Facts, *, revision: str, now: float) -> Memory:
    """The memory after a look at the replicas: failures of replicas that are gone, and who is there now.

    A live replica of the last look that has ended or gone without the operator's doing counts as a failure of its slot,
    whatever the cause; so neither a failing node nor somebody's clean-up job can make the operator create pods in a loop.
    """
    memory = facts.memory if facts.memory.revision == revision else Memory()
    now_by_uid = {replica.uid: replica for replica in facts.replicas}
    failures = {failure.slot: failure for failure in memory.failures}
    # One that ended between two looks was never seen alive, and failed all the same.
    ended = tuple(_seen(replica) for replica in facts.replicas if replica.over and replica.revision == revision)
    for seen in dict.fromkeys((*memory.seen, *ended)):
        replica = now_by_uid.get(seen.uid)
        if seen.uid in memory.retired or (replica is not None and replica.live):
            continue
        known = failures.get(seen.slot) if now - seen.created_at < HEALTHY_AFTER else None
        trouble = _cause(replica)
        failures[seen.slot] = failed_with(trouble, known, slot=seen.slot, now=now)
    current = [replica for replica in facts.replicas if replica.live and replica.revision == revision]
    before = {seen.uid: seen for seen in memory.seen}
    for replica in current:
        if replica.slot in failures and _disproves(replica, failures[replica.slot], now=now):
            del failures[replica.slot]
    return replace(
        memory,
        revision=revision,
        failures=tuple(sorted(failures.values(), key=lambda failure: failure.slot)),
        seen=tuple(_seen(replica, before.get(replica.uid)) for replica in current),
    )


def _disproves(replica: Replica, failure: SlotFailure, *, now: float) -> bool:
    """Whether a replica shows that the cause of the failures before it has passed."""
    if failure.reason in REFUSED:
        return True  # it was admitted
    if replica.ready_since is None:
        return False
    return failure.permanent or now - replica.ready_since >= HEALTHY_AFTER


def failed_with(trouble: Trouble, previous: SlotFailure | None, *, slot: int, now: float) -> SlotFailure:
    """The record of a slot after one more failure, with its cause."""
    again = previous is not None and previous.reason == trouble.reason
    permanent = trouble.waiting is Waiting.IS_VAIN or (trouble.waiting is Waiting.HELPS_ONCE and again)
    message = f"{trouble.message}; {trouble.advice}" if trouble.advice else trouble.message
    return failed(previous, slot=slot, reason=trouble.reason, message=message, now=now, permanent=permanent)


def fails_for_good(replica: Replica, memory: Memory) -> bool:
    """Whether another try on the same GPU is of no use: waiting cannot mend the cause, or was tried often enough."""
    if not replica.loading or replica.trouble is None:
        return False
    at_first = next((seen.restarts for seen in memory.seen if seen.uid == replica.uid), replica.restarts)
    tries = {Waiting.IS_VAIN: 0, Waiting.HELPS_ONCE: 2, Waiting.MAY_HELP: RESTARTS}[replica.trouble.waiting]
    return replica.restarts - at_first >= tries


def _seen(replica: Replica, before: Seen | None = None) -> Seen:
    new = before is None or replica.ready
    return Seen(
        name=replica.name,
        uid=replica.uid,
        slot=replica.slot,
        created_at=replica.created_at,
        restarts=replica.restarts if new or before is None else before.restarts,
    )


def _cause(replica: Replica | None) -> Trouble:
    if replica is not None and replica.ended and replica.trouble is not None:
        return replica.trouble
    return Trouble(reason=POD_VANISHED, message="the pod was deleted, not by the operator")


def settle(memory: Memory, outcomes: Iterable[Outcome], *, now: float) -> Memory:
    """The memory after the plan was carried out: refused replicas rest, an admitted one ends the refusal of its slot."""
    failures = {failure.slot: failure for failure in memory.failures}
    for outcome in outcomes:
        if not isinstance(outcome.action, CreatePod):
            continue
        slot, known = outcome.action.identity.slot, failures.get(outcome.action.identity.slot)
        if outcome.refusal is None:
            if known is not None and known.reason in REFUSED:
                del failures[slot]
        elif outcome.refusal.by_admission:
            again = known if known is not None and known.reason in REFUSED else None
            refusal = outcome.refusal
            failures[slot] = failed(again, slot=slot, reason=refusal.reason, message=refusal.sentence, now=now)
    return replace(memory, failures=tuple(sorted(failures.values(), key=lambda failure: failure.slot)))
