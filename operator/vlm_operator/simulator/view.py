"""What a scaling policy can see of simulated replicas at one moment."""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol


class Life(IntEnum):
    """Where a replica is in its life."""

    STARTING = 0
    SERVING = 1
    STANDBY = 2
    DRAINING = 3
    GONE = 4


class Seen(NamedTuple):
    """What one replica shows. Counters count from its start."""

    number: int
    """Its own, from 0, in the order of creation."""
    life: Life
    created: float
    ready_at: float
    """When it was or will be ready."""
    in_flight: int
    """Requests sent to it that have not ended."""
    running: int
    """Of those, the ones in the engine's slots: prompt being worked on, or decoding."""
    waiting: int
    """Of those, the ones in the engine's queue. Those in neither are in its front end."""
    kv_tokens: float
    """Tokens in the KV cache."""
    kv_usage: float
    """Share of the KV cache in use."""
    prompt_tokens: float
    """Counter: prompt tokens done."""
    first_tokens: int
    """Counter: requests whose prompt is done."""
    finished: int
    """Counter: requests that ended."""
    images: float
    """Counter: images that the front end has prepared."""
    busy_seconds: float
    """Counter: seconds in which its GPU worked on anything."""


class View(Protocol):
    """A deployment at one moment. Reading what is `live` costs time: policies that do not need it leave it alone."""

    @property
    def now(self) -> float:
        """Seconds since the beginning of the trace."""

    @property
    def size(self) -> int:
        """Replicas asked for: those that serve, and those that start to serve."""

    @property
    def ready(self) -> int:
        """Replicas that serve."""

    @property
    def starting(self) -> int:
        """Replicas that start to serve."""

    @property
    def in_flight(self) -> int:
        """Requests that came and have not ended, as a proxy before the replicas counts them: held ones included."""

    @property
    def held(self) -> int:
        """Of those, the ones that wait before all replicas because none serves."""

    @property
    def live(self) -> Sequence[Seen]:
        """The replicas that serve, as they are now."""

    @property
    def scraped(self) -> Sequence[Seen]:
        """The replicas that served at the last scrape, as they were then; empty before the first one."""

    @property
    def scraped_at(self) -> float:
        """When that was; -inf before the first one."""


class Peer(Protocol):
    """A scaling policy of another project. It keeps what it remembers to itself; one object is good for one replay."""

    @property
    def period_seconds(self) -> float:
        """Time between two decisions."""

    def desired(self, view: View) -> int:
        """The size wanted now. Bounds are applied by the caller."""
