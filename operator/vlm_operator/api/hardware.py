"""On which GPUs a replica runs, and how it is spread over them."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from vlm_operator.api.base import ApiModel, Rule, no_items
from vlm_operator.api.lists import SET
from vlm_operator.api.scalars import ExtendedResource, GpuProduct, Memory, quantity_bytes

TENSOR_MESSAGE = "must be a whole number from 1 to 64, or Auto"


def _tensor_degree(value: Any) -> Any:
    """Check both kinds of value in one place: a union would complain once for each."""
    if value == "Auto" or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 64):
        return value
    text = value if isinstance(value, str) else ""
    bare = "write it without quotes" if text.isdecimal() else ""
    advice = "did you mean Auto?" if text.lower() == "auto" else bare
    raise PydanticCustomError("rule", "{message}", {"message": TENSOR_MESSAGE, "advice": advice})


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
    products: Annotated[list[GpuProduct], Field(max_length=32), SET] = Field(default_factory=no_items)
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
            values=("memory",),
        ),
    )
