"""How far a rollout has got, and whether it is given up.

Its time runs from the last replica that became ready, without the time in which it waited for GPUs or was paused. What
must outlast the operator stands in the status; the verdict becomes an annotation of the revision.
"""

from dataclasses import dataclass, replace

from vlm_operator.api.names import SERVING
from vlm_operator.replicas.facts import WAITING_FOR_GPU, Facts, Replica, SlotFailure
from vlm_operator.replicas.refusal import REFUSED
from vlm_operator.replicas.rollout import Rules
from vlm_operator.replicas.sizes import Sizes
from vlm_operator.replicas.target import Target, last_good
from vlm_operator.replicas.times import epoch

ROLLING_OUT = "RollingOut"
PAUSED = "Paused"
ROLLED_BACK = "RolledBack"
DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
VERDICT_LENGTH = 400


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A rollout under way."""

    phase: str
    message: str
    updated: int
    """Replicas of the new revision."""
    ready: int
    """Those that are ready."""
    since: float
    """When it last got on."""
    waiting_since: float | None = None
    """Since when its time stands still."""
    deadline: float | None = None
    """When it is given up."""
    verdict: str = ""
    """Why it is given up now."""


def progress_of(facts: Facts, target: Target, sizes: Sizes, rules: Rules, *, now: float) -> Progress | None:
    """The rollout of the revision that the spec asks for; None when it is complete, or nothing is to run."""
    asked = target.asked
    live = [r for r in facts.replicas if r.live]
    new = [r for r in live if r.revision == asked.revision]
    rolled_out = facts.status.get("currentRevision") == asked.revision
    proved = is_available(facts, target, sizes) or (rolled_out and asked.stored is not None and asked.stored.available)
    if sizes.total == 0 or (target.wanted is None and proved and len(new) == len(live)):
        return None
    since, waiting_since = _clock(facts, target, new, now=now)
    ready = sum(r.ready for r in new)
    under_way = Progress(
        phase=ROLLING_OUT,
        message=f"{ready} of {sizes.total} replicas run revision {asked.revision} and are ready",
        updated=len(new),
        ready=ready,
        since=since,
        waiting_since=waiting_since,
    )
    if asked.stored is not None and asked.stored.failed and target.wanted is not None:
        back = f"revision {asked.revision} was rolled back to {target.revision} ({asked.stored.failed})"
        return replace(under_way, phase=ROLLED_BACK, message=f"{back}; edit the spec to try another")
    if target.paused and (target.wanted is not None or len(new) < len(live)):
        kept = "spec.rollout.paused keeps the others as they are"
        return replace(under_way, phase=PAUSED, message=f"{under_way.message}; {kept}")
    if waiting_since is not None:
        waits = _waits_for_node(facts, new, now=now) and (facts.claim is None or facts.claim.exists)
        return replace(under_way, phase=WAITING_FOR_GPU) if waits else under_way
    return _judged(under_way, facts, target, new, rules, now=now)


def _judged(
    under_way: Progress, facts: Facts, target: Target, new: list[Replica], rules: Rules, *, now: float
) -> Progress:
    """The rollout, given up where nothing speaks for it any more and there is a revision to return to."""
    patience = rules.settings.progress_deadline
    deadline, failure = under_way.since + patience, _worst(facts, target)
    known = f"; {failure.reason}: {failure.message}" if failure is not None else _troubles(new)
    if now >= deadline:
        why = f"{DEADLINE_EXCEEDED}: no further replica became ready within {patience:.0f} s{known}"
    elif failure is not None and failure.permanent:
        why = f"{failure.reason}: {failure.message}"
    else:
        return replace(under_way, deadline=deadline)
    if rules.settings.rollout.auto_rollback is False:
        kept = "spec.rollout.autoRollback is off, so it is kept"
    elif last_good(facts, besides=target.asked.revision) is None:
        kept = "no other revision was ever available, so there is none to return to"
    elif facts.status.get("currentRevision") == target.asked.revision:
        kept = "it was rolled out before, so it is kept"
    else:
        return replace(under_way, phase=ROLLED_BACK, message=why, verdict=why[:VERDICT_LENGTH])
    phase = DEADLINE_EXCEEDED if now >= deadline else ROLLING_OUT
    return replace(under_way, phase=phase, message=f"{why}; {kept}")


def _clock(facts: Facts, target: Target, new: list[Replica], *, now: float) -> tuple[float, float | None]:
    """When the rollout last got on, and since when its time stands still."""
    noted = facts.status.get("rollout") or {} if facts.status.get("updatedRevision") == target.asked.revision else {}
    # An operator that has just started has not seen what happened meanwhile.
    since = (epoch(noted.get("lastProgressTime")) or now) if not facts.memory.recalled else now
    waited_since = epoch(noted.get("waitingSince"))
    waits = target.paused or _waits_for_node(facts, new, now=now) or not _is_tried(facts, target, new)
    if waited_since is not None and not waits:
        since += max(0.0, now - waited_since)
    since = max([since, *(r.ready_since for r in new if r.ready_since is not None)])
    return since, (waited_since or now) if waits else None


def _is_tried(facts: Facts, target: Target, new: list[Replica]) -> bool:
    """Whether there is anything to judge the revision by: a replica that loads, or one that failed."""
    failed = facts.memory.revision == target.revision and any(
        failure.reason not in {WAITING_FOR_GPU, *REFUSED} for failure in facts.memory.failures
    )
    return failed or any(r.scheduled and not r.ready for r in new)


def _waits_for_node(facts: Facts, new: list[Replica], *, now: float) -> bool:
    """Whether no node takes the replicas that are to come, as the scheduler says."""
    loading = [r for r in new if not r.ready]
    refused = any(not r.scheduled and r.trouble is not None for r in loading)
    withdrawn = any(f.reason == WAITING_FOR_GPU and now < f.next_retry for f in facts.memory.failures)
    return (refused or withdrawn) and not any(r.scheduled for r in loading)


def _worst(facts: Facts, target: Target) -> SlotFailure | None:
    if facts.memory.revision != target.revision:
        return None
    return max(facts.memory.failures, key=lambda f: (f.permanent, f.count, -f.slot), default=None)


def _troubles(new: list[Replica]) -> str:
    found = sorted({f"{r.trouble.reason}: {r.trouble.message}" for r in new if not r.ready and r.trouble is not None})
    return f"; {found[0]}" if found else ""


def is_available(facts: Facts, target: Target, sizes: Sizes) -> bool:
    """Whether every replica runs the wanted revision, and as many serve as carry the load."""
    live = [r for r in facts.replicas if r.live]
    serving = sum(r.ready and r.role == SERVING for r in live)
    return sizes.total > 0 and all(r.revision == target.revision for r in live) and serving >= sizes.needed
