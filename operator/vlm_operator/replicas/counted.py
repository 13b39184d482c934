"""What the sizing can add to the advice about a replica that failed: a number to begin with."""

from vlm_operator.engines.causes import HOST_OUT_OF_MEMORY, KV_CACHE_TOO_SMALL
from vlm_operator.replicas.facts import Facts, Replica
from vlm_operator.sizing.fit import largest_max_model_len


def counted(facts: Facts, replica: Replica) -> str:
    """The value that fits by the sizing; empty where it has none, or where it was wrong before."""
    reason = replica.trouble.reason if replica.trouble is not None else ""
    if reason == KV_CACHE_TOO_SMALL.reason:
        return _length(facts)
    if reason == HOST_OUT_OF_MEMORY.reason:
        known = next((one for one in facts.revisions if one.revision == replica.revision), None)
        return f"by the sizing it needs {known.resolved.host_memory}" if known is not None else ""
    return ""


def _length(facts: Facts) -> str:
    question = facts.assessment.question if facts.assessment is not None else None
    if facts.spec is None or question is None:
        return ""
    fits = largest_max_model_len(question)
    wanted = facts.spec.model.max_model_len or question.architecture.max_context
    return f"by the sizing {fits} tokens fit" if fits and wanted and fits < wanted else ""
