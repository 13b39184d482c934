"""What vLLM and what it is built on write when they fail, and what they write that is no failure.

Where a text is from: a file is one of vLLM or of transformers, in the version named where it is not 0.33; `pod` is a container
of vLLM's CPU build that was made to fail; an issue is a public thread, whose words are shortened, with other numbers and paths.
"""

from dataclasses import dataclass

HEALTHY = """\
INFO 11-30 10:00:00 [__init__.py:216] Automatically detected platform cuda.
DEBUG 11-30 10:00:00 [__init__.py:82] Exception happens when checking CUDA platform: NVML Shared Library Not Found
(APIServer pid=1) INFO 11-30 10:00:01 [api_server.py:1896] vLLM API server version 0.33.0
(APIServer pid=1) WARNING 11-30 10:00:01 [system_utils.py:255] Found ulimit of 20000 and failed to automatically increase with \
error current limit exceeds maximum limit. This can cause fd limit errors like `OSError: [Errno 24] Too many open files`.
(APIServer pid=1) WARNING 11-30 10:00:02 [model.py:1475] The quantization method awq is deprecated and will be removed.
(APIServer pid=1) INFO 11-30 10:00:02 [model.py:1680] Using max model len 32768
/opt/venv/lib/python3.12/site-packages/torch/cuda/__init__.py:61: FutureWarning: The pynvml package is deprecated.
  import pynvml  # type: ignore[import]
(EngineCore pid=83) INFO 11-30 10:00:09 [core.py:99] Initializing a V1 LLM engine with config: model='/models', quantization=None
(EngineCore pid=83) WARNING 11-30 10:00:09 [cpu_resource_utils.py:148] Cgroup memory preflight for shared-memory allocation: \
160 MiB required, 875 MiB current usage, 149 MiB available under 1024 MiB limit, -11 MiB remaining after allocation.
(EngineCore pid=83) INFO 11-30 10:00:10 [shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds.
[W1130 10:00:11.123 ProcessGroupNCCL.cpp:4561] [PG ID 0 Rank 0] using GPU 0 to perform barrier; NCCL error is possible
(Worker_TP0 pid=91) INFO 11-30 10:00:12 [pynccl.py:70] vLLM is using nccl==2.27.3
gpu-h100:91:91 [0] NCCL INFO NCCL version 2.27.3+cuda12.9
(Worker_TP0 pid=91) WARNING 11-30 10:00:13 [custom_all_reduce.py:144] Custom allreduce is disabled since peer access is not \
supported between these devices.
Loading safetensors checkpoint shards: 100% Completed | 4/4 [00:04<00:00,  1.02s/it]
(Worker_TP0 pid=91) WARNING 11-30 10:00:19 [cudagraph_utils.py:12] CUDA out of memory is likely with this many graphs.
"""
"""The start of an engine that starts: none of it is a failure."""

ARGPARSE = "usage: vllm serve [-h] [-v]\n            ...\n{}\n"
PYDANTIC = """\
    s.__pydantic_validator__.validate_python(ArgsKwargs(args, kwargs), self_instance=s)
pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig
  Value error, {} [type=value_error, input_value=ArgsKwargs((), {{'model_co...'shutdown_timeout': 30}}), input_type=ArgsKwargs]
    For further information visit https://errors.pydantic.dev/2.12/v/value_error
"""
PLAIN = """\
Traceback (most recent call last):
  File "/opt/venv/bin/vllm", line 10, in <module>
    raise SomeError(f"{{what}} is not divisible by {{that}}")
{}
"""
_DEAD = """\
(APIServer pid=1) Traceback (most recent call last):
(APIServer pid=1)   File "/opt/venv/lib/python3.12/site-packages/vllm/v1/engine/utils.py", line 1431, in wait_for_engine_startup
(APIServer pid=1)     raise RuntimeError(
(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{'EngineCore': 1}}
"""
CORE = (
    """\
(EngineCore pid=83) ERROR 11-30 10:02:00 [core.py:1510] EngineCore failed to start.
(EngineCore pid=83) ERROR 11-30 10:02:00 [core.py:1510] Traceback (most recent call last):
(EngineCore pid=83) ERROR 11-30 10:02:00 [core.py:1510]     raise ValueError(
(EngineCore pid=83) ERROR 11-30 10:02:00 [core.py:1510] {}
"""
    + _DEAD
)
WORKER = (
    """\
(Worker_TP1 pid=92) ERROR 11-30 10:02:00 [multiproc_executor.py:953] WorkerProc failed to start.
(Worker_TP1 pid=92) ERROR 11-30 10:02:00 [multiproc_executor.py:953] {}
(EngineCore pid=83) ERROR 11-30 10:02:01 [core.py:1510] Exception: WorkerProc initialization failed due to an exception in a \
background process. See stack trace for root cause.
"""
    + _DEAD
)
OLDER = """\
\x1b[1;36m(EngineCore_DP0 pid=270)\x1b[0;0m ERROR 09-16 17:46:22 [core.py:718]   File "/usr/lib/core.py", line 709, in run
\x1b[1;36m(EngineCore_DP0 pid=270)\x1b[0;0m ERROR 09-16 17:46:22 [core.py:718] {}
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}
"""
OLDEST = """\
ERROR 04-17 08:59:36 engine.py:389]     engine_config = engine_args.create_engine_config(usage_context)
ERROR 04-17 08:59:36 engine.py:389] {}
"""
RANK = '[rank0]:     raise AssertionError("5 is not divisible by 4")\n[rank0]: {}\n'
COMPOSE = "vllm-1  | (EngineCore pid=83) ERROR 11-30 10:02:00 [core.py:1510] {}\n"
NATIVE = "[rank1]:[E1130 10:02:00.12 logging.cpp:1] in front of it\n{}\nterminate called without an active exception\n"
JSON = '{{"asctime": "11-30 10:00:00", "levelname": "ERROR", "message": "{}"}}\n'
SERVING = """\
INFO:     Application startup complete.
(APIServer pid=1) INFO 11-30 12:00:00 [loggers.py:181] Engine 000: Avg prompt throughput: 10.0 tokens/s
(EngineCore pid=83) ERROR 11-30 12:00:01 [core.py:1512] EngineCore encountered a fatal error.
(EngineCore pid=83) ERROR 11-30 12:00:01 [core.py:1512] {}
(APIServer pid=1) ERROR 11-30 12:00:01 [async_llm.py:906] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an \
issue. See stack trace (above) for the root cause.
(APIServer pid=1) INFO:     10.0.0.7:41000 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error
"""
"""An engine that dies while it serves."""
FRONT_END = "(APIServer pid=1) ERROR 01-16 17:16:49 [core_client.py:605] {}\n"
PROBE = "the engine {}"
"""What the startup probe leaves as the termination message."""


