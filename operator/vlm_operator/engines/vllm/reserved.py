"""Arguments and environment variables that users leave to the operator, with the reason as a sentence."""

import re

from vlm_operator.engines.vllm.arguments import ARGUMENTS

OPERATOR_SETS = "the operator sets it"

OWNED_FLAGS: dict[str, str] = {
    **{argument.flag: argument.field for argument in ARGUMENTS},
    "--model": "spec.weights",
    "--kv-cache-memory-bytes": "spec.gpu.memoryUtilization",
    "--num-gpu-blocks-override": "spec.gpu.memoryUtilization",
    "--language-model-only": "spec.multimodal.limitsPerPrompt",
    # Older spellings, which 0.10.2 still takes.
    "--disable-mm-preprocessor-cache": "spec.multimodal.processorCache",
    "--enable-multimodal-encoder-data-parallel": "spec.multimodal.encoderParallelism",
}
"""Flag -> the field that decides it; empty when the operator does."""

_NOT_HTTP = "probes, metrics and clients use plain HTTP on the pod's port"
_ONE_POD = "a replica is one pod with all of its GPUs"
_NO_CHAT = "such an engine does not answer chat requests, so no replica would ever pass its verification"

REFUSED_FLAGS: dict[str, tuple[str, str]] = {
    "--api-key": (
        "the key would stand in the resource for everyone to read",
        "set VLLM_API_KEY in spec.engine.env with valueFrom.secretKeyRef",
    ),
    "--config": ("arguments in a file are not checked", "write them in spec.engine.args"),
    "--disable-log-stats": ("without it the engine reports no metrics, and nothing knows how busy it is", "remove it"),
    "--grpc": (_NOT_HTTP, "remove it"),
    "--headless": (_NOT_HTTP, "remove it"),
    "--help": ("the engine would print its help and stop", "remove it"),
    "--ssl-ca-certs": (_NOT_HTTP, "encrypt in front of the Service or with a service mesh"),
    "--ssl-cert-reqs": (_NOT_HTTP, "encrypt in front of the Service or with a service mesh"),
    "--ssl-certfile": (_NOT_HTTP, "encrypt in front of the Service or with a service mesh"),
    "--ssl-keyfile": (_NOT_HTTP, "encrypt in front of the Service or with a service mesh"),
    "--uds": (_NOT_HTTP, "remove it"),
    "--data-parallel-external-lb": (_ONE_POD, "use spec.parallelism and spec.replicas"),
    "--data-parallel-hybrid-lb": (_ONE_POD, "use spec.parallelism and spec.replicas"),
    "--data-parallel-multi-port-external-lb": (_ONE_POD, "use spec.parallelism and spec.replicas"),
    "--data-parallel-rank": (_ONE_POD, "use spec.parallelism and spec.replicas"),
    "--data-parallel-size-local": (_ONE_POD, "use spec.parallelism and spec.replicas"),
    "--data-parallel-start-rank": (_ONE_POD, "use spec.parallelism and spec.replicas"),
    "--enable-elastic-ep": (_ONE_POD, "use spec.parallelism and spec.replicas"),
    "--elastic-ep-max-dp-size": (_ONE_POD, "use spec.parallelism and spec.replicas"),
    "--master-addr": (_ONE_POD, "remove it"),
    "--master-port": (_ONE_POD, "remove it"),
    "--mm-encoder-only": (_NO_CHAT, "remove it"),
    "--nnodes": (_ONE_POD, "use spec.parallelism and spec.replicas"),
    "--node-rank": (_ONE_POD, "use spec.parallelism and spec.replicas"),
    "--prefill-context-parallel-size": (
        "it multiplies the GPUs that the engine needs, and the pod does not get them",
        "use spec.parallelism",
    ),
    "--skip-tokenizer-init": (_NO_CHAT, "remove it"),
    "--tokens-only": (_NO_CHAT, "remove it"),
}
"""Flag -> why it cannot work here, and the way out. A switch may still be turned off."""

_LAUNCHERS = dict.fromkeys(("ray", "external_launcher"), (_ONE_POD, "use mp, or remove it"))
_OTHER_TASKS = ("classify", "draft", "embed", "embedding", "reward", "score", "transcription")

REFUSED_VALUES: dict[str, dict[str, tuple[str, str]]] = {
    "--convert": dict.fromkeys(("classify", "embed"), (_NO_CHAT, "remove it")),
    "--data-parallel-backend": {"ray": (_ONE_POD, "use mp, or remove it")},
    "--distributed-executor-backend": _LAUNCHERS,
    "--runner": dict.fromkeys(("draft", "pooling"), (_NO_CHAT, "use generate, or remove it")),
    "--task": dict.fromkeys(_OTHER_TASKS, (_NO_CHAT, "use generate, or remove it")),
}
"""Flag -> value that cannot work here -> why, and the way out."""

UNCOUNTED_FLAGS: dict[str, str] = {
    "--api-server-count": "the host memory of further API servers",
    "--cpu-offload-gb": "weights that are kept in host memory",
    "--enable-lora": "memory for adapters",
    "--kv-offloading-size": "a KV cache in host memory",
    "--quantization-config": "how it changes the size of the weights",
    "--spec-model": "memory for a draft model",
    "--speculative-config": "memory for a draft model",
}
"""Flag -> what it changes about the memory of a replica that the sizing does not count."""

WITHOUT_EFFECT = {"--api-server-count": ("0", "1"), "--cpu-offload-gb": ("0", "0.0")}
"""Flag of these -> values with which it changes nothing."""

UNCOUNTED_VALUES: dict[str, dict[str, str]] = {
    "--dtype": dict.fromkeys(("float", "float32"), "that weights take four bytes per parameter"),
}
"""Flag -> value -> the same."""

OVERRIDDEN_SIZES = re.compile(r"^num_|_size$|_dim$|_rank$|^depth$|_layers$")
"""Keys of `--hf-overrides` that change the dimensions of a model."""

REQUIRED_FLAGS = {
    "--enable-auto-tool-choice": "--tool-call-parser",
    "--enable-eplb": "--enable-expert-parallel",
    "--enable-log-outputs": "--enable-log-requests",
}
"""Switch -> the flag without which vLLM does not start with it."""

_ISOLATION = "the device plugin decides which GPUs the container sees"
_ADDRESS = "it would move the engine away from the address that probes and the Service use"

RESERVED_VARIABLES: dict[str, str] = {
    **dict.fromkeys(
        (
            "HOME",
            "USER",
            "XDG_CACHE_HOME",
            "XDG_CONFIG_HOME",
            "HF_HOME",
            "VLLM_CACHE_ROOT",
            "VLLM_CONFIG_ROOT",
            "TRITON_CACHE_DIR",
            "TORCHINDUCTOR_CACHE_DIR",
            "NUMBA_CACHE_DIR",
            "OUTLINES_CACHE_DIR",
            "HF_HUB_OFFLINE",
            "TRANSFORMERS_OFFLINE",
            "VLLM_NO_USAGE_STATS",
            "DO_NOT_TRACK",
            "VLLM_MEDIA_URL_ALLOW_REDIRECTS",
        ),
        OPERATOR_SETS,
    ),
    "VLLM_ENGINE_READY_TIMEOUT_S": "spec.engine.startupTimeout sets it",
    **dict.fromkeys(
        ("NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"), _ISOLATION
    ),
    **dict.fromkeys(("VLLM_PORT", "VLLM_HOST_IP"), _ADDRESS),
    "VLLM_SERVER_DEV_MODE": "it opens endpoints that stop or change the engine, without an API key",
}
"""Environment variable -> why it cannot be set in `spec.engine.env`."""
