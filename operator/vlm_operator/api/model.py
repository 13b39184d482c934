"""Which model is served."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from vlm_operator.api import patterns
from vlm_operator.api.architecture import Architecture
from vlm_operator.api.base import ApiModel, Rule, no_items
from vlm_operator.api.lists import SET
from vlm_operator.api.references import ConfigMapKeyRef
from vlm_operator.api.scalars import ModelName, Tokens, matching


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
    served_names: Annotated[list[ModelName], Field(max_length=16), SET] = Field(default_factory=no_items)
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
            values=("online_quantization", "quantization"),
        ),
    )
