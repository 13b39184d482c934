"""How long the kubelet waits for a replica to start: `engine.startupTimeout` cut into runs of the startup probe."""

import math
from dataclasses import dataclass

LONGEST_RUN_SECONDS = 60
"""A run of the verification waits for the engine and for its answer; after this long a fresh one takes over."""
HEALTH_PERIOD_SECONDS = 5
_PYTHON_START_SECONDS = 5
"""Left of a run for starting the interpreter on a busy node, so that the script ends by itself and can say why."""


@dataclass(frozen=True, kw_only=True)
class StartupProbe:
    """Numbers of a startup probe."""

    period_seconds: int
    timeout_seconds: int
    failure_threshold: int
    script_seconds: int
    """How long one run of the verification script may take."""


def verification_probe(startup_seconds: int) -> StartupProbe:
    """Runs that follow each other without a gap and end together with the time to start.

    The kubelet counts failures, not time, and begins a run every `period_seconds` or when the last one ends, whichever
    is later. Because no run outlasts its period the total is period x threshold (rounded up to whole seconds per run),
    also when the engine accepts requests and never answers. Because each run waits, a replica is ready as soon as it
    answers.
    """
    runs = math.ceil(startup_seconds / LONGEST_RUN_SECONDS)
    period = math.ceil(startup_seconds / runs)
    margin = min(_PYTHON_START_SECONDS, period // 2)
    return StartupProbe(
        period_seconds=period,
        timeout_seconds=period,
        failure_threshold=math.ceil(startup_seconds / period),
        script_seconds=period - margin,
    )


def health_probe(startup_seconds: int) -> StartupProbe:
    """Short looks at /health: its port opens when the engine is ready."""
    return StartupProbe(
        period_seconds=HEALTH_PERIOD_SECONDS,
        timeout_seconds=HEALTH_PERIOD_SECONDS,
        failure_threshold=math.ceil(startup_seconds / HEALTH_PERIOD_SECONDS),
        script_seconds=0,
    )
