"""The settings of a running operator, checked once at the edge."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from vlm_operator.api.names import OPERATOR
from vlm_operator.runtime.kubeconfig_fields import POD_PROXY


def _not_empty(value: Any) -> Any:
    if value == "":
        raise PydanticCustomError("empty", "must not be empty")
    return value


def _pod_proxy(value: Any) -> Any:
    if not POD_PROXY.holds(value):
        raise PydanticCustomError("proxy", "must be {words}", {"words": POD_PROXY.words})
    return value


Name = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
"""As Kubernetes wants the names of namespaces."""
Text = Annotated[str, BeforeValidator(_not_empty)]
File = Annotated[Path, BeforeValidator(_not_empty)]


class Settings(BaseModel):
    """How the operator runs."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    kubeconfig: File | None = None
    """File to connect with. Default: KUBECONFIG, else the pod's ServiceAccount, else ~/.kube/config."""
    context: Text | None = None
    """Context within the file. Default: its current one."""
    namespaces: tuple[Name, ...] = ()
    """Namespaces to serve. Default: all."""
    catalogues: tuple[File, ...] = ()
    """Files with further models and GPUs, and folders of such files."""
    templates: File | None = None
    """Folder with templates in place of the built-in ones. Default: none."""
    health_host: Text = "0.0.0.0"  # noqa: S104 # probes and Prometheus come from other addresses of the cluster
    """Address of /healthz, /readyz and /metrics."""
    health_port: int = Field(default=8080, ge=0, le=65535)
    """Port of /healthz, /readyz and /metrics. 0: any free one."""
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    pod_proxy: Annotated[str, BeforeValidator(_pod_proxy)] | None = None
    """HTTP proxy through which replicas are read. Default: none, whatever the environment says."""
    workers: int = Field(default=8, ge=1, le=64)
    """Deployments that are looked at at the same time."""
    resync_seconds: float = Field(default=300.0, ge=1.0, le=86400.0)
    """Seconds between full lists, which find what a watch may have missed."""
    leader_elect: bool = False
    """Act only while this process holds the Lease."""
    leader_elect_name: Name = OPERATOR
    """Name of the Lease. The replicas of one installation share it."""
    leader_elect_namespace: Name | None = None
    """Namespace of the Lease. Default: that of the pod."""
    leader_elect_lease_seconds: int = Field(default=15, ge=2, le=3600)
    """Seconds without a renewal after which another operator takes over."""
    leader_elect_deadline_seconds: float = Field(default=10.0, gt=0.0, validate_default=True)
    """Seconds without a renewal after which the leader stops acting."""
    leader_elect_retry_seconds: float = Field(default=2.0, ge=0.1, validate_default=True)
    """Seconds between renewals, and between the looks of those that follow."""

    @field_validator("leader_elect_deadline_seconds")
    @classmethod
    def _below_the_lease(cls, value: float, others: ValidationInfo) -> float:
        if value >= others.data.get("leader_elect_lease_seconds", float("inf")):
            raise PydanticCustomError("too_long", "must be less than --leader-elect-lease-seconds")
        return value

    @field_validator("leader_elect_retry_seconds")
    @classmethod
    def _below_the_deadline(cls, value: float, others: ValidationInfo) -> float:
        if value > others.data.get("leader_elect_deadline_seconds", float("inf")) / 3:
            raise PydanticCustomError("too_long", "must be at most a third of --leader-elect-deadline-seconds")
        return value
