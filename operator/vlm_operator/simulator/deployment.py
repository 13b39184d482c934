"""A plain Deployment under the autoscaler of another project.

It is kind to them: policies see exact figures without loss, and of the replicas that serve, those with the fewest requests
leave first and finish what they have.
"""

from collections.abc import Sequence

from vlm_operator.simulator.fleet import Fleet
from vlm_operator.simulator.scraping import Scraper
from vlm_operator.simulator.view import Life, Peer, Seen


class Deployment:
    """Keeps as many replicas as a policy wants, within bounds. It is what its policy sees, too."""

    def __init__(self, fleet: Fleet, scraper: Scraper, peer: Peer, *, least: int, most: int) -> None:
        self._fleet, self._scraper, self._peer = fleet, scraper, peer
        self._least, self._most = least, most
        self._live: tuple[float, Sequence[Seen]] | None = None
        self._scraped: tuple[float, Sequence[Seen]] = (-1.0, ())
        self._read()

    @property
    def period_seconds(self) -> float:
        """Time between two decisions."""
        return self._peer.period_seconds

    def act(self) -> int:
        """Decide on the size and bring the replicas to it; gives the size."""
        self._read()
        wanted = min(self._most, max(self._least, self._peer.desired(self)))
        self._bring_to(wanted)
        return wanted

    def _read(self) -> None:
        counts = self._fleet.counts()
        self.starting, self.ready = counts[Life.STARTING], counts[Life.SERVING]
        self.size = self.starting + self.ready
        self.now, self.in_flight, self.held = self._fleet.now, self._fleet.in_flight, self._fleet.held

    def _bring_to(self, wanted: int) -> None:
        for _ in range(wanted - self.size):
            self._fleet.start()
        if wanted < self.size:
            there = [seen for seen in self._fleet.seen() if seen.life in (Life.STARTING, Life.SERVING)]
            there.sort(key=lambda seen: (seen.life == Life.SERVING, seen.in_flight, -seen.number))
            for seen in there[: self.size - wanted]:
                if seen.life == Life.STARTING:
                    self._fleet.end(seen.number)
                else:
                    self._fleet.drain(seen.number, then_end=True)

    @property
    def live(self) -> Sequence[Seen]:
        """The replicas that serve, as they are now."""
        if self._live is None or self._live[0] != self.now:
            self._live = self.now, [seen for seen in self._fleet.seen() if seen.life == Life.SERVING]
        return self._live[1]

    @property
    def scraped_at(self) -> float:
        """When the last scrape was."""
        return self._scraper.taken_at

    @property
    def scraped(self) -> Sequence[Seen]:
        """The replicas that served at the last scrape, as they were then."""
        if self._scraped[0] != self._scraper.taken_at:
            served = [seen for seen in self._scraper.taken if seen.life == Life.SERVING]
            self._scraped = self._scraper.taken_at, served
        return self._scraped[1]
