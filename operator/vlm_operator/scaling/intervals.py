"""What lies between two samples of one replica: the work that came in, and what that teaches about capacities.

A sample that is missing makes an interval longer; it never becomes 0. Arrivals are what was done plus what piles up:
prompt tokens done and those of requests that newly wait, images prepared and those that newly wait for the front end.
"""

from dataclasses import replace

from vlm_operator.scaling.capacity import SOME_SECONDS, lane_capacity, workers_of
from vlm_operator.scaling.policy import Policy
from vlm_operator.scaling.reading import judged
from vlm_operator.scaling.signals import Quality, Replica, Sample
from vlm_operator.scaling.state import STARTS_KEPT, Learned, Mix, Seen

SHORTEST_SCRAPES = 0.2
"""Shorter intervals are waited out."""
FIRST_SCRAPES = 3.0
"""A replica that got ready not longer ago began at 0."""
MOST_TOKENS_PER_SECOND = 1e7
"""Of one replica. More is a fault of the counter."""
ABOVE_SHARE, ABOVE_WEIGHT = 1.25, 0.25
"""An interval faster than the capacity corrects it, with less weight and by that much at most."""


class Ledger:
    """What intervals have taught, while one look at a deployment adds to it. Nothing outside keeps it."""

    __slots__ = ("learned", "learning", "mix", "policy", "replicas")

    def __init__(self, policy: Policy, learned: Learned, mix: Mix, *, learning: bool, replicas: int) -> None:
        self.policy, self.learned, self.mix, self.learning = policy, learned, mix, learning
        self.replicas = max(1, replicas)

    def count(self, replica: Replica, sample: Sample, known: Seen | None) -> Seen:
        """Take in a newer sample of a replica."""
        fine, flaws = judged(sample)
        if known is None and self.learning:
            self._learn_start(replica)
        before = known.sample if known is not None else _beginning(replica, fine, self.policy.scrape_seconds)
        if before is None:
            return Seen(sample=fine, flaws=(*flaws, ("counters", Quality.FIRST_INTERVAL)))
        if _went_back(before, fine):
            return _not_counted(known, fine, (*flaws, ("counters", Quality.RESET)))
        if fine.prompt_tokens is None or before.prompt_tokens is None or fine.waiting is None or before.waiting is None:
            return _not_counted(known, fine, flaws)
        seconds, tokens = fine.time - before.time, fine.prompt_tokens - before.prompt_tokens
        if tokens > MOST_TOKENS_PER_SECOND * seconds:
            return _not_counted(known, fine, (*flaws, ("prompt_tokens", Quality.IMPOSSIBLE)))
        images = _more(before.images, fine.images)
        self._learn_mix(before, fine, seconds, tokens, images)
        rise = fine.waiting - before.waiting
        front, front_before = front_end_of(fine), front_end_of(before)
        image_rate = None
        if front is not None and front_before is not None:
            rise += front - front_before
            if images is not None:
                image_rate = (images + (front - front_before) * self.mix.images_per_request) / seconds
                if self.learning:
                    self._learn_front_end(seconds, images, front, front_before)
        if self.learning:
            self._learn_lane(before, fine, seconds, tokens)
        lane_rate = (tokens + rise * self.mix.tokens_per_request) / seconds
        return Seen(sample=fine, flaws=flaws, lane_rate=lane_rate, image_rate=image_rate)

    def _learn_start(self, replica: Replica) -> None:
        ready = replica.ready_at
        if ready is not None and ready > self.learned.until and ready >= replica.created_at:
            starts = (*self.learned.starts, round(ready - replica.created_at))[-STARTS_KEPT:]
            self.learned = replace(self.learned, starts=starts)

    def _learn_mix(self, before: Sample, now: Sample, seconds: float, tokens: float, images: float | None) -> None:
        mix = self.mix
        keep = max(0.0, 1 - self.policy.tuning.mix_forget * seconds / self.policy.scrape_seconds)
        begun = _more(before.first_tokens, now.first_tokens)
        ended = _more(before.finished, now.finished)
        if begun is None:
            tokens = begun = 0.0
        entered = None
        if ended is not None and images is not None and now.running is not None and before.running is not None:
            held, held_before = now.running + (now.waiting or 0), before.running + (before.waiting or 0)
            entered = max(0.0, ended + held - held_before)
        if entered is None:
            images = entered = 0.0
        self.mix = Mix(
            tokens=mix.tokens * keep + tokens,
            begun=mix.begun * keep + begun,
            images=mix.images * keep + (images or 0.0),
            entered=mix.entered * keep + entered,
        )

    def _learn_lane(self, before: Sample, now: Sample, seconds: float, tokens: float) -> None:
        """From times in which requests waited for nothing but the lane, and from any that beat the figure so far."""
        tuning, slots = self.policy.tuning, self.policy.declared.slots
        capacity, rate = lane_capacity(self.policy, self.learned), tokens / seconds
        waited = min(now.waiting or 0.0, before.waiting or 0.0) >= tuning.saturated_waiting
        room = now.running is not None and now.running < 0.9 * slots and (now.kv_usage or 0.0) < tuning.kv_share
        if rate > capacity:
            weight, rate = ABOVE_WEIGHT, min(rate, ABOVE_SHARE * capacity)
        elif waited and room:
            weight = 1.0
        else:
            return
        lane = self.learned.lane.plus(weight * rate * seconds, weight * seconds, keep=tuning.capacity_forget)
        self.learned = replace(self.learned, lane=lane)

    def _learn_front_end(self, seconds: float, images: float, front: float, before: float) -> None:
        """Where few are in the front end, each has a worker to itself, so that their number times the time is work time."""
        learned, tuning = self.learned, self.policy.tuning
        waiting = workers_of(self.policy, learned).count + 2
        if front >= waiting and before >= waiting:
            busy = learned.front_end_busy.plus(images, seconds, keep=tuning.capacity_forget)
            self.learned = learned = replace(learned, front_end_busy=busy)
        if front + before <= 2 or learned.front_end.seconds < SOME_SECONDS:
            keep = 1 - tuning.mix_forget * min(1.0, seconds / self.policy.scrape_seconds / self.replicas)
            spent = (front + before) / 2 * seconds
            self.learned = replace(learned, front_end=learned.front_end.plus(images, spent, keep=keep))


