"""From the replicas that are to the replicas that are wanted.

The promises that shape it: a ready replica is given up only when enough others are ready; while a new revision rolls out
there is at most one replica more than wanted and at most one loading at a time; what never served stands in nobody's way.
"""

from dataclasses import dataclass, replace
from typing import Any

from vlm_operator.api.names import SERVING, pod_labels
from vlm_operator.engines.base import CONTAINER, PodIdentity
from vlm_operator.replicas.actions import Action, CreatePod, Delete, Repair, Wait
from vlm_operator.replicas.drift import first_difference
from vlm_operator.replicas.facts import Decision, Facts, Replica, SlotFailure
from vlm_operator.replicas.refusal import REFUSED
from vlm_operator.replicas.rollout import retire, slots_to_fill
from vlm_operator.replicas.slots import rests
from vlm_operator.replicas.target import Target
from vlm_operator.replicas.victims import Retirement

NEVER_SERVED_GRACE = 5
"""Seconds for a replica that holds no requests. Its engine may not even react to the signal while it starts."""
BACKING_OFF = "BackingOff"
"""A slot rests because its replicas failed."""


@dataclass(frozen=True, kw_only=True)
class Steering:
    """Actions on replicas, what they wait for, and what is to be remembered of them."""

    actions: tuple[Action, ...] = ()
    waits: tuple[Wait, ...] = ()
    retired: frozenset[str] = frozenset()
    failures: tuple[SlotFailure, ...] = ()


def steer(facts: Facts, target: Target, decision: Decision, *, held: bool, now: float) -> Steering:
    """Remove what ended, give up what is surplus, create what is missing. `held`: nothing may be created now."""
    live = [replica for replica in facts.replicas if replica.live]
    ended = [replica for replica in facts.replicas if replica.over]
    retirements = retire(live, wanted=decision.replicas, revision=target.revision)
    gone = {retirement.replica.uid for retirement in retirements}
    staying = [replica for replica in live if replica.uid not in gone]
    slots = slots_to_fill(facts, staying, wanted=decision.replicas, revision=target.revision)
    occupied = {r.slot for r in staying if r.revision == target.revision}
    failures = _pass_on(facts.memory.failures, occupied=occupied, slots=slots)
    created, waits = _create(facts, target, slots, failures, now=now) if not held else ([], [])
    return Steering(
        actions=(
            *(_delete(Retirement(replica=r, reason=_why_ended(r))) for r in ended),
            *(_delete(retirement) for retirement in retirements),
            *(repair for r in staying if (repair := _repair(r, facts)) is not None),
            *created,
        ),
        waits=tuple(waits),
        retired=frozenset(gone | {r.uid for r in ended}),
        failures=failures,
    )


def _pass_on(
    failures: tuple[SlotFailure, ...], *, occupied: set[int], slots: tuple[int, ...]
) -> tuple[SlotFailure, ...]:
    """The failures of the slots in use. Those of any other slot pass to one that is filled now, the worst first.

    A replica that somebody deleted holds its slot while it leaves, and the one in its place takes another: were the failures
    left behind, the two would take turns and never rest.
    """
    kept = {failure.slot: failure for failure in failures if failure.slot in occupied | set(slots)}
    left = sorted((f for f in failures if f.slot not in kept), key=lambda f: (-f.count, f.slot))
    heirs = (slot for slot in slots if slot not in kept)
    inherited = {slot: replace(failure, slot=slot) for slot, failure in zip(heirs, left, strict=False)}
    return tuple(sorted((kept | inherited).values(), key=lambda failure: failure.slot))


def _create(
    facts: Facts, target: Target, slots: tuple[int, ...], known: tuple[SlotFailure, ...], *, now: float
) -> tuple[list[CreatePod], list[Wait]]:
    failures = {failure.slot: failure for failure in known}
    at_rest = [failures[slot] for slot in slots if slot in failures and rests(failures[slot], now=now)]
    waits = [resting(failure) for failure in at_rest]
    ready = [slot for slot in slots if slot not in {failure.slot for failure in at_rest}]
    refused = [slot for slot in slots if slot in failures and failures[slot].reason in REFUSED]
    if refused:
        # What refused one pod would refuse the others: one at a time asks whether it still does, and all rest with it.
        ready = refused[:1] if set(refused) <= set(ready) else []
    return [_create_pod(facts, target, slot) for slot in ready], waits


def _create_pod(facts: Facts, target: Target, slot: int) -> CreatePod:
    identity = PodIdentity(
        deployment=facts.name,
        namespace=facts.namespace,
        uid=facts.uid,
        revision=target.revision,
        slot=slot,
        role=SERVING,
    )
    return CreatePod(identity=identity, resolved=target.resolved, sentence=f"create replica {identity.name}")


def resting(failure: SlotFailure) -> Wait:
    """The wait for a slot that rests."""
    times = "once" if failure.count == 1 else f"{failure.count} times in a row"
    message = f"slot {failure.slot} failed {times} ({failure.reason}: {failure.message}) and rests before the next try"
    reason = failure.reason if failure.reason in REFUSED else BACKING_OFF
    return Wait(reason=reason, message=message, until=failure.next_retry)


def _delete(retirement: Retirement) -> Delete:
    replica = retirement.replica
    served = replica.ready or replica.started
    return Delete(
        kind="Pod",
        name=replica.name,
        uid=replica.uid,
        resource_version=replica.resource_version,
        sentence=f"remove replica {replica.name}: {retirement.reason}",
        grace_seconds=None if served else NEVER_SERVED_GRACE,
    )


def _repair(replica: Replica, facts: Facts) -> Repair | None:
    """Put back the labels and the image of a replica. Nothing else of a pod can both be edited and be put back."""
    stored = next((known for known in facts.revisions if known.revision == replica.revision), None)
    labels = pod_labels(facts.name, role=SERVING, revision=replica.revision, slot=replica.slot)
    patch: dict[str, Any] = {
        "metadata": {
            "name": replica.name,
            "namespace": facts.namespace,
            "uid": replica.uid,
            "resourceVersion": replica.resource_version,
            "labels": labels,
        }
    }
    what = "labels" if first_difference(labels, replica.labels) is not None else ""
    if stored is not None and stored.resolved.image != replica.image:
        patch["spec"] = {"containers": [{"name": CONTAINER, "image": stored.resolved.image}]}
        what = "image"
    return Repair(kind="Pod", patch=patch, sentence=f"repair {what} of replica {replica.name}") if what else None


def _why_ended(replica: Replica) -> str:
    return f"it has ended ({replica.trouble.message})" if replica.trouble else "it has ended"
