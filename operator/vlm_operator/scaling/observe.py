"""One look at the replicas: new samples go into windows and learned figures, and the newest figures are added up."""

from collections import Counter
from dataclasses import replace
from functools import partial
from math import inf, isfinite

from vlm_operator.scaling import feedback
from vlm_operator.scaling.able import Able
from vlm_operator.scaling.bins import bin_of, extended
from vlm_operator.scaling.capacity import able
from vlm_operator.scaling.decision import Flaw
from vlm_operator.scaling.intervals import SHORTEST_SCRAPES, Ledger, front_end_of
from vlm_operator.scaling.policy import Policy
from vlm_operator.scaling.reading import HELD, MOST_REQUESTS, WHOLE, judged, quality_of
from vlm_operator.scaling.signals import Phase, Quality, Replica, Signals
from vlm_operator.scaling.state import Look, Seen, State, Totals, Windows

NEEDED = frozenset({"running", "waiting", "kv_usage", "prompt_tokens", "counters"})
NEEDED_WITH_IMAGES = NEEDED | {"in_flight", "images"}
"""Figures without which an estimate is too low: of the front end only where it has work."""
FRONT_END = "front_end"
Looked = list[tuple[Replica, Seen | None]]
_GOING = (Phase.READY, Phase.DRAINING)


def observe(policy: Policy, state: State, signals: Signals, now: float) -> tuple[State, Totals]:
    """Take in what is new, and add up what there is."""
    windows, learned = state.windows, state.learned
    look, learning = windows.look, now > learned.until
    if look is not None and _holds(policy, look, signals, now):
        return _closed(policy, state, look, now, learning=learning), look.totals
    if learned.since is None:
        learned = replace(learned, since=now)
    can, mix = able(policy, learned), windows.mix
    ledger = Ledger(policy, learned, can, mix, learning=learning, count=len(signals.replicas))
    looked = _counted(policy, ledger, windows, signals, now)
    if ledger.counted:
        mix = ledger.mix()
        if learning:
            learned = ledger.learned(learned, until=now)
            can = able(policy, learned)
    totals = _totals(policy, looked, can, now)
    seen = {replica.uid: known for replica, known in looked if known is not None} | _waiting(signals)
    look = Look(replicas=signals.replicas, looked=tuple(looked), totals=totals)
    since = now if windows.since is None else windows.since
    state = State(learned=learned, windows=replace(windows, since=since, seen=seen, mix=mix, look=look))
    return _closed(policy, state, look, now, learning=learning), totals


def with_held(totals: Totals, held: float) -> Totals:
    """With the requests that wait before the replicas."""
    if held == 0:
        return totals
    quality = quality_of(held, MOST_REQUESTS)
    if quality is Quality.FINE:
        return replace(totals, held=held)
    flaw = Flaw(signal=HELD, quality=quality, count=0)
    return replace(totals, incomplete=totals.incomplete + 1, flaws=(*totals.flaws, flaw))


def _holds(policy: Policy, look: Look, signals: Signals, now: float) -> bool:
    """Whether all was read and counted at a look, is the same now, and is new enough still."""
    if look.replicas is not signals.replicas or len(look.totals.fresh) < len(signals.replicas):
        return False
    oldest = now - policy.tuning.stale_scrapes * policy.scrape_seconds
    for replica, known in look.looked:
        sample = replica.sample
        if known is None or sample is None or known.sample.time != sample.time or sample.time <= oldest:
            return False
    return True


def _counted(policy: Policy, ledger: Ledger, windows: Windows, signals: Signals, now: float) -> Looked:
    """What is known of each replica that carries requests."""
    shortest, future = SHORTEST_SCRAPES * policy.scrape_seconds, now + policy.scrape_seconds
    before, looked = windows.seen, []
    for replica in signals.replicas:
        if replica.phase not in _GOING:
            continue
        sample, known = replica.sample, before.get(replica.uid)
        if sample is not None:
            newer = known is None or sample.time - known.sample.time >= shortest
            if newer and sample.time <= future:
                known = ledger.count(replica, sample, known)
        looked.append((replica, known))
    return looked


def _waiting(signals: Signals) -> dict[str, Seen]:
    """Those on standby: what they did so far, so that what they do once they are promoted is known from the first sample on."""
    return {
        replica.uid: Seen(sample=(fine := judged(replica.sample)[0]), front_end=front_end_of(fine))
        for replica in signals.replicas
        if replica.phase is Phase.STANDBY and replica.sample is not None
    }


