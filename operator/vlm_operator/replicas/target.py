"""Which revision is wanted."""

from dataclasses import dataclass

from vlm_operator.engines.base import Resolved
from vlm_operator.engines.registry import engine
from vlm_operator.replicas.facts import Facts, StoredRevision
from vlm_operator.replicas.revision import revision_of


@dataclass(frozen=True, kw_only=True)
class Target:
    """The wanted revision and what its pods are rendered from."""

    revision: str
    resolved: Resolved
    stored: StoredRevision | None
    """None: it is new, its ControllerRevision is still to be written."""


def target_of(facts: Facts) -> Target | None:
    """The revision of an accepted spec, else the one that was wanted before; None when there was none."""
    if not facts.accepted or facts.inputs is None:
        return _last_accepted(facts)
    revision = revision_of(facts.inputs)
    stored = next((known for known in facts.revisions if known.revision == revision), None)
    if stored is not None:
        return Target(revision=revision, resolved=stored.resolved, stored=stored)
    chosen = facts.assessment.tensor_parallel if facts.assessment else None
    resolved = engine(facts.inputs.engine.type).resolve(facts.inputs, tensor_parallel=chosen)
    return Target(revision=revision, resolved=resolved, stored=None)


def _last_accepted(facts: Facts) -> Target | None:
    if not facts.revisions:
        return None
    wanted = facts.status.get("updatedRevision")
    stored = next(
        (known for known in facts.revisions if known.revision == wanted),
        max(facts.revisions, key=lambda known: known.number),
    )
    return Target(revision=stored.revision, resolved=stored.resolved, stored=stored)
