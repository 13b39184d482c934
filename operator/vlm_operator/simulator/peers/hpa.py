"""The Horizontal Pod Autoscaler of Kubernetes (autoscaling/v2) on a metric of the pods, and how it carries out any proposal.

Sources: kubernetes/kubernetes `pkg/controller/podautoscaler/{horizontal,replica_calculator}.go`; kubernetes/website
`content/en/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale.md`. The arithmetic is that of
`vlm_operator.scaling.hpa` and `pace`, which the operator itself uses for targets.

A replica that loads weights is a running pod without metrics. To the arithmetic for pod metrics that is a pod whose
metric is missing, not one that is unready: 0 on the way up, and its full target on the way down.
"""

from dataclasses import dataclass
from math import inf

from vlm_operator.scaling import pace
from vlm_operator.scaling.from_spec import HPA
from vlm_operator.scaling.hpa import candidates_of
from vlm_operator.scaling.policy import SHARES, Behavior, Policy, Signal, Target
from vlm_operator.scaling.signals import Gauge, Phase, Replica, Sample, Signals
from vlm_operator.scaling.state import Run, Windows
from vlm_operator.scaling.state import Seen as Known
from vlm_operator.simulator.duty import DutyCycles
from vlm_operator.simulator.peers.settings import SettingsError, require_positive, require_share
from vlm_operator.simulator.view import Seen, View

UNBOUNDED = 1_000_000
"""More replicas than any fleet: bounds are the caller's."""
_TOTAL = "total"


@dataclass(frozen=True, kw_only=True, slots=True)
class HpaSettings:
    """One metric and its target, as an average over the pods.

    The defaults are those of Google's tutorial for vLLM on several hosts: `vllm:num_requests_waiting` with an averageValue
    of 5. It recommends the queue for throughput; so does its guide to autoscaling, which warns that the busy share of a GPU
    does not tell how much it does. The behavior is that of autoscaling/v2.
    """

    signal: Signal = Signal.QUEUE_DEPTH
    target: float = 5.0
    """Requests, or a share from 0 to 1."""
    behavior: Behavior = HPA
    period_seconds: float = 15.0
    """--horizontal-pod-autoscaler-sync-period."""

    def __post_init__(self) -> None:
        require_positive(self, "target", "period_seconds")
        if self.signal is Signal.CUSTOM:
            raise SettingsError(
                "HpaSettings.signal is custom; it must be a figure of the replicas: use Keda for a total"
            )
        if self.signal in SHARES:
            require_share(self, "target")


class Hpa:
    """A HorizontalPodAutoscaler with one pod metric."""

    def __init__(self, settings: HpaSettings | None = None) -> None:
        self._settings = settings or HpaSettings()
        self._policy = _policy(
            Target(signal=self._settings.signal, value=self._settings.target), self._settings.behavior
        )
        self._actuation = Actuation(self._settings.behavior)
        self._duty, self._read_at = DutyCycles(), -inf
        self._shares: dict[int, float] = {}

    @property
    def period_seconds(self) -> float:
        """Time between two decisions."""
        return self._settings.period_seconds

    def desired(self, view: View) -> int:
        """The size wanted now."""
        return self._actuation.size(view, self.proposed(view))

    def proposed(self, view: View) -> int | None:
        """What the metric asks for, before windows and pace; None: no replica has it."""
        there = {one.number for one in view.live}
        read = [one for one in view.scraped if one.number in there]
        if view.scraped_at > self._read_at:
            self._read_at, self._shares = view.scraped_at, self._duty.shares(view.scraped, view.scraped_at)
        replicas = [_replica(one, view.now, self._shares.get(one.number)) for one in read]
        replicas += [_silent(number) for number in range(view.size - len(read))]
        known = {one.uid: Known(sample=one.sample) for one in replicas if one.sample is not None}
        signals = Signals(size=view.size, replicas=tuple(replicas))
        return candidates_of(self._policy, signals, known, view.now)[0].replicas


class Actuation:
    """From proposals to sizes: stabilization windows and scaling policies, with the memory that they need."""

    def __init__(self, behavior: Behavior) -> None:
        self._behavior = behavior
        self._wanted: tuple[Run, ...] = ()
        self._windows = Windows()

    def size(self, view: View, proposed: int | None) -> int:
        """The size for a proposal; without one it stays. The first look counts as a recommendation of what there is."""
        now, size = view.now, view.size
        changes = pace.noticed(self._windows, size=size, now=now)
        self._windows = Windows(changes=changes, size=size, decided_at=now)
        if proposed is None:
            return max(1, size)
        wanted, up, down = (
            max(1, proposed),
            _window(self._behavior.up.window_seconds),
            self._behavior.down.window_seconds,
        )
        runs = self._wanted or (Run(start=now, end=now, value=size),)
        self._wanted = pace.recorded(runs, wanted=wanted, now=now, keep_seconds=max(up, _window(down)))
        steady = pace.stabilized(
            self._wanted, size=size, wanted=wanted, up_seconds=up, down_seconds=_window(down), now=now
        )
        return max(1, pace.paced(self._behavior, changes, size=size, wanted=steady, now=now))


class ExternalMetric:
    """An external metric with an averageValue: the total is divided by the target, whoever of the replicas serves."""

    def __init__(self, target: float, behavior: Behavior) -> None:
        self._policy = _policy(Target(signal=Signal.CUSTOM, value=target, metric=_TOTAL), behavior)

    def proposed(self, view: View, total: float | None) -> int | None:
        """What a total asks for; None: it is not known."""
        gauges = {_TOTAL: Gauge(time=view.now, value=total)}
        return candidates_of(self._policy, Signals(size=view.size, custom=gauges), {}, view.now)[0].replicas


def _policy(target: Target, behavior: Behavior) -> Policy:
    return Policy(work_based=False, max_replicas=UNBOUNDED, targets=(target,), behavior=behavior)


def _replica(one: Seen, now: float, duty: float | None) -> Replica:
    """As of now, however old: the autoscaler does not ask how old a metric is."""
    return Replica(
        uid=str(one.number),
        phase=Phase.READY,
        created_at=one.created,
        sample=Sample(time=now, running=one.running, waiting=one.waiting, kv_usage=one.kv_usage),
        gpu=Gauge(time=now, value=duty) if duty is not None else None,
    )


def _silent(number: int) -> Replica:
    return Replica(uid=f"silent-{number}", phase=Phase.READY, created_at=0.0)


def _window(seconds: float | None) -> float:
    return seconds or 0.0
