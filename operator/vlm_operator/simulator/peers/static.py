"""A fleet of a fixed size: what everybody has who does not scale."""

from dataclasses import dataclass

from vlm_operator.simulator.peers.settings import require_positive
from vlm_operator.simulator.view import View


@dataclass(frozen=True, kw_only=True, slots=True)
class StaticSettings:
    """How many."""

    replicas: int
    period_seconds: float = 60.0
    """Between two decisions, which are all the same."""

    def __post_init__(self) -> None:
        require_positive(self, "replicas", "period_seconds")


class Static:
    """Always the same size."""

    def __init__(self, settings: StaticSettings) -> None:
        self._settings = settings

    @property
    def replicas(self) -> int:
        """Its size."""
        return self._settings.replicas

    @property
    def period_seconds(self) -> float:
        """Time between two decisions."""
        return self._settings.period_seconds

    def desired(self, view: View) -> int:  # noqa: ARG002  # the interface of every peer
        """The size wanted now."""
        return self._settings.replicas
