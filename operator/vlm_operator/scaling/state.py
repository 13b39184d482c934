"""What is carried from one decision to the next: a small part that lasts, and windows that are rebuilt.

`Learned` is kept in the status (at most 2 KB as JSON) and survives a restart. `Windows` are kept in memory: after a
restart they are rebuilt by giving `decide` the samples of the last hour once more, oldest first, with the times at which
they were taken. Nothing scales down until they are complete.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NamedTuple

from vlm_operator.scaling.able import Able
from vlm_operator.scaling.decision import Flaw
from vlm_operator.scaling.policy import Schedule
from vlm_operator.scaling.reading import Flaws
from vlm_operator.scaling.signals import Replica, Sample

STARTS_KEPT = 16
"""Start times that are remembered."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """Work in a time, with older measurements forgotten bit by bit: a capacity is their ratio."""

    work: float = 0.0
    seconds: float = 0.0

    @property
    def value(self) -> float:
        """Work per second; 0 where nothing was measured."""
        return self.work / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Learned:
    """What lasts."""

    since: float | None = None
    """When the deployment was first decided on."""
    until: float = 0.0
    """Samples up to that time have been learned from: those that come once more only fill the windows."""
    gains: tuple[float, float] | None = None
    """Factors on the headroom of the lane and of the front end."""
    lane: Rate = field(default_factory=Rate)
    """Prompt tokens in busy time."""
    front_end: Rate = field(default_factory=Rate)
    """Images in the time that single workers spent on them."""
    front_end_busy: Rate = field(default_factory=Rate)
    """Images in the time in which all workers were busy."""
    starts: tuple[int, ...] = ()
    """How long the last replicas took to start, in seconds."""
    started_until: float = 0.0
    """When the last of them got ready: none counts twice, also after a restart."""

    def as_json(self) -> dict[str, Any]:
        """For the status: at most 2 KB."""
        return {
            "since": self.since,
            "until": self.until,
            "gains": [_short(gain) for gain in self.gains] if self.gains else None,
            "lane": [_short(self.lane.work), _short(self.lane.seconds)],
            "frontEnd": [_short(self.front_end.work), _short(self.front_end.seconds)],
            "frontEndBusy": [_short(self.front_end_busy.work), _short(self.front_end_busy.seconds)],
            "starts": list(self.starts),
            "startedUntil": self.started_until,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Learned":
        """As it was stored. What cannot be read is learned anew."""
        gains = _numbers(stored.get("gains"))
        return cls(
            since=_number(stored.get("since")),
            until=_number(stored.get("until")) or 0.0,
            gains=(gains[0], gains[1]) if len(gains) == 2 and min(gains) > 0 else None,
            starts=tuple(int(seconds) for seconds in _numbers(stored.get("starts")))[-STARTS_KEPT:],
            started_until=_number(stored.get("startedUntil")) or 0.0,
            lane=_rate(stored.get("lane")),
            front_end=_rate(stored.get("frontEnd")),
            front_end_busy=_rate(stored.get("frontEndBusy")),
        )


class Seen(NamedTuple):
    """What the windows know of one replica. A tuple, because one is made of every sample."""

    sample: Sample
    """The newest that was counted, with None for figures that cannot be relied on."""
    flaws: Flaws = ()
    """What was wrong with it, and with the time since the one before."""
    front_end: float | None = None
    """Requests in its front end then; None: not known."""
    lane_rate: float | None = None
    """Prompt tokens per second that came in; None: not known yet."""
    image_rate: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """A value that stayed the same from one time to another, both included."""

    start: float
    end: float
    value: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A change of the size."""

    time: float
    by: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Floor:
    """The floor of the schedules, and until when it needs no second look."""

    schedules: tuple[Schedule, ...]
    replicas: int
    cron: str
    """Of the schedule that fired last."""
    since: float
    until: float


