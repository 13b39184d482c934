"""Deployments as a test describes them, for peers to look at."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from vlm_operator.simulator.peers.settings import Engine
from vlm_operator.simulator.view import Life, Peer, Seen

ENGINE = Engine(kv_tokens=100_000, slots=64, prompt_tokens=1000.0)


def seen(number: int = 0, **figures: Any) -> Seen:
    """One replica that serves and has nothing to do, but for what is given."""
    idle: dict[str, Any] = {
        "number": number,
        "life": Life.SERVING,
        "created": 0.0,
        "ready_at": 0.0,
        "in_flight": 0,
        "running": 0,
        "waiting": 0,
        "kv_tokens": 0.0,
        "kv_usage": 0.0,
        "prompt_tokens": 0.0,
        "first_tokens": 0,
        "finished": 0,
        "images": 0.0,
        "busy_seconds": 0.0,
    }
    return Seen(**{**idle, **figures})


def fleet(count: int, **figures: Any) -> tuple[Seen, ...]:
    """Replicas that all show the same."""
    return tuple(seen(number, **figures) for number in range(count))


def fleet_of(name: str, values: Sequence[float]) -> tuple[Seen, ...]:
    """Replicas that differ in one figure."""
    return tuple(seen(number, **{name: value}) for number, value in enumerate(values))


@dataclass
class FakeView:
    """What a peer sees. The replicas were scraped just now, unless said otherwise."""

    now: float = 0.0
    live: Sequence[Seen] = ()
    starting: int = 0
    in_flight: int = 0
    held: int = 0
    scraped: Sequence[Seen] = field(default=(), repr=False)
    scraped_at: float = float("-inf")

    @property
    def ready(self) -> int:
        return len(self.live)

    @property
    def size(self) -> int:
        return self.ready + self.starting


def look(live: Sequence[Seen] = (), *, now: float = 0.0, **others: Any) -> FakeView:
    """A view with all that serve scraped at the moment."""
    others.setdefault("scraped", live)
    others.setdefault("scraped_at", now if others["scraped"] else float("-inf"))
    return FakeView(now=now, live=live, **others)


def requests(live: Sequence[Seen]) -> int:
    """Those that the replicas have."""
    return sum(one.in_flight for one in live)


def answers(peer: Peer, count: int, *, seconds: float, start: float = 0.0, **figures: Any) -> list[int]:
    """What a peer wants over some time of a fleet that never changes."""
    live, wanted, steps = fleet(count, **figures), [], int(seconds / peer.period_seconds)
    for step in range(steps):
        now = start + step * peer.period_seconds
        wanted.append(peer.desired(look(live, now=now, in_flight=requests(live))))
    return wanted
