"""The words of each way in which vLLM fails, in the order in which they are looked for.

They are those of vLLM 0.10.2 to 0.33 and of what it is built on, read in its code or seen in logs; of a sentence that changed
with the versions, the part that did not.
"""

import re

from vlm_operator.engines.causes import ENGINE_HUNG, GPU_LOST, HOST_OUT_OF_MEMORY, HUNG_START, KV_CACHE_TOO_SMALL
from vlm_operator.engines.failures import Rule
from vlm_operator.engines.vllm.causes import (
    BAD_ARGUMENT,
    CONFIG_UNREADABLE,
    CUDA_OUT_OF_MEMORY,
    ENGINE_DIED,
    GPU_MEMORY_TAKEN,
    GPU_NOT_IN_BUILD,
    MODEL_LENGTH_TOO_LONG,
    NCCL_FAILURE,
    PERMISSION_DENIED,
    SHARED_MEMORY_TOO_SMALL,
    TENSOR_PARALLEL_INVALID,
    TOKENIZER_MISSING,
    UNSUPPORTED_ARCHITECTURE,
    UNSUPPORTED_QUANTIZATION,
    VERIFICATION_FAILED,
    WEIGHTS_INCOMPLETE,
    WEIGHTS_MISSING,
)

MOST_TENSOR_PARALLEL = 16
"""Degrees that are proposed; more GPUs than any node has."""


def _shorter(found: re.Match[str]) -> str:
    numbers = [int(number) for number in re.findall(r"\d+", re.sub(r"\.0\b", "", found["most"] or ""))]
    return f"set spec.model.maxModelLen to {min(numbers)} or less" if numbers else ""


def _shorter_or_more(found: re.Match[str]) -> str:
    shorter = _shorter(found)
    return f"{shorter}, raise spec.gpu.memoryUtilization, or use more or larger GPUs" if shorter else ""


def _dividing(found: re.Match[str]) -> str:
    number = int(found["number"] or 0)
    degrees = [str(degree) for degree in range(1, MOST_TENSOR_PARALLEL + 1) if number and number % degree == 0]
    return f"set spec.parallelism.tensor to a degree that divides {number}: {', '.join(degrees)}" if degrees else ""


def _more_shared_memory(found: re.Match[str]) -> str:
    return f"it needs {found['needed']} MiB there: {SHARED_MEMORY_TOO_SMALL.advice}"


def _half(_: re.Match[str]) -> str:
    return "add --dtype half to spec.engine.args, or set spec.gpu.products to GPUs that have bfloat16"


def _one_stage(_: re.Match[str]) -> str:
    return "set spec.parallelism.pipeline to 1"


def _larger_steps(found: re.Match[str]) -> str:
    return f"set spec.engine.maxNumBatchedTokens to {found['least']} or more, or lower spec.multimodal.maxPixels"


def _other_port(_: re.Match[str]) -> str:
    return "another container of the pod, such as one that a service mesh adds, has the port of the engine: keep it out"


def _trust(_: re.Match[str]) -> str:
    return "set spec.model.trustRemoteCode to true, if you trust the code that lies with the weights"


