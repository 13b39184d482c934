"""The event loop: requests on their way through replicas, compiled by numba.

Plain functions on arrays, so that they are compiled once and kept on disk. `Fleet` in `fleet.py` owns the arrays and is the
only one to call them. Queues are linked lists through `after`.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from vlm_operator.simulator import physics

Compiled = TypeVar("Compiled", bound=Callable[..., object])
STARTING, SERVING, STANDBY, DRAINING, GONE = range(5)
"""What a replica does: the values of `view.Life`."""
RANDOM, LEAST_OUTSTANDING, FEWEST_UNSTARTED = range(3)
"""Ways to route, in the order of `routing.Routing`."""
READY, PREPARED, PREFILLED, FINISHED = range(4)
"""Kinds of events."""
VOID = -1
"""Instead of a replica or a request: none."""
UNSTARTED = 1 << 20
"""Weight of a request without a first token where they are counted first."""

# Columns of `whole`, a row for each replica.
(LIFE, IN_FLIGHT, RUNNING, WAITING, LANE, PREPARING, BUSY_WORKERS) = range(7)
(QUEUE_HEAD, QUEUE_TAIL, DOOR_HEAD, DOOR_TAIL, TO_STANDBY, LEAVES, FIRSTS, DONE) = range(7, 15)
WHOLE_COLUMNS = 15
# Columns of `real`, a row for each replica.
KV, BUSY, LAST, CREATED, READY_AT, ENDED, PROMPT_TOKENS, IMAGES = range(8)
REAL_COLUMNS = 8
# Of `clock`: the time, and what the loop needs of the physics.
NOW, SLOTS, KV_TOKENS, STEP, STEP_EACH = range(5)
CLOCK_SIZE = 5
# Of `counts`: next arrival, events so far and in the heap, held requests and their queue, routing, workers, ended requests,
# and replicas that are gone and still among the live ones.
NEXT, SEQUENCE, HEAP, HELD, HELD_HEAD, HELD_TAIL, ROUTING, WORKERS, ENDED_REQUESTS, JUST_GONE = range(10)
COUNT_SIZE = 10
VOID_EVENT = 0
REPLICAS_MOST, REQUESTS_MOST = 1 << 24, 1 << 32
"""How an event is packed into one number: kind, replica and request, the last two plus one, so that there can be none."""


class Arrays(NamedTuple):
    """All that the loop works on."""

    times: NDArray[np.float64]
    """When requests come, in seconds."""
    lane: NDArray[np.float32]
    front_end: NDArray[np.float32]
    """Seconds that requests take in both."""
    prompt: NDArray[np.float32]
    output: NDArray[np.float32]
    """Tokens of requests."""
    images: NDArray[np.float32]
    after: NDArray[np.int32]
    """The next request in the queue in which a request is."""
    waits: NDArray[np.float32]
    """Seconds that requests queued."""
    whole: NDArray[np.int64]
    real: NDArray[np.float64]
    """Figures of replicas."""
    live: NDArray[np.int64]
    """Rows of the replicas that exist, oldest first."""
    clock: NDArray[np.float64]
    counts: NDArray[np.int64]
    heap_time: NDArray[np.float64]
    heap_order: NDArray[np.int64]
    heap_event: NDArray[np.int64]
    """Events as a binary heap by time, those of one time in the order in which they were added."""
    noise: NDArray[np.uint64]
    """State of the generator of random numbers."""


def compiled(function: Compiled) -> Compiled:
    """The function as machine code."""
    return cast("Compiled", njit(cache=True)(function))


def merged(function: Compiled) -> Compiled:
    """The same, as a part of each function that calls it: a call would count the references to all arrays up and down."""
    return cast("Compiled", njit(inline="always")(function))


_decode_seconds = compiled(physics.decode_seconds)


@compiled
def uniform(noise: NDArray[np.uint64]) -> float:
    """A number from 0 up to 1, without 1 (xorshift64)."""
    bits = noise[0]
    bits ^= bits << np.uint64(13)
    bits ^= bits >> np.uint64(7)
    bits ^= bits << np.uint64(17)
    noise[0] = bits
    return float(bits >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@merged
def _push(of: Arrays, time: float, kind: int, replica: int, request: int) -> None:
    order, at = of.counts[SEQUENCE], of.counts[HEAP]
    of.counts[SEQUENCE] += 1
    of.counts[HEAP] += 1
    while at:
        above = (at - 1) // 2
        if of.heap_time[above] <= time:
            break
        of.heap_time[at] = of.heap_time[above]
        of.heap_order[at] = of.heap_order[above]
        of.heap_event[at] = of.heap_event[above]
        at = above
    of.heap_time[at] = time
    of.heap_order[at] = order
    of.heap_event[at] = (kind * REPLICAS_MOST + replica + 1) * REQUESTS_MOST + request + 1


@compiled
def push(of: Arrays, time: float, kind: int, replica: int, request: int) -> None:
    """Add an event."""
    _push(of, time, kind, replica, request)


@merged
def _drop_first(of: Arrays) -> None:
    of.counts[HEAP] -= 1
    last, at = of.counts[HEAP], 0
    time, order = of.heap_time[last], of.heap_order[last]
    while True:
        child = 2 * at + 1
        if child >= last:
            break
        other = child + 1
        if other < last and (
            of.heap_time[other] < of.heap_time[child]
            or (of.heap_time[other] == of.heap_time[child] and of.heap_order[other] < of.heap_order[child])
        ):
            child = other
        if time < of.heap_time[child] or (time == of.heap_time[child] and order < of.heap_order[child]):
            break
        of.heap_time[at] = of.heap_time[child]
        of.heap_order[at] = of.heap_order[child]
        of.heap_event[at] = of.heap_event[child]
        at = child
    of.heap_time[at] = time
    of.heap_order[at] = order
    of.heap_event[at] = of.heap_event[last]


@merged
def _kind(event: int) -> int:
    return event // REQUESTS_MOST // REPLICAS_MOST


@merged
def _replica(event: int) -> int:
    return event // REQUESTS_MOST % REPLICAS_MOST - 1


@merged
def _request(event: int) -> int:
    return event % REQUESTS_MOST - 1


@merged
def _touch(of: Arrays, k: int, time: float) -> None:
    """Bring the busy time of a replica up to date."""
    if of.whole[k, RUNNING] > 0:
        of.real[k, BUSY] += time - of.real[k, LAST]
    of.real[k, LAST] = time


@merged
def _start(of: Arrays, k: int, time: float) -> None:
    """Let the lane take the next request, if it, a slot and room in the KV cache are free."""
    whole, real = of.whole, of.real
    if whole[k, LANE] or whole[k, WAITING] == 0 or whole[k, RUNNING] >= of.clock[SLOTS]:
        return
    i = whole[k, QUEUE_HEAD]
    need = of.prompt[i] + of.output[i]
    if real[k, KV] + need > of.clock[KV_TOKENS] and whole[k, RUNNING] > 0:
        return
    whole[k, QUEUE_HEAD] = of.after[i]
    whole[k, WAITING] -= 1
    _touch(of, k, time)
    whole[k, RUNNING] += 1
    whole[k, LANE] = 1
    real[k, KV] += need
    of.waits[i] = max(0.0, time - of.times[i] - of.front_end[i])
    _push(of, time + of.lane[i], PREFILLED, k, i)


@merged
def _queue(of: Arrays, k: int, i: int, time: float) -> None:
    """A request comes to the engine."""
    whole = of.whole
    of.after[i] = VOID
    if whole[k, WAITING]:
        of.after[whole[k, QUEUE_TAIL]] = i
    else:
        whole[k, QUEUE_HEAD] = i
    whole[k, QUEUE_TAIL] = i
    whole[k, WAITING] += 1
    _start(of, k, time)


@merged
def _prepare(of: Arrays, k: int, time: float) -> None:
    """Let free workers of the front end take the next requests."""
    whole = of.whole
    while whole[k, BUSY_WORKERS] < of.counts[WORKERS] and whole[k, DOOR_HEAD] >= 0:
        i = whole[k, DOOR_HEAD]
        whole[k, DOOR_HEAD] = of.after[i]
        whole[k, BUSY_WORKERS] += 1
        _push(of, time + of.front_end[i], PREPARED, k, i)


@merged
def _choose(of: Arrays) -> int:
    """The replica for the next request; VOID: none serves."""
    whole, live, routing = of.whole, of.live, of.counts[ROUTING]
    serving = 0
    for k in live:
        serving += whole[k, LIFE] == SERVING
    if serving == 0:
        return VOID
    left = int(uniform(of.noise) * serving) if routing == RANDOM else 0
    best, least = VOID, 0
    for k in live:
        if whole[k, LIFE] != SERVING:
            continue
        if routing == RANDOM:
            if left == 0:
                return int(k)
            left -= 1
            continue
        key = whole[k, IN_FLIGHT]
        if routing == FEWEST_UNSTARTED:
            key += (whole[k, PREPARING] + whole[k, WAITING] + whole[k, LANE]) * UNSTARTED
        if best == VOID or key < least:
            best, least = int(k), key
    return best


@compiled
def _route(of: Arrays, i: int, time: float) -> None:
    """Send a request to a replica, or hold it back until one serves."""
    whole, counts = of.whole, of.counts
    k = _choose(of)
    of.after[i] = VOID
    if k == VOID:
        if counts[HELD]:
            of.after[counts[HELD_TAIL]] = i
        else:
            counts[HELD_HEAD] = i
        counts[HELD_TAIL] = i
        counts[HELD] += 1
        return
    whole[k, IN_FLIGHT] += 1
    if of.front_end[i] <= 0:
        _queue(of, k, i, time)
        return
    if whole[k, DOOR_HEAD] >= 0:
        of.after[whole[k, DOOR_TAIL]] = i
    else:
        whole[k, DOOR_HEAD] = i
    whole[k, DOOR_TAIL] = i
    whole[k, PREPARING] += 1
    _prepare(of, k, time)


@merged
def _release(of: Arrays, time: float) -> None:
    left, i = of.counts[HELD], of.counts[HELD_HEAD]
    of.counts[HELD] = 0
    for _ in range(left):
        following = of.after[i]
        _route(of, i, time)
        i = following


@compiled
def release(of: Arrays, time: float) -> None:
    """Send the requests that were held back, now that a replica serves."""
    _release(of, time)


@compiled
def read(of: Arrays, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The figures of some replicas, as they are now."""
    for k in rows:
        _touch(of, k, of.clock[NOW])
    return of.whole[rows], of.real[rows]


