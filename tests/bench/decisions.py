"""How long a decision on the size takes, for a deployment of 64 replicas under varying load.

Every third tick closes a bin. Replicas are read all at once, so that two ticks of three bring nothing new, or one after the
other, so that each tick brings new samples of a third of them. The time counts all that a tick costs: taking the samples
in, the windows, the terms, the sentence.
"""

import json
import math
from time import process_time

from bench.table import Row, percentile
from vlm_operator.scaling.decide import decide
from vlm_operator.scaling.from_spec import BY_WORK
from vlm_operator.scaling.policy import Policy
from vlm_operator.scaling.signals import Phase, Replica, Sample, Signals
from vlm_operator.scaling.state import NEW, State

REPLICAS = 64
AIM_MICROSECONDS = 150
TICK, SCRAPE = 5.0, 15.0
START = 1_800_000_000.0
UIDS = [f"replica-{number}" for number in range(REPLICAS)]


def measure(quick: bool) -> list[Row]:
    """Ticks of an hour and a half, so that the windows are full; the last half hour counts."""
    rows = []
    for staggered in (False, True):
        times, state = _times(120 if quick else 1080, staggered=staggered)
        counted = times[-len(times) // 3 :]
        read = "one after the other" if staggered else "at the same moment"
        rows += [
            _row(f"read {read}, median", percentile(counted, 0.5), aim=True),
            _row(f"read {read}, mean", sum(counted) / len(counted), aim=False),
        ]
    size = len(json.dumps(state.learned.as_json()))
    return [*rows, Row(what="state that lasts", ours=f"{size} bytes", aim="<= 2048 bytes")]


def _times(ticks: int, *, staggered: bool) -> tuple[list[float], State]:
    """Time of the processor for each decision, and the state after them."""
    policy = Policy(max_replicas=REPLICAS, behavior=BY_WORK, scrape_seconds=SCRAPE, tick_seconds=TICK)
    state, times = NEW, []
    for tick in range(ticks):
        now = START + tick * TICK
        seen = tuple(_replica(number, now, SCRAPE / REPLICAS if staggered else 0.0) for number in range(REPLICAS))
        signals = Signals(size=REPLICAS, replicas=seen)
        begun = process_time()
        _, state = decide(policy, state, signals, now)
        times.append(process_time() - begun)
    return times, state


def _row(name: str, seconds: float, *, aim: bool) -> Row:
    what, least = f"decision on {REPLICAS} replicas {name}", f"<= {AIM_MICROSECONDS} us"
    return Row(what=what, ours=f"{seconds * 1e6:.0f} us", aim=least if aim else "-")


def _replica(number: int, now: float, apart: float) -> Replica:
    phase = number * apart
    read = math.floor((now - phase) / SCRAPE) * SCRAPE + phase
    return Replica(
        uid=UIDS[number],
        phase=Phase.READY,
        created_at=START - 200,
        ready_at=START - 100,
        sample=_sample(number, read),
    )


def _sample(number: int, time: float) -> Sample:
    """Counters of a load that rises and falls with the hour, and queues that come and go."""
    age = time - START + 3600
    swing = 1 + 0.5 * math.sin(time / 600)
    done = age * 2 - 600 * 2 * 0.5 * math.cos(time / 600)
    waiting = max(0, round(3 * math.sin(time / 37 + number)))
    return Sample(
        time=time,
        running=round(10 * swing),
        waiting=waiting,
        in_flight=round(10 * swing) + waiting + number % 3,
        kv_usage=0.3 * swing,
        prompt_tokens=done * 800,
        first_tokens=done,
        finished=done - 10,
        images=done * 1.2,
    )
