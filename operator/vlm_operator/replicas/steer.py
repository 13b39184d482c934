"""From the replicas that are to the replicas that are wanted, one safe step at a time.

The promises that shape it: a replica in rotation is taken out only while enough others are ready there; what may hold
requests finishes them before it goes; a replica that is warm serves before one is created; while replicas are replaced
there is at most the surge more than wanted, those that still hold a GPU included.
"""

from dataclasses import dataclass, replace
from typing import Any

from vlm_operator.api.names import DRAIN_STARTED_AT, DRAINING, ROLE_LABEL, ROLES, SERVING, WARM, pod_labels
from vlm_operator.engines.base import CONTAINER, PodIdentity
from vlm_operator.engines.failures import Waiting
from vlm_operator.replicas.actions import Action, CreatePod, Delete, Repair, SetRole, Wait
from vlm_operator.replicas.counted import counted
from vlm_operator.replicas.draining import READ_AGAIN, Drain, drain_of
from vlm_operator.replicas.evidence import STILL_UNSCHEDULED_AFTER
from vlm_operator.replicas.facts import WAITING_FOR_GPU, Facts, Replica, SlotFailure, Trouble
from vlm_operator.replicas.lineup import PATIENCE, PATIENCE_WITH_POOL, Lineup, line_up
from vlm_operator.replicas.refusal import REFUSED
from vlm_operator.replicas.rollout import Rules
from vlm_operator.replicas.sizes import Sizes
from vlm_operator.replicas.slots import failed_with, fails_for_good, free_slots, rests
from vlm_operator.replicas.target import Target
from vlm_operator.replicas.times import timestamp
from vlm_operator.replicas.victims import Retirement

IDLE_GRACE = 30
"""Seconds for a replica that holds no requests any more: to leave the Service for certain, and for its processes to end."""
NEVER_SERVED_GRACE = 5
"""Seconds for a replica that never held a request. Its engine may not even react to the signal while it starts."""
STUCK_AFTER = 60.0
"""Seconds after the end of its grace period, from which a replica that is still there is not waited for any more."""
UNSCHEDULABLE_FOR = 300.0
"""Seconds after which a replica above the wanted number that no node takes is withdrawn: somebody else may need the GPU."""
UNSCHEDULABLE_FOR_A_NODE = 900.0
"""The same where an autoscaler adds a node for it, or may."""
VERIFICATION_FAILED = "VerificationFailed"
"""A replica on standby does not answer as it should."""
BACKING_OFF = "BackingOff"
"""A slot rests because its replicas failed."""
FREE_A_GPU = "add a GPU, or let a new replica take the place of an old one with spec.rollout.maxUnavailable: 1"
DRAINS = "Draining"
"""A replica finishes its requests."""


@dataclass(frozen=True, kw_only=True)
class Steering:
    """Actions on replicas, what they wait for, and what is to be remembered of them."""

    actions: tuple[Action, ...] = ()
    waits: tuple[Wait, ...] = ()
    retired: frozenset[str] = frozenset()
    failures: tuple[SlotFailure, ...] = ()
    undecided: tuple[Replica, ...] = ()
    """Replicas of which some are taken out of rotation, though it is not known how busy they are."""
    timers: tuple[float, ...] = ()
    """When something is to be decided though nothing happens."""


