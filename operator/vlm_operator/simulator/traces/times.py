"""How a format writes times, and the refusal of those that are more likely in another unit."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

from vlm_operator.simulator.traces.base import Source

LONGEST_DAYS = 366
"""From the first request to the last one."""
LATEST_SECONDS = 1e11
"""Since 1970, which is in the year 5138: what is later is in another unit."""


class Unit(Enum):
    """Of times that are numbers: how many of it make a second."""

    SECONDS = 1.0
    MILLISECONDS = 1e3
    MICROSECONDS = 1e6
    NANOSECONDS = 1e9


_COARSEST_FIRST = tuple(Unit)


@dataclass(frozen=True, kw_only=True, slots=True)
class Times:
    """The column of the times of a trace."""

    column: str
    unit: Unit | None
    """None: they are dates."""

    def check(self, source: Source, first: float, last: float) -> None:
        """Raise TraceError when the first and the last time, in seconds, are too late or too far apart."""
        if self.unit is not None and last > LATEST_SECONDS:
            source.refuse(_too_late(last, self.unit), column=self.column)
        days = (last - first) / 86400
        if days > LONGEST_DAYS:
            source.refuse(
                f"goes from {self._shown(first)} to {self._shown(last)}, {days:.0f} days; a trace may have up to "
                f"{LONGEST_DAYS}; {self._way_out()}",
                column=self.column,
            )

    def _shown(self, seconds: float) -> str:
        if self.unit is None:
            return str(datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None, microsecond=0))
        return f"{seconds * self.unit.value:.15g}"

    def _way_out(self) -> str:
        if self.unit is None:
            return "leave out the requests before or after"
        finer = _COARSEST_FIRST[_COARSEST_FIRST.index(self.unit) + 1]
        return f"write times in {_name(self.unit)} (of {_name(finer)}: divide by 1000)"


def _too_late(seconds: float, unit: Unit) -> str:
    """What is to be said of a time that is written in a unit and cannot be meant so."""
    number = seconds * unit.value
    for finer in _COARSEST_FIRST:
        if number <= LATEST_SECONDS * finer.value:
            told = f"{number:.0f} looks like {_name(finer)} since 1970"
            return f"{told}; write times in {_name(unit)}: divide them by {finer.value / unit.value:.0f}"
    return f"{number:.6g} is later than any date; write times in {_name(unit)}"


def _name(unit: Unit) -> str:
    return unit.name.lower()
