"""How long a decision on the size takes, for a deployment of 64 replicas under varying load.

Replicas are read one after the other, as Prometheus does it: each tick brings new samples of some of them, and every
third one closes a bin. The time counts all that a tick costs: taking the samples in, the windows, the terms, the sentence.
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
    policy = Policy(max_replicas=REPLICAS, behavior=BY_WORK, scrape_seconds=SCRAPE, tick_seconds=TICK)
    ticks, counted = (120, 60) if quick else (1080, 360)
    state, times = NEW, []
    for tick in range(ticks):
        now = START + tick * TICK
        signals = Signals(size=REPLICAS, replicas=tuple(_replica(number, now) for number in range(REPLICAS)))
        begun = process_time()
        _, state = decide(policy, state, signals, now)
        times.append(process_time() - begun)
    return [_row("median", 0.5, times[-counted:]), _row("99 % of them", 0.99, times[-counted:]), _size(state)]


def _row(name: str, share: float, times: list[float]) -> Row:
    found = percentile(times, share) * 1e6
    aim = f"<= {AIM_MICROSECONDS} us" if share == 0.5 else "-"
    return Row(what=f"decision on {REPLICAS} replicas, {name}", ours=f"{found:.0f} us", aim=aim)


def _size(state: State) -> Row:
    return Row(what="state that lasts", ours=f"{len(json.dumps(state.learned.as_json()))} bytes", aim="<= 2048 bytes")


def _replica(number: int, now: float) -> Replica:
    phase = number * SCRAPE / REPLICAS
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
