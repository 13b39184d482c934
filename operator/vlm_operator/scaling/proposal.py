"""What is wanted, before bounds, windows and pace."""

from dataclasses import dataclass

from vlm_operator.scaling.decision import Candidate, Reason, Stage


@dataclass(frozen=True, kw_only=True, slots=True)
class Proposal:
    """A size, and what asks for it."""

    replicas: int
    reason: Reason
    binding: str = ""
    stages: tuple[Stage, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    measured: bool = True
    """Whether it follows from what was measured: others are not remembered."""
