"""What one replica can do, as far as it is known now."""

from dataclasses import dataclass

from vlm_operator.scaling.policy import Workers


@dataclass(frozen=True, kw_only=True, slots=True)
class Able:
    """One replica."""

    lane: float
    """Prompt tokens per second."""
    images: float
    """Images per second that its front end prepares; 0 while none were seen, and then there is no such stage."""
    workers: Workers
    """Images that it prepares side by side."""
    start_seconds: float
    """From its creation until it serves, in nine cases of ten."""
    horizon_seconds: float
    """From a rise of the load until a replica that is started for it serves."""
