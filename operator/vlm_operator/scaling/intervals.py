"""What lies between two samples of one replica: the work that came in, and what that teaches about capacities.

A sample that is missing makes an interval longer; it never becomes 0. Arrivals are what was done plus what piles up:
prompt tokens done and those of requests that newly wait, images prepared and those that newly wait for the front end.
"""

from dataclasses import replace

from vlm_operator.scaling.able import Able
from vlm_operator.scaling.capacity import SOME_SECONDS
from vlm_operator.scaling.policy import Policy
from vlm_operator.scaling.reading import Flaws, judged
from vlm_operator.scaling.signals import Quality, Replica, Sample
from vlm_operator.scaling.state import STARTS_KEPT, Learned, Mix, Rate, Seen

SHORTEST_SCRAPES = 0.2
"""Shorter intervals are waited out."""
FIRST_SCRAPES = 3.0
"""A replica that got ready not longer ago began at 0."""
MOST_START_SECONDS = 3600.0
"""A replica that took longer waited for a GPU, and tells nothing of how long the next one takes."""
MOST_TOKENS_PER_SECOND = 1e7
"""Of one replica. More is a fault of the counter."""
ABOVE_SHARE, ABOVE_WEIGHT = 1.25, 0.25
"""An interval faster than the capacity corrects it, with less weight and by that much at most."""
FREE_SLOTS = 0.9
"""Of the slots: while fewer are taken, a request that waits does not wait for one."""
FULL_FRONT_END, FEW_IN_FRONT_END = 2, 2
"""Requests beyond the workers with which all of these are busy, and at both ends together with which none waits."""
NOTHING_DONE = Sample(
    time=0, running=0, waiting=0, in_flight=0, kv_usage=0, prompt_tokens=0, first_tokens=0, finished=0, images=0
)
"""An engine that has just started."""


