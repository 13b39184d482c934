"""The parts of a spec that shape no pod: how many replicas there are, how they come and go, and what stands before them.

A refused edit must not change them either, so they are kept with the revision with which they were last accepted.
"""

from typing import Literal

from pydantic import Field

from vlm_operator.api.base import ApiModel
from vlm_operator.api.rollout import Rollout
from vlm_operator.api.scalars import duration_seconds
from vlm_operator.api.scaling import Scaling, WarmPool
from vlm_operator.api.spec import Service, VLMDeploymentSpec

MAX_SURGE, MAX_UNAVAILABLE = 1, 0
PROGRESS_DEADLINE = "30m"
HISTORY_LIMIT = 5
"""Defaults of spec.rollout."""


class Settings(ApiModel):
    """What is in force of a spec besides its revision and its size."""

    service: Service = Field(default_factory=Service.defaults)
    warm_pool: WarmPool | None = None
    scaling: Scaling | None = None
    rollout: Rollout = Field(default_factory=Rollout.defaults)
    pod_disruption_budget: Literal["Managed", "None"] | None = None

    @classmethod
    def of(cls, spec: VLMDeploymentSpec) -> "Settings":
        """The settings of a spec."""
        return cls.model_construct(
            service=spec.service,
            warm_pool=spec.warm_pool,
            scaling=spec.scaling,
            rollout=spec.rollout or Rollout.defaults(),
            pod_disruption_budget=spec.pod_disruption_budget,
        )

    @property
    def active(self) -> bool:
        """Whether scaling decides the size."""
        return self.scaling is not None and self.scaling.mode != "Advisory"

    @property
    def by_work(self) -> bool:
        """Whether it is decided by the work that there is, and not by given targets alone."""
        return self.active and self.scaling is not None and self.scaling.policy != "Targets"

    @property
    def pool_size(self) -> int:
        """Warm replicas that are asked for."""
        return self.warm_pool.size if self.warm_pool is not None else 0

    @property
    def standby(self) -> bool:
        """Whether warm replicas wait without traffic."""
        return self.pool_size > 0 and self.warm_pool is not None and self.warm_pool.mode == "Standby"

    @property
    def max_surge(self) -> int:
        """Replicas above the wanted number while a revision rolls out."""
        return MAX_SURGE if self.rollout.max_surge is None else self.rollout.max_surge

    @property
    def max_unavailable(self) -> int:
        """Serving replicas that may be missing while a revision rolls out."""
        return MAX_UNAVAILABLE if self.rollout.max_unavailable is None else self.rollout.max_unavailable

    @property
    def progress_deadline(self) -> float:
        """Seconds without a further ready replica after which a rollout has failed."""
        return duration_seconds(self.rollout.progress_deadline or PROGRESS_DEADLINE)

    @property
    def history_limit(self) -> int:
        """Old revisions that are kept beyond those in use."""
        limit = self.rollout.revision_history_limit
        return HISTORY_LIMIT if limit is None else limit

    @property
    def managed_budget(self) -> bool:
        """Whether the operator keeps a PodDisruptionBudget."""
        return self.pod_disruption_budget != "None"
