"""How a replica of vLLM is watched from outside: its metrics, its work in flight, and a question to it."""

import json
from collections.abc import Mapping

from vlm_operator.engines.drain import Draining
from vlm_operator.engines.metrics import Metrics
from vlm_operator.engines.question import Question
from vlm_operator.engines.vllm.arguments import SHUTDOWN_TIMEOUT
from vlm_operator.engines.vllm.flags import assumed_flags
from vlm_operator.engines.vllm.versions import is_newer

KV_CACHE_USAGE = "vllm:kv_cache_usage_perc"
OLD_KV_CACHE_USAGE = "vllm:gpu_cache_usage_perc"
LAST_WITH_OLD_NAME = "0.10.2"
"""It has both names; its older engine, which runs Llama 3.2 Vision, has the old one alone."""

_WHOLE = ("stop", "length", "tool_calls")


def metrics(version: str) -> Metrics:
    """The names in a version."""
    old = () if is_newer(version, LAST_WITH_OLD_NAME) else (OLD_KV_CACHE_USAGE,)
    return Metrics(
        model_label="model_name",
        running=("vllm:num_requests_running",),
        waiting=("vllm:num_requests_waiting",),
        kv_cache_usage=(KV_CACHE_USAGE, *old),
        generated_tokens=("vllm:generation_tokens_total",),
        cache_info=("vllm:cache_config_info",),
        cache_tokens=cache_tokens,
    )


def cache_tokens(labels: Mapping[str, str]) -> int | None:
    """Tokens that fit into the KV cache. Older versions tell its blocks only, of which all are for tokens of one kind."""
    try:
        if "kv_cache_size_tokens" in labels:
            return int(labels["kv_cache_size_tokens"])
        return int(labels["num_gpu_blocks"]) * int(labels["block_size"])
    except (KeyError, ValueError):
        return None


def drain(version: str) -> Draining:
    """How a version comes to an end. Its work in flight counts because of `--enable-server-load-tracking`."""
    flag = SHUTDOWN_TIMEOUT if assumed_flags(version).find(SHUTDOWN_TIMEOUT) else None
    return Draining(timeout_flag=flag, load_path="/load", in_flight=in_flight)


def in_flight(answer: str) -> int | None:
    """Requests in flight according to an answer of /load: `{"server_load": 2}`."""
    try:
        load = json.loads(answer)["server_load"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return load if isinstance(load, int) and not isinstance(load, bool) and load >= 0 else None


def question(model: str) -> Question:
    """A chat of one token."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Say yes."}],
        "max_tokens": 1,
        "temperature": 0,
    }
    return Question(path="/v1/chat/completions", body=json.dumps(body), wrong=wrong, health_path="/health")


def wrong(answer: str) -> bool:
    """Whether it is not a whole chat completion. An engine that breaks off says `abort` or `error`."""
    try:
        return json.loads(answer)["choices"][0]["finish_reason"] not in _WHOLE
    except (ValueError, LookupError, TypeError, RecursionError):
        return True
