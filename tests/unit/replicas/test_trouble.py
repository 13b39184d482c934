"""Why a pod does not serve is told in the words of scheduler, kubelet and engine."""

from dataclasses import replace
from typing import Any

from unit.replicas.tables import table
from vlm_operator.engines import registry
from vlm_operator.engines.failures import Failure, Waiting
from vlm_operator.engines.vllm.causes import CUDA_OUT_OF_MEMORY, ENGINE_DIED
from vlm_operator.replicas.evidence import Evidence
from vlm_operator.replicas.facts import Trouble
from vlm_operator.replicas.trouble import trouble_of
from vlm_operator.replicas.wording import MESSAGE_LENGTH


def waiting(reason: str | None = None, message: str | None = None, **status: Any) -> dict[str, Any]:
    given = {"reason": reason, "message": message}
    return {"name": "engine", "state": {"waiting": {key: part for key, part in given.items() if part}}, **status}


def exited(code: int, reason: str = "Error", message: str | None = None) -> dict[str, Any]:
    return {"exitCode": code, "reason": reason} | ({"message": message} if message else {})


def engine(*containers: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {"phase": "Running", "containerStatuses": list(containers), **status}


RUNNING: dict[str, Any] = {"name": "engine", "state": {"running": {}}}
UNSCHEDULED = {"type": "PodScheduled", "status": "False"}

TROUBLES: list[tuple[str, dict[str, Any], tuple[str, str] | None]] = [
    ("no status yet", {}, None),
    ("it runs", engine({**RUNNING, "ready": True}), None),
    ("it loads", engine({**RUNNING, "ready": False, "started": False}), None),
    ("its containers are being created", engine(waiting("ContainerCreating")), None),
    ("its init containers run", engine(waiting("PodInitializing")), None),
    ("it waits without a reason", engine(waiting()), None),
    ("it is scheduled", {"conditions": [UNSCHEDULED | {"status": "True"}]}, None),
    (
        "no node fits",
        {"conditions": [UNSCHEDULED | {"reason": "Unschedulable", "message": "0/3 nodes: Insufficient nvidia.com/gpu."}]},
        ("Unschedulable", "0/3 nodes: Insufficient nvidia.com/gpu"),
    ),
    ("the scheduler gives no reason", {"conditions": [UNSCHEDULED]}, ("Unschedulable", "Unschedulable")),
    (
        "a gate holds it back",
        {"conditions": [UNSCHEDULED | {"reason": "SchedulingGated"}]},
        ("SchedulingGated", "SchedulingGated"),
    ),
    (
        "its image cannot be pulled",
        engine(waiting("ImagePullBackOff", 'Back-off pulling image "x:1"')),
        ("ImagePull", 'Back-off pulling image "x:1"'),
    ),
    (
        "its last words would colour a terminal",
        engine({**RUNNING, "state": {"terminated": exited(1, message="\x1b[31mall\x07 is\x00 lost\x9b")}}),
        ("EngineExited", "the engine exited with code 1: [31mall is lost"),
    ),
    (
        "a mounted object is missing",
        engine(waiting("CreateContainerConfigError", 'secret "hf" not found')),
        ("CreateContainerConfigError", 'secret "hf" not found'),
    ),
    (
        "its engine crashes again and again: the last exit, not the back-off, is the reason",
        engine(waiting("CrashLoopBackOff", lastState={"terminated": exited(1, message="INFO a\nValueError: b\n")})),
        ("EngineExited", "the engine exited with code 1: ValueError: b"),
    ),
    (
        "it crashes and nobody knows how",
        engine(waiting("CrashLoopBackOff", "back-off 5m0s")),
        ("CrashLoopBackOff", "back-off 5m0s"),
    ),
    (
        "it was killed for its memory, though its front end exited with 0",
        engine({"name": "engine", "state": {"terminated": exited(0, "OOMKilled")}}),
        ("HostOutOfMemory", "the engine was killed for its memory (exit code 0)"),
    ),
    (
        "it has just exited",
        engine({"name": "engine", "state": {"terminated": exited(137)}}),
        ("EngineExited", "the engine exited with code 137"),
    ),
    (
        "it ended, which a server never should",
        engine({"name": "engine", "state": {"terminated": exited(0, "Completed")}}),
        ("EngineExited", "the engine exited with code 0"),
    ),
    (
        "its helper has done its work",
        engine({"name": "helper", "state": {"terminated": exited(0, "Completed")}}, {**RUNNING, "ready": True}),
        None,
    ),
    (
        "its node does not answer",
        engine(
            {**RUNNING, "ready": True},
            conditions=[{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}],
        ),
        ("NodeLost", "the node does not report that its containers run"),
    ),
    (
        "a gate of it is closed, though its containers are ready",
        engine(
            {**RUNNING, "ready": True},
            conditions=[
                {"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady"},
                {"type": "ContainersReady", "status": "True"},
            ],
        ),
        None,
    ),
    (
        "a GPU of it is broken",
        engine({**RUNNING, "ready": False, "allocatedResourcesStatus": [
            {"name": "nvidia.com/gpu", "resources": [{"resourceID": "GPU-1", "health": "Unhealthy"}]}]}),
        ("GpuLost", "a device of the pod is unhealthy, its node says"),
    ),
    (
        "its GPUs are sound",
        engine({**RUNNING, "ready": False, "allocatedResourcesStatus": [
            {"name": "nvidia.com/gpu", "resources": [{"resourceID": "GPU-1", "health": "Healthy"}]}]}),
        None,
    ),
    (
        "its node was removed",
        {"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
                                            "message": "PodGC: node no longer exists"}]},
        ("NodeLost", "PodGC: node no longer exists"),
    ),
    (
        "its node is being shut down",
        {"phase": "Failed", "reason": "Terminated", "message": "Pod was terminated in response to imminent node shutdown."},
        ("NodeLost", "Pod was terminated in response to imminent node shutdown."),
    ),
    (
        "its device plugin lost the GPU",
        {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "Allocate failed due to nvml: GPU is lost"},
        ("GpuLost", "Allocate failed due to nvml: GPU is lost"),
    ),
    (
        "it loads again after a crash",
        engine({**RUNNING, "ready": False, "lastState": {"terminated": exited(2, message="CUDA error")}}),
        ("EngineExited", "the engine exited with code 2: CUDA error"),
    ),
    (
        "it serves again after a crash",
        engine({**RUNNING, "ready": True, "lastState": {"terminated": exited(2, message="CUDA error")}}),
        None,
    ),
    (
        "an init container fails",
        engine(
            waiting("PodInitializing"),
            initContainerStatuses=[
                {"name": "mesh", **waiting("CrashLoopBackOff", lastState={"terminated": exited(3, message="no route")})}
            ],
        ),
        ("EngineExited", "the engine exited with code 3: no route"),
    ),
    (
        "an init container has done its work",
        engine(
            {**RUNNING, "ready": True},
            initContainerStatuses=[{"name": "x", "ready": True, "state": {"terminated": exited(0, "Completed")}}],
        ),
        None,
    ),
    (
        "it was evicted",
        {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory.",
         "containerStatuses": [{"name": "engine", "state": {"terminated": exited(137)}}]},
        ("Evicted", "The node was low on resource: memory."),
    ),
    (
        "the kubelet refused it, with a reason that is not one word",
        {"phase": "Failed", "reason": "OutOfnvidia.com/gpu", "message": "Node had no GPU left"},
        ("OutOfnvidiaComGpu", "Node had no GPU left"),
    ),
    (
        "it failed with its engine",
        {"phase": "Failed", "containerStatuses": [{"name": "engine", "state": {"terminated": exited(1)}}]},
        ("EngineExited", "the engine exited with code 1"),
    ),
    ("it finished", {"phase": "Succeeded"}, ("PodEnded", "the pod ended with phase Succeeded")),
    (
        "the container runtime has a reason of several words",
        engine({"name": "engine", "state": {"terminated": exited(159, "seccomp killed")}}),
        ("SeccompKilled", "the engine exited with code 159"),
    ),
]  # fmt: skip


