"""Which engines there are."""

from vlm_operator.engines.base import Engine
from vlm_operator.engines.vllm.engine import Vllm

_ENGINES: dict[str, Engine] = {"vLLM": Vllm()}


def engine(type: str) -> Engine:  # noqa: A002 # the field is called so
    """The engine that `spec.engine.type` names. Raises KeyError for an unknown one."""
    return _ENGINES[type]


def with_template(template: str) -> Engine:
    """The engine whose pods a template shows. Raises KeyError for a template of none."""
    return {known.template: known for known in _ENGINES.values()}[template]