@merged
def _send_again(of: Arrays, head: int, count: int, time: float) -> None:
    i = head
    for _ in range(count):
        following = of.after[i]
        _route(of, i, time)
        i = following


@compiled
def end(of: Arrays, k: int, time: float) -> None:
    """A replica ends. What it had not finished is sent again to the others, from the beginning."""
    whole = of.whole
    _touch(of, k, time)
    queued, preparing = whole[k, WAITING], whole[k, PREPARING] - whole[k, BUSY_WORKERS]
    whole[k, LIFE] = GONE
    of.real[k, ENDED] = time
    of.counts[JUST_GONE] += 1
    whole[k, IN_FLIGHT] = 0
    _send_again(of, whole[k, QUEUE_HEAD], queued, time)
    _send_again(of, whole[k, DOOR_HEAD], preparing, time)
    begun, count = VOID, 0
    for at in range(of.counts[HEAP]):
        event = of.heap_event[at]
        if _replica(event) == k:
            # An event that is void keeps its place in the heap.
            of.heap_event[at] = VOID_EVENT
            if _request(event) != VOID:
                of.after[_request(event)] = begun
                begun = _request(event)
                count += 1
    _send_again(of, begun, count, time)


@merged
def _happen(of: Arrays, kind: int, k: int, i: int, time: float) -> None:
    whole, real = of.whole, of.real
    if kind == PREFILLED:
        _touch(of, k, time)
        whole[k, LANE] = 0
        whole[k, FIRSTS] += 1
        real[k, PROMPT_TOKENS] += of.prompt[i]
        decode = _decode_seconds(of.output[i], whole[k, RUNNING], of.clock[STEP], of.clock[STEP_EACH])
        _push(of, time + decode, FINISHED, k, i)
        _start(of, k, time)
    elif kind == FINISHED:
        _touch(of, k, time)
        whole[k, RUNNING] -= 1
        whole[k, IN_FLIGHT] -= 1
        whole[k, DONE] += 1
        of.counts[ENDED_REQUESTS] += 1
        # What is left of rounding must not keep a request out of an empty cache.
        real[k, KV] = real[k, KV] - of.prompt[i] - of.output[i] if whole[k, RUNNING] else 0.0
        if whole[k, LEAVES] and whole[k, IN_FLIGHT] == 0:
            whole[k, LIFE] = GONE
            real[k, ENDED] = time
            of.counts[JUST_GONE] += 1
        else:
            _start(of, k, time)
    elif kind == PREPARED:
        whole[k, BUSY_WORKERS] -= 1
        whole[k, PREPARING] -= 1
        real[k, IMAGES] += of.images[i]
        _queue(of, k, i, time)
        _prepare(of, k, time)
    elif whole[k, LIFE] == STARTING:
        whole[k, LIFE] = STANDBY if whole[k, TO_STANDBY] else SERVING
        if whole[k, LIFE] == SERVING:
            _release(of, time)


@compiled
def advance(of: Arrays, until: float) -> None:
    """Let all happen up to `until`, that moment included."""
    requests, counts = len(of.times), of.counts
    while True:
        arrival = of.times[counts[NEXT]] if counts[NEXT] < requests else np.inf
        due = of.heap_time[0] if counts[HEAP] else np.inf
        time = min(arrival, due)
        if time > until or time == np.inf:
            break
        of.clock[NOW] = time
        if arrival < due:
            i = counts[NEXT]
            counts[NEXT] += 1
            _route(of, i, time)
            continue
        event = of.heap_event[0]
        _drop_first(of)
        if event != VOID_EVENT:
            _happen(of, _kind(event), _replica(event), _request(event), time)
    if until < np.inf:
        of.clock[NOW] = until
