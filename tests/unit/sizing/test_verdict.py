"""Whether it fits is told with the whole sum, and what is advised does fit."""

import re
from typing import Any

import pytest

from unit.replicas.tables import table
from unit.sizing.subjects import QWEN_7B, QWEN_72B, STATED, only, subject
from vlm_operator.sizing import verdict
from vlm_operator.sizing.fit import leaves_reserve
from vlm_operator.sizing.memory import GIB
from vlm_operator.sizing.verdict import Trial, choose, decisive, load_of, trials, undecided

L40S, L4, T4, H100 = "NVIDIA-L40S", "NVIDIA-L4", "Tesla-T4", "NVIDIA-H100-80GB-HBM3"


def trial(about: Any, tensor: int) -> Trial | None:
    return decisive(trials(about, tensor))


def judged(name: str = QWEN_7B, *, tensor: int = 1, version: str = "0.33", **sections: Any) -> Any:
    about = subject(name, version=version, parallelism={"tensor": tensor}, **sections)
    tried = trial(about, tensor)
    return [] if tried is None else list(verdict.check(about, tried))


IMAGES_ALONE = {"limitsPerPrompt": {"video": 0}}


def on(product: str, **more: Any) -> dict[str, Any]:
    return {"gpu": {"products": [product], **more}, "multimodal": IMAGES_ALONE}


LONG_STEPS = {"maxNumSeqs": 2048, "maxNumBatchedTokens": 65536}
NOT_FITTING = [
    ("weights", on(T4), "WeightsDoNotFit", "spec.gpu.products[0]"),
    ("the context", on(L4), "ContextDoesNotFit", "spec.model.maxModelLen"),
    ("a step", on(L4) | {"engine": LONG_STEPS}, "StepDoesNotFit", "spec.gpu.products[0]"),
    ("the share of a GPU", on(L40S, memoryUtilization=100), "MemoryUtilizationTooHigh", "spec.gpu.memoryUtilization"),
    ("weights, with memory from the spec", {"gpu": {"memory": "12Gi"}}, "WeightsDoNotFit", "spec.gpu.memory"),
]


@table("sections, reason, field", NOT_FITTING)
def test_what_stands_in_the_way(sections: dict[str, Any], reason: str, field: str) -> None:
    (found,) = judged(**sections)
    assert (found.reason, found.field, found.severity) == (reason, field, "Error")
    assert found.advice


def test_the_sum_adds_up() -> None:
    found = only(judged(**on(L4)), "ContextDoesNotFit")
    words = (
        r"NVIDIA-L4 has 22.06 GiB, of which 92 % are ([0-9.]+): weights take ([0-9.]+), the peak of a step ([0-9.]+),"
        r" graphs and buffers ([0-9.]+), which leaves ([0-9.]+) GiB for the KV cache, and one request of 128000 tokens"
        r" needs ([0-9.]+)"
    )
    match = re.fullmatch(words, found.message)
    assert match is not None, found.message
    budget, weights, step, rest, left, needed = map(float, match.groups())
    assert budget == pytest.approx(22.06 * 0.92, abs=0.01)
    assert budget - weights - step - rest == pytest.approx(left, abs=0.03)
    assert needed == pytest.approx(128000 * 57344 / GIB, abs=0.01)
    assert left < needed


def test_what_is_too_much_is_told_as_such() -> None:
    assert re.search(r"which is [0-9.]+ GiB too much$", only(judged(**on(T4)), "WeightsDoNotFit").message)


def test_what_is_advised_fits() -> None:
    advice = only(judged(**on(L4)), "ContextDoesNotFit").advice
    assert advice.startswith("set maxModelLen to ")
    length = int(re.findall(r"maxModelLen to ([0-9]+)", advice)[0])
    assert judged(model={"maxModelLen": length}, **on(L4)) == []
    assert judged(model={"maxModelLen": length + 2048}, **on(L4)) != []
    assert advice.endswith("onlineQuantization to FP8, quantization to AWQ (with such weights) or tensor to 2")
    assert judged(model={"onlineQuantization": "FP8"}, **on(L4)) == []
    assert judged(model={"quantization": "AWQ"}, **on(L4)) == []
    assert judged(tensor=2, **on(L4)) == []


def test_a_context_that_does_not_hold_an_image_is_not_advised() -> None:
    advice = only(judged(**on(L4, memoryUtilization=85)), "ContextDoesNotFit").advice
    assert "maxModelLen" not in advice
    assert "tensor to 2" in advice


def test_two_changes_are_advised_where_one_is_not_enough() -> None:
    advice = only(judged(QWEN_72B, **on(L4)), "WeightsDoNotFit").advice
    assert advice.startswith("set tensor to 8, together with ")