class Ledger:
    """What intervals teach, added up during one look at a deployment in plain numbers, because there are many of them.

    Capacities are those from before the look, so that the order of the replicas hardly matters.
    """

    __slots__ = (
        *("able", "counted", "learning", "policy", "started_until", "starts"),
        *("begun", "entered", "images", "keep_mix", "tokens", "unevenness"),
        *(
            "busy_images",
            "busy_seconds",
            "keep_single",
            "lane_seconds",
            "lane_tokens",
            "single_images",
            "single_seconds",
        ),
    )

    def __init__(self, policy: Policy, learned: Learned, able: Able, mix: Mix, *, learning: bool, count: int) -> None:
        self.policy, self.able, self.learning = policy, able, learning
        self.counted = 0
        self.started_until, self.starts = learned.started_until, learned.starts
        self.keep_mix = policy.tuning.mix_forget / policy.scrape_seconds
        self.keep_single = self.keep_mix / max(1, count)
        self.lane_tokens, self.lane_seconds = learned.lane.work, learned.lane.seconds
        self.single_images, self.single_seconds = learned.front_end.work, learned.front_end.seconds
        self.busy_images, self.busy_seconds = learned.front_end_busy.work, learned.front_end_busy.seconds
        self.tokens, self.begun, self.images, self.entered = mix.tokens, mix.begun, mix.images, mix.entered
        self.unevenness = mix.unevenness

    def mix(self) -> Mix:
        """What requests are like by now."""
        return Mix(
            tokens=self.tokens,
            begun=self.begun,
            images=self.images,
            entered=self.entered,
            unevenness=self.unevenness,
        )

    def learned(self, before: Learned, *, until: float) -> Learned:
        """What was learned, up to a time."""
        return Learned(
            since=before.since,
            until=until,
            gains=before.gains,
            lane=Rate(work=self.lane_tokens, seconds=self.lane_seconds),
            front_end=Rate(work=self.single_images, seconds=self.single_seconds),
            front_end_busy=Rate(work=self.busy_images, seconds=self.busy_seconds),
            starts=self.starts,
            started_until=self.started_until,
        )

    def count(self, replica: Replica, sample: Sample, known: Seen | None) -> Seen:
        """Take in a newer sample of a replica."""
        self.counted += 1
        fine, flaws = judged(sample)
        front = front_end_of(fine)
        if known is None:
            self._learn_start(replica)
            known = _beginning(replica, fine, self.policy.scrape_seconds)
            if known is None:
                return Seen(sample=fine, flaws=(*flaws, ("counters", Quality.FIRST_INTERVAL)), front_end=front)
        before = known.sample
        if fine.prompt_tokens is None or before.prompt_tokens is None or fine.waiting is None or before.waiting is None:
            return _not_counted(known, fine, flaws, front)
        images = None if fine.images is None or before.images is None else fine.images - before.images
        if fine.prompt_tokens < before.prompt_tokens or (images is not None and images < 0):
            return _not_counted(known, fine, (*flaws, ("counters", Quality.RESET)), front)
        seconds, tokens = fine.time - before.time, fine.prompt_tokens - before.prompt_tokens
        if tokens > MOST_TOKENS_PER_SECOND * seconds:
            return _not_counted(known, fine, (*flaws, ("prompt_tokens", Quality.IMPOSSIBLE)), front)
        self._count_mix(before, fine, seconds, tokens, images)
        rise, image_rate = fine.waiting - before.waiting, None
        if front is not None and known.front_end is not None:
            rise += front - known.front_end
            if images is not None:
                per_request = self.images / self.entered if self.entered > 1 else self.images
                image_rate = (images + (front - known.front_end) * per_request) / seconds
                if self.learning:
                    self._learn_front_end(seconds, images, front, known.front_end)
        if self.learning:
            self._learn_lane(before, fine, seconds, tokens)
        per_request = self.tokens / self.begun if self.begun > 1 else self.tokens
        lane_rate = (tokens + rise * per_request) / seconds
        return Seen(sample=fine, flaws=flaws, front_end=front, lane_rate=lane_rate, image_rate=image_rate)

    def _learn_start(self, replica: Replica) -> None:
        ready = replica.ready_at
        if ready is not None and ready > self.started_until and 0 <= ready - replica.created_at <= MOST_START_SECONDS:
            self.starts = (*self.starts, round(ready - replica.created_at))[-STARTS_KEPT:]
            self.started_until = ready

    def _count_mix(self, before: Sample, now: Sample, seconds: float, tokens: float, images: float | None) -> None:
        keep = max(0.0, 1 - self.keep_mix * seconds)
        if now.first_tokens is not None and before.first_tokens is not None:
            self.tokens = self.tokens * keep + tokens
            self.begun = self.begun * keep + max(0.0, now.first_tokens - before.first_tokens)
        if images is None or now.finished is None or before.finished is None:
            return
        if now.running is not None and before.running is not None:
            held = now.running + (now.waiting or 0.0) - before.running - (before.waiting or 0.0)
            self.images = self.images * keep + images
            self.entered = self.entered * keep + max(0.0, now.finished - before.finished + held)

    def _learn_lane(self, before: Sample, now: Sample, seconds: float, tokens: float) -> None:
        """From times in which requests waited for nothing but the lane, and from any that beat the figure so far."""
        tuning, rate = self.policy.tuning, tokens / seconds
        if rate > self.able.lane:
            weight, rate = ABOVE_WEIGHT, min(rate, ABOVE_SHARE * self.able.lane)
        elif self._waited_for_the_lane(before, now):
            weight = 1.0
        else:
            return
        self.lane_tokens = self.lane_tokens * tuning.capacity_forget + weight * rate * seconds
        self.lane_seconds = self.lane_seconds * tuning.capacity_forget + weight * seconds

    def _waited_for_the_lane(self, before: Sample, now: Sample) -> bool:
        least = self.policy.tuning.saturated_waiting
        if now.waiting is None or now.waiting < least or before.waiting is None or before.waiting < least:
            return False
        slots = now.running is not None and now.running < FREE_SLOTS * self.policy.declared.slots
        return slots and (now.kv_usage is None or now.kv_usage < self.policy.tuning.kv_share)

    def _learn_front_end(self, seconds: float, images: float, front: float, before: float) -> None:
        """Where few are in the front end, each has a worker to itself, so that their number times the time is work time."""
        if min(front, before) >= self.able.workers.count + FULL_FRONT_END:
            keep = self.policy.tuning.capacity_forget
            self.busy_images = self.busy_images * keep + images
            self.busy_seconds = self.busy_seconds * keep + seconds
        if front + before <= FEW_IN_FRONT_END or self.single_seconds < SOME_SECONDS:
            keep = max(0.0, 1 - self.keep_single * seconds)
            self.single_images = self.single_images * keep + images
            self.single_seconds = self.single_seconds * keep + (front + before) / 2 * seconds


def front_end_of(sample: Sample) -> float | None:
    """Requests that are in the front end, on their way to the engine; None: not known."""
    if sample.in_flight is None or sample.running is None or sample.waiting is None:
        return None
    return max(0.0, sample.in_flight - sample.running - sample.waiting)


def _beginning(replica: Replica, first: Sample, scrape_seconds: float) -> Seen | None:
    """A replica that has just got ready began at 0 then; of any other the first sample tells nothing about rates."""
    ready = replica.ready_at
    if ready is None or not SHORTEST_SCRAPES * scrape_seconds <= first.time - ready <= FIRST_SCRAPES * scrape_seconds:
        return None
    return Seen(sample=replace(NOTHING_DONE, time=ready), front_end=0.0)


def _not_counted(known: Seen, sample: Sample, flaws: Flaws, front_end: float | None) -> Seen:
    """The rates stay as they were: what is not known is not 0."""
    return known._replace(sample=sample, flaws=flaws, front_end=front_end)
