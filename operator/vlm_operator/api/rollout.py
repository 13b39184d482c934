"""How a new revision replaces the old one."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from vlm_operator.api.base import ApiModel, Rule
from vlm_operator.api.scalars import duration
from vlm_operator.api.scaling import Count


class Rollout(ApiModel):
    """How a new revision replaces the old one."""

    type: Literal["RollingUpdate", "Recreate"] | None = None
    """Replace replicas step by step, or all at once. Default: RollingUpdate."""
    max_surge: Count | None = None
    """Pods above the wanted number while rolling out. Default: 1."""
    max_unavailable: Count | None = None
    """Serving replicas that may be missing while rolling out. Default: 0."""
    progress_deadline: duration("1m", "24h") | None = None  # type: ignore[valid-type] # the function returns a type
    """Longest time without a further ready replica, waiting for GPUs not counted. Default: 30m."""
    auto_rollback: bool | None = None
    """Return to the last good revision when the deadline passes. Default: true."""
    paused: bool | None = None
    """Keep the replicas on the revisions that they have. Default: false."""
    revision_history_limit: Annotated[int, Field(ge=0, le=100)] | None = None
    """Old revisions to keep. Default: 5."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=("!has(self.maxSurge) || self.maxSurge > 0 || (has(self.maxUnavailable) && self.maxUnavailable > 0)"),
            message="maxSurge and maxUnavailable must not both be 0: nothing could ever be replaced",
            holds=lambda r: not (r.max_surge == 0 and (r.max_unavailable or 0) == 0),
            field_path=".maxUnavailable",
        ),
    )
