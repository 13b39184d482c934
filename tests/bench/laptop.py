"""How long `kubectl vlm plan` takes: to start, and for each of many resources."""

import itertools
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.table import Row, percentile
from vlm_operator.cli.plan import answer, as_data
from vlm_operator.sizing.catalogue.loading import builtin
from vlm_operator.sizing.catalogue.sizes import expected_sizes

SAMPLE = Path(__file__).parents[2] / "manifests" / "samples" / "qwen2.5-vl-7b-awq.yaml"
RESOURCES = 1000


def measure(quick: bool) -> list[Row]:  # the one switch of every measurement
    """Start-up against that of Python itself, and 1,000 different resources in one process."""
    rounds = 3 if quick else 15
    plan = ["-m", "vlm_operator.cli.kubectl", "plan", "-f", str(SAMPLE)]
    ours, bare = [], []
    for _ in range(rounds):
        ours.append(_seconds([sys.executable, *plan]))
        bare.append(_seconds([sys.executable, "-c", "import pydantic, yaml"]))
    each = _each(RESOURCES // 10 if quick else RESOURCES)
    a, b = percentile(ours, 0.5) * 1000, percentile(bare, 0.5) * 1000
    times = f"p50 {percentile(each, 0.5) * 1000:.2f} ms, p99 {percentile(each, 0.99) * 1000:.2f} ms"
    return [
        Row(
            what="kubectl vlm plan, from start to end, p50",
            ours=f"{a:.0f} ms",
            baseline=f"{b:.0f} ms (import pydantic, yaml)",
            ratio=a / b,
            aim="<= 400 ms",
        ),
        Row(what=f"plan of each of {RESOURCES} resources", ours=times, aim="<= 3 ms"),
    ]


def _seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def _each(count: int) -> list[float]:
    catalogue = builtin()
    kinds = itertools.product(catalogue.gpus, (1, 2, 4, "Auto", 3), catalogue.models)
    times = []
    for row, (gpu, tensor, model) in enumerate(itertools.islice(kinds, 0, count * 9, 9)):
        spec: dict[str, Any] = {
            "model": {"name": model.hf_id, "size": next(iter(expected_sizes(model)), None), "maxModelLen": 4096 + row},
            "weights": {"persistentVolumeClaim": {"claimName": "models"}},
            "gpu": {"products": [gpu.product_labels[0]], "resourceName": gpu.resource_name},
            "parallelism": {"tensor": tensor},
        }
        resource = {"metadata": {"name": f"m{row}"}, "spec": spec}
        started = time.perf_counter()
        as_data(answer(resource, config=None, old=None, catalogue=catalogue))
        times.append(time.perf_counter() - started)
    return times