def test_formats_that_the_gpu_cannot_run_are_not_advised() -> None:
    findings = judged(**on("Tesla-V100-SXM2-16GB"))
    assert "uantization" not in findings[0].advice


def test_where_nothing_helps_that_is_said() -> None:
    findings = judged("Qwen/Qwen3-VL-235B-A22B-Instruct", **on(T4))
    assert findings[0].advice == "none of the usual changes is enough: use larger GPUs, or a smaller model"


@pytest.mark.parametrize("flag", ["--cpu-offload-gb", "--kv-cache-memory-bytes", "--hf-overrides"])
def test_flags_that_change_the_sum_leave_a_warning(flag: str) -> None:
    found = only(judged(**on(T4), engine={"args": [f"{flag}=1"]}), "WeightsDoNotFit")
    assert found.severity == "Warning"
    assert found.message.endswith(f"({flag} changes the sum)")


def test_the_gpu_with_the_least_room_decides() -> None:
    about = subject(gpu={"products": [H100, L4, L40S, "X"]}, multimodal=IMAGES_ALONE)
    tried = trial(about, 1)
    assert tried is not None
    assert tried.candidate is not None
    assert tried.candidate.label == L4
    assert only(verdict.check(about, tried), "ContextDoesNotFit").message.startswith("NVIDIA-L4 has")


def test_without_any_memory_the_weights_are_known_all_the_same() -> None:
    tried = trial(subject(), 1)
    assert tried is not None
    assert tried.candidate is None
    assert (tried.memory.fits, tried.memory.kv) == (None, None)
    assert tried.memory.weights is not None
    assert tried.memory.weights / GIB == pytest.approx(15.57, rel=0.03)
    assert judged() == []


def test_unknown_sizes_and_impossible_pipelines_are_not_tried() -> None:
    assert trial(subject("me/other"), 1) is None
    assert trial(subject(parallelism={"pipeline": 29}), 1) is None


def test_what_is_missing_is_named() -> None:
    found = only(judged("microsoft/Phi-4-multimodal-instruct", **on(L40S)), "FitUnknown")
    assert found.severity == "Warning"
    assert found.message.startswith("whether the model fits on NVIDIA-L40S is not known: ")


def test_a_model_outside_the_catalogue_is_weighed_by_its_stated_sizes() -> None:
    text = STATED | {"name": "Qwen2ForCausalLM"}
    assert only(judged("me/other", model={"architecture": text}, **on(T4)), "WeightsDoNotFit").severity == "Error"


def test_the_load_is_that_of_the_spec() -> None:
    load = load_of(
        subject(
            model={"quantization": "AWQ", "maxModelLen": 4096, "kvCacheDtype": "FP8"},
            engine={"maxNumSeqs": 8, "maxNumBatchedTokens": 1024, "args": ["--enforce-eager"]},
            multimodal={"limitsPerPrompt": {"image": 2, "video": 0}, "minPixels": 3136, "maxPixels": 1003520},
        )
    )
    assert (load.quantization, load.group_size, load.kv_cache_dtype) == ("AWQ", 128, "FP8")
    assert (load.max_model_len, load.max_num_seqs, load.max_num_batched_tokens) == (4096, 8, 1024)
    assert (load.images_per_prompt, load.videos_per_prompt, load.min_pixels, load.max_pixels) == (2, 0, 3136, 1003520)
    assert load.eager


def test_the_weights_of_a_named_repository_count() -> None:
    awq = load_of(subject(f"{QWEN_72B}-AWQ"))
    assert (awq.quantization, awq.bits) == ("AWQ", 4)
    eight_bit = load_of(subject("Qwen/Qwen2-VL-72B-Instruct-GPTQ-Int8", model={"quantization": "GPTQ"}))
    assert (eight_bit.quantization, eight_bit.bits) == ("GPTQ", 8)


def test_a_format_that_cannot_be_weighed_is_taken_as_the_spec_says() -> None:
    load = load_of(subject("openbmb/MiniCPM-V-2_6-int4", model={"quantization": "INT8"}))
    assert (load.quantization, load.bits) == ("INT8", None)


def auto(name: str = QWEN_7B, **sections: Any) -> Any:
    return subject(name, parallelism={"tensor": "Auto"}, **sections)


AUTO = [
    ("one GPU is enough", QWEN_7B, L40S, 1),
    ("the context needs two", QWEN_7B, L4, 2),
    ("weights need four", QWEN_72B, H100, 4),
    ("weights need eight", QWEN_72B, L40S, 8),
]


@table("name, product, degree", AUTO)
def test_auto_takes_the_smallest_degree_that_fits_with_the_reserve(name: str, product: str, degree: int) -> None:
    about = auto(name, **on(product))
    found, tried = choose(about)
    assert found == degree
    assert tried is not None
    assert tried.tensor == degree
    assert leaves_reserve(tried.memory)
    assert list(verdict.check(about, tried)) == []


