"""The planner of Dynamo reproduces its own tests for the modes without a profile.

Figures: ai-dynamo/dynamo `components/src/dynamo/planner/tests/unit/test_easy_scaling.py`, with 100,000 tokens of KV cache.
"""

import pytest

from unit.simulator.peers.views import ENGINE, fleet, look, seen
from vlm_operator.simulator.peers.dynamo import LATENCY, THROUGHPUT, Dynamo, DynamoSettings
from vlm_operator.simulator.peers.settings import Engine, SettingsError

# Tokens in the KV cache and in the queue of each engine.
VECTORS = [
    ("TestDecodeThroughputEasy.test_scale_up_above_100_pct", THROUGHPUT, [(80_000, 30_000)], 2),
    ("TestDecodeThroughputEasy.test_scale_down_below_60_pct", THROUGHPUT, [(40_000, 0)] * 2, 1),
    ("TestDecodeThroughputEasy.test_no_change_between_thresholds", THROUGHPUT, [(70_000, 0)] * 2, 2),
    ("TestDecodeLatencyEasy.test_scale_up_above_40_pct", LATENCY, [(45_000, 0)], 2),
    ("TestDecodeLatencyEasy.test_scale_down_below_10_pct", LATENCY, [(5_000, 0)] * 2, 1),
    ("TestAnyUpAllDown.test_any_engine_above_triggers_scale_up", THROUGHPUT, [(50_000, 0), (80_000, 30_000)], 3),
    ("TestAnyUpAllDown.test_mixed_no_scale_down", THROUGHPUT, [(20_000, 0), (70_000, 0)], 2),
    ("TestAnyUpAllDown.test_all_below_triggers_scale_down", THROUGHPUT, [(20_000, 0), (30_000, 0), (25_000, 0)], 2),
    ("TestAggEasy.test_agg_scale_up_prefill_heavy", THROUGHPUT, [(20_000, 90_000)], 2),
    ("TestAggEasy.test_agg_scale_down", THROUGHPUT, [(30_000, 0)] * 2, 1),
    ("TestPrefillThroughputEasy.test_no_scale_down_at_min", THROUGHPUT, [(0, 0)], 1),
    ("a load of exactly the threshold changes nothing", THROUGHPUT, [(100_000, 0), (0, 0)], 2),
]


@pytest.mark.parametrize(("source", "settings", "engines", "wanted"), VECTORS, ids=[row[0] for row in VECTORS])
def test_vectors(source: str, settings: DynamoSettings, engines: list[tuple[float, float]], wanted: int) -> None:
    peer = Dynamo(ENGINE, settings)
    assert peer.decide([peer.load(kv, queued) for kv, queued in engines], len(engines)) == wanted, source


def test_nothing_changes_while_replicas_start() -> None:
    """TestScalingInProgress."""
    live = fleet(1, kv_tokens=200_000.0)
    assert Dynamo(ENGINE).desired(look(live)) == 2
    assert Dynamo(ENGINE).desired(look(live, starting=1)) == 2
    assert Dynamo(ENGINE).desired(look(starting=3)) == 3


def test_the_queue_is_counted_in_tokens_of_the_prompts_seen_lately() -> None:
    peer = Dynamo(ENGINE)
    # 1000 tokens each as it is told, until the counters say 5000.
    assert peer.desired(look([seen(waiting=30)])) == 1
    busy = seen(waiting=30, prompt_tokens=50_000.0, first_tokens=10)
    assert peer.desired(look([busy], now=5.0)) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scale_up": 0.0}, "DynamoSettings.scale_up is 0; it must be a number greater than 0"),
        ({"scale_down": 1.5}, "DynamoSettings.scale_down is 1.5; it must be at most scale_up (1)"),
    ],
)
def test_settings_that_cannot_be(given: dict[str, float], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        DynamoSettings(**given)
    assert str(caught.value) == message


def test_an_engine_without_a_kv_cache_cannot_be() -> None:
    """TestMissingCapabilities: without its size there is nothing to go by."""
    with pytest.raises(SettingsError, match=r"Engine\.kv_tokens is 0; it must be a number greater than 0"):
        Engine(kv_tokens=0, slots=64)
    with pytest.raises(SettingsError, match=r"Engine\.output_tokens is -1; it must be a number at least 0"):
        Engine(kv_tokens=1, slots=64, output_tokens=-1)
