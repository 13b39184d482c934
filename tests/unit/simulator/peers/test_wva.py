"""The Workload Variant Autoscaler reproduces its own tests.

Figures: llm-d/llm-d-workload-variant-autoscaler `internal/saturation/analyzer_test.go`,
`internal/engines/analyzers/saturation_v2/analyzer_test.go`, `internal/engines/pipeline/cost_aware_optimizer_test.go` (the
rows with one variant that can take the change), `docs/saturation-analyzer.md`, `docs/integrations/hpa-integration.md`.
"""

import pytest

from unit.simulator.peers.views import fleet, look, seen
from vlm_operator.scaling.policy import Behavior, Rules
from vlm_operator.simulator.peers.settings import Engine, SettingsError
from vlm_operator.simulator.peers.wva import (
    CHART,
    KIND,
    Deployed,
    Load,
    Saturation,
    SaturationSettings,
    Tokens,
    TokenSettings,
    Wva,
    WvaSettings,
)

H100 = Engine(kv_tokens=16_000, slots=256)
AT_ONCE = Behavior(up=Rules(), down=Rules())


def deployed(*pairs: tuple[float, int], pending: int = 0) -> Deployed:
    """Replicas by use of the KV cache and waiting requests."""
    loads = [Load(usage, waiting, usage * H100.kv_tokens) for usage, waiting in pairs]
    return Deployed(loads=loads, ready=len(loads), pending=pending)


SPARE = [
    ("scale up due to low KV spare", [(0.75, 2), (0.76, 2)], (0.045, 3), True, False),
    ("scale up due to low queue spare", [(0.50, 3), (0.50, 3)], (0.3, 2), True, False),
    ("no scale up: healthy", [(0.50, 1), (0.50, 1)], (0.3, 4), False, False),
    ("scale down safe", [(0.20, 1), (0.30, 1), (0.25, 1)], (0.55, 4), False, True),
    ("scale down unsafe", [(0.70, 2), (0.75, 2)], (0.075, 3), True, False),
    ("scale down unsafe: only one that is not saturated", [(0.50, 2)], (0.3, 3), False, False),
    ("saturated ones are left out", [(0.85, 2), (0.50, 6), (0.60, 2)], (0.2, 3), False, False),
    ("TestAnalyzeModelSaturation_AllSaturated", [(0.85, 2), (0.50, 6), (0.90, 7)], (0, 0), True, False),
]


@pytest.mark.parametrize(("source", "pairs", "spare", "up", "down"), SPARE, ids=[row[0] for row in SPARE])
def test_vectors_of_the_first_analyser(
    source: str, pairs: list[tuple[float, int]], spare: tuple[float, float], up: bool, down: bool
) -> None:
    analyser, seen_of = Saturation(), deployed(*pairs)
    found = analyser.spare(seen_of.loads)
    assert found == pytest.approx(spare), source
    assert analyser.too_little(*found) is up
    assert analyser.one_fewer_is_safe(*found, analyser.calm(seen_of.loads)) is down
    assert analyser.wanted(seen_of) == len(pairs) + (1 if up else -1 if down else 0)


def test_the_first_analyser_waits_for_replicas_that_start_and_for_metrics() -> None:
    """TestCalculatesaturationTargets_PendingReplicasBlocksScaling and TestAnalyzeModelSaturation_EmptyMetrics."""
    assert Saturation().wanted(deployed((0.79, 4), (0.79, 4), pending=1)) == 3
    assert Saturation().wanted(Deployed(loads=[], ready=2, pending=0)) == 2


def tokens(in_use: float, waiting: int = 0, prompt: float = 100.0, output: float = 50.0) -> Deployed:
    """One replica."""
    load = Load(in_use / H100.kv_tokens, waiting, in_use)
    return Deployed(loads=[load], ready=1, pending=0, prompt_tokens=prompt, output_tokens=output)


CAPACITY = [
    # With no arguments known the project falls back to the memory; here steps of any size let the slots bound them.
    ("use k1 when k2 is unknown", tokens(5000, output=0), 12_800),
    ("use k2 when the queue is saturated", tokens(8000, 6), 8000),
    ("compute-bound with a long queue and a low cache", tokens(4000, 10), 4000),
    ("a queue of exactly five is saturated", tokens(8000, 5), 8000),
    ("derive k2 from the arguments: more than the memory holds", tokens(5000, 2, prompt=500, output=100), 12_800),
]


@pytest.mark.parametrize(("source", "one", "capacity"), CAPACITY, ids=[row[0] for row in CAPACITY])
def test_vectors_of_what_a_replica_can_hold(source: str, one: Deployed, capacity: float) -> None:
    assert Tokens(H100).capacity(one) == capacity, source


DERIVED = [
    ("from B, S, I, O", 4096, 256, 500, 100, 140_800),
    ("cap N_steady at MaxNumSeqs", 8192, 64, 100, 200, 12_800),
    ("0 without outputs", 8192, 256, 500, 0, 0),
]


@pytest.mark.parametrize(
    ("source", "batched", "slots", "prompt", "output", "tokens_held"), DERIVED, ids=[r[0] for r in DERIVED]
)
def test_vectors_of_the_arguments(
    source: str, *, batched: float, slots: int, prompt: float, output: float, tokens_held: int
) -> None:
    analyser = Tokens(Engine(kv_tokens=16_000, slots=slots), TokenSettings(max_batched_tokens=batched))
    assert analyser.derived(prompt, output) == tokens_held, source


