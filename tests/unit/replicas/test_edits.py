"""Whatever edits came before and whenever they came: the children are in the end those of a new resource with the last spec."""

from random import Random
from typing import Any

import pytest

import edits
from chance import seeds
from unit.replicas.examples import spec
from unit.replicas.model_cluster import Cluster
from vlm_operator.api.names import FAILED_REASON, SLOT_LABEL, revision_name

SEQUENCES = 200
ROUNDS = 200
"""A rollout of three replicas takes six rounds for each, and what was edited last may have to be taken back first."""
HISTORY = 5


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", seeds(metafunc.config, SEQUENCES))


def of(resource: edits.Object) -> Cluster:
    """A cluster in which the user has just created the resource."""
    cluster = Cluster(wanted=spec())
    cluster.write(resource)
    return cluster


def time_passes(cluster: Cluster, random: Random, *, looks: int) -> None:
    """The operator looks a few times while pods get on as they may."""
    for _ in range(looks):
        cluster.look()
        cluster.now += random.choice([1, 1, 3])
        for pod in list(cluster.pods.values()):
            if pod.terminating and random.random() < 0.5:
                cluster.vanish(pod)
            elif random.random() < 0.7:
                cluster.advance(pod)
        if random.random() < 0.05:
            cluster.restart()


def picture(cluster: Cluster) -> dict[str, Any]:
    """The children and conditions without their history: old revisions, slots, and when a revision was available."""
    wanted = revision_name("m", cluster.status["updatedRevision"])
    objects = {
        f"{kind}/{name}": edits.without_history(obj)
        for (kind, name), obj in cluster.objects.items()
        if kind != "ControllerRevision" or name == wanted
    }
    pods = [
        (sorted((k, v) for k, v in pod.labels.items() if k != SLOT_LABEL), pod.image, pod.ready, pod.terminating)
        for pod in cluster.pods.values()
    ]
    conditions = {c["type"]: (c["status"], c["reason"]) for c in cluster.status["conditions"]}
    return {"objects": objects, "pods": sorted(pods), "conditions": conditions}


def test_the_end_is_that_of_a_new_resource(seed: int) -> None:
    random = Random(seed)
    first, *others = edits.sequence(random)
    cluster = of(first.resource)
    for edit in others:
        if edit.moment == 1.0:
            cluster.settle(rounds=ROUNDS)
        else:
            time_passes(cluster, random, looks=int(edit.moment * 15))
        cluster.write(edit.resource)
    cluster.settle(rounds=ROUNDS)
    begun = (cluster.status.get("scaling") or {}).get("startingReplicas")
    new = of(edits.fresh(others[-1].resource, starting_replicas=begun))
    new.settle(rounds=ROUNDS)
    assert picture(cluster) == picture(new)
    stored = [obj for (kind, _), obj in cluster.objects.items() if kind == "ControllerRevision"]
    assert len(stored) <= HISTORY + 1
    assert not any(FAILED_REASON in obj["metadata"].get("annotations", {}) for obj in stored)
