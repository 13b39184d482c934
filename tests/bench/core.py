"""How long the pure core takes for one resource."""

import time
from collections.abc import Callable

from bench.table import Row, percentile
from vlm_operator.engines.registry import engine
from vlm_operator.replicas.actions import CreatePod
from vlm_operator.replicas.evaluate import evaluate, findings_that_count
from vlm_operator.replicas.facts import Facts
from vlm_operator.replicas.plan import plan
from vlm_operator.replicas.size import decide_size
from vlm_operator.sizing.catalogue.loading import builtin
from vlm_operator.status.summary import summarise

SPEC = {
    "model": {"name": "Qwen/Qwen2.5-VL-7B-Instruct", "size": "7B", "quantization": "AWQ", "maxModelLen": 32768},
    "weights": {"persistentVolumeClaim": {"claimName": "models", "path": "Qwen2.5-VL-7B-Instruct-AWQ"}},
    "parallelism": {"tensor": 2},
    "gpu": {"products": ["NVIDIA-L40S"]},
    "multimodal": {"limitsPerPrompt": {"image": 4, "video": 0}, "maxPixels": 1003520},
}


def measure(quick: bool) -> list[Row]:  # the one switch of every measurement
    """Reading, checking, planning and rendering, as the operator does it for a new resource."""
    repetitions = 50 if quick else 500
    whole = _milliseconds(_new_resource, repetitions)
    facts = _facts()
    decision = decide_size(facts)
    made = plan(facts, decision, now=0.0)
    status = _milliseconds(lambda: summarise(facts, decision, made, now=0.0), repetitions)
    return [
        Row(what="read, check, size, plan and render one new resource", ours=_text(whole), aim="<= 5 ms"),
        Row(what="summarise its status", ours=_text(status)),
    ]


def _facts() -> Facts:
    judged = evaluate({"metadata": {"name": "qwen"}, "spec": SPEC}, catalogue=builtin())
    return Facts(
        name="qwen",
        namespace="demo",
        uid="u",
        generation=1,
        spec=judged.spec,
        inputs=judged.inputs,
        findings=findings_that_count(judged),
    )


def _new_resource() -> None:
    facts = _facts()
    for action in plan(facts, decide_size(facts), now=0.0).actions:
        if isinstance(action, CreatePod):
            engine("vLLM").render_pod(action.resolved, action.identity)


def _milliseconds(work: Callable[[], object], repetitions: int) -> list[float]:
    for _ in range(5):
        work()
    times = []
    for _ in range(repetitions):
        started = time.perf_counter()
        work()
        times.append((time.perf_counter() - started) * 1000)
    return times


def _text(times: list[float]) -> str:
    return f"p50 {percentile(times, 0.5):.2f} ms, p99 {percentile(times, 0.99):.2f} ms"
