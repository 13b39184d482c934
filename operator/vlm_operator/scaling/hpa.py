"""The arithmetic of the Horizontal Pod Autoscaler on the given targets, with its rules on pods that say nothing.

Source: Kubernetes, "Horizontal Pod Autoscaling" and `pkg/controller/podautoscaler/replica_calculator.go`. Values are
whole thousandths there, and so they are here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from vlm_operator.scaling.decision import Candidate
from vlm_operator.scaling.policy import Policy, Signal, Target
from vlm_operator.scaling.reading import MOST_COUNTED, gauge_quality
from vlm_operator.scaling.signals import Gauge, Phase, Quality, Replica, Signals
from vlm_operator.scaling.state import Seen

_MILLI = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Read:
    """One figure of every replica that counts for a target, in thousandths."""

    values: tuple[int, ...]
    """Of ready replicas."""
    missing: int
    """Ready ones of which it is not known."""
    unready: int
    """Those that are still starting."""
    quality: Quality
    """The worst there is among the missing."""


def candidates_of(policy: Policy, signals: Signals, seen: Mapping[str, Seen], now: float) -> tuple[Candidate, ...]:
    """What each target asks for."""
    stale_after = policy.tuning.stale_scrapes * policy.scrape_seconds
    found = []
    for target in policy.targets:
        if target.signal is Signal.CUSTOM:
            gauge = signals.custom.get(target.metric)
            found.append(_of_total(policy, target, gauge, signals.size, now=now, stale_after=stale_after))
        else:
            read = _read(target.signal, signals.replicas, seen, now=now, stale_after=stale_after)
            found.append(_of_replicas(policy, target, read, signals.size))
    return tuple(found)


def largest(candidates: tuple[Candidate, ...], size: int) -> tuple[int, str] | None:
    """The most that a target asks for, and which; None where none of them says anything.

    While one of them says nothing, the others may only raise the size.
    """
    said = [(one.replicas, one.name) for one in candidates if one.replicas is not None]
    if not said:
        return None
    replicas, name = max(said, key=lambda pair: pair[0])
    return (size, name) if replicas < size and len(said) < len(candidates) else (replicas, name)


def within_tolerance(policy: Policy, ratio: float) -> bool:
    """Whether a ratio of use to target is near enough to 1 that nothing is to change."""
    return 1 - policy.behavior.down.tolerance <= ratio <= 1 + policy.behavior.up.tolerance


def _of_total(
    policy: Policy, target: Target, gauge: Gauge | None, size: int, *, now: float, stale_after: float
) -> Candidate:
    """A metric of the whole deployment, as an external one with averageValue."""
    quality = gauge_quality(gauge, now=now, stale_after=stale_after, most=MOST_COUNTED)
    if quality is not Quality.FINE or gauge is None or gauge.value is None:
        return Candidate(name=target.name, value=None, target=target.value, replicas=None, quality=quality)
    use, wanted = _milli(gauge.value), _milli(target.value)
    keep = size > 0 and within_tolerance(policy, use / (wanted * size))
    return Candidate(
        name=target.name, value=gauge.value, target=target.value, replicas=size if keep else ceil(use / wanted)
    )


def _of_replicas(policy: Policy, target: Target, read: Read, size: int) -> Candidate:
    """The mean over the replicas, with the silent ones taken so that they damp the change."""
    count = len(read.values)
    if count == 0:
        return Candidate(name=target.name, value=None, target=target.value, replicas=None, quality=read.quality)
    mean = sum(read.values) // count
    replicas = _proposed(policy, read, _milli(target.value), size)
    quality = Quality.PARTIAL if read.missing else Quality.FINE
    value = mean / _MILLI
    return Candidate(name=target.name, value=value, target=target.value, replicas=replicas, quality=quality)


def _proposed(policy: Policy, read: Read, target: int, size: int) -> int:
    count, total = len(read.values), sum(read.values)
    ratio = total // count / target
    up_with_unready = read.unready > 0 and _reference(policy, ratio, count) > 1
    if not up_with_unready and not read.missing:
        return size if within_tolerance(policy, _reference(policy, ratio, count)) else ceil(ratio * count)
    first = _reference(policy, ratio, count)
    filled = total + (target * read.missing if first < 1 else 0)
    count += read.missing + (read.unready if up_with_unready else 0)
    ratio = filled // count / target
    damped, replicas = _reference(policy, ratio, count), ceil(ratio * count)
    turned = (first < 1 < damped) or (damped < 1 < first)
    against = (damped < 1 and replicas > size) or (damped > 1 and replicas < size)
    return size if turned or against or within_tolerance(policy, damped) else replicas


def _reference(policy: Policy, ratio: float, count: int) -> float:
    """The ratio for the replicas that carry the load: a pool in rotation, which comes on top of them, thins it out."""
    pool = 0 if policy.pool.standby or policy.work_based else policy.pool.size
    return ratio * count / max(1, count - pool)


def _read(
    signal: Signal, replicas: tuple[Replica, ...], seen: Mapping[str, Seen], *, now: float, stale_after: float
) -> Read:
    values, missing, unready, quality = [], 0, 0, Quality.MISSING
    for replica in replicas:
        if replica.phase is Phase.STARTING:
            unready += 1
        elif replica.phase is Phase.READY:
            value, found = _figure(signal, replica, seen.get(replica.uid), now=now, stale_after=stale_after)
            if value is None:
                missing, quality = missing + 1, found
            else:
                values.append(_milli(value))
    return Read(values=tuple(values), missing=missing, unready=unready, quality=quality)


def _figure(
    signal: Signal, replica: Replica, known: Seen | None, *, now: float, stale_after: float
) -> tuple[float | None, Quality]:
    if signal is Signal.GPU_UTILIZATION:
        quality = gauge_quality(replica.gpu, now=now, stale_after=stale_after, most=1.0)
        fine = replica.gpu is not None and quality is Quality.FINE
        return (replica.gpu.value if fine and replica.gpu is not None else None), quality
    if known is None:
        return None, Quality.MISSING
    if now - known.sample.time > stale_after:
        return None, Quality.STALE
    value = {
        Signal.QUEUE_DEPTH: known.sample.waiting,
        Signal.RUNNING_REQUESTS: known.sample.running,
        Signal.KV_CACHE_UTILIZATION: known.sample.kv_usage,
    }[signal]
    return value, Quality.FINE if value is not None else Quality.MISSING


def _milli(value: float) -> int:
    """Thousandths, a part of one rounded up as a Quantity does."""
    return ceil(round(value * _MILLI, 6))
