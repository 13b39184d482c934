"""How long the pure core takes for one resource."""

import time
from collections.abc import Callable

from bench.table import Row, percentile
from unit.replicas.examples import NOW, facts, of_length, replica, spec, stored
from vlm_operator.api.names import WARM
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
    crowd = _crowd(64)
    looked = _milliseconds(lambda: plan(crowd, decide_size(crowd), now=NOW), repetitions)
    return [
        Row(what="plan 64 replicas, of which a rollout has replaced half", ours=_text(looked), aim="<= 1 ms"),
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


def _crowd(replicas: int) -> Facts:
    """Replicas in the midst of a rollout, with a new one on standby that is ready."""
    new, old = stored(of_length(2048), number=2), stored(of_length(4096), number=1)
    serving = (
        replica(slot, revision=(new if slot % 2 else old).revision, in_flight=slot % 5) for slot in range(replicas)
    )
    pool = {"warmPool": {"size": 1, "mode": "Standby"}}
    return facts(
        spec(model={"name": "org/model", "maxModelLen": 2048}, replicas=replicas, **pool),
        replicas=(*serving, replica(replicas, revision=new.revision, role=WARM)),
        revisions=(old, new),
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
