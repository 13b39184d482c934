"""The replicas of one deployment in simulated time: started, promoted, drained, ended and read as pods are."""

from math import inf

import numpy as np
from numpy.typing import NDArray

from vlm_operator.simulator import events
from vlm_operator.simulator.physics import Physics
from vlm_operator.simulator.routing import Routing
from vlm_operator.simulator.trace import Trace
from vlm_operator.simulator.view import Life, Seen

FIRST_ROWS = 64


class Fleet:
    """Replicas that work through a trace. The same arguments and calls give the same results."""

    def __init__(self, trace: Trace, physics: Physics, *, routing: Routing, seed: int) -> None:
        self.physics = physics
        self._end = trace.seconds
        self._rows = 0
        requests = len(trace)
        clock = np.zeros(events.CLOCK_SIZE)
        clock[events.SLOTS], clock[events.KV_TOKENS] = physics.slots, physics.kv_tokens
        clock[events.STEP] = physics.decode_step_seconds
        clock[events.STEP_EACH] = physics.decode_step_seconds_per_request
        count = np.zeros(events.COUNT_SIZE, dtype=np.int64)
        count[events.ROUTING], count[events.WORKERS] = list(Routing).index(routing), physics.front_end_workers
        lane = physics.lane_seconds(prompt_tokens=trace.prompt_tokens, images=trace.images)
        front_end = physics.front_end_seconds(images=trace.images)
        self._arrays = events.Arrays(
            times=trace.times,
            lane=np.asarray(lane, dtype=np.float32),
            front_end=np.asarray(front_end, dtype=np.float32),
            prompt=trace.prompt_tokens,
            output=trace.output_tokens,
            images=trace.images,
            after=np.full(requests, events.VOID, dtype=np.int32),
            waits=np.full(requests, np.inf, dtype=np.float32),
            whole=np.zeros((FIRST_ROWS, events.WHOLE_COLUMNS), dtype=np.int64),
            real=np.zeros((FIRST_ROWS, events.REAL_COLUMNS)),
            live=np.zeros(0, dtype=np.int64),
            clock=clock,
            counts=count,
            heap_time=np.zeros(0),
            heap_order=np.zeros(0, dtype=np.int64),
            heap_event=np.zeros(0, dtype=np.int64),
            # Small seeds are spread over all bits; the generator would stay at 0 for ever.
            noise=np.array([(seed * 2654435761 + 88172645463325252) % 2**64 or 1], dtype=np.uint64),
        )
        for _ in range(10):
            events.uniform(self._arrays.noise)

    # -- time ----------------------------------------------------------------------------------------------------------
    @property
    def now(self) -> float:
        """Seconds since the beginning of the trace."""
        return float(self._arrays.clock[events.NOW])

    def advance(self, until: float) -> None:
        """Let all happen up to `until`, that moment included; infinite: until the last request has ended."""
        events.advance(self._arrays, until)
        self._forget_gone()

    # -- what there is -------------------------------------------------------------------------------------------------
    @property
    def waits(self) -> NDArray[np.float32]:
        """Seconds that each request queued; infinite for those that were not begun."""
        return self._arrays.waits

    @property
    def held(self) -> int:
        """Requests that wait for a replica that serves."""
        return int(self._arrays.counts[events.HELD])

    @property
    def in_flight(self) -> int:
        """Requests that came and have not ended, held ones among them."""
        count = self._arrays.counts
        return int(count[events.NEXT] - count[events.ENDED_REQUESTS])

    def counts(self) -> list[int]:
        """Replicas that exist by `Life`."""
        lives = self._arrays.whole[self._arrays.live, events.LIFE]
        counts: list[int] = np.bincount(lives, minlength=len(Life)).tolist()
        return counts

    def seen(self) -> list[Seen]:
        """All replicas that exist, the oldest first."""
        of, e, kv_tokens = self._arrays, events, self.physics.kv_tokens
        whole, real = events.read(of, of.live)
        return [
            # By position, since there are many: names would double the time.
            Seen(
                k,
                LIVES[w[e.LIFE]],
                r[e.CREATED],
                r[e.READY_AT],
                w[e.IN_FLIGHT],
                w[e.RUNNING],
                w[e.WAITING],
                r[e.KV],
                min(1.0, r[e.KV] / kv_tokens),
                r[e.PROMPT_TOKENS],
                w[e.FIRSTS],
                w[e.DONE],
                r[e.IMAGES],
                r[e.BUSY],
            )
            for k, w, r in zip(of.live.tolist(), whole.tolist(), real.tolist(), strict=True)
        ]

    def replica_seconds(self) -> float:
        """Of all replicas from their creation to their end, until the end of the trace."""
        real = self._arrays.real[: self._rows]
        ended, created = np.minimum(real[:, events.ENDED], self._end), np.minimum(real[:, events.CREATED], self._end)
        return float((ended - created).sum())

    # -- what is done to them ------------------------------------------------------------------------------------------
    def start(self, *, standby: bool = False, loaded: bool = False) -> int:
        """Create a replica, to serve or to stand by; gives its number. `loaded`: it is ready at once."""
        k, of, now = self._new_row(), self._arrays, self.now
        spread = 1 + self.physics.cold_start_spread * (2 * events.uniform(of.noise) - 1)
        row, real = of.whole[k], of.real[k]
        row[[events.QUEUE_HEAD, events.QUEUE_TAIL, events.DOOR_HEAD, events.DOOR_TAIL]] = events.VOID
        row[events.TO_STANDBY] = standby
        real[events.CREATED] = real[events.LAST] = now
        real[events.READY_AT] = now + (0.0 if loaded else self.physics.cold_start_seconds * spread)
        real[events.ENDED] = inf
        self._arrays = of._replace(live=np.append(of.live, k))
        self._make_room()
        events.push(self._arrays, float(real[events.READY_AT]), events.READY, k, events.VOID)
        return k

    def serve(self, number: int) -> None:
        """Send requests to a replica: at once, or when it is ready."""
        of = self._arrays
        of.whole[number, events.TO_STANDBY] = False
        if of.whole[number, events.LIFE] != Life.STARTING:
            of.whole[number, events.LIFE] = Life.SERVING
            events.release(of, self.now)

    def stand_by(self, number: int) -> None:
        """Take a replica without requests out of service and keep it loaded; one that starts stands by once it is ready."""
        of = self._arrays
        of.whole[number, events.TO_STANDBY] = True
        if of.whole[number, events.LIFE] != Life.STARTING:
            of.whole[number, events.LIFE] = Life.STANDBY

    def drain(self, number: int, *, then_end: bool) -> None:
        """Send no more requests to a replica that is ready. `then_end`: it ends by itself when those that it has are done."""
        row = self._arrays.whole[number]
        row[events.LIFE], row[events.LEAVES] = Life.DRAINING, then_end
        if then_end and not row[events.IN_FLIGHT]:
            self.end(number)

    def end(self, number: int) -> None:
        """Delete a replica. The requests that it had not finished come once more, to the others."""
        self._make_room()
        events.end(self._arrays, number, self.now)
        self._forget_gone()

    # -- rooms ---------------------------------------------------------------------------------------------------------
    def _forget_gone(self) -> None:
        of = self._arrays
        if of.counts[events.JUST_GONE]:
            of.counts[events.JUST_GONE] = 0
            self._arrays = of._replace(live=of.live[of.whole[of.live, events.LIFE] != Life.GONE])

    def _new_row(self) -> int:
        of, k = self._arrays, self._rows
        if k == len(of.whole):
            whole, real = np.zeros_like(of.whole), np.zeros_like(of.real)
            self._arrays = of._replace(whole=np.concatenate((of.whole, whole)), real=np.concatenate((of.real, real)))
        self._rows += 1
        return k

    def _make_room(self) -> None:
        """Each request in a slot or with a worker has an event, and each start; those of ended replicas pass unused."""
        of = self._arrays
        each = self.physics.slots + self.physics.front_end_workers + 2
        need = int(of.counts[events.HEAP]) + (len(of.live) + 1) * each
        room = 2 * need - len(of.heap_time)
        if need > len(of.heap_time):
            more = np.zeros(room, dtype=np.int64)
            self._arrays = of._replace(
                heap_time=np.concatenate((of.heap_time, np.zeros(room))),
                heap_order=np.concatenate((of.heap_order, more)),
                heap_event=np.concatenate((of.heap_event, more)),
            )


LIVES = tuple(Life)
