"""Which model is served, how the engine runs it and on which GPUs."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PlainValidator, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

from vlm_operator.api import patterns
from vlm_operator.api.architecture import Architecture
from vlm_operator.api.base import ApiModel, Rule
from vlm_operator.api.lists import MAP_BY_NAME, SET
from vlm_operator.api.scalars import (
    DataKey,
    ExtendedResource,
    LabelValue,
    Memory,
    ModelName,
    ObjectName,
    duration,
    matching,
    quantity_bytes,
)
from vlm_operator.api.weights import ImageReference, SecretKeyRef

Tokens = Annotated[int, Field(ge=1, le=16_777_216)]
Pixels = Annotated[int, Field(ge=1, le=1_073_741_824)]
ItemsPerPrompt = Annotated[int, Field(ge=0, le=999)]


class ConfigMapKeyRef(ApiModel):
    """One key of a ConfigMap in the namespace of the deployment."""

    name: ObjectName
    """Name of the ConfigMap."""
    key: DataKey
    """Key within the ConfigMap."""


class ChatTemplate(ApiModel):
    """A chat template that replaces the one in the tokenizer."""

    config_map_key_ref: ConfigMapKeyRef
    """Where the template is kept. It is mounted into the replicas; a change of its text takes effect at the next
    restart."""


class Model(ApiModel):
    """The model to serve."""

    name: ModelName
    """Name of the model, as published (`Qwen/Qwen2.5-VL-7B-Instruct`). It is the first name under which clients reach
    it."""
    served_names: Annotated[list[ModelName], Field(max_length=16), SET] = Field(default_factory=list)
    """Further names under which clients reach it."""
    size: Annotated[str, matching(patterns.MODEL_SIZE, max_length=10)] | None = None
    """Size in the published name, for a mixture of experts the total: `7B`, `0.5B`, `256M`."""
    quantization: Literal["None", "AWQ", "GPTQ", "INT4", "INT8", "FP8", "NVFP4", "MXFP4"] = "None"
    """How the weights are stored. Default: None, which is 16 bit."""
    online_quantization: Literal["FP8"] | None = None
    """Quantise 16-bit weights while loading them."""
    max_model_len: Tokens | None = None
    """Longest context of a request in tokens, images included. Default: what the model allows."""
    kv_cache_dtype: Literal["Auto", "BF16", "FP8", "FP8E4M3", "FP8E5M2"] = "Auto"
    """Data type of the KV cache. Default: Auto, the data type of the model."""
    trust_remote_code: bool = False
    """Run Python code that comes with the weights. Default: false."""
    architecture: Architecture | None = None
    """Facts about a model outside the catalogue."""
    chat_template: ChatTemplate | None = None
    """A chat template that replaces the model's own."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.onlineQuantization) || self.quantization == 'None'",
            message="onlineQuantization quantises 16-bit weights while loading: it goes only with quantization: None",
            holds=lambda model: model.online_quantization is None or model.quantization == "None",
            field_path=".onlineQuantization",
        ),
    )


class EnvVarSource(ApiModel):
    """Where the value of an environment variable comes from."""

    secret_key_ref: SecretKeyRef | None = None
    """A key of a Secret."""
    config_map_key_ref: ConfigMapKeyRef | None = None
    """A key of a ConfigMap."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.secretKeyRef) != has(self.configMapKeyRef)",
            message="valueFrom needs exactly one of secretKeyRef and configMapKeyRef",
            holds=lambda source: (source.secret_key_ref is None) != (source.config_map_key_ref is None),
        ),
    )


class EnvVar(ApiModel):
    """One environment variable of the engine."""

    name: Annotated[str, matching(patterns.ENV_NAME, max_length=128)]
    """Name of the variable."""
    value: Annotated[str, StringConstraints(max_length=4096)] | None = None
    """Its value, taken literally: `$(NAME)` is not replaced."""
    value_from: EnvVarSource | None = None
    """Where its value comes from."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.value) != has(self.valueFrom)",
            message="an environment variable needs exactly one of value and valueFrom",
            holds=lambda variable: (variable.value is None) != (variable.value_from is None),
        ),
    )


