"""The load of the whole deployment over time, in bins of one scrape, and how far it tends to rise.

Bins hold work per second, not replicas, so that a capacity that is learned later holds for all of them.
"""

from math import ceil, dist, sqrt

from vlm_operator.scaling.policy import Policy
from vlm_operator.scaling.state import History, Increment
from vlm_operator.scaling.tuning import Tuning

FEWEST_FOR_DISPERSION = 5
PRIOR_HORIZON_SECONDS = 90.0


def bin_of(policy: Policy, time: float) -> int:
    """The number of the bin in which a time lies."""
    return int(time // policy.scrape_seconds)


def level_bins(policy: Policy) -> int:
    """Bins over which the level is averaged."""
    return max(1, round(policy.tuning.level_seconds / policy.scrape_seconds))


def history_bins(policy: Policy) -> int:
    """Bins that are kept."""
    return max(1, int(policy.tuning.history_seconds / policy.scrape_seconds))


def extended(
    history: History, *, policy: Policy, horizon_seconds: float, capacity: float, rate: float, count: int
) -> History:
    """With `count` further bins. Those in which nothing could be read get the mean over the gap, which counters tell."""
    kept, horizon = history_bins(policy), max(1, ceil(horizon_seconds / policy.scrape_seconds))
    rates, increments = history.rates, history.increments
    for _ in range(min(count, kept)):
        rates = (*rates, max(0.0, rate))[-kept:]
        if len(rates) >= horizon + level_bins(policy):
            increments = (*increments, _increment(rates, horizon, policy))[-kept:]
    return History(
        rates=rates,
        increments=increments,
        growth=_growth(increments, capacity, horizon_seconds, policy.tuning),
        dispersion=_dispersion(rates, policy.scrape_seconds),
    )


def level(history: History, policy: Policy) -> float:
    """Work per second that comes in now."""
    newest = history.rates[-level_bins(policy) :]
    return sum(newest) / len(newest) if newest else 0.0


def _increment(rates: tuple[float, ...], horizon: int, policy: Policy) -> Increment:
    """The capacity that would have kept waits short in any window after the level, up to the horizon, and the level.

    A window of i bins needs its work over its time and the tolerated wait. As the first window is a bin long, this holds
    bursts as well as growth, and does not vanish where replicas start at once.
    """
    bins, seconds, wait = level_bins(policy), policy.scrape_seconds, policy.tuning.slo_wait_seconds
    start = len(rates) - horizon
    before = sum(rates[start - bins : start]) / bins
    most = work = 0.0
    for number, rate in enumerate(rates[start:], start=1):
        work += rate * seconds
        # This runs for every bin up to the horizon, at every scrape; max() would double the time.
        if (needed := work / (number * seconds + wait)) > most:
            most = needed
    rise = most - before
    return Increment(rise=rise, level=before, per_root=rise / sqrt(before) if before > 0 else 0.0)


def _growth(increments: tuple[Increment, ...], capacity: float, horizon_seconds: float, tuning: Tuning) -> float:
    """A high quantile of the increments, each in replicas and over the square root of its level.

    Over the square root they are alike from two to sixty replicas; a few assumed ones stand in for a history.
    """
    if capacity <= 0:
        return 0.0
    prior = tuning.envelope_prior * sqrt(horizon_seconds / PRIOR_HORIZON_SECONDS)
    large, small = 1 / sqrt(capacity), 1 / capacity
    known = [per_root * large if level > capacity else rise * small for rise, level, per_root in increments]
    known += [prior] * tuning.envelope_prior_count
    known.sort()
    return max(0.0, known[min(len(known) - 1, int(tuning.envelope_quantile * len(known)))])


def _dispersion(rates: tuple[float, ...], seconds: float) -> float:
    """Half the mean square of the steps over the mean, in work: 1 + cv^2 lumps for arrivals at random."""
    total = sum(rates)
    if total <= 0 or len(rates) < FEWEST_FOR_DISPERSION:
        return 0.0
    return seconds * dist(rates[1:], rates[:-1]) ** 2 / 2 / total
