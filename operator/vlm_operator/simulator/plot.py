"""A replay as a picture: what came, what there was to serve it, and how long requests waited, over the same time."""

import io
from collections.abc import Iterator
from itertools import pairwise

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from vlm_operator.simulator.result import Result, Series
from vlm_operator.simulator.trace import Trace

BINS = 240
"""Points of a curve over the whole trace."""
_UNITS = (
    (2 * 86400.0, 86400.0, "days"),
    (2 * 3600.0, 3600.0, "hours"),
    (2 * 60.0, 60.0, "minutes"),
    (0.0, 1.0, "seconds"),
)
"""From how many seconds on time is shown in a unit, its seconds and its name."""
_ROLES = (("serving", "tab:green"), ("starting", "tab:orange"), ("standby", "tab:blue"), ("draining", "tab:gray"))
Floats = NDArray[np.float64]


def png(trace: Trace, result: Result, *, slo_seconds: float, title: str) -> bytes:
    """The picture in the format PNG. The same replay gives the same bytes, whatever the user's settings of matplotlib are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        figure = _figure(trace, result, slo_seconds=slo_seconds, title=title)
        file = io.BytesIO()
        FigureCanvasAgg(figure)
        figure.savefig(file, format="png")
    return file.getvalue()


def _figure(trace: Trace, result: Result, *, slo_seconds: float, title: str) -> Figure:
    unit, name = next((unit, name) for least, unit, name in _UNITS if trace.seconds >= least)
    figure = Figure(figsize=(12, 9), dpi=100, layout="constrained")
    load, replicas, waits = figure.subplots(3, 1, sharex=True)
    figure.suptitle(title, parse_math=False)
    edges = np.linspace(0.0, max(trace.seconds, 1.0), BINS + 1)
    _draw_load(load, trace, edges, unit)
    _draw_replicas(replicas, result.series, end=edges[-1], unit=unit)
    _draw_waits(waits, result, edges, unit, slo_seconds=slo_seconds)
    waits.set_xlabel(f"{name} since the first request")
    waits.set_xlim(0.0, edges[-1] / unit)
    return figure


def _draw_load(axes: Axes, trace: Trace, edges: Floats, unit: float) -> None:
    seconds = edges[1] - edges[0]
    middles = (edges[:-1] + edges[1:]) / 2 / unit
    columns = {"requests": None} | ({"images": trace.images} if trace.images.any() else {})
    for name, weights in columns.items():
        counts, _ = np.histogram(trace.times, edges, weights=weights)
        axes.plot(middles, counts / seconds, label=name, linewidth=1)
    axes.set_ylabel("per second")
    axes.set_ylim(bottom=0.0)
    _legend(axes, "load")


def _draw_replicas(axes: Axes, series: Series, *, end: float, unit: float) -> None:
    times = np.append(series.times, end) / unit
    held = [np.append(column, column[-1]) for column in (getattr(series, role) for role, _ in _ROLES)]
    axes.stackplot(
        times, *held, labels=[role for role, _ in _ROLES], colors=[colour for _, colour in _ROLES], step="post"
    )
    axes.step(
        times, np.append(series.wanted, series.wanted[-1]), "k--", where="post", linewidth=1, label="size decided on"
    )
    axes.set_ylabel("replicas")
    axes.set_ylim(bottom=0.0)
    _legend(axes, "replicas")


def _draw_waits(axes: Axes, result: Result, edges: Floats, unit: float, *, slo_seconds: float) -> None:
    middles = (edges[:-1] + edges[1:]) / 2 / unit
    quantiles = np.array(list(_quantiles(result, edges)))
    for column, name in enumerate(("half of the requests up to", "95% of the requests up to")):
        axes.plot(middles, quantiles[:, column], label=name, linewidth=1, marker=".", markersize=2)
    axes.axhline(slo_seconds, color="tab:red", linestyle="--", linewidth=1, label="objective")
    axes.set_ylabel("seconds in the queue")
    axes.set_ylim(bottom=0.0)
    _legend(axes, "waits")


def _legend(axes: Axes, title: str) -> None:
    """Beside the panel, where it hides nothing."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), title=title, frameon=False, alignment="left")


def _quantiles(result: Result, edges: Floats) -> Iterator[tuple[float, float]]:
    """What half and 95 % of the requests of each bin waited at most; NaN, a gap, where none came."""
    bounds = np.searchsorted(result.arrivals, edges)
    bounds[-1] = len(result.arrivals)
    for first, end in pairwise(bounds):
        if first == end:
            yield np.nan, np.nan
        else:
            half, most = np.quantile(result.waits[first:end], (0.5, 0.95), method="inverted_cdf")
            yield float(half), float(most)