RULES = (
    # What the startup probe leaves as the message.
    Rule(
        (
            r"^the engine failed a small request with \d+: .*decoder prompt cannot be empty",
            r"^the engine failed a small request with \d+: .*<\|?\w*(?:image|img|vision)\w*\|?>",
            r"^the engine failed a small request with \d+: .*chat template",
        ),
        TOKENIZER_MISSING,
    ),
    Rule((r"^the engine wants an API key",), VERIFICATION_FAILED),
    Rule(
        (r"^the engine (?:failed a small request|answered a small request|broke off a small request)",),
        VERIFICATION_FAILED,
        vague=True,
    ),
    # The machine, whose failures make others.
    Rule(
        (
            r"\bXid \(PCI",
            r"fallen off the bus",
            r"\bGPU is lost",
            r"GpuIsLost",
            r"CUDA error: (?:uncorrectable|hardware|.*a hardware error)",
            r"CUDA error: (?:unknown error|initialization error|system not yet initialized|no CUDA-capable device)",
            r"CUDA error: CUDA-capable device\(s\) is/are busy",
            r"No CUDA GPUs are available",
            r"Failed to infer device type",
            r"CUDA unknown error",
            r"Driver/library version mismatch",
            r"NVMLError_\w+",
            r"Found no NVIDIA driver",
            r"NVIDIA driver on your system is too old",
            r"CUDA driver version is insufficient",
            r"Unable to determine the device handle for GPU",
            r"Unexpected error from cudaGetDeviceCount",
            r"lib(?:cuda|nvidia-ml)\.so\S*: cannot open shared object",
            r"larger than the number of available GPUs",
            r"less than or equal to the number of visible devices",
            r"less than than max local gpu count",
        ),
        GPU_LOST,
    ),
    Rule(
        (r"Insufficient space in /dev/shm.*?(?P<needed>\d+) MiB required",),
        SHARED_MEMORY_TOO_SMALL,
        _more_shared_memory,
    ),
    Rule(
        (
            r"Insufficient space in /dev/shm",
            r"(?:creating|extend) (?:shared memory segment|/dev/shm)",
            r"insufficient shared memory",
            r"posix_fallocate failed ?: No space left",
            r"No space left on device: '/(?:dev/shm|psm_)",
            r"unable to (?:open|allocate|resize|write).*shared memory",
            r"\b[Bb]us error\b",
        ),
        SHARED_MEMORY_TOO_SMALL,
    ),
    # Memory of the GPU.
    Rule(
        (r"To serve at least one request.*maximum model length is (?P<most>\d+)",), KV_CACHE_TOO_SMALL, _shorter_or_more
    ),
    Rule(
        (r"larger than the maximum number of tokens that can be stored in KV cache \((?P<most>\d+)\)",),
        KV_CACHE_TOO_SMALL,
        _shorter_or_more,
    ),
    Rule(
        (
            r"To serve at least one request with the models?'s max seq len",
            r"larger than the available KV cache memory",
            r"No available memory for the cache blocks",
            r"on kv cache allocation is less than requested memory",
        ),
        KV_CACHE_TOO_SMALL,
    ),
    Rule(
        (r"Free memory on device .*\bis less than (?:desired|the engine's budget)", r"Error in memory profiling"),
        GPU_MEMORY_TAKEN,
    ),
    Rule(
        (
            r"(?:CUDA|HIP) out of memory",
            r"torch\.(?:cuda\.)?OutOfMemoryError",
            r"(?:CUDA|HIP)(?: driver)? error: out of memory",
            r"CUDA_ERROR_OUT_OF_MEMORY",
            r"CU(?:BLAS|DNN|SPARSE)_STATUS_ALLOC_FAILED",
            r"Cuda failure.*'out of memory'",
        ),
        CUDA_OUT_OF_MEMORY,
    ),
    # The model, its files and its arguments.
    Rule((r"greater than the derived max_model_len(?: \((?P<most>[^)]*))?",), MODEL_LENGTH_TOO_LONG, _shorter),
    Rule((r"(?P<number>\d+)\) must be divisible by tensor parallel size",), TENSOR_PARALLEL_INVALID, _dividing),
    Rule((r"AssertionError: (?P<number>\d+) is not divisible by \d+$",), TENSOR_PARALLEL_INVALID, _dividing),
    Rule(
        (
            r"divisible by (?:the )?(?:tensor[ _]parallel|tp_size|tp size|weight quantization block)",
            r"too large tensor parallel size",
            r"[Cc]onsider reducing tensor_parallel_size",
            r"[Tt]ensor parallel size .*(?:incompatible|divisible|(?:larg|great)er than)",
        ),
        TENSOR_PARALLEL_INVALID,
    ),
    Rule(
        (
            r"Unknown quantization method",
            r"Cannot find the config file for",
            r"does not match the quantization method specified",
            r"[Qq]uantization (?:method|scheme) .*not supported",
            r"not supported for quantization method",
            r"\bfp8\w+ (?:data type is )?not supported (?:in|on) (?:this|CUDA) arch",
            r"No compiled \w+ for (?:a )?compute capability",
            r"Invalid quantization method",
            r"Failed to find a kernel that can implement",
        ),
        UNSUPPORTED_QUANTIZATION,
    ),
    Rule((r"[Bb]float16 is only supported on GPUs",), UNSUPPORTED_QUANTIZATION, _half),
    Rule((r"no kernel image is available for execution",), GPU_NOT_IN_BUILD),
    Rule((r"contains custom code which must be executed", r"Failed to load the model config"), BAD_ARGUMENT, _trust),
    Rule((r"^OSError: \[Errno 98\] Address already in use",), BAD_ARGUMENT, _other_port),
    Rule((r"Pipeline parallelism is not supported for this model",), BAD_ARGUMENT, _one_stage),
    Rule(
        (r"max_tokens_per_mm_item \((?P<least>\d+)\) is larger than max_num_batched_tokens",),
        BAD_ARGUMENT,
        _larger_steps,
    ),
    Rule(
        (
            r"Model architectures? \S.* (?:not supported|was supported in vLLM until|failed to be inspected)",
            r"does not recognize this architecture",
            r"Cannot find model module",
            r"is not compatible with vLLM",
            r"Unrecognized configuration class",
            r"Tokenizer class \S+ does not exist",
        ),
        UNSUPPORTED_ARCHITECTURE,
    ),
    Rule((r"Repo id must be in the form .*: '/", r"Cannot find any model weights"), WEIGHTS_MISSING),
    Rule(
        (
            r"Can't load (?:tokenizer|(?:image |video )?processor|feature extractor) for",
            r"Unable to load vocabulary from file",
            r"instantiate the backend tokenizer",
            r"Can't find a vocabulary file",
            r"No tokenizer file found",
            r"Failed to load the tokenizer",
            r"Unrecognized (?:(?:image |video )?process|feature extractor)",
            r"untagged enum ModelWrapper",
            r"parse ModelProto",
            r"No such file or directory: '\S*(?:tokenizer|vocab|merges|processor_config)",
            r"does not appear to have a file named \S*(?:tokenizer|vocab|merges|processor_config)",
        ),
        TOKENIZER_MISSING,
    ),
    Rule(
        (
            r"Error while deserializing header",
            r"PytorchStreamReader failed",
            r"weights were not initialized from",
            r"UnpicklingError: invalid load key",
            r"(?:No such file or directory: |does not appear to have a file named )['\"]?\S+\.(?:safetensors|bin|pt)\b",
        ),
        WEIGHTS_INCOMPLETE,
    ),
    Rule(
        (
            r"is not a valid JSON file",
            r"Should have a `model_type` key",
            r"No model architectures are specified",
            r"does not appear to have a file named config\.json",
            r"Can't load the configuration of",
            r"Could not detect config format",
            r"No such file or directory: '\S*/config\.json",
        ),
        CONFIG_UNREADABLE,
    ),
    Rule(
        (
            r"Invalid repository ID or local directory",
            r"is not a local folder and is not a valid model identifier",
            r"offline mode is enabled",
            r"connect to 'https://huggingface\.co'",
            r"Incorrect path_or_model_id",
        ),
        WEIGHTS_MISSING,
    ),
    Rule(
        (
            r"\[Errno 13\] Permission denied",
            r"Permission denied \(os error 13\)",
            r"\[Errno 1\] Operation not permitted",
            r"Read-only file system",
            r"No usable temporary directory",
        ),
        PERMISSION_DENIED,
    ),
    Rule(
        (
            r"^\S*(?:vllm|\.py)(?: [\w-]+)?: error: ",
            r"Error: --[a-z-]+ requires",
            r"max_num_batched_tokens \(\d+\) is smaller than",
            r"appears to be a URI",
            r"Error: Unknown vLLM environment variable",
            r"invalid (?:tool call|reasoning) parser",
            r"appears path-like, but doesn't exist",
        ),
        BAD_ARGUMENT,
    ),
    Rule((r"^(?:Value error, |Assertion failed, |Input should be |Unexpected keyword argument)",), BAD_ARGUMENT),
    Rule((r"JSONDecodeError: ",), CONFIG_UNREADABLE),
    Rule(
        (
            r"ModuleNotFoundError: No module named",
            r"requires the following packages",
            r"but it was not found in your environment",
        ),
        UNSUPPORTED_ARCHITECTURE,
    ),
    # What breaks between processes, often for a cause further up.
    Rule(
        (
            r"NCCL error\b",
            r"\bnccl(?:System|Internal|UnhandledCuda|Remote|InvalidUsage|InvalidArgument)Error",
            r"DistNetworkError",
            r"DistStoreError",
            r"Watchdog caught collective operation timeout",
            r"setting up NCCL communicator",
            r"Some NCCL operations have failed",
            r"custom_all_reduce\.cuh:\d+",
            r"peer access is not supported",
            r"Gloo connectFullMesh failed",
        ),
        NCCL_FAILURE,
    ),
    Rule((r"RPC call to \w+ timed out",), ENGINE_HUNG),
    Rule((r"Timed out waiting for engine core processes to start",), HUNG_START),
    Rule(
        (
            r"(?:died|dead).*exit ?code:? -9\b",
            r"^MemoryError\b",
            r"Cannot allocate memory",
            r"node running low on memory",
            r"DefaultCPUAllocator: can't allocate memory",
            r"std::bad_alloc",
        ),
        HOST_OUT_OF_MEMORY,
    ),
    Rule((r"CUDA error: ", r"device-side assert triggered", r"[Ss]egmentation fault"), ENGINE_DIED),
    Rule(
        (
            r"Engine core proc\w* \S+ died",
            r"Worker proc \S+ died",
            r"died with exit code",
            r"EngineCore encountered an? ",
            r"EngineDeadError",
            r"Engine process failed to start",
            r"Engine core initialization failed",
            r"WorkerProc initialization failed",
            r"EngineCore failed to start",
        ),
        ENGINE_DIED,
        vague=True,
    ),
)
