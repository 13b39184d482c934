"""The arguments of `vllm serve`: one table from fields of the resource to flags.

A field that is not set gives no argument, so that vLLM's own default holds. Flags are spelled in full: vLLM accepts
abbreviations, and a new flag in a later version can make one ambiguous. Between the supported versions no flag of the table
changed its name or the spelling of its values, so a version either has a flag or lacks it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from vlm_operator.engines.base import HTTP_PORT, PodInputs
from vlm_operator.engines.vllm.flags import KnownFlags, assumed_flags
from vlm_operator.engines.vllm.values import (
    KV_CACHE_DTYPES,
    above_one,
    gibibytes,
    media_limits,
    processor_options,
    served_names,
    whole_seconds,
)
from vlm_operator.engines.vllm.versions import version_of

MODEL_PATH = "/models"
"""Where the folder of the model is mounted."""
CHAT_TEMPLATE_PATH = "/chat-template/chat_template.jinja"
"""Where the chat template of the resource is mounted."""
SHUTDOWN_TIMEOUT = "--shutdown-timeout"

Values = Sequence[object] | None
"""What follows a flag; empty for a switch. None leaves the flag out."""


@dataclass(frozen=True, kw_only=True)
class Argument:
    """One flag and where its value comes from."""

    flag: str
    field: str
    """Path of the field that decides, as a user writes it; empty when the operator decides."""
    values: Callable[[PodInputs], Values]
    lacking: Literal["Error", "Warning", "Nothing"] = "Error"
    """What it is to a user that a version lacks the flag; it is left out then."""
    consequence: str = "has no such setting"
    """What a version does that lacks the flag, to complete the sentence "vLLM 0.10.2 ..."."""


def _one(flag: str, field: str, value: Callable[[PodInputs], object], **lacking: Any) -> Argument:
    """A flag with one value, left out when there is none."""

    def values(inputs: PodInputs) -> Values:
        given = value(inputs)
        return None if given is None else (given,)

    return Argument(flag=flag, field=field, values=values, **lacking)


def _many(flag: str, field: str, values: Callable[[PodInputs], Sequence[object]], **lacking: Any) -> Argument:
    """A flag with a list of values, left out when the list is empty."""
    return Argument(flag=flag, field=field, values=lambda inputs: values(inputs) or None, **lacking)


def _switch(flag: str, field: str, on: Callable[[PodInputs], bool]) -> Argument:
    return Argument(flag=flag, field=field, values=lambda inputs: () if on(inputs) else None)


# Flags that take a list stand first: what follows the last one of them cannot be mistaken for a further item.
# How files are read (--load-format, --safetensors-load-strategy) is left to spec.engine.args: prefetching is quicker on
# network storage, but takes host memory for the whole checkpoint, and vLLM already does it on NFS when there is enough.
# fmt: off
ARGUMENTS: tuple[Argument, ...] = (
    _many("--served-model-name", "spec.model.name and spec.model.servedNames", served_names),
    _many("--allowed-media-domains", "spec.multimodal.allowedMediaDomains",
          lambda i: i.multimodal.allowed_media_domains, consequence="fetches media from any host"),
    _one("--host", "", lambda _: "0.0.0.0"),  # noqa: S104 # a server in a pod
    _one("--port", "", lambda _: HTTP_PORT),
    _one("--tensor-parallel-size", "spec.parallelism.tensor", lambda i: above_one(i.parallelism.tensor)),
    _one("--pipeline-parallel-size", "spec.parallelism.pipeline", lambda i: above_one(i.parallelism.pipeline)),
    _one("--data-parallel-size", "spec.parallelism.data", lambda i: above_one(i.parallelism.data)),
    _one("--max-model-len", "spec.model.maxModelLen", lambda i: i.model.max_model_len),
    # How weights are stored is read from the checkpoint; naming it could only contradict the files.
    _one("--quantization", "spec.model.quantization",
         lambda i: "fp8" if i.model.online_quantization == "FP8" else None),
    _one("--kv-cache-dtype", "spec.model.kvCacheDtype", lambda i: KV_CACHE_DTYPES[i.model.kv_cache_dtype]),
    _switch("--trust-remote-code", "spec.model.trustRemoteCode", lambda i: i.model.trust_remote_code),
    _one("--chat-template", "spec.model.chatTemplate",
         lambda i: CHAT_TEMPLATE_PATH if i.model.chat_template else None),
    _one("--gpu-memory-utilization", "spec.gpu.memoryUtilization", lambda i: f"{i.gpu.memory_utilization / 100:g}"),
    _one("--max-num-seqs", "spec.engine.maxNumSeqs", lambda i: i.engine.max_num_seqs),
    _one("--max-num-batched-tokens", "spec.engine.maxNumBatchedTokens", lambda i: i.engine.max_num_batched_tokens),
    _one("--limit-mm-per-prompt", "spec.multimodal.limitsPerPrompt", media_limits),
    _one("--mm-processor-kwargs", "spec.multimodal.minPixels and spec.multimodal.maxPixels", processor_options),
    _one("--mm-processor-cache-gb", "spec.multimodal.processorCache",
         lambda i: gibibytes(i.multimodal.processor_cache)),
    _one("--mm-encoder-tp-mode", "spec.multimodal.encoderParallelism",
         lambda i: "data" if i.multimodal.encoder_parallelism == "Data" else None),
    # Without a timeout vLLM drops its streams when it is told to stop, or hangs with them.
    _one(SHUTDOWN_TIMEOUT, "spec.drain.timeout", lambda i: whole_seconds(i.drain.timeout),
         lacking="Warning", consequence="drops its streams when it is told to stop"),
    # Makes /load count, which is how a draining replica shows that it is done.
    _switch("--enable-server-load-tracking", "", lambda _: True),
    _one("--disable-access-log-for-endpoints", "", lambda _: "/health,/metrics,/load,/ping", lacking="Nothing"),
)
# fmt: on


@dataclass(frozen=True, kw_only=True)
class Lack:
    """A field of the resource that a version cannot be told."""

    argument: Argument
    value: str | None = None
    """The value that the version does not take; None when it lacks the whole flag."""
    choices: tuple[str, ...] = ()
    """The values that it takes."""


def arguments(inputs: PodInputs, *, tensor_parallel: int) -> list[str]:
    """Everything after `vllm serve`: the model, the flags of the table, then the user's own arguments as they are.

    What the version does not have is left out; `lacks` tells what that is.
    """
    degrees = inputs.parallelism.model_copy(update={"tensor": tensor_parallel})
    resolved = inputs.model_copy(update={"parallelism": degrees})
    known = assumed_flags(version_of(inputs.engine))
    words = [MODEL_PATH]
    for argument, values in _given(resolved):
        if known.find(argument.flag):
            words += [argument.flag, *values]
    return words + inputs.engine.args


def lacks(inputs: PodInputs, known: KnownFlags) -> Iterator[Lack]:
    """The fields that are set and that a version cannot be told."""
    for argument, values in _given(inputs):
        flag = known.find(argument.flag)
        if flag is None:
            yield Lack(argument=argument)
        elif flag.choices:
            unknown = (value for value in values if value not in flag.choices)
            yield from (Lack(argument=argument, value=value, choices=flag.choices) for value in unknown)


def _given(inputs: PodInputs) -> Iterator[tuple[Argument, list[str]]]:
    """The arguments that the inputs call for, with their values as words."""
    for argument in ARGUMENTS:
        values = argument.values(inputs)
        if values is not None:
            yield argument, [str(value) for value in values]
