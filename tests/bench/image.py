"""The image: what it adds to its base, and how soon its programs are there."""

import subprocess
import sys
import time
from collections.abc import Callable

from bench.table import Row, percentile
from cluster.support import image as images
from cluster.support.contained import ContainedOperator, account_files
from cluster.support.image import Image
from cluster.support.operator import CRD, RunningOperator
from controlplane import ControlPlane


def measure(quick: bool) -> list[Row]:  # the one switch of every measurement
    """Size; programs in a container beside Python alone in one; the operator in a container beside itself from the checkout."""
    if why := images.missing():
        return [Row(what="the image", ours=why)]
    image = images.build(lambda line: print(line, file=sys.stderr, flush=True))
    rounds = 3 if quick else 15
    rows = [Row(what="size of the image over its base", ours=f"{image.bytes_over_base / 1e6:.0f} MB", aim="<= 220 MB")]
    bare = _run_to_end(image, "python3", "-c", "pass")
    for words in (("vlm-operator", "--help"), ("vlm-operator", "crd"), ("kubectl-vlm", "models")):
        what = f"{' '.join(words)}, from start to end"
        rows.append(_compared(what, _run_to_end(image, *words), bare, "python3 -c pass", rounds=rounds))
    with ControlPlane() as plane:
        plane.install_crd(CRD)
        ours = ContainedOperator(control_plane=plane, name="image", image=image, files=account_files(plane))
        theirs = RunningOperator(plane, "checkout")
        what = "vlm-operator run, from start to ready"
        rows.append(_compared(what, _run_to_ready(ours), _run_to_ready(theirs), "checkout", rounds=rounds))
    return rows


def _run_to_end(image: Image, *words: str) -> Callable[[], float]:
    command = image.container().command(*words)

    def seconds() -> float:
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - started

    return seconds


def _run_to_ready(operator: RunningOperator) -> Callable[[], float]:
    def seconds() -> float:
        started = time.perf_counter()
        operator.start()
        passed = time.perf_counter() - started
        operator.stop()
        return passed

    return seconds


def _compared(what: str, ours: Callable[[], float], baseline: Callable[[], float], against: str, *, rounds: int) -> Row:
    pairs = [(ours(), baseline()) for _ in range(rounds)]
    a, b = (percentile(times, 0.5) for times in zip(*pairs, strict=True))
    return Row(what=f"{what}, p50", ours=f"{a:.2f} s", baseline=f"{b:.2f} s ({against})", ratio=a / b, aim="<= 2 s")
