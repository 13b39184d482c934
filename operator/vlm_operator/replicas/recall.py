"""What an operator that has just started remembers of a deployment: what its predecessor wrote into the status."""

from collections.abc import Mapping
from typing import Any

from vlm_operator.replicas.facts import Memory, SlotFailure
from vlm_operator.replicas.times import epoch


def recall(status: Mapping[str, Any]) -> Memory:
    """The memory that a status holds."""
    failures = tuple(
        SlotFailure(
            slot=failure["slot"],
            reason=failure["reason"],
            message=failure.get("message", ""),
            count=failure["count"],
            next_retry=epoch(failure.get("nextRetry")) or 0.0,
            permanent=bool(failure.get("permanent")),
        )
        for failure in status.get("failures") or ()
    )
    # While a rollout is paused or taken back, replicas and their failures are of another revision than the wanted one.
    of = next((failure.get("revision") for failure in status.get("failures") or ()), None)
    return Memory(revision=of or status.get("updatedRevision", ""), failures=failures, recalled=True)
