"""What a decision is to follow: bounds, targets, pace, schedules, the warm pool, and what is declared of a replica.

It is made once from a spec and used at every tick. Reading the spec is left to `from_spec.py`.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite

from vlm_operator.api.findings import INVALID_FIELD, Finding
from vlm_operator.scaling.tuning import STANDARD, Tuning


class PolicyError(ValueError):
    """A policy that nothing can follow, with the field, its value, the rule and the way out."""

    def __init__(self, field_path: str, message: str, advice: str) -> None:
        self.finding = Finding(reason=INVALID_FIELD, severity="Error", field=field_path, message=message, advice=advice)
        super().__init__(self.finding.sentence())


class Signal(StrEnum):
    """What a target can be set on, by the name of its field."""

    QUEUE_DEPTH = "queueDepth"
    RUNNING_REQUESTS = "runningRequests"
    GPU_UTILIZATION = "gpuUtilization"
    KV_CACHE_UTILIZATION = "kvCacheUtilization"
    CUSTOM = "custom"


SHARES = (Signal.GPU_UTILIZATION, Signal.KV_CACHE_UTILIZATION)
"""Signals whose targets are set in percent."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A wanted value per ready serving replica: requests, a share from 0 to 1, or the unit of a metric of one's own."""

    signal: Signal
    value: float
    metric: str = ""
    """Name of a metric of one's own."""

    def __post_init__(self) -> None:
        most = 1.0 if self.signal in SHARES else None
        if not isfinite(self.value) or self.value <= 0 or (most is not None and self.value > most):
            shown = self.value * 100 if most is not None else self.value
            rule = "from 1 to 100" if most is not None else "greater than 0"
            raise PolicyError(f"spec.scaling.targets.{self.name}", f"is {shown:g}", f"set a value {rule}")

    @property
    def name(self) -> str:
        """As it is shown."""
        return f"{self.signal}/{self.metric}" if self.metric else str(self.signal)


class Select(StrEnum):
    """Which of several limits on the pace counts: that which allows the largest change, the smallest, or no change."""

    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """Largest change within a period: pods, or percent of the size at its start."""

    percent: bool
    value: int
    period_seconds: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """Pace in one direction, as in autoscaling/v2. Without paces there is no limit."""

    window_seconds: float | None = 0.0
    """Time over which the safest proposal wins; None: by the start time of a replica."""
    select: Select = Select.MAX
    paces: tuple[Pace, ...] = ()
    tolerance: float = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Behavior:
    """Pace of scaling."""

    up: Rules
    down: Rules


@dataclass(frozen=True, kw_only=True, slots=True)
class Schedule:
    """A floor from each of its times until the next time of any schedule."""

    cron: str
    time_zone: str
    min_replicas: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """Warm replicas: in rotation they are free capacity within or beside the size, on standby they wait beside it."""

    size: int = 0
    standby: bool = False


class Source(StrEnum):
    """Where a figure about the replicas comes from."""

    ASSUMED = "Assumed"
    DERIVED = "Derived"
    DECLARED = "Declared"
    LEARNED = "Learned"


@dataclass(frozen=True, kw_only=True, slots=True)
class Workers:
    """Images that the front end of one replica prepares side by side."""

    count: float = 1.0
    source: Source = Source.ASSUMED


@dataclass(frozen=True, kw_only=True, slots=True)
class Declared:
    """What is held of one replica until it is measured."""

    start_seconds: float = 100.0
    """From the creation of a pod until it serves, in nine cases of ten."""
    slots: int = 256
    """Requests that the engine works on side by side."""
    lane_tokens_per_second: float = 4000.0
    """Prompt tokens, those of images among them, that it works off."""
    workers: Workers = field(default_factory=Workers)


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """What a decision is to follow. Bounds are those of the spec: how the pool counts within them is decided here."""

    work_based: bool = True
    """Estimate the work, with the targets as further candidates; else only the targets count."""
    advisory: bool = False
    """Decide, and change nothing."""
    min_replicas: int = 1
    max_replicas: int
    targets: tuple[Target, ...] = ()
    behavior: Behavior
    schedules: tuple[Schedule, ...] = ()
    pool: Pool = field(default_factory=Pool)
    declared: Declared = field(default_factory=Declared)
    scrape_seconds: float = 15.0
    """Between two samples of a replica."""
    tick_seconds: float = 5.0
    """Between two decisions."""
    tuning: Tuning = STANDARD

    def __post_init__(self) -> None:
        least, most = self.min_replicas, self.max_replicas
        if least < 1:
            raise PolicyError("spec.scaling.minReplicas", f"is {least}", "set at least 1")
        if least > most:
            problem = f"is {least}, which is greater than maxReplicas ({most})"
            raise PolicyError("spec.scaling.minReplicas", problem, "lower it, or raise spec.scaling.maxReplicas")
        if not self.work_based and not self.targets:
            way_out = "set one under spec.scaling.targets, or use the policy WorkBased"
            raise PolicyError("spec.scaling.policy", "is Targets and there is no target", way_out)
        for name, seconds in (("scrape", self.scrape_seconds), ("tick", self.tick_seconds)):
            if not isfinite(seconds) or seconds <= 0:
                raise PolicyError(f"the {name} interval", f"is {seconds:g} s", "set a time greater than 0")
