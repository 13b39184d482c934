"""What vLLM's last words mean.

The words are from containers of its CPU build that were made to fail; those marked with a file are from its code, and the
words of PyTorch are as public reports have them.
"""

import pytest

from vlm_operator.engines.failures import Rule, first_failure
from vlm_operator.engines.vllm.failures import RULES, failure

NOISE = """\
(APIServer pid=1) WARNING 11-30 10:00:00 [system_utils.py:255] Found ulimit of 20000 and failed to automatically increase \
with error current limit exceeds maximum limit. This can cause fd limit errors like `OSError: [Errno 24] Too many open files`.
"""
PLAIN = "usage: vllm [-h] [-v]\n            ...\n{}\n"
PYDANTIC = """\
    s.__pydantic_validator__.validate_python(ArgsKwargs(args, kwargs), self_instance=s)
pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig
  Value error, {} [type=value_error, input_value=ArgsKwargs((), {{'model_co...'shutdown_timeout': 30}}), input_type=ArgsKwargs]
    For further information visit https://errors.pydantic.dev/2.12/v/value_error
"""
IN_ENGINE = """\
(EngineCore pid=83) ERROR 11-30 10:02:00 [core.py:1510] SomeError: {}
    raise RuntimeError(
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}
"""

TEXTS = [
    ("BadArgument", PLAIN, "vllm: error: unrecognized arguments: --no-such-flag"),
    ("BadArgument", PLAIN, "vllm serve: error: argument --dtype: invalid choice: 'x' (choose from auto, half)"),
    ("BadArgument", PLAIN, "api_server.py: error: argument --seed: invalid int value: 'x'"),
    (
        "ModelLengthTooLong",
        PYDANTIC,
        "User-specified max_model_len (65536) is greater than the derived max_model_len (max_position_embeddings=32768.0).",
    ),
    ("UnsupportedQuantization", PYDANTIC, "Unknown quantization method: nosuchq. Must be one of ['awq', 'fp8']."),
    ("UnsupportedQuantization", PYDANTIC, "Cannot find the config file for awq"),
    (  # vllm/config/vllm.py
        "UnsupportedQuantization",
        PYDANTIC,
        "The quantization method awq_marlin is not supported for the current GPU. Minimum capability: 75.",
    ),
    (
        "TensorParallelInvalid",
        PYDANTIC,
        "Total number of attention heads (4) must be divisible by tensor parallel size (3).",
    ),
    ("WeightsMissing", PLAIN, "Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/models'."),
    ("WeightsMissing", IN_ENGINE, "Cannot find any model weights with `/models`"),
    ("WeightsIncomplete", IN_ENGINE, "Error while deserializing header: incomplete metadata, file not fully covered"),
    ("ConfigUnreadable", PLAIN, "It looks like the config file at '/models/config.json' is not a valid JSON file."),
    ("PermissionDenied", PLAIN, "PermissionError: [Errno 13] Permission denied: '/models/model.safetensors'"),
    (
        "SharedMemoryTooSmall",
        IN_ENGINE,
        "Insufficient space in /dev/shm for shared-memory allocation: 160 MiB required, 1 MiB free.",
    ),
    (
        "KVCacheTooSmall",
        IN_ENGINE,
        "To serve at least one request with the model's max seq len (2000000), (1.91 GiB KV cache is needed, which is larger",
    ),
    (  # vllm/v1/core/kv_cache_utils.py of 0.10.2
        "KVCacheTooSmall",
        IN_ENGINE,
        "To serve at least one request with the models's max seq len (8192), (4.00 GiB KV cache is needed",
    ),
    (  # vllm/worker/worker.py of 0.10.2
        "KVCacheTooSmall",
        PLAIN,
        "The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache (13024).",
    ),
    # vllm/v1/core/kv_cache_planning.py
    (
        "KVCacheTooSmall",
        IN_ENGINE,
        "No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.",
    ),
    (  # vllm/v1/worker/utils.py
        "GpuMemoryTaken",
        IN_ENGINE,
        "Free memory on device cuda:0 (3.1/44.39 GiB) on startup is less than desired GPU memory utilization (0.92, 40.84 GiB).",
    ),
    (
        "CudaOutOfMemory",
        IN_ENGINE,
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 5.00 GiB. GPU 0 has a total capacity of",
    ),
    # vllm/model_executor/models/registry.py
    ("UnsupportedArchitecture", PYDANTIC, "Model architectures ['NoSuchModel'] are not supported for now."),
    (
        "UnsupportedArchitecture",
        PYDANTIC,
        "Model architecture MllamaForConditionalGeneration was supported in vLLM until v0.10.2, and is not supported anymore.",
    ),
    (
        "UnsupportedArchitecture",
        PYDANTIC,
        "Model architectures ['LlavaForConditionalGeneration'] failed to be inspected.",
    ),
    # What the startup probe leaves.
    ("VerificationFailed", PLAIN, "the engine failed a small request with 500: <|image_pad|>"),
    ("VerificationFailed", PLAIN, "the engine wants an API key (401): the key in VLLM_API_KEY was refused"),
]


@pytest.mark.parametrize(("reason", "frame", "words"), TEXTS, ids=[row[0] for row in TEXTS])
def test_its_last_words_have_a_name(reason: str, frame: str, words: str) -> None:
    found = failure(1, NOISE + frame.format(words))
    assert found is not None
    assert (found.reason, found.evidence) == (reason, words)
    assert found.advice


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.words[:40])
def test_no_rule_stands_for_nothing(rule: Rule) -> None:
    others = [other for other in RULES if other is not rule]
    assert any(first_failure(others, frame.format(words)) is None for _, frame, words in TEXTS)


NEAR_MISSES = [
    NOISE,
    "INFO 11-30 10:00:00 [core.py:99] GPU KV cache size: 13,024 tokens\nINFO:     Application startup complete.",
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}",
    "OSError: [Errno 98] Address already in use",
    "FileNotFoundError: [Errno 2] No usable temporary directory found in ['/tmp', '/var/tmp']",
    "Repo id must be in the form 'repo_name' or 'namespace/repo_name': 'a/b/c'.",
    "WARNING Using max_model_len (65536), which is what the model was made for",
    "INFO torch memory: no CUDA device is out of order",
    "the engine is not up yet: [Errno 111] Connection refused",
    "the engine answered",
    "",
]


@pytest.mark.parametrize("text", NEAR_MISSES)
def test_what_it_says_besides_is_no_failure(text: str) -> None:
    assert failure(1, text) is None


def test_its_argument_parser_is_known_by_the_exit_code_where_there_are_no_words() -> None:
    found = failure(2, "")
    assert found is not None
    assert (found.reason, found.evidence) == ("BadArgument", "")
    assert failure(1, "") is None
    assert failure(2, NOISE) is None
