"""The planner of NVIDIA Dynamo for aggregated engines, in the modes that need no profile of the model.

Sources: ai-dynamo/dynamo `components/src/dynamo/planner/core/{load_scaling,state_machine}.py`, `config/defaults.py`,
`tests/unit/test_easy_scaling.py`; NVIDIA's planner guide (optimization targets throughput, latency and load). Left out:
the mode `sla`, which needs profiles, and the default budget of 8 GPUs: bounds are the caller's. Engines report their
queued prompt tokens; here they are the waiting requests times the mean prompt.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from vlm_operator.simulator.peers.samples import PromptLengths
from vlm_operator.simulator.peers.settings import Engine, require_order, require_positive
from vlm_operator.simulator.view import View


@dataclass(frozen=True, kw_only=True, slots=True)
class DynamoSettings:
    """Thresholds on the load of an engine: tokens of what it works on and of what waits, over what its KV cache holds."""

    scale_up: float = 1.0
    """One more replica where any engine is above it."""
    scale_down: float = 0.6
    """One fewer where all are below it."""
    period_seconds: float = 5.0
    """load_adjustment_interval."""

    def __post_init__(self) -> None:
        require_positive(self, "scale_up", "scale_down", "period_seconds")
        require_order(self, "scale_down", "scale_up")


THROUGHPUT = DynamoSettings()
"""optimization_target throughput: the default."""
LATENCY = DynamoSettings(scale_up=0.4, scale_down=0.1)
"""optimization_target latency."""


class Dynamo:
    """The planner of one deployment of aggregated engines."""

    def __init__(self, engine: Engine, settings: DynamoSettings = THROUGHPUT) -> None:
        self._engine, self._settings = engine, settings
        self._prompts = PromptLengths(engine.prompt_tokens)

    @property
    def period_seconds(self) -> float:
        """Time between two decisions."""
        return self._settings.period_seconds

    def desired(self, view: View) -> int:
        """The size wanted now. It stays while replicas start, and where none is seen."""
        live = view.live
        self._prompts.see(view.now, live)
        if not live or len(live) != view.size:
            return max(1, view.size)
        loads = [self.load(one.kv_tokens, one.waiting * self._prompts.mean) for one in live]
        return self.decide(loads, view.size)

    def load(self, kv_tokens: float, queued_tokens: float) -> float:
        """Load of an engine with so many tokens in its KV cache and in its queue."""
        return (kv_tokens + queued_tokens) / self._engine.kv_tokens

    def decide(self, loads: Sequence[float], size: int) -> int:
        """The size for the loads of all engines."""
        if any(load > self._settings.scale_up for load in loads):
            return size + 1
        if size > 1 and all(load < self._settings.scale_down for load in loads):
            return size - 1
        return size
