"""What is seen of a deployment at one moment, as it was read: nothing is judged or filled in here.

Times are seconds since the epoch. A figure that was not read is None, never 0; what else a figure can be but a number
to rely on is said by `Quality`, and judged in `reading.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Quality(StrEnum):
    """What a figure is worth. Only FINE ones are counted; none of the others is taken for 0."""

    FINE = "Fine"
    MISSING = "Missing"
    """It was not read."""
    STALE = "Stale"
    """It was read too long ago."""
    NOT_A_NUMBER = "NotANumber"
    """NaN or infinite."""
    NEGATIVE = "Negative"
    IMPOSSIBLE = "Impossible"
    """Beyond what there can be: more than the whole of a share, taken in the future, or more than a replica can hold."""
    RESET = "Reset"
    """A counter went back: the engine was started again, and what it did in between is not known."""
    FIRST_INTERVAL = "FirstInterval"
    """The first sample of a replica of whose start nothing is known: a counter tells nothing yet."""
    PARTIAL = "Partial"
    """Some replicas are read and others are not."""


class Phase(StrEnum):
    """Where a replica is in its life."""

    STARTING = "Starting"
    READY = "Ready"
    """It gets requests."""
    STANDBY = "Standby"
    """Loaded, and without traffic."""
    DRAINING = "Draining"
    """It finishes its requests, and gets no new ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """What the engine of one replica said, all of it in one answer. Counters count from the start of the engine."""

    time: float
    """When it was taken, by the clock of whoever took it: not when it was handed over."""
    running: float | None = None
    """Requests in work now."""
    waiting: float | None = None
    """Requests that wait for the engine to take them up."""
    in_flight: float | None = None
    """Requests that the replica holds at its door: those that running and waiting do not count are in its front end."""
    kv_usage: float | None = None
    """Share of the KV cache in use, 0 to 1."""
    prompt_tokens: float | None = None
    """Counter: prompt tokens done, those of images among them."""
    first_tokens: float | None = None
    """Counter: requests that got their first token."""
    finished: float | None = None
    """Counter: requests that ended."""
    images: float | None = None
    """Counter: images, videos and sounds that the front end has prepared."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gauge:
    """One figure from elsewhere than the engine, with its own time."""

    time: float
    value: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Replica:
    """One pod that exists, and the newest that was read of it."""

    uid: str
    phase: Phase
    created_at: float
    ready_at: float | None = None
    """When it was first ready; None: not yet, or not known."""
    sample: Sample | None = None
    """The newest one, however old."""
    gpu: Gauge | None = None
    """Busy share of its GPUs, 0 to 1, the mean over them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Signals:
    """A deployment at one moment."""

    size: int
    """The size in force, in the unit of the decision; its pods may still be starting."""
    replicas: tuple[Replica, ...] = ()
    """Pods that are not leaving and have not ended."""
    held: float = 0.0
    """Requests that wait before the replicas, where something holds them."""
    custom: Mapping[str, Gauge] = field(default_factory=dict)
    """Metrics of one's own by name, each for the whole deployment."""