class Engine(ApiModel):
    """The inference engine of a replica."""

    type: Literal["vLLM"] = "vLLM"
    """Kind of engine. Default: vLLM."""
    version: Annotated[str, matching(patterns.ENGINE_VERSION, max_length=14)] | None = None
    """Version of the engine (`0.33`), which decides how arguments are spelled. Default: the newest that the operator
    knows; a running revision keeps the one that it started with."""
    image: ImageReference | None = None
    """Image of the engine. Default: the published one of the version."""
    startup_timeout: duration("10s", "24h") = "30m"  # type: ignore[valid-type] # the function returns a type
    """How long a replica may take from start to its first verified answer. Default: 30m."""
    verification: Literal["Request", "Health"] = "Request"
    """What a replica must do before it serves: answer a request with an image (Request), or report itself healthy
    (Health). Default: Request."""
    max_num_seqs: Annotated[int, Field(ge=1, le=65536)] | None = None
    """Most requests that run at once in a replica. Default: the engine's choice for the GPU."""
    max_num_batched_tokens: Tokens | None = None
    """Most tokens in one step of the engine. Default: the engine's choice for the GPU."""
    args: Annotated[
        list[Annotated[str, StringConstraints(max_length=4096)]],
        Field(max_length=128),
    ] = Field(default_factory=list)
    """Further arguments of the engine, one list item each, taken literally. They cannot repeat what a field of this
    resource sets."""
    env: Annotated[list[EnvVar], Field(max_length=64), MAP_BY_NAME] = Field(default_factory=list)
    """Further environment variables of the engine. Keep API keys here, as valueFrom.secretKeyRef."""


TENSOR_MESSAGE = "must be a whole number from 1 to 64, or Auto"


def _tensor_degree(value: Any) -> Any:
    """Check both kinds of value in one place: a union would complain once for each."""
    if value == "Auto" or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 64):
        return value
    raise PydanticCustomError("rule", "{message}", {"message": TENSOR_MESSAGE})


TensorDegree = Annotated[
    int | Literal["Auto"],
    PlainValidator(_tensor_degree),
    WithJsonSchema(
        {
            "x-kubernetes-int-or-string": True,
            "maxLength": 4,
            "x-kubernetes-validations": [
                {"rule": "type(self) == int ? self >= 1 && self <= 64 : self == 'Auto'", "message": TENSOR_MESSAGE}
            ],
        }
    ),
]


class Parallelism(ApiModel):
    """How one replica is spread over GPUs. A replica uses tensor x pipeline x data GPUs of one node."""

    tensor: TensorDegree = 1
    """Tensor-parallel degree: GPUs that share each layer. Auto takes the smallest that fits. Default: 1."""
    pipeline: Annotated[int, Field(ge=1, le=64)] = 1
    """Pipeline-parallel degree: groups of layers. Default: 1."""
    data: Annotated[int, Field(ge=1, le=64)] = 1
    """Data-parallel degree within a replica. Default: 1."""


class Gpu(ApiModel):
    """Which GPUs a replica asks for."""

    resource_name: ExtendedResource = "nvidia.com/gpu"
    """Extended resource that stands for one GPU. Default: nvidia.com/gpu."""
    products: Annotated[list[LabelValue], Field(max_length=32), SET] = Field(default_factory=list)
    """Allowed values of the node label nvidia.com/gpu.product. Default: any."""
    memory: Memory | None = None
    """Memory of one GPU as the device reports it, for products outside the catalogue."""
    memory_utilization: Annotated[int, Field(ge=10, le=100)] = 92
    """Share of the GPU's memory that the engine may use, in percent. Default: 92."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=(
                "!has(self.memory) || !isQuantity(self.memory) || quantity(self.memory).compareTo(quantity('1Gi')) >= 0"
            ),
            message="memory is what one GPU reports, 1Gi at least; a number without a unit counts bytes",
            holds=lambda gpu: gpu.memory is None or quantity_bytes(gpu.memory) >= 2**30,
            field_path=".memory",
        ),
    )


class LimitsPerPrompt(ApiModel):
    """Most media items in one request. 0 turns a kind off and frees the memory kept for it."""

    image: ItemsPerPrompt | None = None
    """Images. Default: the engine's limit."""
    video: ItemsPerPrompt | None = None
    """Videos. Default: the engine's limit."""
    audio: ItemsPerPrompt | None = None
    """Audio clips. Default: the engine's limit."""


class Multimodal(ApiModel):
    """How images and videos are taken in."""

    limits_per_prompt: LimitsPerPrompt | None = None
    """Most media items in one request."""
    min_pixels: Pixels | None = None
    """Smaller images are enlarged to this many pixels (models with free resolution)."""
    max_pixels: Pixels | None = None
    """Larger images are reduced to this many pixels (models with free resolution). It bounds tokens and memory per
    image."""
    processor_cache: Memory | None = None
    """Host memory for prepared images, per engine process. Default: 4Gi, the engine's own."""
    encoder_parallelism: Literal["Weights", "Data"] = "Weights"
    """How the vision tower uses the tensor-parallel GPUs: its weights are split (Weights), or each holds all of it and
    takes a share of the images (Data). Default: Weights."""
    allowed_media_domains: Annotated[list[ObjectName], Field(max_length=64), SET] = Field(default_factory=list)
    """Hosts from which the engine may fetch media by URL. Default: any, redirects excluded; restrict it where users
    are not trusted."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.minPixels) || !has(self.maxPixels) || self.minPixels <= self.maxPixels",
            message="minPixels must not be greater than maxPixels",
            holds=lambda m: m.min_pixels is None or m.max_pixels is None or m.min_pixels <= m.max_pixels,
            field_path=".minPixels",
        ),
    )
