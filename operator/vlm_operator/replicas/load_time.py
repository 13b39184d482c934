"""How long replicas take to become ready, as far as those that are there tell, and whether a rollout has time for that."""

import math
from collections.abc import Iterable, Iterator

from vlm_operator.api.findings import Finding
from vlm_operator.api.scalars import duration_seconds
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.replicas.facts import Replica
from vlm_operator.replicas.settings import PROGRESS_DEADLINE, Settings

PROGRESS_DEADLINE_SHORT = "ProgressDeadlineShort"
"""A rollout would be given up before its first replica is ready."""
LONGEST_DEADLINE_MINUTES = 24 * 60
"""Bound of the schema."""


def observed_load_time(replicas: Iterable[Replica], *, startup_timeout: float) -> float | None:
    """Seconds from its node to being ready, of the quickest replica of which that can be told.

    A pod tells when it last became ready. It may have been ready before: if its engine has restarted that is certain, and if
    it took longer than the kubelet would have waited it is likely. Among the others the quickest is the least likely one.
    """
    times = [
        replica.ready_since - replica.scheduled_at
        for replica in replicas
        if replica.live
        and not replica.restarts
        and replica.ready_since is not None
        and replica.scheduled_at is not None
    ]
    return min((seconds for seconds in times if 0 < seconds <= startup_timeout), default=None)


def short_deadline(spec: VLMDeploymentSpec | None, replicas: Iterable[Replica]) -> Iterator[Finding]:
    """A warning where no replica becomes ready within the deadline of a rollout."""
    if spec is None:
        return
    deadline = Settings.of(spec).progress_deadline
    load_time = observed_load_time(replicas, startup_timeout=duration_seconds(spec.engine.startup_timeout))
    if load_time is None or load_time < deadline:
        return
    text = (spec.rollout.progress_deadline if spec.rollout else None) or PROGRESS_DEADLINE
    enough = min(math.ceil(2 * load_time / 60), LONGEST_DEADLINE_MINUTES)
    yield Finding(
        reason=PROGRESS_DEADLINE_SHORT,
        severity="Warning",
        field="spec.rollout.progressDeadline",
        message=f"{text} is not longer than the {load_time:.0f} s that a replica took from its node to being ready; a rollout"
        " would be given up before its first replica is ready",
        advice=f"set it to {enough}m",
    )