@table("status, words", TROUBLES)
def test_what_keeps_a_pod_from_serving(status: dict[str, Any], words: tuple[str, str] | None) -> None:
    expected = Trouble(reason=words[0], message=words[1]) if words else None
    found = trouble_of({"metadata": {"name": "m-new-0"}, "status": status})
    assert (found and replace(found, advice="", waiting=Waiting.MAY_HELP)) == expected


PYDANTIC = """\
pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig
  Value error, Total number of attention heads (4) must be divisible by tensor parallel size (3). [type=value_error, input]
    For further information visit https://errors.pydantic.dev/2.12/v/value_error
"""


def test_what_the_engine_says_is_told_by_the_engine() -> None:
    status = engine({"name": "engine", "state": {"terminated": exited(1, message=PYDANTIC)}})
    found = trouble_of({"status": status}, registry.engine("vLLM"))
    assert found == Trouble(
        reason="TensorParallelInvalid",
        message="the engine exited with code 1: Total number of attention heads (4) must be divisible by tensor parallel"
        " size (3).",
        advice="set spec.parallelism.tensor to a degree that divides 4: 1, 2, 4",
        waiting=Waiting.IS_VAIN,
    )
    assert trouble_of({"status": status | {"phase": "Failed"}}, registry.engine("vLLM")) == found