def _totals(policy: Policy, looked: Looked, can: Able, now: float) -> Totals:
    stale_after = policy.tuning.stale_scrapes * policy.scrape_seconds
    oldest, ready_phase = now - stale_after, Phase.READY
    flaws: Counter[tuple[str, Quality]] = Counter()
    needed = NEEDED_WITH_IMAGES if can.images > 0 else NEEDED
    fresh, ready, unread, incomplete, newest = [], 0, 0, 0, -inf
    carrying, gaps = 0, Counter[str]()
    running = waiting = front_end = kv_caches = 0.0
    for replica, known in looked:
        serves = replica.phase is ready_phase
        if serves:
            ready += 1
        time = (replica.ready_at or replica.created_at) if known is None else known.sample.time
        if known is not None and time > newest:
            newest = time
        if known is None or time < oldest:
            if serves and time < oldest:
                unread += 1
                flaws[WHOLE, _why_unread(replica, known, now + policy.scrape_seconds)] += 1
            continue
        sample = known.sample
        carrying += 1
        if known.flaws:
            gaps.update(name for name, _ in known.flaws)
        if known.front_end is None:
            gaps[FRONT_END] += 1
        running += sample.running or 0.0
        waiting += sample.waiting or 0.0
        front_end += known.front_end or 0.0
        kv_caches += sample.kv_usage or 0.0
        if serves:
            fresh.append(known)
            if known.flaws:
                flaws.update(known.flaws)
                incomplete += any(name in needed for name, _ in known.flaws)
    filled = partial(_filled, carrying=carrying, unread=unread, gaps=gaps)
    return Totals(
        able=can,
        ready=ready,
        unread=unread,
        incomplete=unread + incomplete,
        newest=None if newest == -inf else newest,
        running=filled(running, "running"),
        waiting=filled(waiting, "waiting"),
        front_end=filled(front_end, FRONT_END),
        kv_caches=filled(kv_caches, "kv_usage"),
        flaws=tuple(Flaw(signal=name, quality=quality, count=count) for (name, quality), count in flaws.items()),
        fresh=tuple(fresh),
    )


def _filled(total: float, name: str, *, carrying: int, unread: int, gaps: Counter[str]) -> float:
    """A sum over all replicas: those of which it is not known are taken for the mean of the others.

    None of them counts as idle: an engine that does not answer may be the one with the most to do.
    """
    known = carrying - gaps[name]
    return total * (carrying + unread) / known if known else total


def _why_unread(replica: Replica, known: Seen | None, future: float) -> Quality:
    sample = replica.sample
    if sample is None:
        return Quality.MISSING
    if not isfinite(sample.time) or sample.time > future:
        return Quality.IMPOSSIBLE
    return Quality.STALE if known is not None else Quality.MISSING


def _closed(policy: Policy, state: State, look: Look, now: float, *, learning: bool) -> State:
    """Where a bin is over: the load of the fleet is what its replicas had at their last samples that are new enough."""
    windows, learned, totals = state.windows, state.learned, look.totals
    if bin_of(policy, now) == windows.bin:
        return state
    oldest = now - policy.tuning.stale_scrapes * policy.scrape_seconds
    # Of one in its first interval nothing is known yet. It is left out: what it carries was with the others until now.
    counted = (known for _, known in look.looked if known is not None and known.lane_rate is not None)
    fresh = [known for known in counted if known.sample.time >= oldest]
    tokens = _of_all([known.lane_rate for known in fresh], totals.unread)
    if tokens is None:
        return state
    number, can = bin_of(policy, now), totals.able
    count = 1 if windows.bin is None else max(1, number - windows.bin)
    further = partial(extended, policy=policy, horizon_seconds=can.horizon_seconds, count=count)
    lane = further(windows.lane, capacity=can.lane, rate=tokens)
    images = _of_all([known.image_rate for known in fresh], totals.unread)
    front_end = further(windows.front_end, capacity=can.images, rate=images or 0.0)
    mix = replace(windows.mix, unevenness=feedback.unevenness(policy, windows.mix.unevenness, totals.fresh))
    late = feedback.late_shares(policy, can, lane, mix, totals.fresh)
    if late is not None and learning:
        gains = feedback.moved(policy, feedback.gains_of(policy, learned), late, lane)
        learned = replace(learned, gains=gains, until=now)
    windows = replace(windows, bin=number, mix=mix, lane=lane, front_end=front_end, late=late)
    return State(learned=learned, windows=windows)


def _of_all(rates: list[float | None], unread: int) -> float | None:
    """The same of rates that may not be known; None where none of them is."""
    known = [rate for rate in rates if rate is not None]
    return sum(known) * (len(rates) + unread) / len(known) if known else None