def front_end_of(sample: Sample) -> float | None:
    """Requests that are in the front end, on their way to the engine; None: not known."""
    if sample.in_flight is None or sample.running is None or sample.waiting is None:
        return None
    return max(0.0, sample.in_flight - sample.running - sample.waiting)


def _beginning(replica: Replica, first: Sample, scrape_seconds: float) -> Sample | None:
    """A replica that has just got ready began at 0 then; of any other the first sample tells nothing about rates."""
    ready = replica.ready_at
    if ready is None or not SHORTEST_SCRAPES * scrape_seconds <= first.time - ready <= FIRST_SCRAPES * scrape_seconds:
        return None
    return Sample(
        time=ready, running=0, waiting=0, in_flight=0, kv_usage=0, prompt_tokens=0, first_tokens=0, finished=0, images=0
    )


def _went_back(before: Sample, now: Sample) -> bool:
    """Whether a counter did, which only a new start of the engine explains."""
    pairs = ((before.prompt_tokens, now.prompt_tokens), (before.images, now.images))
    return any(old is not None and new is not None and new < old for old, new in pairs)


def _not_counted(known: Seen | None, sample: Sample, flaws: tuple[tuple[str, Quality], ...]) -> Seen:
    """The rates stay as they were: what is not known is not 0."""
    if known is None:
        return Seen(sample=sample, flaws=flaws)
    return Seen(sample=sample, flaws=flaws, lane_rate=known.lane_rate, image_rate=known.image_rate)


def _more(before: float | None, now: float | None) -> float | None:
    return None if before is None or now is None else max(0.0, now - before)
