"""The decision on the size of a deployment."""

from dataclasses import replace
from math import ceil

from vlm_operator.scaling import corroborate, hpa, pace, trust, wording
from vlm_operator.scaling.bounds import bounds_of, standby_of
from vlm_operator.scaling.capacity import assumptions
from vlm_operator.scaling.decision import Candidate, Decision, Limit, Reason
from vlm_operator.scaling.observe import observe, with_held
from vlm_operator.scaling.policy import Policy
from vlm_operator.scaling.proposal import Proposal
from vlm_operator.scaling.schedules import floor_of
from vlm_operator.scaling.signals import Signals
from vlm_operator.scaling.state import State, Totals
from vlm_operator.scaling.work import stages_of


def decide(policy: Policy, state: State, signals: Signals, now: float) -> tuple[Decision, State]:
    """The size for what is seen at `now` (seconds since the epoch), and the state for the next time.

    Pure: the same arguments give the same answer, and none of them is changed. To be called at every tick, and with the
    replicas in any order. After a restart the windows are rebuilt by calling it with what was seen in the last hour
    and two scrapes, one call for each scrape, and dropping the decisions.

    The decision is to be carried out as it is: `replicas` of them in service, `standby` of them loaded beside. In
    Advisory mode (`policy.advisory`) it is only shown. A size above the ceiling is cut at once whatever the signals say;
    the replicas that go finish their requests first.
    """
    state, totals = observe(policy, state, signals, now)
    totals = with_held(totals, signals.held)
    proposal = _proposal(policy, state, totals, signals, now)
    state = _remembered(policy, state, proposal, signals.size, now)
    windows = state.windows
    bounds = bounds_of(policy, windows.floor)
    steps = _Steps(size=bounds.clamp(signals.size), replicas=proposal.replicas)
    if bounds.clamp(steps.replicas) < steps.size:
        _freeze(steps, policy, state, totals, proposal, now=now)
    if proposal.measured:
        _hold(steps, policy, state, totals, now=now)
    steps.to(max(steps.replicas, bounds.least), bounds.why)
    steps.to(min(steps.replicas, bounds.most), Reason.CEILING)
    steps.to(pace.paced(policy.behavior, windows.changes, size=steps.size, wanted=steps.replicas, now=now), Reason.PACE)
    crowded = corroborate.front_end_bound(policy, proposal.stages, totals)
    limits = tuple(steps.limits)
    # A target tells by itself what its signal is worth.
    flaws = totals.flaws if policy.work_based else ()
    decision = Decision(
        replicas=steps.replicas,
        standby=standby_of(policy, steps.replicas),
        needed=_needed(policy, proposal, steps.replicas),
        wanted=proposal.replicas,
        reason=limits[-1].name if limits else proposal.reason,
        message=wording.sentence(steps.replicas, proposal, limits, flaws, front_end_bound=crowded),
        binding=proposal.binding,
        front_end_bound=crowded,
        stages=proposal.stages,
        candidates=proposal.candidates,
        limits=limits,
        flaws=flaws,
        assumed=assumptions(policy, state.learned, totals.able) if policy.work_based else (),
    )
    return decision, state


def _remembered(policy: Policy, state: State, proposal: Proposal, size: int, now: float) -> State:
    """With what was wanted, what became of it, and the floor of the schedules."""
    windows, wanted = state.windows, state.windows.wanted
    if proposal.measured:
        keep = policy.tuning.history_seconds
        wanted = pace.recorded(wanted, wanted=proposal.replicas, now=now, keep_seconds=keep)
    changes, floor = pace.noticed(windows, size=size, now=now), floor_of(policy.schedules, now, windows.floor)
    kept = replace(windows, wanted=wanted, changes=changes, size=size, decided_at=now, floor=floor)
    return State(learned=state.learned, windows=kept)


def _proposal(policy: Policy, state: State, totals: Totals, signals: Signals, now: float) -> Proposal:
    """What the work and the targets ask for."""
    candidates = hpa.candidates_of(policy, signals, state.windows.seen, now)
    return (_by_work if policy.work_based else _by_targets)(policy, state, totals, signals, candidates, now=now)


def _by_targets(
    policy: Policy,
    state: State,
    totals: Totals,
    signals: Signals,
    candidates: tuple[Candidate, ...],
    *,
    now: float,
) -> Proposal:
    asked = hpa.largest(candidates, signals.size)
    if asked is None:
        return _unmeasured(policy, state, totals, signals.size, candidates, now=now)
    reason = Reason.TARGET if asked[0] != signals.size else Reason.WITHIN_TOLERANCE
    return Proposal(replicas=asked[0], reason=reason, binding=asked[1], candidates=candidates)


