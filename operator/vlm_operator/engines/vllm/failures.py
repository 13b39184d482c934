"""Why vLLM ended, by its last words: the termination message of its container, or the end of its log.

The words are those of vLLM 0.10.2 to 0.33 and of what it is built on, seen in logs or read in its code. What fails in the
engine's or a worker's own process stands in the log alone: the message then says only that the engine did not start.
"""

from vlm_operator.engines.failures import Failure, Rule, first_failure

BAD_ARGUMENT = "BadArgument"
"""The engine does not know an argument, or does not take its value."""
VERIFICATION_FAILED = "VerificationFailed"
"""The engine runs and answers, but not as one that can serve."""
MODEL_LENGTH_TOO_LONG = "ModelLengthTooLong"
"""maxModelLen is beyond what the model was made for."""
KV_CACHE_TOO_SMALL = "KVCacheTooSmall"
"""What weights and steps leave of the GPU does not hold one request of the longest context."""
GPU_MEMORY_TAKEN = "GpuMemoryTaken"
"""The share of the GPU that the engine may use is not free when it starts."""
CUDA_OUT_OF_MEMORY = "CudaOutOfMemory"
"""The GPU's memory was used up."""
UNSUPPORTED_ARCHITECTURE = "UnsupportedArchitecture"
"""The engine does not have the model's class."""
UNSUPPORTED_QUANTIZATION = "UnsupportedQuantization"
"""The engine, the GPU or the checkpoint does not have the format of the weights."""
TENSOR_PARALLEL_INVALID = "TensorParallelInvalid"
"""The model cannot be shared evenly by the tensor-parallel GPUs."""
WEIGHTS_MISSING = "WeightsMissing"
"""There is no model, or no weights, in the folder."""
WEIGHTS_INCOMPLETE = "WeightsIncomplete"
"""A file of the weights ends too early."""
CONFIG_UNREADABLE = "ConfigUnreadable"
"""config.json is no JSON."""
PERMISSION_DENIED = "PermissionDenied"
"""The engine's user may not read a file."""
SHARED_MEMORY_TOO_SMALL = "SharedMemoryTooSmall"
"""The engine's queues do not fit into /dev/shm."""

_ARGUMENTS = "change spec.engine.args, or set spec.engine.version to the version in spec.engine.image"
_FOLDER = "make sure that spec.weights.persistentVolumeClaim.path names the folder with config.json and *.safetensors"
_FIT = "lower spec.model.maxModelLen, raise spec.gpu.memoryUtilization, or use more or larger GPUs"

RULES = (
    # What the startup probe leaves as the message.
    Rule(
        r"the engine (?:wants an API key|failed a small request|answered a small request|broke off a small request)",
        VERIFICATION_FAILED,
        "mend what it answers to; spec.engine.verification: Health serves without asking",
    ),
    Rule(r"^\S*(?:vllm|\.py)(?: serve)?: error: ", BAD_ARGUMENT, _ARGUMENTS),
    Rule(
        r"User-specified max_model_len \(\d+\) is greater than the derived max_model_len",
        MODEL_LENGTH_TOO_LONG,
        "lower spec.model.maxModelLen",
    ),
    Rule(r"To serve at least one request with the models?'s max seq len", KV_CACHE_TOO_SMALL, _FIT),
    Rule(r"The model's max seq len \(\d+\) is larger than the maximum number of tokens", KV_CACHE_TOO_SMALL, _FIT),
    Rule(r"No available memory for the cache blocks", KV_CACHE_TOO_SMALL, _FIT),
    Rule(
        r"Free memory on device .*\bis less than desired GPU memory utilization",
        GPU_MEMORY_TAKEN,
        "end what else uses the GPU, or lower spec.gpu.memoryUtilization",
    ),
    Rule(
        r"torch\.(?:cuda\.)?OutOfMemoryError|CUDA out of memory",
        CUDA_OUT_OF_MEMORY,
        "lower spec.gpu.memoryUtilization, spec.multimodal.maxPixels or spec.engine.maxNumBatchedTokens,"
        " or use more or larger GPUs",
    ),
    Rule(
        r"Model architectures? \S.* (?:not supported|was supported in vLLM until|failed to be inspected)",
        UNSUPPORTED_ARCHITECTURE,
        "set spec.engine.version to one that has the model's class, or spec.engine.image to one with what it needs",
    ),
    Rule(
        r"Unknown quantization method|Cannot find the config file for|"
        r"The quantization method \S+ is not supported for the current GPU",
        UNSUPPORTED_QUANTIZATION,
        "set spec.model.quantization to the format of the weights, and spec.gpu.products to GPUs that run it",
    ),
    Rule(
        r"Total number of attention heads \(\d+\) must be divisible by tensor parallel size",
        TENSOR_PARALLEL_INVALID,
        "set spec.parallelism.tensor to a degree that divides the heads",
    ),
    Rule(r"Repo id must be in the form .*: '/", WEIGHTS_MISSING, _FOLDER),
    Rule(r"Cannot find any model weights with", WEIGHTS_MISSING, _FOLDER),
    Rule(r"Error while deserializing header", WEIGHTS_INCOMPLETE, "copy the weights to the claim again"),
    Rule(
        r"It looks like the config file at '.*' is not a valid JSON file",
        CONFIG_UNREADABLE,
        "copy config.json to the claim again",
    ),
    Rule(
        r"PermissionError: \[Errno 13\] Permission denied: ",
        PERMISSION_DENIED,
        "make the files readable for spec.podTemplate.securityContext.runAsUser or fsGroup",
    ),
    Rule(
        r"Insufficient space in /dev/shm",
        SHARED_MEMORY_TOO_SMALL,
        "leave /dev/shm to the operator's pod template, which makes it large enough",
    ),
)


_WRONG_ARGUMENTS = 2
"""Exit code of the argument parser, and of nothing else."""


def failure(exit_code: int | None, text: str) -> Failure | None:
    """Why it ended; None when neither its words nor its exit code tell anything that is known."""
    if exit_code == _WRONG_ARGUMENTS and not text.strip():
        return Failure(reason=BAD_ARGUMENT, evidence="", advice=_ARGUMENTS)
    return first_failure(RULES, text)
