"""The startup probe lasts as long as the resource says, whatever the engine does meanwhile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlm_operator.engines.vllm.probes import StartupProbe, health_probe, verification_probe

startup_seconds = st.integers(10, 86_400)


@given(startup_seconds)
def test_the_runs_fill_the_time_to_start(seconds: int) -> None:
    probe = verification_probe(seconds)
    total = probe.period_seconds * probe.failure_threshold
    assert seconds <= total < seconds + probe.period_seconds
    assert probe.script_seconds < probe.timeout_seconds <= probe.period_seconds <= 60


@given(startup_seconds)
def test_looks_at_health_fill_the_time_to_start(seconds: int) -> None:
    probe = health_probe(seconds)
    assert seconds <= probe.period_seconds * probe.failure_threshold < seconds + 5
    assert probe.timeout_seconds <= probe.period_seconds


@pytest.mark.parametrize(
    ("seconds", "runs", "period", "script"),
    [(10, 1, 10, 5), (60, 1, 60, 55), (61, 2, 31, 26), (90, 2, 45, 40), (1800, 30, 60, 55), (86_400, 1440, 60, 55)],
)
def test_examples(seconds: int, runs: int, period: int, script: int) -> None:
    assert verification_probe(seconds) == StartupProbe(
        period_seconds=period, timeout_seconds=period, failure_threshold=runs, script_seconds=script
    )
