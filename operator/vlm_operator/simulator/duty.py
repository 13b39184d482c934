"""The busy share of GPUs, as their exporter tells it."""

from collections.abc import Sequence

from vlm_operator.simulator.view import Seen


class DutyCycles:
    """Share of the time between the last two scrapes of a replica in which its GPU worked on anything.

    That is DCGM_FI_DEV_GPU_UTIL, 0 to 1.
    """

    def __init__(self) -> None:
        self._before: dict[int, tuple[float, float]] = {}
        """By number: when it was read last, and how many seconds it had been busy."""

    def shares(self, read: Sequence[Seen], at: float) -> dict[int, float]:
        """By number, for what was read at `at`; a replica that was read only once has none."""
        before, self._before = self._before, {one.number: (at, one.busy_seconds) for one in read}
        return {
            one.number: min(1.0, (one.busy_seconds - before[one.number][1]) / (at - before[one.number][0]))
            for one in read
            if one.number in before
        }
