"""Which engines there are."""

from vlm_operator.engines.base import Engine
from vlm_operator.engines.vllm.engine import Vllm

_ENGINES: dict[str, Engine] = {"vLLM": Vllm()}


def engine(type: str) -> Engine:  # noqa: A002 # the field is called so
    """The engine that `spec.engine.type` names. Raises KeyError for an unknown one."""
    return _ENGINES[type]
