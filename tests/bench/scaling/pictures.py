"""The results as pictures. The same results give the same bytes."""

import io
from collections.abc import Mapping, Sequence

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

Points = Sequence[tuple[float, float]]
MARKERS = "osv^<>DPX*hpd"


def frontiers(clouds: Mapping[str, Mapping[str, Points]], ours: Mapping[str, tuple[float, float]]) -> bytes:
    """GPU-hours against the share in time: every setting of every peer, and ours, for each routing."""
    figure = Figure(figsize=(13, 6), dpi=100, layout="constrained")
    for axes, (routing, peers) in zip(figure.subplots(1, len(clouds), squeeze=False)[0], clouds.items(), strict=True):
        for marker, (name, points) in zip(MARKERS, peers.items(), strict=True):
            ordered = sorted(points, key=lambda point: point[1])
            shares = [100 * share for share, _ in ordered]
            axes.plot([cost for _, cost in ordered], shares, marker=marker, linewidth=0.8, alpha=0.8, label=name)
        share, cost = ours[routing]
        axes.plot([cost], [100 * share], marker="*", markersize=22, color="black", linestyle="", label="ours")
        axes.set_title(f"routing: {routing}")
        axes.set_xlabel("GPU-hours over all test workloads")
        axes.set_ylabel("mean share of requests in time, %")
        axes.set_xscale("log")
        axes.set_ylim(60, 100.5)
        axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="lower right")
    return _png(figure)


def cold_starts(series: Mapping[str, Sequence[tuple[float, float, float]]]) -> bytes:
    """Share in time and GPU-hours of ours against the cold start, for each routing."""
    figure = Figure(figsize=(11, 4.5), dpi=100, layout="constrained")
    shares, costs = figure.subplots(1, 2)
    for routing, points in series.items():
        colds = [cold for cold, _, _ in points]
        shares.plot(colds, [100 * share for _, share, _ in points], marker="o", label=routing)
        costs.plot(colds, [cost for _, _, cost in points], marker="o", label=routing)
    shares.set_ylabel("mean share of requests in time, %")
    costs.set_ylabel("GPU-hours over all test workloads")
    for axes in (shares, costs):
        axes.set_xlabel("cold start, s")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    costs.set_ylim(bottom=0)
    return _png(figure)


def _png(figure: Figure) -> bytes:
    with mpl.rc_context():
        mpl.rcdefaults()
        file = io.BytesIO()
        FigureCanvasAgg(figure)
        figure.savefig(file, format="png")
    return file.getvalue()