def test_other_containers_and_other_ends_are_not_the_engines_to_tell() -> None:
    vllm = registry.engine("vLLM")
    sidecar = engine({"name": "logs", "state": {"terminated": exited(1, message=PYDANTIC)}})
    killed = engine({"name": "engine", "state": {"terminated": exited(137, "OOMKilled", PYDANTIC)}})
    for status, reason in ((sidecar, "EngineExited"), (killed, "HostOutOfMemory")):
        found = trouble_of({"status": status}, vllm)
        assert found is not None
        assert found.reason == reason


def test_what_the_scheduler_says_comes_with_advice_however_long_it_is() -> None:
    message = f"0/900 nodes are available: {'1 node(s) had a bad day, ' * 30}1 Insufficient nvidia.com/gpu."
    found = trouble_of({"status": {"conditions": [UNSCHEDULED | {"message": message}]}})
    assert found is not None
    assert len(found.message) == MESSAGE_LENGTH
    assert "spec.parallelism.tensor" in found.advice


def test_what_the_scheduler_says_comes_before_what_a_container_says() -> None:
    status = engine(waiting("ImagePullBackOff"), conditions=[UNSCHEDULED | {"reason": "Unschedulable"}])
    found = trouble_of({"status": status})
    assert found is not None
    assert found.reason == "Unschedulable"


def test_a_long_message_is_cut_and_keeps_to_one_line() -> None:
    found = trouble_of({"status": engine(waiting("ErrImagePull", "a\n\tb " + "c" * 1000))})
    assert found is not None
    assert found.message.startswith("a b ccc")
    assert found.message.endswith("…")
    assert len(found.message) == MESSAGE_LENGTH


def test_the_last_line_of_a_long_log_is_the_evidence() -> None:
    log = "\n".join(["INFO loading"] * 500 + ["torch.OutOfMemoryError: CUDA out of memory", "", "  "])
    found = trouble_of({"status": engine({"name": "engine", "state": {"terminated": exited(1, message=log)}})})
    assert found is not None
    assert found.message == "the engine exited with code 1: torch.OutOfMemoryError: CUDA out of memory"


VLLM = registry.engine("vLLM")
NOT_STARTED = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
WRONG_ANSWER = "the engine failed a small request with 500: Internal Server Error"
OOM = Failure(cause=CUDA_OUT_OF_MEMORY, evidence="CUDA out of memory", advice="use more GPUs")
DIED = Failure(cause=ENGINE_DIED, evidence="KeyError: 'x'", advice="look", vague=True)
UNREAD = "the end of its log could not be read: no route to the node"

