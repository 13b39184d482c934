"""What is carried from one decision to the next: a small part that lasts, and windows that are rebuilt.

`Learned` is kept in the status (at most 2 KB as JSON) and survives a restart. `Windows` are kept in memory: after a
restart they are rebuilt by giving `decide` the samples of the last hour once more, oldest first, with the times at which
they were taken. Nothing scales down until they are complete.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vlm_operator.scaling.policy import Schedule
from vlm_operator.scaling.signals import Sample


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """Work in a time, with older measurements forgotten bit by bit: a capacity is their ratio."""

    work: float = 0.0
    seconds: float = 0.0

    @property
    def value(self) -> float:
        """Work per second; 0 where nothing was measured."""
        return self.work / self.seconds if self.seconds > 0 else 0.0

    def plus(self, work: float, seconds: float, *, keep: float) -> "Rate":
        """With a further measurement."""
        return Rate(work=self.work * keep + work, seconds=self.seconds * keep + seconds)


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

    def as_json(self) -> dict[str, Any]:
        """For the status."""
        raise NotImplementedError

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Learned":
        """As it was stored; what cannot be read is learned anew."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What the windows know of one replica."""

    sample: Sample
    """The newest that was counted."""
    interval_seconds: float = 0.0
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Windows:
    """What is rebuilt. Bins lie on multiples of the scrape interval since the epoch, so that a restart finds the same."""

    seen: Mapping[str, Seen] = field(default_factory=dict)
    """By uid."""
    first_bin: int | None = None
    bin: int | None = None
    """Number of the newest complete bin."""
    lane: tuple[float, ...] = ()
    """Prompt tokens per second that came in, by bin."""
    images: tuple[float, ...] = ()
    targets: tuple[Run, ...] = ()
    """Sizes that were wanted."""
    changes: tuple[Change, ...] = ()
    """Of the size in force."""
    size: int | None = None
    decided_at: float | None = None
    floor: Floor | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """All that one decision hands to the next."""

    learned: Learned = field(default_factory=Learned)
    windows: Windows = field(default_factory=Windows)


NEW = State()
"""Of a deployment that nothing is known of yet. After a restart: `State(learned=Learned.from_json(stored))`."""