@dataclass(frozen=True)
class Text:
    """Words of a failure, and where they stand."""

    reason: str
    frame: str
    words: str
    source: str
    advice: str = ""
    """Part of the advice, where it has a value from the words."""


KV = "which is larger than the available KV cache memory ({} GiB). {}Try increasing `gpu_memory_utilization`"
OOM = (
    "CUDA out of memory. Tried to allocate {} GiB. GPU 0 has a total capacity of 23.57 GiB of which 594.88 MiB is free."
)

TEXTS = (
    # -- arguments
    Text("BadArgument", ARGPARSE, "vllm: error: unrecognized arguments: --no-such-flag", "pod"),
    Text("BadArgument", ARGPARSE, "vllm serve: error: argument --dtype: invalid choice: 'x' (choose from auto, half)", "argparse"),
    Text("BadArgument", ARGPARSE, "api_server.py: error: argument --seed: invalid int value: 'x'", "argparse, vllm 0.10.2"),
    Text("BadArgument", PYDANTIC, "invalid literal for int() with base 10: '0.01'", "pod"),
    Text("BadArgument", PLAIN, "ValueError: VLLM_PORT 'tcp://10.0.0.1:80' appears to be a URI. This may be caused", "vllm/envs.py"),
    Text("BadArgument", PLAIN, "KeyError: 'invalid tool call parser: qwen9 (chose from {hermes})'", "openai/api_server.py of 0.10.2"),
    Text(
        "BadArgument",
        PYDANTIC,
        "The repository /models contains custom code which must be executed to correctly load the model. Please pass the argument"
        " `trust_remote_code=True` to allow custom code to be run.",
        "transformers/dynamic_module_utils.py",
        "spec.model.trustRemoteCode",
    ),
    Text("BadArgument", PLAIN, "OSError: [Errno 98] Address already in use", "pod", "port"),
    # -- length and cache
    Text(
        "ModelLengthTooLong",
        PYDANTIC,
        "User-specified max_model_len (65536) is greater than the derived max_model_len (max_position_embeddings=32768.0 or"
        " model_max_length=None in model's config.json). To allow overriding this maximum, set the env var",
        "pod",
        "set spec.model.maxModelLen to 32768 or less",
    ),
    Text(
        "ModelLengthTooLong",
        OLDEST,
        "ValueError: User-specified max_model_len (32000) is greater than the derived max_model_len (sliding_window=4096 or"
        " model_max_length=8192 in model's config.json).",
        "vllm/config/__init__.py of 0.10.2",
        "to 4096 or less",
    ),
    Text("ModelLengthTooLong", PLAIN, "ValueError: User-specified max_model_len (9) is greater than the derived max_model_len", "cut off"),
    Text(
        "KVCacheTooSmall",
        CORE,
        "ValueError: To serve at least one request with the model's max seq len (2000000), (1.91 GiB KV cache is needed, "
        + KV.format("1.0", "Based on the available memory, the estimated maximum model length is 1048448. "),
        "pod",
        "set spec.model.maxModelLen to 1048448 or less",
    ),
    Text(
        "KVCacheTooSmall",
        OLDER,
        "ValueError: To serve at least one request with the models's max seq len (8192), (4.00 GiB KV cache is needed, "
        + KV.format("0.5", ""),
        "vllm/v1/core/kv_cache_utils.py of 0.10.2",
    ),
    Text(
        "KVCacheTooSmall",
        PLAIN,
        "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache"
        " (13024). Try increasing `gpu_memory_utilization`",
        "vllm/worker/worker.py of 0.10.2",
        "to 13024 or less",
    ),
    Text("KVCacheTooSmall", COMPOSE, "ValueError: No available memory for the cache blocks. Try increasing", "kv_cache_planning.py"),
    Text(
        "KVCacheTooSmall",
        WORKER,
        "ValueError: Available memory on node 0 (0.9/2.25 GiB) on kv cache allocation is less than requested memory for kv (1.0 GiB).",
        "pod",
    ),
    # -- memory of the GPU
    Text(
        "GpuMemoryTaken",
        WORKER,
        "ValueError: Free memory on device cuda:0 (3.1/44.39 GiB) on startup is less than desired GPU memory utilization (0.92).",
        "vllm/v1/worker/utils.py",
    ),
    Text(
        "GpuMemoryTaken",
        OLDER,
        "ValueError: Free memory on device (31.4/47.38 GiB) on startup is less than desired GPU memory utilization (0.95, 45.01 GiB).",
        "vllm-project/vllm#20305",
    ),
    Text(
        "GpuMemoryTaken",
        CORE,
        "AssertionError: Error in memory profiling. Initial free memory 20.0 GiB, current free memory 21.0 GiB.",
        "vllm/v1/worker/gpu_worker.py",
    ),
    Text("CudaOutOfMemory", CORE, f"torch.OutOfMemoryError: {OOM.format('5.00')}", "vllm-project/vllm#16343"),
    Text("CudaOutOfMemory", PLAIN, f"torch.cuda.OutOfMemoryError: {OOM.format('3.50')}", "vllm-project/vllm#2140"),
    Text(
        "CudaOutOfMemory",
        OLDER,
        "RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy requests. Please try lowering",
        "vllm-project/vllm#17939",
    ),
    Text("CudaOutOfMemory", SERVING, f"torch.OutOfMemoryError: {OOM.format('0.34')}", "noonghunna/club-3090#58"),
    Text("CudaOutOfMemory", WORKER, "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "PyTorch"),
    # -- what the engine does not have
    Text("UnsupportedArchitecture", PYDANTIC, "Model architectures ['NoSuchModel'] are not supported for now.", "models/registry.py"),
    Text(
        "UnsupportedArchitecture",
        PYDANTIC,
        "Model architecture MllamaForConditionalGeneration was supported in vLLM until v0.10.2, and is not supported anymore.",
        "models/registry.py",
    ),
    Text("UnsupportedArchitecture", PYDANTIC, "Model architectures ['LlavaForConditionalGeneration'] failed to be inspected.", "pod"),
    Text(
        "UnsupportedArchitecture",
        OLDEST,
        "ValueError: The checkpoint you are trying to load has model type `qwen9_vl` but Transformers does not recognize this"
        " architecture. This could be because of an issue with the checkpoint",
        "vllm-project/vllm#13579",
    ),
    Text("UnsupportedArchitecture", PLAIN, "ModuleNotFoundError: No module named 'mistral_common'", "pod"),
    Text("UnsupportedQuantization", PYDANTIC, "Unknown quantization method: nosuchq. Must be one of ['awq', 'fp8'].", "pod"),
    Text("UnsupportedQuantization", PYDANTIC, "Cannot find the config file for awq", "pod"),
    Text(
        "UnsupportedQuantization",
        PYDANTIC,
        "The quantization method awq_marlin is not supported for the current GPU. Minimum capability: 75. Current capability: 70.",
        "vllm-project/vllm#4202",
    ),
    Text(
        "UnsupportedQuantization",
        OLDER,
        "RuntimeError: Quantization scheme is not supported for the current GPU. Min capability: 80. Current capability: 75.",
        "vllm-project/vllm#14040",
    ),
    Text(
        "UnsupportedQuantization",
        PYDANTIC,
        "Quantization method specified in the model config (fp8) does not match the quantization method specified in the"
        " `quantization` argument (gptq).",
        "vllm-project/vllm#19050",
    ),
    Text("UnsupportedQuantization", CORE, "ValueError: torch.bfloat16 is not supported for quantization method awq.", "vllm/config/vllm.py"),
    Text("GpuNotInBuild", CORE, "RuntimeError: CUDA error: no kernel image is available for execution on the device", "PyTorch"),
    Text("GpuNotInBuild", OLDER, "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device", "PyTorch"),
    Text("GpuNotInBuild", WORKER, "RuntimeError: CUDA error: no kernel image is available for execution", "cut off"),
    # -- sharing the model
    Text(
        "TensorParallelInvalid",
        PYDANTIC,
        "Total number of attention heads (28) must be divisible by tensor parallel size (3).",
        "pod",
        "a degree that divides 28: 1, 2, 4, 7, 14",
    ),
    Text("TensorParallelInvalid", WORKER, "AssertionError: 25 is not divisible by 4", "vllm/distributed/utils.py", "25: 1, 5"),
    Text(
        "TensorParallelInvalid",
        OLDEST,
        "ValueError: The input size is not aligned with the quantized weight shape. This can be caused by too large tensor parallel"
        " size.",
        "QwenLM/Qwen3-VL#831",
    ),
    Text(
        "TensorParallelInvalid",
        WORKER,
        "ValueError: Weight input_size_per_partition = 10944 is not divisible by min_thread_k = 128. Consider reducing"
        " tensor_parallel_size or running with --quantization gptq.",
        "quantization/utils/marlin_utils.py",
    ),
    Text(
        "SharedMemoryTooSmall",
        CORE,
        "RuntimeError: Insufficient space in /dev/shm for shared-memory allocation: 160 MiB required, 1 MiB free. Increase",
        "pod",
        "160 MiB",
    ),
    Text(
        "SharedMemoryTooSmall",
        NATIVE,
        "[2025-10-13 09:06:25] replica-0:3663:4044 [0] misc/shmutils.cc:129 NCCL WARN Error while creating shared memory segment"
        " /dev/shm/nccl-Ewjreo (size 33030528), error: No space left on device (28)",
        "llm-d/llm-d#352",
    ),
    Text("SharedMemoryTooSmall", NATIVE, "include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device", "NVIDIA/nccl#525"),
    Text("SharedMemoryTooSmall", NATIVE, "Fatal Python error: Bus error", "vllm-project/vllm#1771"),
    Text(
        "SharedMemoryTooSmall",
        PLAIN,
        "Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        "open-mmlab/mmdetection#6993",
    ),
    # -- between GPUs
    Text(
        "NcclFailure",
        WORKER,
        "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "vllm-project/vllm#39774",
    ),
    Text(
        "NcclFailure",
        OLDEST,
        "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, unhandled"
        " system error, NCCL version 2.20.5",
        "vllm-project/vllm#4618",
    ),
    Text("NcclFailure", PLAIN, "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.", "vllm-project/vllm#6574"),
    Text(
        "NcclFailure",
        NATIVE,
        "[rank0]:[E ProcessGroupNCCL.cpp:563] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1,"
        " OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600086 milliseconds before timing out.",
        "vllm-project/vllm#5458",
    ),
    Text("NcclFailure", SERVING, "RuntimeError: NCCL error: remote process exited or there was a network error", "NCCL"),
    Text("GpuLost", NATIVE, "NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus.", "wilicc/gpu-burn#1"),
    Text("GpuLost", WORKER, "RuntimeError: CUDA error: uncorrectable ECC error encountered", "vllm-project/vllm#5222"),
    Text("GpuLost", SERVING, "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered", "vllm-project/vllm#5222"),
    Text("GpuLost", PLAIN, "RuntimeError: Failed to infer device type, please set the environment variable", "vllm-project/vllm#12847"),
    Text("GpuLost", CORE, "RuntimeError: No CUDA GPUs are available", "vllm-project/vllm#14413"),
    Text("GpuLost", PLAIN, "Unable to determine the device handle for GPU 0000:C1:00.0: GPU is lost.  Reboot the system", "NVIDIA/k8s-device-plugin#231"),
    # -- memory of the node
    Text(
        "HostOutOfMemory",
        SERVING,
        "Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor.",
        "pod",
    ),
    Text("HostOutOfMemory", CORE, "RuntimeError: [enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate memory", "PyTorch"),
    Text("HostOutOfMemory", CORE, "OSError: [Errno 12] Cannot allocate memory", "Python"),
    Text("HostOutOfMemory", PLAIN, "RuntimeError: Process EngineCore (PID: 83) died with exit code -9", "vllm/v1/utils.py"),
    # -- files
    Text(
        "WeightsMissing",
        PLAIN,
        "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/models'.",
        "pod",
    ),
    Text("WeightsMissing", WORKER, "RuntimeError: Cannot find any model weights with `/models`", "pod"),
    Text("WeightsMissing", PLAIN, "ValueError: Invalid repository ID or local directory specified: '/models'.", "transformers_utils/config.py"),
    Text("WeightsIncomplete", WORKER, "safetensors._safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file not fully covered", "pod"),
    Text("WeightsIncomplete", OLDEST, "Error while deserializing header: InvalidHeaderDeserialization", "vllm-project/vllm#13899"),
    Text("WeightsIncomplete", OLDER, "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge", "OpenBMB/MiniCPM-V#159"),
    Text("WeightsIncomplete", CORE, "FileNotFoundError: No such file or directory: \"/models/model-00003-of-00004.safetensors\"", "safetensors"),
    Text("WeightsIncomplete", CORE, "ValueError: Following weights were not initialized from checkpoint: {'lm_head.weight'}", "default_loader.py"),
    Text("ConfigUnreadable", PLAIN, "OSError: It looks like the config file at '/models/config.json' is not a valid JSON file.", "pod"),
    Text(
        "ConfigUnreadable",
        PLAIN,
        "OSError: Can't load the configuration of '/models'. If you were trying to load it from 'https://huggingface.co/models', make"
        " sure you don't have a local directory with the same name. Otherwise, make sure '/models' is the correct path to a"
        " directory containing a config.json file",
        "KimMeen/Time-LLM#13",
    ),
    Text("ConfigUnreadable", OLDEST, "ValueError: Unrecognized model in /models. Should have a `model_type` key in its config.json.", "configuration_auto.py"),
    Text("ConfigUnreadable", PLAIN, "json.decoder.JSONDecodeError: Unterminated string starting at: line 10 column 2 (char 195)", "pod"),
    Text("ConfigUnreadable", PYDANTIC, "No model architectures are specified", "models/registry.py"),
    Text("TokenizerMissing", PLAIN, "OSError: Can't load tokenizer for '/models'. If you were trying to load it from", "vllm-project/vllm#11374"),
    Text("TokenizerMissing", PLAIN, "OSError: Unable to load vocabulary from file. Please check that the provided vocabulary is accessible", "databricks/dbrx#16"),
    Text("TokenizerMissing", OLDER, "ValueError: No tokenizer file found in directory: /models", "vllm-project/vllm#31444"),
    Text("TokenizerMissing", PLAIN, "OSError: Can't load image processor for '/models'. If you were trying to load it from", "image_processing_base.py"),
    Text("TokenizerMissing", PLAIN, "OSError: /models does not appear to have a file named preprocessor_config.json.", "transformers/utils/hub.py"),
    Text("TokenizerMissing", PROBE, "failed a small request with 500: {\"error\":{\"message\":\"'<|image_pad|>'\",\"code\":500}}", "pod"),
    Text("TokenizerMissing", PROBE, "failed a small request with 400: {\"error\":{\"message\":\"The decoder prompt cannot be empty\"}}", "pod"),
    Text("PermissionDenied", PLAIN, "PermissionError: [Errno 13] Permission denied: '/models/model.safetensors'", "pod"),
    Text("PermissionDenied", CORE, "PermissionError: [Errno 13] Permission denied: '/app/.cache/flashinfer'", "odysseus-dev/odysseus#6157"),
    Text("PermissionDenied", PLAIN, "FileNotFoundError: [Errno 2] No usable temporary directory found in ['/tmp', '/var/tmp']", "pod"),
    Text("PermissionDenied", WORKER, "OSError: [Errno 30] Read-only file system: '/.triton'", "Python"),
    # -- the engine itself
    Text("VerificationFailed", PROBE, "failed a small request with 500: Internal Server Error", "the startup probe"),
    Text("VerificationFailed", PROBE, "wants an API key (401): the key in VLLM_API_KEY was refused", "the startup probe"),
    Text("VerificationFailed", PROBE, "broke off a small request (abort): {}", "the startup probe"),
    Text("HungStart", PLAIN, "TimeoutError: Timed out waiting for engine core processes to start. This is often caused by slow weight loading", "core_client.py"),
    Text("HungStart", CORE, "TimeoutError: Timed out waiting for engine core processes to start.", "core_client.py"),
    Text("HungStart", OLDER, "TimeoutError: Timed out waiting for engine core processes to start. See VLLM_ENGINE_READY_TIMEOUT_S", "core_client.py"),
    Text("EngineHung", SERVING, "TimeoutError: RPC call to execute_model timed out.", "vllm-project/vllm#17965"),
    Text("EngineHung", SERVING, "TimeoutError: RPC call to sample_tokens timed out.", "vllm-project/vllm#41530"),
    Text("EngineHung", OLDER, "TimeoutError: RPC call to execute_model timed out.", "intel/llm-scaler#77"),
    Text("EngineDied", SERVING, "RuntimeError: CUDA error: an illegal memory access was encountered", "PyTorch"),
    Text("EngineDied", OLDEST, "Worker proc VllmWorker-3 died unexpectedly, shutting down executor.", "intel/llm-scaler#154"),
    Text("EngineDied", FRONT_END, "Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", "vllm-project/vllm#32468"),
    Text("EngineDied", CORE, "KeyError: 'layers.0.mlp.gate_up_proj.weight'", "vllm"),
    # -- further words of the same
    Text("CudaOutOfMemory", JSON, "torch.OutOfMemoryError: CUDA out of memory.", "vllm/logger.py"),
    Text("BadArgument", PYDANTIC.replace("Value error", "Assertion failed"), "the number of GPUs must be positive", "pydantic"),
    Text("BadArgument", ARGPARSE, "vllm serve: error: argument --seed: expected one argument", "argparse"),
    Text("BadArgument", ARGPARSE, "vllm serve: error: ambiguous option: --max could match --max-model-len, --max-num-seqs", "argparse"),
    Text("BadArgument", PLAIN, "TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser", "cli_args.py of 0.10.2"),
    Text("BadArgument", PLAIN, "ValueError: max_num_batched_tokens (2048) is smaller than max_model_len (32768). This effectively limits", "vllm/config/scheduler.py"),
    Text("BadArgument", PYDANTIC, "Pipeline parallelism is not supported for this model. Supported models implement the `SupportsPP` interface.", "vllm/config/model.py", "spec.parallelism.pipeline"),
    Text("BadArgument", CORE, "ValueError: Chunked MM input disabled but max_tokens_per_mm_item (16384) is larger than max_num_batched_tokens (8192).", "encoder_cache_manager.py", "to 16384 or more"),
    Text("BadArgument", PLAIN, "RuntimeError: Failed to load the model config. If the model is a custom model not yet available in the HuggingFace transformers library", "transformers_utils/config.py", "trustRemoteCode"),
    Text("CudaOutOfMemory", OLDER, "torch.AcceleratorError: CUDA error: out of memory", "PyTorch"),
    Text("CudaOutOfMemory", WORKER, "torch.distributed.DistBackendError: NCCL error, ncclUnhandledCudaError: Last error: Cuda failure 2 'out of memory'", "NCCL"),
    Text("UnsupportedArchitecture", PLAIN, "ValueError: Tokenizer class Qwen9Tokenizer does not exist or is not currently imported.", "transformers 4"),
    Text("UnsupportedArchitecture", PLAIN, "ImportError: X requires the timm library but it was not found in your environment.", "transformers"),
    Text("UnsupportedQuantization", WORKER, "ValueError: type fp8e4nv not supported in this architecture. The supported fp8 dtypes are ('fp8e4b15',)", "triton"),
    Text("UnsupportedQuantization", CORE, "ValueError: Failed to find a kernel that can implement the WNA16 linear layer. Reasons:", "kernels/linear"),
    Text("UnsupportedQuantization", PYDANTIC, "Bfloat16 is only supported on GPUs with compute capability of at least 8.0.", "platforms/cuda.py", "--dtype half"),
    Text("NcclFailure", WORKER, "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.", "PyTorch"),
    Text("NcclFailure", WORKER, "RuntimeError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store", "PyTorch"),
    Text("GpuLost", PLAIN, "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory", "Python"),
    Text("GpuLost", PYDANTIC, "World size (4) is larger than the number of available GPUs (3) in this node.", "vllm/config/parallel.py"),
    Text("GpuLost", CORE, "AssertionError: local_world_size (16) must be less than or equal to the number of visible devices (8).", "vllm-project/vllm#28997"),
    Text("GpuLost", OLDEST, "RuntimeError: please ensure that world_size (2) is less than than max local gpu count (1)", "vllm-project/vllm#15217"),
    Text("TensorParallelInvalid", RANK, "AssertionError: 12 is not divisible by 8", "vllm-project/vllm#24004", "12: 1, 2, 3, 4, 6, 12"),
    Text("HostOutOfMemory", PLAIN, "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.", "vllm-project/vllm#1765"),
    Text("HostOutOfMemory", WORKER, "RuntimeError: unable to mmap 1024 bytes from file </torch_1_2>: Cannot allocate memory (12)", "PyTorch"),
    Text("WeightsMissing", PLAIN, "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.", "transformers/utils/hub.py"),
    Text("WeightsMissing", PLAIN, "OSError: Incorrect path_or_model_id: '/models'. Please provide either the path to a local folder", "transformers 4"),
    Text("WeightsIncomplete", WORKER, "_pickle.UnpicklingError: invalid load key, 'v'.", "Python"),
    Text("ConfigUnreadable", PLAIN, "ValueError: Could not detect config format for no config file found. With config_format 'auto', ensure your model has", "transformers_utils/config.py"),
    Text("ConfigUnreadable", PLAIN, "FileNotFoundError: [Errno 2] No such file or directory: '/models/config.json'", "Python"),
    Text("TokenizerMissing", PLAIN, "ValueError: Unrecognized image processor in /models. Should have a `image_processor_type` key", "transformers"),
    Text("TokenizerMissing", PLAIN, "Exception: data did not match any variant of untagged enum ModelWrapper at line 1 column 2", "tokenizers"),
    Text("TokenizerMissing", PROBE, "failed a small request with 400: default chat template is no longer allowed, so you must provide a chat template", "transformers"),
    Text("PermissionDenied", CORE, "OSError: [Errno 1] Operation not permitted: '/dev/shm/x'", "Python"),
    Text("EngineDied", PLAIN, "RuntimeError: Engine process failed to start. See stack trace for the root cause.", "gpustack/gpustack#835"),
)  # fmt: skip

BRIEF = {
    "GpuLost": (
        "kernel: Xid (PCI:0000:3b:00): 48, pid=1234, name=VLLM::EngineCore, DBE (double bit error)",
        "0000:02:00.0: the GPU has fallen off the bus",
        "nvml: GPU is lost",
        "amdsmi: pynvml.GpuIsLost",
        "RuntimeError: CUDA error: system not yet initialized",
        "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
        "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment",
        "Failed to initialize NVML: Driver/library version mismatch",
        "pynvml.NVMLError_DriverNotLoaded: Driver Not Loaded",
        "RuntimeError: Found no NVIDIA driver on your system.",
        "RuntimeError: The NVIDIA driver on your system is too old (found version 12020).",
        "CUDA driver version is insufficient for CUDA runtime version",
        "Unable to determine the device handle for GPU0000:C1:00.0: Unknown Error",
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802",
    ),
    "SharedMemoryTooSmall": (
        "RuntimeError: Insufficient space in /dev/shm for x",
        "DataLoader worker is killed: insufficient shared memory (shm)",
        "OSError: [Errno 28] No space left on device: '/psm_1a2b'",
        "RuntimeError: unable to allocate shared memory(shm) for file </torch_1>: Resource temporarily unavailable (11)",
    ),
    "KVCacheTooSmall": ("ValueError: 4.0 GiB is needed, which is larger than the available KV cache memory (1.0 GiB)",),
    "CudaOutOfMemory": (
        "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory.",
        "RuntimeError: CUDA_ERROR_OUT_OF_MEMORY in cuMemCreate",
    ),
    "TensorParallelInvalid": (
        "ValueError: output_partition_size = 1728 is not divisible by weight quantization block_n = 128.",
        "ValueError: Tensor parallel size (3) is incompatible with 8 key-value heads",
    ),
    "UnsupportedQuantization": (
        "NotImplementedError: No compiled cutlass_scaled_mm for compute capability 75",
        "ValueError: Invalid quantization method: nosuchq",
    ),
    "UnsupportedArchitecture": (
        "ValueError: Cannot find model module. 'X' is not a registered model in the Transformers library",
        "ValueError: X has no vLLM implementation and the Transformers implementation is not compatible with vLLM.",
        "ValueError: Unrecognized configuration class <class 'X'> for this kind of AutoModel: AutoModelForCausalLM.",
        "ImportError: This modeling file requires the following packages that were not found in your environment: timm",
    ),
    "TokenizerMissing": (
        "ValueError: Couldn't instantiate the backend tokenizer from one of:",
        "ValueError: Can't find a vocabulary file at path '/models/vocab.json'.",
        "RuntimeError: Failed to load the tokenizer. If the tokenizer is a custom tokenizer",
        "RuntimeError: Internal: could not parse ModelProto from /models/tokenizer.model",
        "FileNotFoundError: [Errno 2] No such file or directory: '/models/preprocessor_config.json'",
    ),
    "WeightsMissing": (
        "OSError: /models is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'",
        "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://huggingface.co: offline mode is enabled.",
    ),
    "WeightsIncomplete": (
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
    ),
    "ConfigUnreadable": (
        "OSError: /models does not appear to have a file named config.json. Checkout",
        "ValueError: Should have a `model_type` key in its config.json",
    ),
    "PermissionDenied": ("Exception: Permission denied (os error 13)",),
    "BadArgument": (
        "ValueError: Unknown vLLM environment variable detected: VLLM_NO_SUCH",
        "ValueError: The supplied chat template (/x.jinja) appears path-like, but doesn't exist!",
    ),
    "NcclFailure": (
        "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms",
        "[E ProcessGroupNCCL.cpp:577] Some NCCL operations have failed or timed out.",
        "Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:368 'invalid argument'",
        "NCCL WARN Cuda failure 'peer access is not supported between these two devices'",
        "RuntimeError: Gloo connectFullMesh failed with connect",
    ),
    "HostOutOfMemory": ("MemoryError", "terminate called after throwing an instance of 'std::bad_alloc'"),
    "EngineDied": (
        "RuntimeError: device-side assert triggered",
        "!!!!!!! Segmentation fault encountered !!!!!!!",
        "RuntimeError: Process EngineCore (PID: 83) died with exit code 1",
        "EngineCore encountered a fatal error.",
        "vllm.v1.engine.exceptions.EngineDeadError",
        "Exception: WorkerProc initialization failed due to an exception in a background process.",
        "EngineCore failed to start.",
    ),
}
"""Further words, by their reasons: of CUDA, NCCL, PyTorch, transformers and vLLM, as their code has them, without what varies."""

SERVED = """\
(APIServer pid=1) INFO:     Application startup complete.
(APIServer pid=1) INFO:     10.0.0.7:41000 - "POST /v1/chat/completions HTTP/1.1" 200 OK
"""


@dataclass(frozen=True)
class NearMiss:
    """Words that come close to a reason and say something else."""

    reason: str
    """The reason that it is not."""
    text: str


NEAR_MISSES = (
    NearMiss("BadArgument", "INFO 11-30 10:00:00 [utils.py:253] non-default args: {'model': '/models', 'error': 'vllm: error: '}"),
    NearMiss("BadArgument", SERVED + "pydantic_core.ValidationError: 1 validation error for ChatCompletionRequest\n  Value error, x [type="),
    NearMiss("ModelLengthTooLong", "WARNING 11-30 10:00:00 [model.py:9] max_model_len (65536) is greater than the derived max_model_len"),
    NearMiss("ModelLengthTooLong", SERVED + "ValueError: The decoder prompt (length 40000) is longer than the maximum model length of 32768."),
    NearMiss("KVCacheTooSmall", "INFO 11-30 10:00:00 [kv_cache_utils.py:833] GPU KV cache size: 13,024 tokens\nMaximum concurrency: 1.1x"),
    NearMiss("GpuMemoryTaken", "INFO 11-30 10:00:00 [gpu_worker.py:1045] Free memory on device (40.0/44.39 GiB) on startup."),
    NearMiss("CudaOutOfMemory", "(APIServer pid=1) DEBUG 11-30 10:00:00 [logger.py:39] Request chatcmpl-1 details: prompt: 'RuntimeError: CUDA out of memory'"),
    NearMiss("CudaOutOfMemory", SERVED + "(APIServer pid=1) ERROR 11-30 12:00:00 [serving.py:929] ValueError: no tool called 'CUDA out of memory'"),
    NearMiss("CudaOutOfMemory", '{"asctime": "11-30", "levelname": "INFO", "message": "prompt: \'CUDA out of memory\'"}'),
    NearMiss("CudaOutOfMemory", "torch memory: no CUDA device is out of order"),
    NearMiss("UnsupportedArchitecture", "WARNING 11-30 10:00:00 [utils.py:319] Model architectures ['X'] are not supported natively, falling back"),
    NearMiss("UnsupportedQuantization", "WARNING 11-30 10:00:00 [model.py:1475] The quantization method awq is not supported for long."),
    NearMiss("GpuNotInBuild", "x.py:1: UserWarning: no kernel image is available for execution of this operator, using another"),
    NearMiss("TensorParallelInvalid", SERVED + "AssertionError: 25 is not divisible by 4"),
    NearMiss("TensorParallelInvalid", '    raise ValueError("must be divisible by tensor parallel size")'),
    NearMiss("SharedMemoryTooSmall", "(EngineCore pid=8) INFO 11-30 10:00:00 [shm_broadcast.py:466] No available shared memory broadcast block found"),
    NearMiss("SharedMemoryTooSmall", "WARNING 11-30 10:00:00 [x.py:1] The object store is using /tmp instead of /dev/shm: insufficient shared memory"),
    NearMiss("NcclFailure", "replica-0:91:91 [0] NCCL INFO Bootstrap : no NCCL error so far\nNCCL version 2.27.3+cuda12.9"),
    NearMiss("GpuLost", "INFO 11-30 10:00:00 [__init__.py:99] CUDA platform is not available because: NVMLError_LibraryNotFound"),
    NearMiss("HostOutOfMemory", "(EngineCore pid=8) INFO 11-30 10:00:00 [multiproc_executor.py:380] Worker proc died (exit code: 0), as it was told"),
    NearMiss("WeightsMissing", "Repo id must be in the form 'repo_name' or 'namespace/repo_name': 'a/b/c'."),
    NearMiss("WeightsIncomplete", SERVED + "FileNotFoundError: [Errno 2] No such file or directory: '/lora/adapter_model.safetensors'"),
    NearMiss("ConfigUnreadable", SERVED + "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"),
    NearMiss("TokenizerMissing", "WARNING 11-30 10:00:00 [registry.py:1] Can't load tokenizer for 'x' quickly, using the slow one"),
    NearMiss("PermissionDenied", SERVED + "INFO:     10.0.0.7:41000 - \"POST /v1/chat/completions HTTP/1.1\" 500\nERROR:    Exception in ASGI application\n"
             "Traceback (most recent call last):\nPermissionError: [Errno 13] Permission denied: '/media/a.png'"),
    NearMiss("PermissionDenied", "WARNING 11-30 10:00:00 [usage_lib.py:1] PermissionError: [Errno 13] Permission denied: '/nonexistent'"),
    NearMiss("VerificationFailed", "the engine answered"),
    NearMiss("VerificationFailed", "INFO 11-30 10:00:00 [logger.py:39] prompt: 'the engine failed a small request with 500: x'"),
    NearMiss("HungStart", "the engine is not up yet: [Errno 111] Connection refused"),
    NearMiss("HungStart", "(APIServer pid=1) DEBUG 11-30 10:00:00 [utils.py:1449] Waiting for 1 local, 0 remote core engine proc(s) to start."),
    NearMiss("EngineHung", SERVED + "(APIServer pid=1) ERROR 11-30 12:00:00 [serving.py:9] TimeoutError: fetching the image timed out"),
    NearMiss("EngineDied", SERVED + "(APIServer pid=1) ERROR 11-30 12:00:00 [serving.py:9] RuntimeError: the worker process of the tool died"),
    NearMiss("SharedMemoryTooSmall", "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376."),
    NearMiss("EngineDied", "zmq.error.ZMQError: Address already in use (addr='tcp://127.0.0.1:5555')"),
)  # fmt: skip
