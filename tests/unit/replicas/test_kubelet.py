"""What kubelet, container runtime and registry say of a pod that does not run has a name, and a way out."""

from typing import Any

from unit.replicas.tables import table
from unit.replicas.test_trouble import engine, exited, waiting
from vlm_operator.engines import registry
from vlm_operator.engines.failures import Waiting
from vlm_operator.replicas.evidence import Evidence, PodEvent
from vlm_operator.replicas.trouble import trouble_of

VLLM = registry.engine("vLLM")


IMAGES: list[tuple[str, str, str, tuple[str, Waiting]]] = [
    # sentence, reason, message, (part of the advice, whether waiting helps). After kubernetes and containerd; Docker Hub's words
    # are those of kubernetes-retired/dashboard#9434 and octarinesec/octarine-operator#15.
    (
        "not there",
        "ErrImagePull",
        'rpc error: code = NotFound desc = failed to pull and unpack image "r/x:1": r/x:1: not found',
        ("correct spec.engine.image", Waiting.IS_VAIN),
    ),
    (
        "no manifest",
        "ImagePullBackOff",
        'Back-off pulling image "x:1": ErrImagePull: manifest unknown',
        ("correct spec.engine.image", Waiting.IS_VAIN),
    ),
    (
        "no image name",
        "InvalidImageName",
        'Failed to apply default image tag "X:1": couldn\'t parse image name',
        ("correct spec.engine.image", Waiting.IS_VAIN),
    ),
    (
        "private",
        "ImagePullBackOff",
        "pull access denied, repository does not exist or may require authorization: insufficient_scope",
        ("imagePullSecrets", Waiting.IS_VAIN),
    ),
    (
        "wrong password",
        "ErrImagePull",
        "failed to authorize: failed to fetch oauth token: unexpected status: 401 Unauthorized",
        ("imagePullSecrets", Waiting.IS_VAIN),
    ),
    (
        "forbidden",
        "ErrImagePull",
        "unexpected status from HEAD request to https://r/v2/x/manifests/1: 403 Forbidden",
        ("imagePullSecrets", Waiting.IS_VAIN),
    ),
    (
        "rationed",
        "ErrImagePull",
        "429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit.",
        ("wait", Waiting.MAY_HELP),
    ),
    (
        "no answer",
        "ErrImagePull",
        "dial tcp: lookup registry.example.com: no such host",
        ("registry", Waiting.MAY_HELP),
    ),
    ("only that it waits", "ImagePullBackOff", 'Back-off pulling image "x:1"', ("registry", Waiting.MAY_HELP)),
]


@table("reason, message, expected", IMAGES)
def test_an_image_that_cannot_be_pulled_is_told_by_its_cause(
    reason: str, message: str, expected: tuple[str, Waiting]
) -> None:
    found = trouble_of({"status": engine(waiting(reason, message))})
    assert found is not None
    assert found.reason == "ImagePull"
    assert expected[0] in found.advice
    assert found.waiting is expected[1]


MAKING: list[tuple[str, dict[str, Any], str]] = [
    (
        "a subPath that is not there",
        waiting("CreateContainerConfigError", 'failed to prepare subPath for volumeMount "weights"'),
        "MountFailed",
    ),
    (
        "a mount that broke",
        waiting("RunContainerError", 'error mounting "/var/lib/x" to rootfs: stale file handle'),
        "MountFailed",
    ),
    (
        "no driver",
        waiting("RunContainerError", "nvidia-container-cli: initialization error: nvml error: driver not loaded"),
        "GpuLost",
    ),
    (
        "no device",
        waiting("CreateContainerError", "CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=0"),
        "GpuLost",
    ),
    (
        "a driver that is gone at the next try",
        waiting(
            "CrashLoopBackOff",
            lastState={
                "terminated": exited(
                    128,
                    "StartError",
                    "failed to create shim task: nvidia-container-cli: device error: GPU-1: unknown device",
                )
            },
        ),
        "GpuLost",
    ),
    (
        "no program",
        waiting("RunContainerError", 'exec: "vllm": executable file not found in $PATH'),
        "RunContainerError",
    ),
]


@table("container, reason", MAKING)
def test_a_container_that_cannot_be_made_is_told_by_its_cause(container: dict[str, Any], reason: str) -> None:
    found = trouble_of({"status": engine(container)}, VLLM)
    assert found is not None
    assert found.reason == reason


def warned(reason: str, message: str) -> Evidence:
    return Evidence(events=(PodEvent(reason=reason, message=message, at="2026-11-30T10:00:00Z"),))


EVENTS: list[tuple[str, Evidence, tuple[str, str] | None]] = [
    # Words of kubernetes-csi/csi-driver-nfs#428 and #649, and of the attach controller.
    ("nothing happened", Evidence(), None),
    (
        "a mount that takes too long",
        warned("FailedMount", "Unable to attach or mount volumes: unmounted volumes=[weights]: timed out"),
        ("MountFailed", "spec.weights.persistentVolumeClaim.path"),
    ),
    (
        "a mount that fails",
        warned("FailedMount", 'MountVolume.SetUp failed for volume "pvc-1" : rpc error: code = DeadlineExceeded'),
        ("MountFailed", "storage driver"),
    ),
    (
        "a disk that is elsewhere",
        warned("FailedAttachVolume", 'Multi-Attach error for volume "pvc-1": already used by pod(s) x'),
        ("MountFailed", "claim"),
    ),
    (
        "no network for it",
        warned("FailedCreatePodSandBox", "plugin type=calico failed (add): no addresses"),
        ("FailedCreatePodSandBox", ""),
    ),
    (
        "events may not be read",
        Evidence(events_unreadable='cannot list resource "events"'),
        ("EventsUnreadable", "describe pod"),
    ),
]


@table("read, expected", EVENTS)
def test_a_pod_without_containers_is_told_by_its_events(read: Evidence, expected: tuple[str, str] | None) -> None:
    found = trouble_of({"status": engine(waiting("ContainerCreating"), phase="Pending")}, VLLM, read)
    assert (found and found.reason) == (expected and expected[0])
    assert expected is None or (found is not None and expected[1] in found.advice)
