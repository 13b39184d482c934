"""The memory of a rank: sums made by hand, parts of logs, and what unknown does."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.sizing.memory_examples import AS_IT_IS, H100, L40S, LLAMA3_8B, QWEN25_VL_7B, V33, architectures, changed
from vlm_operator.sizing.demand import MIB
from vlm_operator.sizing.memory import GIB, Device, Layout, Load, estimate
from vlm_operator.sizing.weights import rank_weights, stages

ONE = Layout()
LOG = Device(cuda_bytes=round(79.18 * GIB), capability="9.0", memory_utilization=0.9)
LLAMA31_8B = changed(LLAMA3_8B, max_context=131_072)


def test_the_parts_of_a_known_log_come_out() -> None:
    found = estimate(LLAMA31_8B, LOG, ONE, Load(max_model_len=16_000), (0, 11))
    assert found.weights / GIB == pytest.approx(14.99, abs=0.01)
    assert found.activation / GIB == pytest.approx(4.76, abs=0.06)
    assert found.kv / GIB == pytest.approx(51.38, abs=0.15)
    assert found.fits is True


def test_the_kv_cache_of_a_log_of_a_current_version_comes_out() -> None:
    a100 = Device(cuda_bytes=round(79.25 * GIB), capability="8.0", memory_utilization=0.92)
    found = estimate(LLAMA31_8B, a100, ONE, AS_IT_IS, (0, 31))
    assert found.kv / GIB == pytest.approx(56.21, rel=0.01)
    assert found.kv / GIB < 56.21
    assert found.kv_tokens == pytest.approx(460_496, rel=0.01)


def test_a_video_takes_what_the_log_of_a_current_version_lacks() -> None:
    """Qwen2.5-VL-7B as it comes, on 22 % of 79.1 GiB: the log says that 14.28 GiB are lacking."""
    device = Device(cuda_bytes=round(79.1 * GIB), capability="8.0", memory_utilization=0.22)
    found = estimate(QWEN25_VL_7B, device, ONE, AS_IT_IS, (0, 24))
    assert found.images is not None
    assert (found.images.tokens, found.images.video) == (114_688, True)
    assert found.kv / GIB == pytest.approx(-14.28, abs=0.4)
    assert found.fits is False


def test_a_context_shorter_than_its_largest_image_starts_as_the_log_says() -> None:
    """Qwen2.5-VL-7B on an L4 with 0.9: the log says 1.81 GiB for the KV cache, of which an image takes none."""
    device = Device(cuda_bytes=round(22.06 * GIB), capability="8.9", memory_utilization=0.9)
    found = estimate(QWEN25_VL_7B, device, ONE, Load(max_model_len=2048), (0, 9))
    assert found.kv / GIB == pytest.approx(1.81, rel=0.1)
    assert found.fits is True


def test_qwen_awq_on_two_gpus_by_hand() -> None:
    load = Load(quantization="AWQ", group_size=128, max_model_len=32_768, max_num_seqs=64, videos_per_prompt=0)
    found = estimate(QWEN25_VL_7B, L40S, Layout(tensor=2), load, V33)
    patches = 65_536  # of an image of 12,845,056 pixels
    tower = patches * (2 * 12 * 1280 + 3 * 2 * 14 * 14 * 4)
    assert found.budget == round(44.39 * GIB * 0.92)
    assert found.activation == tower
    assert found.weights == rank_weights(QWEN25_VL_7B, Layout(tensor=2), found.stage, quantization="AWQ")
    assert found.other == 600 * MIB
    assert found.graphs == (256 + 8 * 28) * MIB
    assert found.kv == found.budget - found.weights - tower - found.other - found.graphs
    assert found.kv_needed == 32_768 * 28_672
    assert found.kv_tokens == pytest.approx(found.kv / 28_672, abs=1)
    assert found.concurrency == pytest.approx(found.kv / found.kv_needed)


def test_graphs_are_taken_from_the_budget_in_newer_versions_only() -> None:
    older, newer = (estimate(LLAMA3_8B, L40S, ONE, AS_IT_IS, version) for version in ((0, 20), (0, 21)))
    assert older.kv - newer.kv == newer.graphs == older.graphs > 0
    assert estimate(LLAMA3_8B, L40S, ONE, Load(eager=True), V33).graphs == 0


@pytest.mark.parametrize(
    ("limit", "device", "load"),
    [
        ("Budget", replace(L40S, memory_utilization=1.0), Load()),
        ("Weights", replace(L40S, cuda_bytes=15 * GIB), Load()),
        ("Activation", replace(L40S, cuda_bytes=round(18.5 * GIB)), Load()),
        ("KV", replace(L40S, cuda_bytes=24 * GIB), Load(videos_per_prompt=0)),
    ],
)
def test_what_stands_in_the_way_is_told(limit: str, device: Device, load: Load) -> None:
    found = estimate(QWEN25_VL_7B, device, ONE, load, V33)
    assert (found.fits, found.limit) == (False, limit)


def test_what_bounds_the_requests_of_a_fit_is_told() -> None:
    assert estimate(LLAMA3_8B, H100, ONE, AS_IT_IS, V33).limit == "KV"
    assert estimate(LLAMA3_8B, H100, ONE, Load(max_num_seqs=2), V33).limit == "Sequences"


def test_an_old_engine_needs_room_for_16_bit_when_it_quantises_while_loading() -> None:
    small = replace(L40S, cuda_bytes=15 * GIB)
    load = Load(online_quantization="FP8", max_num_seqs=16)
    assert estimate(LLAMA3_8B, small, ONE, load, V33).fits is True
    assert estimate(LLAMA3_8B, small, ONE, load, (0, 10, 2)).limit == "Weights"


def test_the_fullest_step_of_a_pipeline_decides() -> None:
    found = estimate(LLAMA3_8B, L40S, Layout(pipeline=2), AS_IT_IS, V33)
    weights = [rank_weights(LLAMA3_8B, Layout(pipeline=2), stage) for stage in stages(32, 2)]
    assert found.weights == max(weights)
    assert found.kv_needed == 8192 * 16 * 4096


def test_engines_of_one_replica_add_up() -> None:
    one, two = (estimate(LLAMA3_8B, L40S, Layout(data=data), AS_IT_IS, V33) for data in (1, 2))
    assert two.concurrency == 2 * one.concurrency
    assert two.kv_tokens == pytest.approx(2 * one.kv_tokens, abs=1)
    assert two.kv == one.kv


@pytest.mark.parametrize(
    ("architecture", "device", "unknown", "known"),
    [
        (
            changed(QWEN25_VL_7B, vision=None, vision_parameters=None),
            L40S,
            {"weights", "activation", "kv"},
            {"kv_needed"},
        ),
        (changed(QWEN25_VL_7B, images=None), L40S, {"activation", "kv"}, {"weights", "kv_needed"}),
        (changed(QWEN25_VL_7B, max_context=None), L40S, {"kv_needed"}, {"weights", "kv"}),
        (QWEN25_VL_7B, Device(cuda_bytes=None), {"gpu", "budget", "kv"}, {"weights", "activation", "kv_needed"}),
    ],
    ids=["tower", "images", "context", "gpu"],
)
def test_unknown_stays_unknown_and_makes_unknown_what_needs_it(architecture, device, unknown, known) -> None:
    found = estimate(architecture, device, ONE, AS_IT_IS, V33)
    for name in unknown | {"kv_tokens", "concurrency", "fits"}:
        assert getattr(found, name) is None, name
    for name in known:
        assert getattr(found, name) is not None, name


def test_what_is_known_can_be_too_much_already() -> None:
    blind = changed(QWEN25_VL_7B, images=None)
    found = estimate(blind, replace(L40S, cuda_bytes=10 * GIB), ONE, AS_IT_IS, V33)
    assert (found.fits, found.limit, found.kv) == (False, "Weights", None)


loads = st.builds(
    Load,
    quantization=st.sampled_from(["None", "AWQ", "FP8"]),
    max_model_len=st.integers(256, 200_000),
    max_num_seqs=st.none() | st.integers(1, 1024),
    max_num_batched_tokens=st.none() | st.integers(256, 65_536),
)
versions = st.sampled_from([(0, 7, 3), (0, 10, 2), (0, 30), V33])


@given(architectures(), loads, st.sampled_from([1, 2, 4]), versions)
def test_more_ranks_never_leave_less_beyond_what_they_cost(architecture, load, tensor, version) -> None:
    here, there = (
        estimate(architecture, L40S, Layout(tensor=degree), load, version) for degree in (tensor, 2 * tensor)
    )
    assert there.weights <= here.weights
    assert there.activation <= here.activation
    assert there.kv - here.kv >= here.other - there.other
    assert there.kv_needed <= here.kv_needed


@given(architectures(), loads, versions)
def test_an_fp8_cache_holds_twice_the_tokens(architecture, load, version) -> None:
    here, there = (
        estimate(architecture, L40S, ONE, replace(load, kv_cache_dtype=dtype), version) for dtype in ("Auto", "FP8")
    )
    assert there.kv == here.kv
    assert there.kv_tokens == pytest.approx(2 * here.kv_tokens, abs=2)


@given(architectures(), loads, versions, st.floats(0.5, 0.97), st.integers(10, 200))
def test_it_fits_exactly_when_a_request_of_the_longest_context_does(architecture, load, version, share, gib) -> None:
    device = Device(cuda_bytes=gib * GIB, capability="8.0", memory_utilization=share)
    found = estimate(architecture, device, ONE, load, version)
    room = found.limit != "Budget"
    assert found.fits is (room and found.kv >= found.kv_needed)
    assert (found.concurrency >= 1) is (found.kv >= found.kv_needed)


@given(architectures(), loads, versions, st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4]))
def test_the_parts_add_up_to_the_budget(architecture, load, version, tensor, pipeline) -> None:
    found = estimate(architecture, L40S, Layout(tensor=tensor, pipeline=pipeline), load, version)
    graphs = found.graphs if version >= (0, 21) else 0
    assert found.weights + found.activation + found.other + graphs + found.kv == found.budget
