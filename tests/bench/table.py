"""Results of measurements as rows of a table."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measured quantity, with what it is compared to and what it should be."""

    what: str
    ours: str
    baseline: str = "-"
    ratio: float | None = None
    aim: str = "-"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0 to 1) of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-len(ordered) * share // 1) - 1))]


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    cells = [("what", "ours", "baseline", "ratio", "aim")]
    cells += [(r.what, r.ours, r.baseline, f"{r.ratio:.2f}" if r.ratio is not None else "-", r.aim) for r in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(5)]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) + " |" for line in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
