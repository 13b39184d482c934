"""The ways in which vLLM fails to start or to go on, as the reference page tells them."""

from vlm_operator.engines.causes import ENGINE_HUNG, GPU_LOST, HOST_OUT_OF_MEMORY, HUNG_START, KV_CACHE_TOO_SMALL
from vlm_operator.engines.failures import Cause, Waiting

_MESSAGE, _LOG, _BOTH = "termination message", "end of the engine's log", "termination message or end of the log"

BAD_ARGUMENT = Cause(
    reason="BadArgument",
    meaning="the engine does not know an argument or a variable, or does not take its value",
    seen_in=f"exit code 2, or {_MESSAGE}",
    advice="change spec.engine.args or spec.engine.env, or set spec.engine.version to the version in spec.engine.image",
    waiting=Waiting.IS_VAIN,
)
MODEL_LENGTH_TOO_LONG = Cause(
    reason="ModelLengthTooLong",
    meaning="the context is longer than the model was made for",
    seen_in=_MESSAGE,
    advice="lower spec.model.maxModelLen",
    waiting=Waiting.IS_VAIN,
)
GPU_MEMORY_TAKEN = Cause(
    reason="GpuMemoryTaken",
    meaning="the share of the GPU that the engine may use is not free when it starts: something else holds it, or the replica"
    " before has not let go yet",
    seen_in=_LOG,
    advice="end what else uses the GPU, or lower spec.gpu.memoryUtilization",
    waiting=Waiting.HELPS_ONCE,
)
CUDA_OUT_OF_MEMORY = Cause(
    reason="CudaOutOfMemory",
    meaning="the memory of the GPU was used up",
    seen_in=_LOG,
    advice="lower spec.gpu.memoryUtilization, spec.engine.maxNumSeqs, spec.multimodal.maxPixels or"
    " spec.engine.maxNumBatchedTokens, or use more or larger GPUs",
    waiting=Waiting.HELPS_ONCE,
    while_serving=True,
)
UNSUPPORTED_ARCHITECTURE = Cause(
    reason="UnsupportedArchitecture",
    meaning="the engine does not have the model's class, or not what that class needs",
    seen_in=_BOTH,
    advice="set spec.engine.version to one that has the model's class, or spec.engine.image to one with what it needs",
    waiting=Waiting.IS_VAIN,
)
UNSUPPORTED_QUANTIZATION = Cause(
    reason="UnsupportedQuantization",
    meaning="the engine, the GPU or the checkpoint does not have the format of the weights",
    seen_in=_BOTH,
    advice="set spec.model.quantization to the format of the weights, and spec.gpu.products to GPUs that run it",
    waiting=Waiting.IS_VAIN,
)
GPU_NOT_IN_BUILD = Cause(
    reason="GpuNotInBuild",
    meaning="the image was not built for this GPU",
    seen_in=_LOG,
    advice="remove the GPU from spec.gpu.products, or set spec.engine.image to one that was built for it",
    waiting=Waiting.IS_VAIN,
)
TENSOR_PARALLEL_INVALID = Cause(
    reason="TensorParallelInvalid",
    meaning="the model cannot be shared evenly by the tensor-parallel GPUs",
    seen_in=_BOTH,
    advice="set spec.parallelism.tensor to a degree that divides it, for example 1",
    waiting=Waiting.IS_VAIN,
)
SHARED_MEMORY_TOO_SMALL = Cause(
    reason="SharedMemoryTooSmall",
    meaning="what the engine's processes share does not fit into /dev/shm",
    seen_in=_LOG,
    advice="leave /dev/shm to the operator's pod template, or raise spec.multimodal.processorCache, with which it grows",
    waiting=Waiting.IS_VAIN,
    while_serving=True,
)
NCCL_FAILURE = Cause(
    reason="NcclFailure",
    meaning="the GPUs of a replica could not talk to each other",
    seen_in=_LOG,
    advice="set NCCL_DEBUG to INFO in spec.engine.env to learn why; NCCL_P2P_DISABLE=1 avoids broken links between GPUs,"
    " spec.parallelism.tensor: 1 all of them",
    waiting=Waiting.MAY_HELP,
    while_serving=True,
)
WEIGHTS_MISSING = Cause(
    reason="WeightsMissing",
    meaning="there is no model, or no weights, in the folder",
    seen_in=_BOTH,
    advice="make sure that spec.weights.persistentVolumeClaim.path names the folder with config.json and *.safetensors",
    waiting=Waiting.IS_VAIN,
)
WEIGHTS_INCOMPLETE = Cause(
    reason="WeightsIncomplete",
    meaning="a file of the weights is missing, or ends too early",
    seen_in=_LOG,
    advice="copy the weights to the claim again",
    waiting=Waiting.IS_VAIN,
)
CONFIG_UNREADABLE = Cause(
    reason="ConfigUnreadable",
    meaning="config.json is missing, or is not what it should be",
    seen_in=_MESSAGE,
    advice="copy config.json to the claim again, into the folder that spec.weights.persistentVolumeClaim.path names",
    waiting=Waiting.IS_VAIN,
)
TOKENIZER_MISSING = Cause(
    reason="TokenizerMissing",
    meaning="a file of the tokenizer or of the image processor is missing or damaged; some engines start without it and fail"
    " every request",
    seen_in=f"{_BOTH}, or the verification",
    advice="copy tokenizer*.json, vocab files and *processor_config.json of the model to the claim as well",
    waiting=Waiting.IS_VAIN,
)
PERMISSION_DENIED = Cause(
    reason="PermissionDenied",
    meaning="the engine's user may not read or write a file",
    seen_in=_BOTH,
    advice="make the files readable for spec.podTemplate.securityContext.runAsUser or fsGroup, and leave /tmp and /cache to the"
    " operator's pod template",
    waiting=Waiting.IS_VAIN,
)
VERIFICATION_FAILED = Cause(
    reason="VerificationFailed",
    meaning="the engine runs and answers, but not as one that can serve",
    seen_in=f"{_MESSAGE}, where the startup probe leaves what it was answered",
    advice="mend what it answers to; spec.engine.verification: Health serves without asking",
    waiting=Waiting.HELPS_ONCE,
)
ENGINE_DIED = Cause(
    reason="EngineDied",
    meaning="the engine's own process, or one of its workers, ended and took the server with it",
    seen_in=_BOTH,
    advice="kubectl logs --previous has the rest; another spec.engine.version may behave better",
    waiting=Waiting.MAY_HELP,
    while_serving=True,
)

CAUSES = (
    BAD_ARGUMENT,
    MODEL_LENGTH_TOO_LONG,
    KV_CACHE_TOO_SMALL,
    GPU_MEMORY_TAKEN,
    CUDA_OUT_OF_MEMORY,
    UNSUPPORTED_ARCHITECTURE,
    UNSUPPORTED_QUANTIZATION,
    GPU_NOT_IN_BUILD,
    TENSOR_PARALLEL_INVALID,
    SHARED_MEMORY_TOO_SMALL,
    NCCL_FAILURE,
    GPU_LOST,
    HOST_OUT_OF_MEMORY,
    WEIGHTS_MISSING,
    WEIGHTS_INCOMPLETE,
    CONFIG_UNREADABLE,
    TOKENIZER_MISSING,
    PERMISSION_DENIED,
    VERIFICATION_FAILED,
    HUNG_START,
    ENGINE_HUNG,
    ENGINE_DIED,
)
