"""What the soak tests have in common."""

from collections.abc import Iterator

import pytest

from cluster.support.operator import CRD, judge_calls
from controlplane import ControlPlane, Timing, l4

NODES = 16


@pytest.fixture(scope="module")
def bare_plane() -> Iterator[ControlPlane]:
    """A control plane of the module's own, whose pods become ready at once, still without the CRD."""
    quick = {"sim.vlm.dev/ready-after": "300ms"}
    with ControlPlane(timing=Timing()) as cluster:
        cluster.add_gpu_nodes(*(l4(f"gpu-{number}", gpus=8, labels=quick) for number in range(NODES)))
        yield cluster


@pytest.fixture(scope="module")
def plane(bare_plane: ControlPlane) -> ControlPlane:
    """The same with the CRD."""
    bare_plane.install_crd(CRD)
    return bare_plane


@pytest.fixture(autouse=True)
def permitted(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test during which an operator asked for what it has no right to."""
    yield
    judge_calls(request.node)
