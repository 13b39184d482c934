"""The constants of work-based scaling, with what each is for. One set for every workload: nobody is asked to set them."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Tuning:
    """Constants. Seconds, replicas and shares, as the names say."""

    slo_wait_seconds: float = 2.0
    """A request that waits longer before its prompt is worked on is late."""
    late_share: float = 0.028
    """Share of late requests, of each stage, at which the headroom is kept."""
    gain_start: float = 3.0
    """Factor on the headroom to start with: safe, it is lowered as the queues allow."""
    gain_least: float = 0.25
    gain_most: float = 8.0
    gain_step: float = 0.2
    """Speed of the factor, for 15 s. Faster ones oscillate."""
    level_seconds: float = 30.0
    """Window of the level of load."""
    history_seconds: float = 3600.0
    """Window of the increments of load, and of the targets."""
    envelope_quantile: float = 0.9
    """Of the increments in the history."""
    envelope_prior: float = 0.7
    """Increment that is assumed before there is a history, for a horizon of 90 s; by the square root for others."""
    envelope_prior_count: int = 8
    burst: float = 1.4
    """Factor on the bursts shorter than a scrape, in the square-root rule of staffing."""
    dispersion_most_seconds: float = 8.0
    residual_most_seconds: float = 4.0
    """Caps on the dispersion of work, in the burst and in the estimate of late requests."""
    hold_least_seconds: float = 900.0
    hold_horizons: float = 3.0
    """What was wanted at most within the greater of these, and `hold_spare` of it more, is kept."""
    hold_spare: float = 0.2
    hold_again: float = 4.0
    """After that many such times without the spare part being wanted, it goes, too."""
    down_percent: int = 15
    down_period_seconds: int = 15
    """Pace of scaling down."""
    slot_share: float = 0.8
    kv_share: float = 0.85
    """Of the slots and of the KV cache: how far they are to be filled."""
    stale_scrapes: float = 2.5
    """A sample older than that many scrapes counts as missing."""
    blind_seconds: float = 180.0
    """After that time without any sample, the floor is what was needed at nearly all times of the history."""
    blind_quantile: float = 0.95
    capacity_prior_seconds: float = 60.0
    """Weight of a declared capacity, in seconds of measured busy time."""
    capacity_forget: float = 0.97
    """What is left of older measurements of a capacity after a new one."""
    mix_forget: float = 0.02
    """Share of the older tokens and images per request that a scrape forgets."""
    saturated_waiting: float = 2.0
    """Requests that wait at both ends of an interval in which the engine was busy throughout."""
    workers_most: float = 16.0
    round_down: float = 0.05
    """Part of a replica for which none is added."""
    gpu_idle_share: float = 0.05
    """Below it a GPU has nothing to do."""
    corroborating_share: float = 0.5
    """How full an engine must be for a busy GPU to count."""


STANDARD = Tuning()
"""Those in use."""
