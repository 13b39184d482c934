"""What the kubelet, the container runtime and the registry say of a pod that does not run, and what to do about it."""

import re

from vlm_operator.engines.causes import GPU_LOST
from vlm_operator.engines.failures import Cause, Waiting

_WAITING = "waiting container, in the kubelet's words"
_IMAGE, _MOUNT = "ImagePull", "MountFailed"

IMAGE_NOT_FOUND = Cause(
    reason=_IMAGE,
    meaning="the registry does not have the image",
    seen_in=_WAITING,
    advice="correct spec.engine.image",
    waiting=Waiting.IS_VAIN,
)
IMAGE_REFUSED = Cause(
    reason=_IMAGE,
    meaning="the registry does not give the image to this pod, or does not have it",
    seen_in=_WAITING,
    advice="give the pods a valid secret in spec.podTemplate.imagePullSecrets, or correct spec.engine.image",
    waiting=Waiting.IS_VAIN,
)
IMAGE_RATIONED = Cause(
    reason=_IMAGE,
    meaning="the registry limits how much is pulled",
    seen_in=_WAITING,
    advice="wait, or pull with an account (spec.podTemplate.imagePullSecrets) or from a mirror (spec.engine.image)",
    waiting=Waiting.MAY_HELP,
)
IMAGE_PULL = Cause(
    reason=_IMAGE,
    meaning="the image cannot be pulled for another reason, for example since the registry does not answer",
    seen_in=_WAITING,
    advice="check spec.engine.image and spec.podTemplate.imagePullSecrets, and whether the node reaches the registry",
    waiting=Waiting.MAY_HELP,
)
MOUNT_FAILED = Cause(
    reason=_MOUNT,
    meaning="a volume cannot be attached or mounted, or what is mounted from it does not exist",
    seen_in="events of a pod whose containers are not created, and waiting containers",
    advice="kubectl describe pod names the volume: check the claim, its storage driver on the node, and"
    " spec.weights.persistentVolumeClaim.path",
    waiting=Waiting.MAY_HELP,
)
CONFIG_MISSING = Cause(
    reason="CreateContainerConfigError",
    meaning="a Secret or ConfigMap that the pod refers to does not exist, or lacks the key",
    seen_in=_WAITING,
    advice="create it, or correct spec.engine.env: the replica starts by itself then",
    waiting=Waiting.MAY_HELP,
)
NODE_LOST = Cause(
    reason="NodeLost",
    meaning="the node of the replica does not answer, was shut down or removed",
    seen_in="conditions and reason of the pod",
    advice="look at the node; the replica is replaced elsewhere",
    waiting=Waiting.MAY_HELP,
)

IMAGE_REASONS = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
"""Why a container waits, where it waits for its image."""
LOST_NODE_REASONS = frozenset({"NodeLost", "NodeShutdown", "Shutdown", "DeletionByTaintManager", "DeletionByPodGC"})
"""Reasons of ended pods, and of their condition DisruptionTarget."""
MOUNT_EVENTS = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedMountOnFilesystemMismatch"})

_WORDS: tuple[tuple[Cause, str], ...] = (
    (
        GPU_LOST,
        r"GPU is lost|nvidia-container|nvml|nvidia\.com/gpu.*(?:unavailable|unhealthy)|unhealthy device|CDI device",
    ),
    (
        MOUNT_FAILED,
        r"failed to prepare subPath|error mounting|failed to mount|stale file handle|transport endpoint",
    ),
)
"""What an error while a container was made, or a pod was admitted by its node, is about."""

_IMAGE_WORDS: tuple[tuple[Cause, str], ...] = (
    (IMAGE_RATIONED, r"toomanyrequests|too many requests|rate ?limit"),
    (
        IMAGE_REFUSED,
        r"unauthori[sz]ed|authentication required|authorization failed|denied|403 forbidden|may require|no basic auth",
    ),
    (
        IMAGE_NOT_FOUND,
        r"not found|(?:manifest|name) unknown|does not exist|parse image|InvalidImageName|invalid reference|no match for",
    ),
)

CAUSES = (
    IMAGE_NOT_FOUND,
    IMAGE_REFUSED,
    IMAGE_RATIONED,
    IMAGE_PULL,
    MOUNT_FAILED,
    CONFIG_MISSING,
    NODE_LOST,
)


def of_waiting(reason: str, message: str) -> Cause | None:
    """What a container waits for; None when that is not known better than the kubelet tells it."""
    if reason in IMAGE_REASONS:
        return _first(_IMAGE_WORDS, f"{reason} {message}") or IMAGE_PULL
    known = _first(_WORDS, message)
    return CONFIG_MISSING if known is None and reason == CONFIG_MISSING.reason else known


def of_refused_pod(reason: str, message: str) -> Cause | None:
    """Why a pod was ended by its node or by the cluster; None when that is not known better than they tell it."""
    if reason in LOST_NODE_REASONS or "node shutdown" in message:
        return NODE_LOST
    return _first(_WORDS, message)


def of_event(reason: str, message: str) -> Cause | None:
    """What an event of a pod is about whose containers are not created."""
    return MOUNT_FAILED if reason in MOUNT_EVENTS else _first(_WORDS, message)


def _first(table: tuple[tuple[Cause, str], ...], text: str) -> Cause | None:
    return next((cause for cause, words in table if re.search(words, text, re.IGNORECASE)), None)
