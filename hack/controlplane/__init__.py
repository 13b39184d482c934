"""A real Kubernetes control plane for tests, demos and benches, with GPU nodes imitated by kwok.

from controlplane import ControlPlane, h100

with ControlPlane() as cluster:
    cluster.add_gpu_nodes(h100("gpu-0"))
"""

from controlplane.api import Api, wait_until
from controlplane.audit import AuditTrail, Call
from controlplane.cluster import ControlPlane
from controlplane.errors import ApiError, ControlPlaneError, PrerequisiteError, StartError, WaitTimeoutError
from controlplane.nodes import GpuNode, a100, h100, l4
from controlplane.programs import OWNERS_ENFORCED, Timing
from controlplane.tools import ensure_tools

__all__ = [
    "OWNERS_ENFORCED",
    "Api",
    "ApiError",
    "AuditTrail",
    "Call",
    "ControlPlane",
    "ControlPlaneError",
    "GpuNode",
    "PrerequisiteError",
    "StartError",
    "Timing",
    "WaitTimeoutError",
    "a100",
    "ensure_tools",
    "h100",
    "l4",
    "wait_until",
]
