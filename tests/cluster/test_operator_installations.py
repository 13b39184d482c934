"""Several installations of the operator in one cluster: of those that serve the same namespace one acts."""

import itertools
import signal
from collections.abc import Callable, Iterator

import pytest

from cluster.support.operator import CRD, Deployments, RunningOperator, launching
from controlplane import ControlPlane, Timing, l4, wait_until
from installation import allow_lease, operator_kubeconfig

pytestmark = pytest.mark.cluster

_serial = itertools.count(1)
ELECT = (
    "--leader-elect",
    "--leader-elect-lease-seconds=4",
    "--leader-elect-deadline-seconds=3",
    "--leader-elect-retry-seconds=0.5",
)
Install = Callable[..., RunningOperator]


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane of this module's own."""
    with ControlPlane(timing=Timing()) as cluster:
        cluster.add_gpu_nodes(l4("gpu-l4", gpus=8))
        cluster.install_crd(CRD)
        operator_kubeconfig(cluster)
        yield cluster


def _namespace(plane: ControlPlane, name: str) -> str:
    plane.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


@pytest.fixture
def work(plane: ControlPlane) -> Iterator[list[Deployments]]:
    """Two fresh namespaces to serve. Afterwards their pods, and with them their GPUs, are given back at once."""
    names = [_namespace(plane, f"work-{next(_serial)}") for _ in range(2)]
    for name in names:
        plane.bound_claim(name, "models")
    yield [Deployments(control_plane=plane, namespace=name) for name in names]
    for name in names:
        plane.api.delete(f"/api/v1/namespaces/{name}")
        plane.api.delete(f"/api/v1/namespaces/{name}/pods", {"gracePeriodSeconds": 0})


@pytest.fixture
def install(plane: ControlPlane) -> Iterator[Install]:
    """Launches operators, with `lease_in` as installations with a Lease there, and ends what is left of them."""
    with launching(plane) as launch:

        def installed(name: str, *arguments: str, lease_in: str = "") -> RunningOperator:
            elect = (*ELECT, f"--leader-elect-namespace={lease_in}") if lease_in else ()
            return launch(name, *elect, *arguments)

        yield installed


@pytest.fixture
def places(plane: ControlPlane) -> list[str]:
    """Two fresh namespaces for Leases."""
    names = [_namespace(plane, f"ops-{next(_serial)}") for _ in range(2)]
    for name in names:
        allow_lease(plane.kubectl, name)
    return names


def _ready(operator: RunningOperator) -> bool:
    return operator.answer("/readyz") == (200, "ok")


def _acts(operator: RunningOperator) -> bool:
    return "vlm_operator_leader 1.0" in operator.answer("/metrics")[1]


def _stands_by(operator: RunningOperator) -> bool:
    code, text = operator.answer("/readyz")
    return code == 503 and text.startswith("does nothing and stands by for the installation with the lease ")


def _has_acted(operator: RunningOperator) -> bool:
    return "create replica" in operator.text() or "created replica" in operator.text()


def test_of_two_that_start_at_once_one_acts_and_the_other_follows_when_it_is_killed(
    plane: ControlPlane, work: list[Deployments], install: Install, places: list[str]
) -> None:
    here, _ = work
    both = [install(f"at-once-{place}", lease_in=place) for place in places]
    wait_until(lambda: any(map(_stands_by, both)) and any(map(_acts, both)), "one acts", timeout_seconds=60)
    (second,) = (one for one in both if _stands_by(one))
    (first,) = (one for one in both if one is not second)
    assert _ready(first)
    assert not _acts(second)
    assert second.answer("/healthz") == (200, "ok")
    told = f"stands by for the installation with the lease {places[both.index(first)]}/vlm-operator, which serves all"
    assert told in second.text()
    here.create(replicas=2)
    here.until_ready()
    assert _has_acted(first)
    assert not _has_acted(second)

    plane.signal_program(first.name, signal.SIGKILL)
    here.patch(replicas=3)
    wait_until(lambda: _acts(second) and _ready(second), "the second acts")
    here.until_ready()
    assert len(here.pods()) == 3


def test_one_without_a_lease_gives_way_and_goes_on_by_itself(
    work: list[Deployments], install: Install, places: list[str]
) -> None:
    here, _ = work
    laptop = install("laptop", f"--namespace={here.namespace}")
    wait_until(lambda: _acts(laptop), "the laptop acts")
    cluster = install("cluster", lease_in=places[0])
    wait_until(lambda: _acts(cluster) and _stands_by(laptop), "the laptop has given way")
    wait_until(lambda: "starts again" in laptop.text(), "the laptop begins anew")
    here.create()
    here.until_ready()
    assert _has_acted(cluster)
    assert not _has_acted(laptop)
    cluster.stop()
    wait_until(lambda: _acts(laptop) and _ready(laptop), "the laptop acts again")
    here.patch(replicas=2)
    here.until_ready()
    assert _has_acted(laptop)


def test_those_that_serve_other_namespaces_act_beside_each_other(
    work: list[Deployments], install: Install, places: list[str]
) -> None:
    both = [
        install(f"beside-{place}", f"--namespace={one.namespace}", lease_in=place)
        for one, place in zip(work, places, strict=True)
    ]
    for one in work:
        one.create()
    for one in work:
        one.until_ready()
    assert all(map(_has_acted, both))
    assert all(map(_ready, both))