def _by_work(
    policy: Policy,
    state: State,
    totals: Totals,
    signals: Signals,
    candidates: tuple[Candidate, ...],
    *,
    now: float,
) -> Proposal:
    if totals.blind or not state.windows.lane.rates:
        return _unmeasured(policy, state, totals, signals.size, candidates, now=now)
    stages = counting = stages_of(policy, state, totals)
    candidates = corroborate.corroborated(policy, candidates, stages, totals.ready)
    if corroborate.gpus_idle(policy, signals, totals, now):
        counting = tuple(stage for stage in stages if stage.name is Reason.FRONT_END)
    most = max(counting, key=lambda stage: stage.need, default=None)
    need, reason = (most.need, most.name) if most is not None else (0.0, Reason.FLOOR)
    proposal = Proposal(
        replicas=max(0, ceil(need - policy.tuning.round_down)),
        reason=reason,
        binding=str(reason) if most is not None else "",
        stages=stages,
        candidates=candidates,
    )
    return _at_least(proposal, candidates)


def _unmeasured(
    policy: Policy, state: State, totals: Totals, size: int, candidates: tuple[Candidate, ...], *, now: float
) -> Proposal:
    """Without any sample the size stays or grows; targets on what does not come from the engines may raise it, too."""
    least = trust.blind_floor(policy, state, totals, now)
    reason = Reason.BLIND if state.windows.wanted else Reason.WARMING_UP
    proposal = Proposal(replicas=max(size, least), reason=reason, candidates=candidates, measured=False)
    if not policy.work_based:
        return proposal
    candidates = corroborate.corroborated(policy, candidates, (), totals.ready)
    return _at_least(replace(proposal, candidates=candidates), candidates)


def _at_least(proposal: Proposal, candidates: tuple[Candidate, ...]) -> Proposal:
    """The proposal, or the largest of the candidates where that is more."""
    said = [(one.replicas, one.name) for one in candidates if one.replicas is not None]
    replicas, name = max(said, key=lambda asked: asked[0], default=(0, ""))
    if replicas <= proposal.replicas:
        return proposal
    return replace(proposal, replicas=replicas, reason=Reason.TARGET, binding=name, measured=True)


class _Steps:
    """The way from what is wanted to the size, with what changed it. `size` is the one in force, within bounds."""

    def __init__(self, *, size: int, replicas: int) -> None:
        self.size, self.replicas = size, replicas
        self.limits: list[Limit] = []

    def to(self, replicas: int, name: Reason) -> None:
        """Let something change it."""
        if replicas != self.replicas:
            self.limits.append(Limit(name=name, before=self.replicas, after=replicas))
            self.replicas = replicas


def _freeze(steps: _Steps, policy: Policy, state: State, totals: Totals, proposal: Proposal, *, now: float) -> None:
    """Nothing goes down on signals or windows that lack something."""
    down_seconds = _down_window(policy, totals)
    frozen = trust.freeze(policy, state, totals, proposal.candidates, down_seconds=down_seconds, now=now)
    if frozen is not None:
        steps.to(steps.size, frozen)


def _hold(steps: _Steps, policy: Policy, state: State, totals: Totals, *, now: float) -> None:
    """The safest of the sizes that were wanted lately."""
    given, tuning, runs = policy.behavior.down.window_seconds, policy.tuning, state.windows.wanted
    down_seconds = _down_window(policy, totals)
    steady = pace.stabilized(
        runs,
        size=steps.size,
        wanted=steps.replicas,
        up_seconds=policy.behavior.up.window_seconds or 0.0,
        down_seconds=down_seconds,
        now=now,
    )
    if given is None and steady < steps.size:
        spared = pace.spared(runs, steady, spare=tuning.hold_spare, seconds=tuning.hold_again * down_seconds, now=now)
        steady = min(steps.size, spared)
    steps.to(steady, Reason.HELD)


def _down_window(policy: Policy, totals: Totals) -> float:
    """Seconds over which the greatest size wanted is kept."""
    given, tuning = policy.behavior.down.window_seconds, policy.tuning
    if given is not None:
        return given
    return max(tuning.hold_least_seconds, tuning.hold_horizons * totals.able.horizon_seconds)


def _needed(policy: Policy, proposal: Proposal, replicas: int) -> int:
    """Those that carry the load: what is above them is headroom, warm in the sense of a pool in rotation."""
    if not policy.work_based or policy.pool.standby or not policy.pool.size:
        return replicas
    load = max((ceil(stage.level + stage.drain - policy.tuning.round_down) for stage in proposal.stages), default=0)
    # Where nothing is measured the pool counts as it does elsewhere: on top of what carries the load.
    load = load if proposal.stages else replicas - policy.pool.size
    return min(replicas, max(policy.min_replicas, load))