PLAIN_SERVICE = Rate(work=1.0, seconds=1.0)
"""Before anything was seen: requests lie as unevenly as under random routing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mix:
    """What requests are like: work and requests, older ones forgotten bit by bit."""

    tokens: float = 0.0
    begun: float = 0.0
    """Requests whose prompt was worked off."""
    images: float = 0.0
    entered: float = 0.0
    """Requests that the front end handed to the engine."""
    unevenness: Rate = PLAIN_SERVICE
    """Variance of the requests in flight over the replicas, over their mean: over 1 under random routing, under a half
    where each request goes to the replica with the fewest."""

    @property
    def tokens_per_request(self) -> float:
        """Prompt tokens."""
        return self.tokens / max(1.0, self.begun)

    @property
    def images_per_request(self) -> float:
        """Images, videos and sounds."""
        return self.images / max(1.0, self.entered)


class Increment(NamedTuple):
    """How far the load rose from one bin on, within the time that a new replica takes, in work per second."""

    rise: float
    level: float
    per_root: float
    """The rise over the square root of the level."""


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    """Load of one stage by bin, oldest first, and what follows from it."""

    rates: tuple[float, ...] = ()
    """Work per second that came in."""
    increments: tuple[Increment, ...] = ()
    growth: float = 0.0
    """To be expected until a new replica serves: in replicas, for a level of one; grows with its square root."""
    dispersion: float = 0.0
    """Variance of the work that comes in, over its mean: the size of its lumps."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """The newest figures of the replicas that carry requests, as far as they can be relied on."""

    able: Able
    """What one of them can do."""
    ready: int
    """Replicas that get requests."""
    unread: int
    """Of those, the ones without a sample that is new enough."""
    incomplete: int
    """Of those, the ones without a sample, or with figures missing in it that an estimate of the work needs; one more
    where the requests before the replicas cannot be told."""
    newest: float | None
    """Time of the newest sample."""
    running: float
    waiting: float
    front_end: float
    """Requests in the front ends."""
    held: float = 0.0
    """Requests that wait before the replicas."""
    kv_caches: float
    """KV caches in use, in whole ones."""
    flaws: tuple[Flaw, ...]
    fresh: tuple[Seen, ...]
    """The ready ones with a sample that is new enough."""

    @property
    def blind(self) -> bool:
        """Whether none of the ready ones can be read, or none is ready."""
        return self.unread == self.ready


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """What was found at the last look. The same replicas, with nothing new of them, need no second one for a while."""

    looked: tuple[tuple[Replica, Seen | None], ...]
    """Those that carry requests, with what is known of them."""
    replicas: tuple[Replica, ...]
    totals: Totals


@dataclass(frozen=True, kw_only=True, slots=True)
class Windows:
    """What is rebuilt. Bins lie on multiples of the scrape interval since the epoch, so that a restart finds the same."""

    since: float | None = None
    """When these windows begin."""
    seen: Mapping[str, Seen] = field(default_factory=dict)
    """By uid."""
    mix: Mix = field(default_factory=Mix)
    bin: int | None = None
    """Number of the newest bin."""
    lane: History = field(default_factory=History)
    front_end: History = field(default_factory=History)
    late: tuple[float, float] | None = None
    """Share of late requests at the last bin, by lane and by front end."""
    wanted: tuple[Run, ...] = ()
    """Sizes that were wanted, within bounds."""
    changes: tuple[Change, ...] = ()
    """Of the size in force."""
    size: int | None = None
    decided_at: float | None = None
    floor: Floor | None = None
    look: Look | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """All that one decision hands to the next."""

    learned: Learned = field(default_factory=Learned)
    windows: Windows = field(default_factory=Windows)


NEW = State()
"""Of a deployment that nothing is known of yet. After a restart: `State(learned=Learned.from_json(stored))`."""


def _short(number: float) -> float:
    return float(f"{number:.6g}")


def _number(stored: object) -> float | None:
    usable = isinstance(stored, int | float) and not isinstance(stored, bool) and isfinite(stored) and stored >= 0
    return float(stored) if usable else None  # type: ignore[arg-type]  # it is a number


def _numbers(stored: object) -> list[float]:
    found = [_number(value) for value in stored] if isinstance(stored, list) else []
    return [] if None in found else [value for value in found if value is not None]


def _rate(stored: object) -> Rate:
    pair = _numbers(stored)
    return Rate(work=pair[0], seconds=pair[1]) if len(pair) == 2 else Rate()
