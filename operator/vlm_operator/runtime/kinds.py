"""The kinds of objects that the operator deals with, and their paths in the API."""

from dataclasses import dataclass

from vlm_operator.api import GROUP, KIND, PLURAL, VERSION
from vlm_operator.api.names import DEPLOYMENT_LABEL, LEASE_LABELS


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of namespaced or cluster-wide object."""

    group: str
    version: str
    plural: str
    kind: str
    selector: str = ""
    """Label selector that the server applies to lists and watches of it."""
    namespaced: bool = True
    keeps_bytes: bool = False
    """It holds immutable JSON that the server compares byte by byte with what it makes of a patch. So it is created from
    YAML, of which the server makes the very JSON that it will compare with."""
    merges_lists: bool = False
    """A change names the items of its lists by key (strategic merge patch) instead of replacing whole lists."""

    def path(self, *, namespace: str | None = None, name: str | None = None) -> str:
        """The path of the collection or, with a name, of one object."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        place = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        return f"{root}{place}/{self.plural}" + (f"/{name}" if name else "")


VLM_DEPLOYMENT = Kind(GROUP, VERSION, PLURAL, KIND)
POD = Kind("", "v1", "pods", "Pod", DEPLOYMENT_LABEL, merges_lists=True)
SERVICE = Kind("", "v1", "services", "Service", DEPLOYMENT_LABEL)
CONFIG_MAP = Kind("", "v1", "configmaps", "ConfigMap", DEPLOYMENT_LABEL)
CONTROLLER_REVISION = Kind(
    "apps", "v1", "controllerrevisions", "ControllerRevision", DEPLOYMENT_LABEL, keeps_bytes=True
)
BUDGET = Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", DEPLOYMENT_LABEL)
ENDPOINT_SLICE = Kind("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
CLAIM = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
STORAGE_CLASS = Kind("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
NODE = Kind("", "v1", "nodes", "Node", namespaced=False)
EVENT = Kind("events.k8s.io", "v1", "events", "Event")
LEASE = Kind("coordination.k8s.io", "v1", "leases", "Lease", ",".join(f"{k}={v}" for k, v in LEASE_LABELS.items()))
REVIEWS = Kind("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False)

CHILDREN = (POD, SERVICE, CONFIG_MAP, CONTROLLER_REVISION, BUDGET)
WATCHED = (VLM_DEPLOYMENT, *CHILDREN)
BY_NAME = {kind.kind: kind for kind in WATCHED}