def steer(facts: Facts, target: Target, sizes: Sizes, rules: Rules, *, held: bool, now: float) -> Steering:
    """One step. `held`: nothing may be created now."""
    live = [replica for replica in facts.replicas if replica.live]
    ended = [replica for replica in facts.replicas if replica.over]
    # One that is sick is replaced at a time, and the next when its successor is there.
    complete = len(live) >= sizes.total and not any(r.loading for r in live)
    sick = [r for r in live if r.sick and r.role == WARM][: 1 if complete else 0]
    failing = [*(r for r in live if fails_for_good(r, facts.memory)), *sick]
    withdrawn = _withdrawn(live, sizes, rules, now=now)
    given_up = [*failing, *withdrawn]
    lost = {replica.uid for replica in given_up}
    lineup = line_up([r for r in live if r.uid not in lost], sizes, rules, now=now)
    steps = _Steps(facts, lineup, sizes, rules, live, now=now)
    steps.take_places()
    steps.leave()
    removed = [
        *(_delete(Retirement(replica=r, reason=_why_ended(r)), grace=None) for r in ended),
        *(_delete(Retirement(replica=r, reason=_why_given_up(r)), grace=NEVER_SERVED_GRACE) for r in given_up),
        *steps.removed,
    ]
    gone = {action.uid for action in removed}
    slots = _missing_slots(facts, lineup, rules)
    causes = {r.slot: _cause(r, facts, withdrawn=not r.scheduled) for r in given_up if r.revision == target.revision}
    # What was withdrawn for lack of a GPU is tried again once it has rested, as if nothing had been.
    remembered = tuple(f for f in facts.memory.failures if f.reason != WAITING_FOR_GPU or rests(f, now=now))
    known = _with_failures(remembered, causes, now=now)
    occupied = {r.slot for r in live if r.revision == target.revision and r.uid not in gone}
    failures = _pass_on(known, occupied=occupied, slots=slots)
    creation = _Creation(facts, target, slots, failures, _roles(lineup, sizes, count=len(slots)))
    surge = 0 if any(failure.reason == WAITING_FOR_GPU for failure in failures) else rules.surge(sizes)
    room = 0 if held else _room(facts, sizes, rules, live, gone=gone, surge=surge, now=now)
    created, waits = creation.step(room, now=now)
    # One patch of a pod at a time: the next would find it changed.
    busy = gone | {action.patch["metadata"]["uid"] for action in steps.roles}
    repairs = (repair for r in live if r.uid not in busy and (repair := _repair(r, facts)) is not None)
    return Steering(
        actions=(*steps.roles, *removed, *repairs, *created),
        waits=(*steps.waits, *(waits if not held else ())),
        retired=frozenset(gone),
        failures=failures,
        undecided=steps.undecided,
        timers=_timers(facts, now=now),
    )


def _timers(facts: Facts, *, now: float) -> tuple[float, ...]:
    """When the patience with something ends."""
    ends = [
        *(r.gone_by + STUCK_AFTER for r in facts.replicas if r.terminating and r.gone_by is not None),
        *(
            r.not_ready_since + patience
            for r in facts.replicas
            if r.live and r.started and r.not_ready_since is not None
            for patience in (PATIENCE_WITH_POOL, PATIENCE)
        ),
        *(
            moment
            for r in facts.replicas
            if r.live and not r.scheduled
            for moment in (r.created_at + STILL_UNSCHEDULED_AFTER, _withdrawn_at(r))
        ),
    ]
    return tuple(end for end in ends if end > now)