READ: list[tuple[str, str, Evidence, tuple[str, str, str]]] = [
    # sentence, termination message, what was read, (reason, part of the message, part of the advice)
    ("the log has the cause", NOT_STARTED, Evidence(log=OOM), ("CudaOutOfMemory", "code 1: CUDA out of memory", "more GPUs")),
    ("the log has the cause of a silent end", "", Evidence(log=OOM), ("CudaOutOfMemory", "CUDA out of memory", "more GPUs")),
    ("the log has better words", NOT_STARTED, Evidence(log=DIED), ("EngineDied", "KeyError: 'x'", "look")),
    ("the log tells nothing", NOT_STARTED, Evidence(), ("EngineDied", "Engine core initialization failed", "logs --previous")),
    ("the message has the cause", PYDANTIC, Evidence(log=OOM), ("TensorParallelInvalid", "divisible", "divides 4")),
    ("a wrong answer, and why", WRONG_ANSWER, Evidence(log=OOM), ("CudaOutOfMemory", "CUDA out of memory", "more GPUs")),
    ("a wrong answer, and no more", WRONG_ANSWER, Evidence(log=DIED), ("VerificationFailed", "with 500", "verification")),
    ("the log cannot be read", NOT_STARTED, Evidence(log_unreadable="no route to the node"), ("EngineDied", "failed", UNREAD)),
    ("nothing is known at all", "", Evidence(log_unreadable="no route to the node"), ("EngineExited", "code 1", UNREAD)),
]  # fmt: skip


@table("message, read, expected", READ)
def test_what_was_read_of_the_log_counts_where_the_message_does_not_tell(
    message: str, read: Evidence, expected: tuple[str, str, str]
) -> None:
    status = engine({"name": "engine", "state": {"terminated": exited(1, message=message)}})
    for phase in ("Running", "Failed"):
        found = trouble_of({"status": status | {"phase": phase}}, VLLM, read)
        assert found is not None
        assert found.reason == expected[0]
        assert expected[1] in found.message
        assert expected[2] in found.advice


def hung(code: int, *, ended: str, message: str = "", last: bool = False) -> dict[str, Any]:
    """A pod that may take 30 minutes to start, and whose engine began at 10:00."""
    probe = {"periodSeconds": 60, "failureThreshold": 30}
    times = {"startedAt": "2026-11-30T10:00:00Z", "finishedAt": f"2026-11-30T{ended}Z"}
    terminated = exited(code, message=message) | times
    container = {"name": "engine", "state": {"terminated": terminated}}
    if last:
        container = {**RUNNING, "ready": False, "lastState": {"terminated": terminated}}
    return {"spec": {"containers": [{"name": "engine", "startupProbe": probe}]}, "status": engine(container)}


HUNG: list[tuple[str, dict[str, Any], str]] = [
    ("killed after its time", hung(137, ended="10:30:07"), "HungStart"),
    ("killed after its time, and it ended nicely", hung(0, ended="10:30:04"), "HungStart"),
    ("killed after its time, and it loads again", hung(143, ended="10:30:07", last=True), "HungStart"),
    ("the first run of the probe failed early", hung(137, ended="10:29:30"), "HungStart"),
    ("killed early", hung(137, ended="10:12:00"), "EngineExited"),
    ("killed later, when it had served", hung(137, ended="14:00:00"), "EngineExited"),
    ("ended by itself at that time", hung(1, ended="10:30:07"), "EngineExited"),
    (
        "killed after its time, with a wrong answer",
        hung(137, ended="10:30:07", message=WRONG_ANSWER),
        "VerificationFailed",
    ),
]


@table("pod, reason", HUNG)
def test_an_engine_that_never_came_up_is_told_from_one_that_was_killed(pod: dict[str, Any], reason: str) -> None:
    found = trouble_of(pod, VLLM)
    assert found is not None
    assert found.reason == reason
    assert ("spec.engine.startupTimeout" in found.advice) == (reason == "HungStart")


def test_without_a_startup_probe_nothing_is_said_of_a_hung_start() -> None:
    pod = hung(137, ended="10:30:07")
    found = trouble_of({"status": pod["status"]}, VLLM)
    assert found is not None
    assert found.reason == "EngineExited"


def test_what_an_engine_said_has_no_secrets_in_a_status() -> None:
    said = "ValueError: cannot fetch https://bucket.example.com/a.png?X-Amz-Signature=abc with hf_abcdefghijkl"
    found = trouble_of({"status": engine({"name": "engine", "state": {"terminated": exited(1, message=said)}})}, VLLM)
    assert found is not None
    assert found.message == (
        "the engine exited with code 1: ValueError: cannot fetch https://bucket.example.com/a.png?*** with ***"
    )
