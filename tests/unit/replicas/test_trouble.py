"""Why a pod does not serve is told in the words of scheduler, kubelet and engine."""

from dataclasses import replace
from typing import Any

from unit.replicas.tables import table
from vlm_operator.engines import registry
from vlm_operator.replicas.facts import Trouble
from vlm_operator.replicas.trouble import MESSAGE_LENGTH, trouble_of


def waiting(reason: str | None = None, message: str | None = None, **status: Any) -> dict[str, Any]:
    given = {"reason": reason, "message": message}
    return {"name": "engine", "state": {"waiting": {key: part for key, part in given.items() if part}}, **status}


def exited(code: int, reason: str = "Error", message: str | None = None) -> dict[str, Any]:
    return {"exitCode": code, "reason": reason} | ({"message": message} if message else {})


def engine(*containers: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {"phase": "Running", "containerStatuses": list(containers), **status}


RUNNING = {"name": "engine", "state": {"running": {}}}
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
        ("ImagePullBackOff", 'Back-off pulling image "x:1"'),
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
        ("OOMKilled", "the engine exited with code 0"),
    ),
    (
        "it has just exited",
        engine({"name": "engine", "state": {"terminated": exited(137)}}),
        ("EngineExited", "the engine exited with code 137"),
    ),
    ("it was told to stop and did", engine({"name": "engine", "state": {"terminated": exited(0, "Completed")}}), None),
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
    assert (found and replace(found, advice="")) == expected


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
        advice="set spec.parallelism.tensor to a degree that divides the heads",
    )
    assert trouble_of({"status": status | {"phase": "Failed"}}, registry.engine("vLLM")) == found


def test_other_containers_and_other_ends_are_not_the_engines_to_tell() -> None:
    vllm = registry.engine("vLLM")
    sidecar = engine({"name": "logs", "state": {"terminated": exited(1, message=PYDANTIC)}})
    killed = engine({"name": "engine", "state": {"terminated": exited(137, "OOMKilled", PYDANTIC)}})
    for status, reason in ((sidecar, "EngineExited"), (killed, "OOMKilled")):
        found = trouble_of({"status": status}, vllm)
        assert found is not None
        assert (found.reason, found.advice) == (reason, "")


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
