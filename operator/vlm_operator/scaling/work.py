"""What the work needs: for each stage of serving a number of replicas, by a rule that holds from two to sixty of them.

The need is level + headroom + drain, so whatever it allows to give up leaves the level, the growth to be expected and
the queue carried by those that stay: no further check of a smaller fleet is needed.
"""

from math import sqrt

from vlm_operator.scaling.bins import level
from vlm_operator.scaling.decision import Reason, Stage
from vlm_operator.scaling.feedback import gains_of
from vlm_operator.scaling.policy import Policy
from vlm_operator.scaling.state import History, State, Totals

DRAIN_LEAST_SECONDS, DRAIN_MOST_SECONDS = 15.0, 60.0
"""In which a queue is to be worked off: about as long as a replica takes to start, within these."""


def stages_of(policy: Policy, state: State, totals: Totals) -> tuple[Stage, ...]:
    """The stages that could be measured; the lane is the first of them."""
    windows, able, mix = state.windows, totals.able, state.windows.mix
    gains, late = gains_of(policy, state.learned), windows.late or (None, None)
    queued = (totals.waiting + totals.front_end + totals.held) * mix.tokens_per_request
    lane = _queue(policy, totals, windows.lane, Reason.LANE, able.lane, queued, gains[0], late[0])
    found = [lane]
    if able.images > 0:
        queued = totals.front_end * mix.images_per_request
        found.append(
            _queue(policy, totals, windows.front_end, Reason.FRONT_END, able.images, queued, gains[1], late[1])
        )
    growth = 1 + lane.envelope / max(lane.level, 0.5)
    slots, tuning = policy.declared.slots, policy.tuning
    return (
        *found,
        _room(Reason.SLOTS, totals.running / (tuning.slot_share * slots), growth, slots),
        _room(Reason.KV_CACHE, totals.kv_caches / tuning.kv_share, growth, 1.0),
    )


def _queue(  # noqa: PLR0917  # the terms of one formula
    policy: Policy,
    totals: Totals,
    history: History,
    name: Reason,
    capacity: float,
    queued: float,
    gain: float,
    late: float | None,
) -> Stage:
    """A stage at which work waits: square-root staffing over the load, the growth to be expected, and what waits."""
    tuning, pool = policy.tuning, policy.pool
    now = level(history, policy) / capacity
    envelope = history.growth * sqrt(max(now, 1.0))
    dispersion = min(tuning.dispersion_most_seconds, history.dispersion / capacity)
    burst = tuning.burst * sqrt((now + envelope) * dispersion / 2 / tuning.slo_wait_seconds)
    headroom = max(gain * (envelope + burst), 0 if pool.standby else pool.size)
    within = min(DRAIN_MOST_SECONDS, max(totals.able.start_seconds, DRAIN_LEAST_SECONDS))
    drain = max(0.0, queued / capacity - tuning.slo_wait_seconds * totals.ready) / within
    return Stage(
        name=name,
        level=now,
        envelope=envelope,
        burst=burst,
        gain=gain,
        headroom=headroom,
        drain=drain,
        need=now + headroom + drain,
        capacity=capacity,
        late_share=late,
    )


def _room(name: Reason, now: float, growth: float, capacity: float) -> Stage:
    """A stage that is full or not: the share in use, grown as the lane is expected to grow."""
    return Stage(name=name, level=now, headroom=now * (growth - 1), need=now * growth, capacity=capacity)
