"""What anybody could do at best: a schedule made by somebody who knows the trace beforehand.

Relaxed to a fluid in one common queue: n replicas work off the work that comes, each start costs the time of a start, and
late requests cost a price each. For every price, dynamic programming over (replicas, backlog) from the end to the beginning
gives the cheapest schedule; the best price gives a lower bound on the replica time for a given share of late requests
(Lagrangian dual). Backlogs are rounded down, so it is too low rather than too high. Replayed, with the work enlarged until
it serves as well as asked, the schedule shows what foresight is worth under real queueing.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlm_operator.simulator.events import compiled
from vlm_operator.simulator.physics import Physics
from vlm_operator.simulator.trace import Trace
from vlm_operator.simulator.view import View

PRICES = (0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512)
"""Replica seconds for a late request."""
BACKLOGS = 160
SLOT_SECONDS = 15.0


class Arrays(NamedTuple):
    """What the dynamic programming needs of a trace."""

    work: NDArray[np.float64]
    requests: NDArray[np.float64]
    step: float
    """Between two backlogs that are told apart."""


@compiled
def _late_share(backlog: float, work: float, replicas: float, seconds: float, wait: float) -> float:
    """Share of the requests of a slot that wait too long: where the backlog, which changes evenly, is above the limit."""
    change, limit = work - replicas * seconds, replicas * wait
    if backlog > limit:
        if change >= 0:
            return 1.0
        return min(1.0, (backlog - limit) / -change)
    if change > 0:
        return max(0.0, 1.0 - (limit - backlog) / change)
    return 0.0


@compiled
def _solved(fluid: Arrays, choice: NDArray[np.uint8], start: float, wait: float, price: float) -> NDArray[np.float64]:
    """Cost from each state at the beginning on; fills in the choice for each slot, state and backlog."""
    work, requests, step, seconds = fluid.work, fluid.requests, fluid.step, SLOT_SECONDS
    slots, most, backlogs = len(work), choice.shape[1] - 1, choice.shape[2]
    after = np.zeros((most + 1, backlogs))
    cost = np.zeros((most + 1, backlogs))
    ups = np.zeros(most + 2)
    best_up = np.zeros(most + 2, dtype=np.int64)
    for slot in range(slots - 1, -1, -1):
        for n in range(1, most + 1):
            for level in range(backlogs):
                backlog = level * step
                left = max(0.0, backlog + work[slot] - n * seconds)
                late = requests[slot] * _late_share(backlog, work[slot], n, seconds, wait)
                cost[n, level] = n * seconds + price * late + after[n, min(backlogs - 1, int(left / step))]
        for level in range(backlogs):
            best, which = np.inf, 1
            for n in range(most, 0, -1):
                if cost[n, level] + start * n < best:
                    best, which = cost[n, level] + start * n, n
                ups[n], best_up[n] = best, which
            best, which = np.inf, 1
            for n in range(1, most + 1):
                if cost[n, level] < best:
                    best, which = cost[n, level], n
                up = ups[n] - start * n
                after[n, level] = min(best, up)
                choice[slot, n, level] = which if best <= up else best_up[n]
    return after


@dataclass(frozen=True, kw_only=True)
class Fluid:
    """A trace as work and requests by slot, of the stage that has the most to do."""

    work: NDArray[np.float64]
    """Replica seconds that come in each slot."""
    requests: NDArray[np.float64]

    @classmethod
    def of(cls, trace: Trace, physics: Physics) -> "Fluid":
        """Of a trace on replicas of some kind."""
        slots = int(trace.seconds // SLOT_SECONDS) + 1
        place = (trace.times // SLOT_SECONDS).astype(int)
        lane = physics.lane_seconds(prompt_tokens=trace.prompt_tokens, images=trace.images)
        front = physics.front_end_seconds(images=trace.images) / physics.front_end_workers
        chosen = max((lane, front), key=lambda seconds: float(np.sum(seconds)))
        work = np.bincount(place, weights=chosen, minlength=slots)
        return cls(work=work, requests=np.bincount(place, minlength=slots).astype(float))


@dataclass(frozen=True, kw_only=True)
class Bound:
    """The lower bound and the price at which it was found."""

    replica_seconds: float
    price: float


def bound(fluid: Fluid, *, start_seconds: float, start: int, most: int, wait: float, late_share: float) -> Bound:
    """The least replica time for at most that share of late requests."""
    found = Bound(replica_seconds=0.0, price=PRICES[0])
    choice = np.zeros((len(fluid.work), most + 1, BACKLOGS), dtype=np.uint8)
    for price in PRICES:
        costs = _solved(_arrays(fluid), choice, start_seconds, wait, float(price))
        value = float(costs[start, 0]) - price * late_share * float(fluid.requests.sum())
        if value > found.replica_seconds:
            found = Bound(replica_seconds=value, price=float(price))
    return found


def schedule(
    fluid: Fluid, *, price: float, start_seconds: float, start: int, most: int, wait: float
) -> NDArray[np.int64]:
    """Replicas for each slot, at a price of late requests."""
    choice = np.zeros((len(fluid.work), most + 1, BACKLOGS), dtype=np.uint8)
    n, backlog, sizes = start, 0.0, []
    arrays = _arrays(fluid)
    _solved(arrays, choice, start_seconds, wait, price)
    for slot, work in enumerate(fluid.work):
        n = int(choice[slot, n, min(BACKLOGS - 1, int(backlog / arrays.step))])
        sizes.append(n)
        backlog = max(0.0, backlog + float(work) - n * SLOT_SECONDS)
    return np.array(sizes)


def _arrays(fluid: Fluid) -> Arrays:
    """A minute of the mean load, or of four replicas, is the greatest backlog."""
    mean = float(fluid.work.sum()) / len(fluid.work) / SLOT_SECONDS
    return Arrays(work=fluid.work, requests=fluid.requests, step=60 * max(4.0, mean) / (BACKLOGS - 1))


@dataclass(frozen=True, kw_only=True)
class Clairvoyant:
    """Follows a schedule that was made beforehand, early enough for replicas to be ready."""

    sizes: NDArray[np.int64]
    ahead_seconds: float
    period_seconds: float = 5.0

    def desired(self, view: View) -> int:
        """The most of the schedule from now on until a replica that is started now serves."""
        slot = int(view.now // SLOT_SECONDS)
        until = slot + int(self.ahead_seconds // SLOT_SECONDS) + 2
        return int(self.sizes[slot:until].max(initial=1))
