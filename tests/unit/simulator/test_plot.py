"""The picture of a replay."""

import io
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

from unit.simulator.results import result, trace
from vlm_operator.simulator.plot import _figure, png

TIMES = [float(number) for number in range(0, 3600, 6)]


def test_three_panels_with_legends_and_units() -> None:
    figure = _figure(trace(TIMES), result(TIMES, [1.0] * len(TIMES)), slo_seconds=2.0, title="a trace under a policy")
    assert figure.get_suptitle() == "a trace under a policy"
    shown = [[text.get_text() for text in axes.get_legend().get_texts()] for axes in figure.axes]
    assert shown == [
        ["requests", "images"],
        ["serving", "starting", "standby", "draining", "size decided on"],
        ["half of the requests up to", "95% of the requests up to", "objective"],
    ]
    assert [axes.get_ylabel() for axes in figure.axes] == ["per second", "replicas", "seconds in the queue"]
    assert figure.axes[-1].get_xlabel() == "minutes since the first request"
    assert figure.axes[-1].get_xlim() == pytest.approx((0, TIMES[-1] / 60))


def test_a_title_is_no_formula() -> None:
    assert png(trace([0.0]), result([0.0], [0.5]), slo_seconds=2.0, title="$x^{$.csv").startswith(b"\x89PNG")


def test_what_is_drawn_is_what_came() -> None:
    waits = [0.0 if time < 1800 else 8.0 for time in TIMES]
    load, _, over_time = _figure(trace(TIMES), result(TIMES, waits), slo_seconds=2.0, title="").axes
    requests = np.asarray(load.lines[0].get_ydata(), dtype=float)
    assert requests.mean() == pytest.approx(len(TIMES) / TIMES[-1])
    half = np.asarray(over_time.lines[0].get_ydata(), dtype=float)
    assert (half[0], half[-1]) == (0, 8)


def test_a_trace_without_images_has_no_curve_of_them() -> None:
    text = replace(trace(TIMES), images=np.zeros(len(TIMES), dtype=np.float32))
    load = _figure(text, result(TIMES, [1.0] * len(TIMES)), slo_seconds=2.0, title="").axes[0]
    assert [line.get_label() for line in load.lines] == ["requests"]


@pytest.mark.parametrize(
    ("seconds", "unit"), [(0.0, "seconds"), (119, "seconds"), (120, "minutes"), (7200, "hours"), (200_000, "days")]
)
def test_time_is_in_a_unit_that_suits_the_trace(seconds: float, unit: str) -> None:
    times = [0.0, seconds]
    figure = _figure(trace(times), result(times, [0, 0]), slo_seconds=2.0, title="")
    assert figure.axes[-1].get_xlabel().startswith(unit)


def test_one_request_and_a_gap_of_a_day_are_drawn() -> None:
    for times in ([0.0], [0.0, 86_400.0]):
        image = Image.open(io.BytesIO(png(trace(times), result(times, [0.5] * len(times)), slo_seconds=2.0, title="t")))
        assert (image.format, image.size) == ("PNG", (1200, 900))


def test_the_same_replay_gives_the_same_bytes_whatever_the_settings_of_the_user() -> None:
    def drawn() -> bytes:
        return png(trace(TIMES), result(TIMES, [1.0] * len(TIMES)), slo_seconds=2.0, title="t")

    first = drawn()
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "black"}):
        assert drawn() == first
        assert mpl.rcParams["font.size"] == 30
    assert drawn() == first
