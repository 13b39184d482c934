"""What is known of the replicas from scrapes, with what gets lost on the way."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from vlm_operator.simulator.fleet import Fleet
from vlm_operator.simulator.view import Life, Seen

READABLE = (Life.SERVING, Life.STANDBY, Life.DRAINING)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trouble:
    """What goes wrong during a replay."""

    lost_share: float = 0.0
    """Share of the scrapes of single replicas that get lost."""
    outages: tuple[tuple[float, float], ...] = ()
    """Spans of time, in seconds since the beginning of the trace, in which nothing is scraped."""
    crashes: tuple[float, ...] = ()
    """Times at which the replica with the most requests in flight ends."""


class Scraper:
    """Reads all replicas at once, every `seconds`; the first time somewhere in the first five."""

    def __init__(self, fleet: Fleet, *, seconds: float, seed: int, trouble: Trouble) -> None:
        self._fleet, self._seconds, self._trouble = fleet, seconds, trouble
        self._chance = np.random.default_rng(seed).random
        self.next_at = float(self._chance()) * min(5.0, seconds)
        self.taken_at = -inf
        """When the last scrape was."""
        self.taken: Sequence[Seen] = ()
        """What it brought."""

    def scrape(self) -> None:
        """Read the replicas whose engine answers, as they are now."""
        now, self.next_at = self.next_at, self.next_at + self._seconds
        if any(start <= now < end for start, end in self._trouble.outages):
            return
        share, chance = self._trouble.lost_share, self._chance
        self.taken_at = now
        self.taken = [seen for seen in self._fleet.seen() if seen.life in READABLE and (not share or chance() >= share)]