class _Steps:
    """The next step of every replica that is to change its place."""

    def __init__(
        self, facts: Facts, lineup: Lineup, sizes: Sizes, rules: Rules, live: list[Replica], *, now: float
    ) -> None:
        self._facts = facts
        self._lineup = lineup
        self._sizes = sizes
        self._rules = rules
        self._now = now
        self._floor = rules.floor(sizes) if rules.replaces(live) else sizes.needed
        self._ready = sum(r.ready and r.role == SERVING for r in live)
        self._routed = [r for r in live if r.ready and r.role == SERVING]
        self._stormy = 2 * sum(r.started and not r.ready for r in live) > sum(r.started for r in live)
        self.roles: list[SetRole] = []
        self.removed: list[Delete] = []
        self.waits: list[Wait] = []
        self.undecided: tuple[Replica, ...] = ()

    def take_places(self) -> None:
        """Let replicas serve, and make those wait that are not needed."""
        for replica in self._lineup.serve:
            if replica.role != SERVING:
                self._set(replica, SERVING, "it is called back" if replica.role == DRAINING else "it is needed")
        for replica in self._lineup.stand_by:
            self._stand_by(replica)

    def _stand_by(self, replica: Replica) -> None:
        if self._sizes.warm == 0:
            if replica.role != SERVING:
                self._set(replica, SERVING, "there is no pool")
        elif replica.role not in ROLES:
            self._set(replica, DRAINING, "its role means nothing")
        elif replica.role == DRAINING:
            self._drain_on(replica, Retirement(replica=replica, reason="it joins the pool"), then=WARM)
        elif replica.role == SERVING:
            if replica.loading:
                self._set(replica, WARM, "enough others serve")
            elif replica.ready or (self._not_ready_for_long(replica) and not self._stormy):
                self._take_out(replica, "enough others serve")

    def leave(self) -> None:
        """Take what is to go nearer to its end."""
        for retirement in self._lineup.leave:
            replica = retirement.replica
            if replica.loading or (replica.role == WARM and not self._stormy):
                grace = NEVER_SERVED_GRACE if replica.loading else IDLE_GRACE
                self.removed.append(_delete(retirement, grace=grace))
            elif replica.role == DRAINING:
                self._drain_on(replica, retirement, then="")
            elif replica.role != WARM:
                self._take_out(replica, retirement.reason)

    def _take_out(self, replica: Replica, reason: str) -> None:
        """Begin the drain of a replica in rotation, if enough others are there."""
        if self._stormy and self._sizes.total and replica.ready:
            return
        if replica.ready and replica.role == SERVING:
            if self._ready <= self._floor:
                return
            self._ready -= 1
            if len(self._routed) > 1 and self._sizes.total and any(r.in_flight is None for r in self._routed):
                self.undecided = tuple(self._routed)
        self._set(replica, DRAINING, reason)

    def _drain_on(self, replica: Replica, retirement: Retirement, *, then: str) -> None:
        drain = drain_of(replica, self._facts, self._facts.memory.idle_since, now=self._now)
        if drain.misdated:
            self._set(replica, DRAINING, "its drain begins now")
        elif not drain.done:
            until = min(drain.ends, self._now + READ_AGAIN)
            self.waits.append(Wait(reason=DRAINS, message=f"replica {replica.name}: {drain.waits_for}", until=until))
        elif then:
            self._set(replica, then, retirement.reason)
        else:
            self.removed.append(_delete(retirement, grace=IDLE_GRACE, left=_left(drain, now=self._now)))

    def _not_ready_for_long(self, replica: Replica) -> bool:
        since = replica.not_ready_since
        return since is not None and self._now - since >= STUCK_AFTER

    def _set(self, replica: Replica, role: str, reason: str) -> None:
        begun = timestamp(self._now) if role == DRAINING else None
        patch = _patch(replica, self._facts)
        patch["metadata"] |= {"labels": {ROLE_LABEL: role}, "annotations": {DRAIN_STARTED_AT: begun}}
        verb = {SERVING: "promote", WARM: "set aside", DRAINING: "drain"}[role]
        sentence = f"{verb} replica {replica.name}: {reason}"
        self.roles.append(SetRole(name=replica.name, role=role, patch=patch, sentence=sentence))


def _left(drain: Drain, *, now: float) -> str:
    return f"; its drain timed out: {drain.left}" if now >= drain.ends and drain.left else ""


def _missing_slots(facts: Facts, lineup: Lineup, rules: Rules) -> tuple[int, ...]:
    """The slots of the replicas that there should be more. One that has ended is removed before its slot is filled again."""
    taken = {r.slot for r in facts.replicas if r.revision == rules.revision and not r.over}
    return free_slots(taken, count=max(0, lineup.missing))


