"""Deployments to decide on: replicas that work off a given load, read every fifteen seconds, and time that is stepped."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from vlm_operator.scaling.decide import decide
from vlm_operator.scaling.decision import Decision
from vlm_operator.scaling.from_spec import BY_WORK, HPA
from vlm_operator.scaling.policy import Behavior, Declared, Policy, Signal, Target
from vlm_operator.scaling.signals import Gauge, Phase, Replica, Sample, Signals
from vlm_operator.scaling.state import NEW, State

NOON = 1_800_000_000.0
"""A multiple of a scrape."""
SCRAPE, TICK = 15.0, 5.0
TOKENS = 800.0
"""Per request."""


def by_work(**given: Any) -> Policy:
    """A work-based policy for a lane of 4000 tokens/s and a start of 20 s."""
    given.setdefault("declared", Declared(start_seconds=20))
    return Policy(**{"max_replicas": 40, "behavior": BY_WORK, **given})


def by_targets(*targets: Target, behavior: Behavior = HPA, **given: Any) -> Policy:
    """The arithmetic of the Horizontal Pod Autoscaler."""
    return Policy(**{"max_replicas": 1000, **given}, work_based=False, targets=targets, behavior=behavior)


def queue(value: float) -> Target:
    """A target on waiting requests."""
    return Target(signal=Signal.QUEUE_DEPTH, value=value)


@dataclass
class Fleet:
    """Replicas that share a load evenly. Each is read at multiples of the scrape, unless it is silent."""

    size: int
    since: float = NOON - 3600
    """When they got ready; so their first sample tells nothing."""
    waiting: int = 0
    front_end: int = 0
    images_per_request: float = 0.0
    silent: frozenset[int] = frozenset()
    spoilt: dict[str, Any] = field(default_factory=dict)
    """Figures that samples give instead of the true ones."""
    gpu: float | None = None
    done: dict[int, float] = field(default_factory=dict)
    """Prompt tokens worked off so far."""
    samples: dict[int, Sample] = field(default_factory=dict)
    read_at: float = NOON - SCRAPE

    def seen(self, now: float, load: float) -> Signals:
        """What is seen at `now`, after `load` tokens/s since the last scrape."""
        while self.read_at + SCRAPE <= now:
            self.read_at += SCRAPE
            for number in range(self.size):
                self.done[number] = self.done.get(number, 1e6) + load / self.size * SCRAPE
                if number not in self.silent:
                    self.samples[number] = self._sample(self.read_at, self.done[number], load / self.size)
        replicas = tuple(self._replica(number) for number in range(self.size))
        return Signals(size=self.size, replicas=replicas)

    def _replica(self, number: int) -> Replica:
        return Replica(
            uid=f"r{number}",
            phase=Phase.READY,
            created_at=self.since - 30,
            ready_at=self.since,
            sample=self.samples.get(number),
            gpu=Gauge(time=self.read_at, value=self.gpu) if self.gpu is not None else None,
        )

    def _sample(self, time: float, tokens: float, rate: float) -> Sample:
        running = 0 if rate == 0 else max(1, round(rate / TOKENS))
        requests = tokens / TOKENS
        sample = Sample(
            time=time,
            running=running,
            waiting=self.waiting,
            in_flight=running + self.waiting + self.front_end,
            kv_usage=min(1.0, running / 200),
            prompt_tokens=tokens,
            first_tokens=requests,
            finished=requests,
            images=requests * self.images_per_request,
        )
        return replace(sample, **self.spoilt)


def steady(_: float) -> float:
    """A load of two replicas at the declared capacity."""
    return 8000.0


def ticks(start: float, seconds: float, step: float = TICK) -> Iterator[float]:
    """Times of decisions."""
    return (start + index * step for index in range(int(seconds / step)))


def run(
    policy: Policy,
    fleet: Fleet,
    *,
    seconds: float,
    load: Callable[[float], float] = steady,
    state: State = NEW,
    start: float = NOON,
    follow: bool = False,
) -> tuple[list[Decision], State]:
    """Decisions over some time; with `follow` the fleet becomes what was decided at once."""
    decisions = []
    for now in ticks(start, seconds):
        decision, state = decide(policy, state, fleet.seen(now, load(now)), now)
        decisions.append(decision)
        if follow:
            fleet.size = decision.replicas
    return decisions, state


def replicas(*figures: Any, time: float = NOON, **same: Any) -> tuple[Replica, ...]:
    """Ready replicas with one sample each: waiting requests, or None for no sample."""
    return tuple(
        Replica(
            uid=f"r{number}",
            phase=Phase.READY,
            created_at=NOON - 4000,
            ready_at=NOON - 3900,
            sample=None if waiting is None else Sample(time=time, waiting=waiting, **{"running": 1, **same}),
        )
        for number, waiting in enumerate(figures)
    )


def starting(count: int) -> tuple[Replica, ...]:
    """Replicas that do not serve yet."""
    return tuple(Replica(uid=f"s{n}", phase=Phase.STARTING, created_at=NOON - 10) for n in range(count))


def sizes(decisions: Iterable[Decision]) -> list[int]:
    """The sizes decided."""
    return [decision.replicas for decision in decisions]