def test_what_was_seen_of_a_full_replica_is_remembered_by_length_of_outputs() -> None:
    """k2 history, and output-length bucketing."""
    analyser = Tokens(H100)
    analyser.capacity(tokens(8000, 6))
    assert analyser.capacity(tokens(6000, 2)) == 8000
    assert analyser.capacity(tokens(6000, 2, output=600)) == 12_800


def test_the_median_of_the_replicas_counts() -> None:
    """median helper: of an even number the mean of the middle two."""
    analyser = Tokens(H100)
    loads = [Load(0.0, 9, held) for held in (5000, 1000, 3000, 7000)]
    assert analyser.capacity(Deployed(loads=loads, ready=4, pending=0)) == 4000


def test_without_a_replica_what_was_known_last_counts() -> None:
    """Zero-replica variants: stored live capacity."""
    analyser = Tokens(H100)
    nothing = Deployed(loads=[], ready=0, pending=1)
    assert analyser.capacity(nothing) == 0
    assert analyser.wanted(nothing) == 1
    analyser.capacity(tokens(12_000, 6))
    assert analyser.capacity(nothing) == 12_000


DEMAND = [
    ("replica only", tokens(5000), 5000),
    ("with its queue", tokens(5000, 3), 5300),
    # Ten at the gateway: 10 * 100 of prompts and 10 * 50 of outputs.
    ("scheduler queue", tokens(5000)._replace(held=10), 6500),
]


@pytest.mark.parametrize(("source", "one", "demand"), DEMAND, ids=[row[0] for row in DEMAND])
def test_vectors_of_demand(source: str, one: Deployed, demand: float) -> None:
    assert Tokens(H100).demand(one) == demand, source


def full(use: float, *, ready: int, pending: int = 0) -> Deployed:
    """Replicas of 12,800 tokens that are in use by a share of that in all."""
    held = use * 12_800 * ready
    return Deployed(loads=[Load(0.0, 0, held / ready)] * ready, ready=ready, pending=pending)


WANTED = [
    ("steady state between the thresholds: 0.78", full(0.78, ready=1), 1),
    ("scale-up signal: 11000 and three waiting of 100", tokens(11_000, 3, output=0), 2),
    ("scale-down signal: two at 1000", full(1000 / 12_800, ready=2), 1),
    ("one that starts is counted on the way up", full(10_000 / 12_800, ready=1, pending=1), 2),
    ("one that starts is counted: 1.5 of two is between the thresholds", full(1.5, ready=1, pending=1), 2),
    ("one that starts is not counted on the way down", full(1000 / 12_800, ready=1, pending=2), 3),
    # Demand of 3 of 1 held: 3 / 0.85 = 3.53, so 2.53 are missing.
    ("ceil(required / capacity)", full(3.0, ready=1), 4),
    # 10 - 2 / 0.7 = 7.14 to spare.
    ("floor(spare / capacity)", full(0.2, ready=10), 3),
    ("the last one stays", full(0.0, ready=4), 1),
]


@pytest.mark.parametrize(("source", "seen_of", "wanted"), WANTED, ids=[row[0] for row in WANTED])
def test_vectors_of_the_second_analyser(source: str, seen_of: Deployed, wanted: int) -> None:
    assert Tokens(H100).wanted(seen_of) == wanted, source


def test_it_looks_once_a_minute_at_the_peaks_of_that_minute() -> None:
    peer = Wva(H100, Saturation(), WvaSettings(behavior=AT_ONCE))
    told = {0: 1, 15: 4, 30: 1, 45: 1, 60: 1, 75: 1, 90: 1, 105: 1, 120: 1}
    wanted = [peer.desired(look([seen(waiting=waiting)], now=float(now))) for now, waiting in told.items()]
    # 4 waiting at 15 s leave a spare of 1 at 60 s; that is forgotten at 120 s.
    assert wanted == [1, 1, 1, 1, 2, 2, 2, 2, 1]


def test_the_chart_follows_after_four_minutes_and_the_kind_way_at_once() -> None:
    def sizes(settings: WvaSettings) -> list[int]:
        peer = Wva(H100, Saturation(), settings)
        return [peer.desired(look(fleet(3, waiting=4), now=15.0 * step)) for step in range(18)]

    assert sizes(WvaSettings()) == [4] * 18
    assert sizes(WvaSettings(behavior=CHART)) == [3] * 16 + [4] * 2


def test_the_usual_tolerance_swallows_a_step_of_one_from_ten_replicas_on() -> None:
    def last(size: int, behavior: Behavior) -> int:
        peer = Wva(H100, Saturation(), WvaSettings(behavior=behavior))
        return [peer.desired(look(fleet(size, waiting=4), now=15.0 * step)) for step in range(40)][-1]

    assert last(9, CHART) == 10
    assert last(10, CHART) == 10
    assert last(10, KIND) == 11


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: SaturationSettings(queue_spare=6),
            "SaturationSettings.queue_spare is 6; it must be at most queue_threshold (5)",
        ),
        (lambda: TokenSettings(scale_down=0.9), "TokenSettings.scale_down is 0.9; it must be at most scale_up (0.85)"),
        (
            lambda: WvaSettings(interval_seconds=5),
            "WvaSettings.period_seconds is 15; it must be at most interval_seconds (5)",
        ),
    ],
)
def test_settings_that_cannot_be(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(SettingsError) as caught:
        make()
    assert str(caught.value) == message