def _room(
    facts: Facts, sizes: Sizes, rules: Rules, live: list[Replica], *, gone: set[str], surge: int, now: float
) -> int:
    """How many replicas may be created now."""
    # In a rollout a new replica gets the GPU of one that goes: until it has gone, it is there.
    leaving = [r for r in facts.replicas if r.terminating and r.revision != rules.revision and _is_going(r, now=now)]
    rolling = (rules.rolls_out(live) or bool(leaving)) and not rules.paused
    if rolling and rules.at_once:
        return 0
    there = [r for r in live if r.scheduled or r.uid not in gone]
    if rolling:
        return max(0, sizes.total + surge - len(there) - len(leaving))
    return max(0, (sizes.total if rules.replaces(live) else sizes.ceiling) - len(there))


def _is_going(replica: Replica, *, now: float) -> bool:
    """Whether a terminating replica may still hold its GPU. One whose node does not answer may stay for ever."""
    return replica.scheduled and (replica.gone_by is None or now < replica.gone_by + STUCK_AFTER)


def _roles(lineup: Lineup, sizes: Sizes, *, count: int) -> list[str]:
    """The roles of new replicas: those in rotation first."""
    serving = count if sizes.warm == 0 else max(0, sizes.serving - len(lineup.serve))
    return [SERVING if number < serving else WARM for number in range(count)]


def _withdrawn(live: list[Replica], sizes: Sizes, rules: Rules, *, now: float) -> list[Replica]:
    """Replicas above the wanted number for which no GPU was found in time, while outdated ones serve."""
    waiting = [
        r
        for r in live
        if not r.scheduled and not rules.outdated(r) and now >= _withdrawn_at(r) and r.trouble is not None
    ]
    if not rules.replaces(live):
        return []
    return sorted(waiting, key=lambda r: (-r.slot, r.name))[: max(0, len(live) - sizes.total)]


def _withdrawn_at(replica: Replica) -> float:
    """When a replica that no node takes is given up, if it is not needed."""
    waits = UNSCHEDULABLE_FOR if replica.node_is_added is False else UNSCHEDULABLE_FOR_A_NODE
    return replica.created_at + waits


def _cause(replica: Replica, facts: Facts, *, withdrawn: bool) -> Trouble:
    if replica.sick:
        return Trouble(reason=VERIFICATION_FAILED, message=replica.sick)
    found = replica.trouble or Trouble(reason="EngineExited", message="the engine does not start")
    if withdrawn:
        return replace(found, reason=WAITING_FOR_GPU, waiting=Waiting.MAY_HELP)
    return replace(found, advice="; ".join(part for part in (found.advice, counted(facts, replica)) if part))


def _with_failures(
    failures: tuple[SlotFailure, ...], causes: dict[int, Trouble], *, now: float
) -> tuple[SlotFailure, ...]:
    """The failures with those of replicas that are given up now, by slot."""
    by_slot = {failure.slot: failure for failure in failures}
    for slot, trouble in causes.items():
        by_slot[slot] = failed_with(trouble, by_slot.get(slot), slot=slot, now=now)
    return tuple(sorted(by_slot.values(), key=lambda failure: failure.slot))


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


@dataclass(frozen=True)
class _Creation:
    """Replicas that are missing: their slots with the failures and the roles that go with them."""

    facts: Facts
    target: Target
    slots: tuple[int, ...]
    known: tuple[SlotFailure, ...]
    roles: list[str]

    def step(self, room: int, *, now: float) -> tuple[list[CreatePod], list[Wait]]:
        """The replicas to create now, and what is waited for."""
        failures = {failure.slot: failure for failure in self.known}
        at_rest = [failures[slot] for slot in self.slots if slot in failures and rests(failures[slot], now=now)]
        withdrawn = [failure for failure in self.known if failure.reason == WAITING_FOR_GPU]
        waits = [resting(failure) for failure in dict.fromkeys((*at_rest, *withdrawn))]
        # A slot that rests keeps its place: the next ones would fail alike.
        ready = [slot for slot in self.slots[:room] if slot not in {failure.slot for failure in at_rest}]
        refused = [failure.slot for failure in self.known if _concerns_all(failure)]
        if refused:
            # What refused one pod would refuse the others: one at a time asks whether it still does, and all rest with it.
            tried = set(refused) - set(self.slots)
            ready = refused[:1] if not tried and not {failure.slot for failure in at_rest} & set(refused) else []
        chosen = zip(ready[:room], self.roles, strict=False)
        return [_create_pod(self.facts, self.target, slot, role) for slot, role in chosen], waits


