"""Which revision is wanted, and which one replicas are given: while a rollout is paused or was given up, an older one."""

from dataclasses import dataclass, replace

from vlm_operator.engines.base import Resolved
from vlm_operator.engines.registry import engine
from vlm_operator.replicas.facts import Facts, StoredRevision
from vlm_operator.replicas.revision import revision_of
from vlm_operator.replicas.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Target:
    """The revision that new replicas get, and what their pods are rendered from."""

    revision: str
    resolved: Resolved
    stored: StoredRevision | None
    """None: it is new, its ControllerRevision is still to be written."""
    wanted: "Target | None" = None
    """The revision that the spec asks for, where that is another."""
    paused: bool = False
    """Every replica keeps the revision that it has."""

    @property
    def asked(self) -> "Target":
        """The revision that the spec asks for."""
        return self.wanted or self


def settings_of(facts: Facts) -> Settings | None:
    """The settings in force: those of the spec, or while that is refused those that were accepted before."""
    if facts.accepted and facts.spec is not None:
        return Settings.of(facts.spec)
    asked = _asked(facts)
    return asked.stored.settings if asked is not None and asked.stored is not None else None


def target_of(facts: Facts) -> Target | None:
    """The revision of an accepted spec, or the last good one after a failure; None when there was none."""
    asked, settings = _asked(facts), settings_of(facts)
    if asked is None:
        return None
    if asked.stored is not None and asked.stored.failed:
        good = last_good(facts, besides=asked.revision)
        return replace(_of(good), wanted=asked) if good is not None else asked
    if settings is not None and settings.rollout.paused:
        running = _running(facts, asked)
        return replace(_of(running), wanted=asked, paused=True) if running is not None else replace(asked, paused=True)
    return asked


def last_good(facts: Facts, *, besides: str) -> StoredRevision | None:
    """The newest revision that was available and did not fail."""
    good = (known for known in facts.revisions if known.available and not known.failed and known.revision != besides)
    return max(good, key=lambda known: known.number, default=None)


def _asked(facts: Facts) -> Target | None:
    """The revision of an accepted spec, else the one that was wanted before."""
    if not facts.accepted or facts.inputs is None:
        return _last_accepted(facts)
    revision = revision_of(facts.inputs)
    stored = next((known for known in facts.revisions if known.revision == revision), None)
    if stored is not None:
        return _of(stored)
    chosen = facts.assessment.tensor_parallel if facts.assessment else None
    resolved = engine(facts.inputs.engine.type).resolve(facts.inputs, tensor_parallel=chosen)
    return Target(revision=revision, resolved=resolved, stored=None)


def _last_accepted(facts: Facts) -> Target | None:
    if not facts.revisions:
        return None
    wanted = facts.status.get("updatedRevision")
    return _of(
        next(
            (known for known in facts.revisions if known.revision == wanted),
            max(facts.revisions, key=lambda known: known.number),
        )
    )


def _running(facts: Facts, asked: Target) -> StoredRevision | None:
    """What new replicas get while the rollout of another revision is paused: what was rolled out last, or runs."""
    others = {known.revision: known for known in facts.revisions if known.revision != asked.revision}
    current = facts.status.get("currentRevision")
    if current == asked.revision:
        return None
    if current in others:
        return others[current]
    used = {replica.revision for replica in facts.replicas if replica.live}
    return max((known for known in others.values() if known.revision in used), key=lambda k: k.number, default=None)


def _of(stored: StoredRevision) -> Target:
    return Target(revision=stored.revision, resolved=stored.resolved, stored=stored)