def test_auto_takes_what_fits_without_the_reserve_where_nothing_has_it() -> None:
    lengths = range(32768, 40000, 1024)
    for length in lengths:
        about = auto(model={"maxModelLen": length}, gpus_per_node=1, **on(L4))
        degree, tried = choose(about)
        if degree == 1 and not leaves_reserve(tried.memory):  # type: ignore[union-attr]
            found = only(verdict.check(about, tried), "TensorParallelTight")  # type: ignore[arg-type]
            assert found.severity == "Warning"
            assert "leaves less than 5% of the GPU beyond one request" in found.message
            return
    pytest.fail("there is a length that fits, but not with the reserve")


def test_auto_that_fits_nowhere_shows_the_largest_degree() -> None:
    about = auto(QWEN_72B, **on(T4))
    degree, tried = choose(about)
    assert degree is None
    found = undecided(about, tried)
    assert (found.severity, found.field) == ("Error", "spec.parallelism.tensor")
    assert found.message.startswith(
        "tensor is Auto, but the model fits at none of 1, 2, 4 and 8; at 8, Tesla-T4 has 14.56 GiB"
    )


@pytest.mark.parametrize(
    ("about", "missing"),
    [
        (auto(), "the memory of the GPU"),
        (auto("me/other", **on(L40S)), "the model"),
        (auto("microsoft/Phi-4-multimodal-instruct", **on(L40S)), "the model"),
    ],
)
def test_auto_needs_to_know(about: Any, missing: str) -> None:
    degree, tried = choose(about)
    assert degree is None
    assert undecided(about, tried).sentence() == (
        f"spec.parallelism.tensor: tensor is Auto, but too little is known of {missing} to choose;"
        " set tensor to a number"
    )


QWEN_72B_AWQ = "Qwen/Qwen2.5-VL-72B-Instruct-AWQ"


@pytest.mark.parametrize("tensor", ["Auto", 1])
def test_weights_that_cannot_be_shared_are_told_with_others_that_can(tensor: Any) -> None:
    about = subject(QWEN_72B, model={"quantization": "AWQ"}, parallelism={"tensor": tensor}, **on(L40S))
    if tensor == "Auto":
        degree, last = choose(about)
        assert degree is None
        advice = undecided(about, last).advice
    else:
        advice = only(judged(QWEN_72B, model={"quantization": "AWQ"}, **on(L40S)), "WeightsDoNotFit").advice
    more = "" if tensor == "Auto" else " and tensor to 4"
    assert advice.startswith(
        f"set quantization to FP8 (with such weights){more}, or set model.name to {QWEN_72B_AWQ}{more}"
    )


@pytest.mark.parametrize(("name", "format_"), [(QWEN_72B, "FP8"), (QWEN_72B_AWQ, "AWQ")])
def test_the_other_weights_that_are_told_fit(name: str, format_: str) -> None:
    about = subject(name, model={"quantization": format_}, parallelism={"tensor": "Auto"}, **on(L40S))
    assert choose(about)[0] is not None


def test_other_weights_go_without_those_turned_while_loading() -> None:
    about = subject(
        QWEN_72B,
        gpus_per_node=1,
        model={"onlineQuantization": "FP8", "maxModelLen": 4096},
        parallelism={"tensor": "Auto"},
        **on(H100),
    )
    advice = undecided(about, choose(about)[1]).advice
    assert advice.startswith(
        "set quantization to AWQ (with such weights) without onlineQuantization, or set model.name"
    )


def test_stated_bits_are_not_those_of_other_weights() -> None:
    sizes = STATED | {"layers": 76, "visionParameters": 10**9, "weightBits": 4, "maxContext": 4096}
    no_images = {"multimodal": {"limitsPerPrompt": {"image": 0, "video": 0}}}
    model = {"quantization": "AWQ", "architecture": sizes}
    about = subject("me/other", gpus_per_node=1, model=model, engine={"maxNumSeqs": 8}, **on(L4) | no_images)
    tried = trial(about, 1)
    assert tried is not None
    assert tried.memory.fits
    assert verdict._least_degree(about, quantization="FP8") is None


@pytest.mark.parametrize("product", ["NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-PCIE-40GB"])
def test_the_largest_image_of_72b_is_too_much_for_four_gpus_of_40_gb(product: str) -> None:
    findings = judged(
        QWEN_72B,
        tensor=4,
        model={"maxModelLen": 4096},
        engine={"maxNumSeqs": 2},
        **on(product, memoryUtilization=95),
    )
    assert "the peak of a step 2.16" in only(findings, "StepDoesNotFit").message