def _concerns_all(failure: SlotFailure) -> bool:
    """Whether any other replica of the revision would fail alike."""
    return failure.permanent or failure.reason in REFUSED


def _create_pod(facts: Facts, target: Target, slot: int, role: str) -> CreatePod:
    identity = PodIdentity(
        deployment=facts.name,
        namespace=facts.namespace,
        uid=facts.uid,
        revision=target.revision,
        slot=slot,
        role=role,
    )
    return CreatePod(identity=identity, resolved=target.resolved, sentence=f"create replica {identity.name}")


def resting(failure: SlotFailure) -> Wait:
    """The wait for a slot that rests."""
    if failure.reason == WAITING_FOR_GPU:
        message = f"no node has the GPUs for one replica more ({failure.message}); {FREE_A_GPU}"
        return Wait(reason=WAITING_FOR_GPU, message=message, until=failure.next_retry)
    times = "once" if failure.count == 1 else f"{failure.count} times in a row"
    message = f"slot {failure.slot} failed {times} ({failure.reason}: {failure.message}) and rests before the next try"
    reason = failure.reason if _concerns_all(failure) else BACKING_OFF
    return Wait(reason=reason, message=message, until=failure.next_retry)


def _delete(retirement: Retirement, *, grace: int | None, left: str = "") -> Delete:
    replica = retirement.replica
    return Delete(
        kind="Pod",
        name=replica.name,
        uid=replica.uid,
        resource_version=replica.resource_version,
        sentence=f"remove replica {replica.name}: {retirement.reason}{left}",
        grace_seconds=grace,
    )


def _patch(replica: Replica, facts: Facts) -> dict[str, Any]:
    """The head of a patch of exactly this pod as it was seen."""
    return {
        "metadata": {
            "name": replica.name,
            "namespace": facts.namespace,
            "uid": replica.uid,
            "resourceVersion": replica.resource_version,
        }
    }


def _repair(replica: Replica, facts: Facts) -> Repair | None:
    """Put back the labels and the image of a replica. Nothing else of a pod can both be edited and be put back."""
    stored = next((known for known in facts.revisions if known.revision == replica.revision), None)
    # A role that means nothing keeps it out of rotation like one that is warm; whether it serves is for the line-up to say.
    role = replica.role if replica.role in ROLES else WARM
    labels = pod_labels(facts.name, role=role, revision=replica.revision, slot=replica.slot)
    if replica.role not in ROLES:
        del labels[ROLE_LABEL]
    patch = _patch(replica, facts)
    patch["metadata"]["labels"] = labels
    what = "" if labels.items() <= replica.labels.items() else "labels"
    if stored is not None and stored.resolved.image != replica.image:
        patch["spec"] = {"containers": [{"name": CONTAINER, "image": stored.resolved.image}]}
        what = "image"
    return Repair(kind="Pod", patch=patch, sentence=f"repair {what} of replica {replica.name}") if what else None


def _why_ended(replica: Replica) -> str:
    return f"it has ended ({replica.trouble.message})" if replica.trouble else "it has ended"


def _why_given_up(replica: Replica) -> str:
    if replica.sick:
        return f"on standby it {replica.sick}"
    what = "its engine does not start" if replica.scheduled else "no node has the GPUs for it"
    return f"{what} ({replica.trouble.message})" if replica.trouble else what
