"""Names and labels of everything that belongs to a deployment."""

OPERATOR = "vlm-operator"

NAME_PATTERN = "^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$"
NAME_MESSAGE = (
    "it becomes the name of a Service and the beginning of pod names: use 1 to 40 lower-case letters, digits and -,"
    " starting with a letter and not ending with -, without dots"
)
"""The name of a VLMDeployment."""

DEPLOYMENT_LABEL = "vlm.dev/deployment"
ROLE_LABEL = "vlm.dev/role"
REVISION_LABEL = "vlm.dev/revision"
SLOT_LABEL = "vlm.dev/slot"

GPU_PRODUCT_LABEL = "nvidia.com/gpu.product"
"""What NVIDIA's feature discovery calls the GPUs of a node."""

LEASE_LABELS = {
    "app.kubernetes.io/name": OPERATOR,
    "app.kubernetes.io/component": "leader-election",
    "app.kubernetes.io/managed-by": OPERATOR,
}
"""Labels of the Lease of each installation of the operator, by which others find it."""
NAMESPACES = "vlm.dev/namespaces"
"""Annotation on that Lease: the namespaces that the installation serves, with commas between them, or `*` for all."""

RESTARTED_AT = "vlm.dev/restarted-at"
"""Annotation on the VLMDeployment: a new value restarts the replicas."""
DRAIN_STARTED_AT = "vlm.dev/drain-started-at"
"""Annotation on a pod with the role draining: since when it finishes its requests."""
OUT_OF_BUDGET = "vlm.dev/draining"
"""Annotation of a PodDisruptionBudget: the replicas that were taken out of rotation, and are counted no more."""
AVAILABLE_AT = "vlm.dev/available-at"
"""Annotation on a ControllerRevision: when all replicas first ran it and served."""
FAILED_REASON = "vlm.dev/failed-reason"
"""Annotation on a ControllerRevision that was rolled back: why. It goes when the spec wants another revision."""
SERVING = "serving"
"""Role of a replica that clients are sent to once it is ready."""
WARM = "warm"
"""Role of a replica that is loaded, waits without traffic and serves after one change of its label."""
DRAINING = "draining"
"""Role of a replica that gets no new requests and finishes those that it has."""
ROLES = frozenset({SERVING, WARM, DRAINING})


def child_labels(deployment: str, *, component: str) -> dict[str, str]:
    """Labels of every child. `app.kubernetes.io/instance` is left out: Argo CD tracks its own objects by it."""
    return {
        "app.kubernetes.io/name": "vlm",
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/managed-by": OPERATOR,
        "app.kubernetes.io/part-of": deployment,
        DEPLOYMENT_LABEL: deployment,
    }


def pod_labels(deployment: str, *, role: str, revision: str, slot: int) -> dict[str, str]:
    """Labels of a replica's pod, from birth."""
    return child_labels(deployment, component="engine") | {
        ROLE_LABEL: role,
        REVISION_LABEL: revision,
        SLOT_LABEL: str(slot),
    }


def serving_selector(deployment: str) -> dict[str, str]:
    """Labels that select the pods to which clients are sent."""
    return {DEPLOYMENT_LABEL: deployment, ROLE_LABEL: SERVING}


def scripts_name(deployment: str) -> str:
    """Name of the ConfigMap with the scripts that the pods mount."""
    return f"{deployment}-engine-scripts"


def revision_name(deployment: str, revision: str) -> str:
    """Name of the ControllerRevision of a revision."""
    return f"{deployment}-{revision}"


def owner_reference(deployment: str, uid: str) -> dict[str, object]:
    """Makes the VLMDeployment the controller of a child, so that the child goes with it."""
    return {
        "apiVersion": "vlm.dev/v1alpha1",
        "kind": "VLMDeployment",
        "name": deployment,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
