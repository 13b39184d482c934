"""What was decided, with everything that led to it by name: the same values serve status, log, metrics and simulator."""

from dataclasses import dataclass
from enum import StrEnum

from vlm_operator.scaling.policy import Source
from vlm_operator.scaling.signals import Quality


class Reason(StrEnum):
    """What set the size."""

    FRONT_END = "FrontEndWork"
    """Images, videos and sounds to prepare."""
    LANE = "PromptWork"
    """Prompt tokens to work off."""
    SLOTS = "RunningRequests"
    """Requests worked on side by side."""
    KV_CACHE = "KVCache"
    """Room in the KV cache."""
    TARGET = "Target"
    """A target of spec.scaling.targets."""
    WITHIN_TOLERANCE = "WithinTolerance"
    """The targets ask for no change."""
    FLOOR = "MinReplicas"
    """spec.scaling.minReplicas, with the warm pool where that is kept within the size."""
    SCHEDULE = "Schedule"
    """The floor of a schedule."""
    CEILING = "MaxReplicas"
    """spec.scaling.maxReplicas."""
    HELD = "RecentlyNeeded"
    """So many were needed a short while ago: fewer must do for the whole of a window before any is given up."""
    PACE = "LimitedPace"
    """The pace of spec.scaling.behavior, or of work-based scaling, allows no more at once."""
    WARMING_UP = "NothingMeasuredYet"
    """No replica was measured yet."""
    REBUILDING = "WindowsIncomplete"
    """What was seen lately is not known for long enough to scale down."""
    PARTIAL = "SignalsIncomplete"
    """Some signals are missing: nothing scales down."""
    BLIND = "NoSignals"
    """No replica can be read: the size stays, and is raised to what was needed at nearly all times of the last hour."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """What one stage of the work needs, in replicas: need = level + max(gain * (envelope + burst), pool) + drain."""

    name: Reason
    level: float
    """Load now."""
    envelope: float = 0.0
    """Growth to be expected until a new replica serves."""
    burst: float = 0.0
    """Bursts too short to be seen."""
    gain: float = 1.0
    """Factor on both, by the share of late requests."""
    headroom: float = 0.0
    """Capacity above the level: gain * (envelope + burst), or the warm pool where that is more."""
    drain: float = 0.0
    """To work off what waits."""
    need: float = 0.0
    capacity: float = 0.0
    """Of one replica: images/s, prompt tokens/s, requests or KV caches."""
    late_share: float | None = None
    """Estimated share of late requests at the last measurement."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """What one target asks for."""

    name: str
    value: float | None
    """Mean per replica, or the total of a metric of one's own; None: it could not be read."""
    target: float
    replicas: int | None
    """None: it proposes nothing."""
    quality: Quality = Quality.FINE
    note: str = ""
    """Why it does not count as it is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limit:
    """Something that changed the size on the way from the need to the decision."""

    name: Reason
    before: int
    after: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Flaw:
    """A signal that could not be used, and at how many replicas."""

    signal: str
    quality: Quality
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Assumption:
    """A figure about one replica that the estimate rests on."""

    name: str
    value: float
    source: Source


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """The size, and why."""

    replicas: int
    """The size: replicas that carry the load; under work-based scaling with a pool in rotation, all of them."""
    standby: int
    """Warm replicas beside them that get no traffic, as far as the ceiling leaves room."""
    needed: int
    """Replicas that carry the load itself, where a pool is kept in rotation within the size: those above are warm."""
    wanted: int
    """The size before bounds, windows and pace."""
    reason: Reason
    message: str
    binding: str
    """Name of the stage or target that asked for the most; empty when nothing was measured."""
    front_end_bound: bool = False
    """Requests pile up before the engine while it has little to do: more CPU would help more than more replicas."""
    stages: tuple[Stage, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    limits: tuple[Limit, ...] = ()
    flaws: tuple[Flaw, ...] = ()
    assumed: tuple[Assumption, ...] = ()
