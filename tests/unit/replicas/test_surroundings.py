"""What stands around the replicas is created, repaired and waited for, and never taken from somebody."""

from dataclasses import replace
from typing import Any

import pytest

from unit.replicas.examples import NOW, OLDER, PLACE, UID, facts, of_length, replica, resolved, spec, stored
from unit.replicas.tables import table
from vlm_operator.api.findings import Finding
from vlm_operator.engines.registry import engine
from vlm_operator.replicas.actions import Create, Delete, Repair
from vlm_operator.replicas.children import budget_manifest, scripts_manifest, service_manifest
from vlm_operator.replicas.facts import Facts
from vlm_operator.replicas.settings import Settings
from vlm_operator.replicas.size import decide_size
from vlm_operator.replicas.sizes import sizes_of
from vlm_operator.replicas.surroundings import LOOK_AGAIN, Surroundings, surroundings
from vlm_operator.replicas.target import settings_of, target_of

BUDGET = ("PodDisruptionBudget", "m")
SERVICE, SCRIPTS, REVISION = ("Service", "m"), ("ConfigMap", "m-engine-scripts"), ("ControllerRevision", stored().name)
ERROR = Finding(reason="Wrong", severity="Error", field="spec", message="wrong")


def as_held(manifest: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """An object as the API server holds it after it was created."""
    known = {"uid": f"uid-of-{manifest['metadata']['name']}", "resourceVersion": "3", "creationTimestamp": "x"}
    return manifest | {"metadata": manifest["metadata"] | known | metadata}


def objects(**metadata: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """Everything that should stand around, each object with the given metadata."""
    scripts = engine("vLLM").scripts()
    return {
        SERVICE: as_held(service_manifest(**PLACE, service=spec().service), **metadata),
        SCRIPTS: as_held(scripts_manifest(**PLACE, scripts=scripts), **metadata),
        REVISION: as_held(dict(stored().live), **metadata),
        BUDGET: as_held(budget_manifest(**PLACE, serving=1), **metadata),
    }


def tend(known: Facts) -> Surroundings:
    target = target_of(known)
    assert target is not None
    settings = settings_of(known)
    sizes = sizes_of(decide_size(known), settings or Settings.defaults())
    return surroundings(known, target, settings, sizes, verdict="", now=NOW)


def complete(**changes: Any) -> Facts:
    """A deployment with everything in its place."""
    return facts(**({"objects": objects(), "revisions": (stored(),)} | changes))


def test_what_is_missing_is_created() -> None:
    found = tend(facts())
    assert found.waits == ()
    assert all(isinstance(action, Create) for action in found.actions)
    assert {action.sentence for action in found.actions} == {
        f"create ControllerRevision {stored().name}",
        "create ConfigMap m-engine-scripts",
        "create Service m",
        "create PodDisruptionBudget m",
    }
    assert [a.manifest["metadata"]["ownerReferences"][0]["uid"] for a in found.actions if isinstance(a, Create)] == [
        UID
    ] * 4


def test_what_is_right_is_left_alone() -> None:
    assert tend(complete()) == Surroundings()


def test_the_budget_is_touched_when_replicas_leave_the_rotation_and_when_they_have_gone() -> None:
    there = {r.name: r for r in (replica(0, role="draining"), replica(1, role="draining"), replica(2))}
    (found,) = tend(complete(replicas=tuple(there.values()))).actions
    assert isinstance(found, Repair)
    assert found.patch["metadata"]["annotations"] == {"vlm.dev/draining": "m-new-0,m-new-1"}
    touched = objects()
    ours = {"manager": "vlm-operator", "fieldsV1": {"f:metadata": {"f:annotations": {"f:vlm.dev/draining": {}}}}}
    touched[BUDGET]["metadata"] |= {"annotations": {"vlm.dev/draining": "m-new-0"}, "managedFields": [ours]}
    (found,) = tend(complete(objects=touched)).actions
    assert isinstance(found, Repair)
    assert found.patch["metadata"]["annotations"] == {"vlm.dev/draining": None}


EDITS: list[tuple[str, tuple[str, str], dict[str, Any], str]] = [
    ("the selector", SERVICE, {"spec": {"type": "ClusterIP", "ports": [], "selector": {}}}, "spec.selector of Service m"),
    ("the script", SCRIPTS, {"data": {"verify_engine.py": "exit(0)"}}, "data.verify_engine.py of ConfigMap m-engine-scripts"),
]  # fmt: skip


@table("place, edit, named", EDITS)
def test_an_edit_is_repaired(place: tuple[str, str], edit: dict[str, Any], named: str) -> None:
    held = objects()
    held[place] = held[place] | edit
    (repair,) = tend(complete(objects=held)).actions
    assert isinstance(repair, Repair)
    assert repair.sentence == f"repair {named}"
    assert repair.kind == place[0]
    assert repair.patch["metadata"]["uid"] == held[place]["metadata"]["uid"]
    assert repair.patch["metadata"]["resourceVersion"] == "3"


def test_a_service_follows_the_spec() -> None:
    (repair, _) = tend(complete(spec=spec(service={"port": 80}))).actions
    assert isinstance(repair, Repair)
    assert repair.kind == "Service"
    assert repair.patch["spec"]["ports"][0]["port"] == 80


def test_a_port_that_somebody_added_is_taken_away() -> None:
    held = objects()
    ports = [*held[SERVICE]["spec"]["ports"], {"name": "metrics", "port": 9100, "protocol": "TCP"}]
    held[SERVICE] = held[SERVICE] | {"spec": held[SERVICE]["spec"] | {"ports": ports}}
    (repair,) = tend(complete(objects=held)).actions
    assert isinstance(repair, Repair)
    assert [port["name"] for port in repair.patch["spec"]["ports"]] == ["http"]


@pytest.mark.parametrize("place", [SERVICE, SCRIPTS, REVISION, BUDGET])
@pytest.mark.parametrize(
    "metadata",
    [{"ownerReferences": [OLDER]}, {"deletionTimestamp": "2027-01-15T08:00:00Z"}],
    ids=["of the previous deployment", "being deleted"],
)
def test_what_is_leaving_is_waited_for(place: tuple[str, str], metadata: dict[str, Any]) -> None:
    found = tend(complete(objects=objects() | {place: objects(**metadata)[place]}))
    assert found.actions == ()
    (wait,) = found.waits
    assert (wait.reason, wait.until) == ("PreviousIsLeaving", None)
    assert wait.message.startswith(f"{place[0]} {place[1]} is being deleted, or of the previous deployment")


@pytest.mark.parametrize("place", [SERVICE, SCRIPTS, REVISION, BUDGET])
def test_an_orphan_is_not_adopted_and_the_command_to_remove_it_is_given(place: tuple[str, str]) -> None:
    found = tend(complete(objects=objects() | {place: objects(ownerReferences=[])[place]}))
    assert found.actions == ()
    (wait,) = found.waits
    assert (wait.reason, wait.until) == (f"{place[0]}NameTaken", NOW + LOOK_AGAIN)
    kinds = "pods,services,configmaps,controllerrevisions,poddisruptionbudgets"
    assert f"kubectl delete {kinds} -n models -l vlm.dev/deployment=m" in wait.message


def test_while_own_replicas_live_the_advised_command_does_not_select_them() -> None:
    held = objects() | {SERVICE: objects(ownerReferences=[])[SERVICE]}
    (wait,) = tend(complete(objects=held, replicas=(replica(),))).waits
    assert "kubectl delete service m -n models" in wait.message
    assert "-l vlm.dev/deployment" not in wait.message


@pytest.mark.parametrize("labels", [None, {}, {"vlm.dev/deployment": "other"}])
@pytest.mark.parametrize("place", [SERVICE, SCRIPTS, REVISION, BUDGET])
def test_a_strangers_object_is_not_touched(place: tuple[str, str], labels: dict[str, str] | None) -> None:
    found = tend(complete(objects=objects() | {place: objects(ownerReferences=[], labels=labels)[place]}))
    assert found.actions == ()
    (wait,) = found.waits
    assert (wait.reason, wait.until) == (f"{place[0]}NameTaken", NOW + LOOK_AGAIN)
    assert f"kubectl delete {place[0].lower()} {place[1]} -n models" in wait.message
    assert ("set spec.podDisruptionBudget to None" in wait.message) is (place == BUDGET)


def test_what_is_not_taken_is_tended_meanwhile() -> None:
    held = {SERVICE: objects(ownerReferences=[])[SERVICE]}
    found = tend(facts(objects=held))
    assert sorted(action.sentence.split()[1] for action in found.actions) == [
        "ConfigMap",
        "ControllerRevision",
        "PodDisruptionBudget",
    ]
    assert [wait.reason for wait in found.waits] == ["ServiceNameTaken"]


def test_a_new_revision_is_numbered_as_the_newest() -> None:
    found = tend(complete(revisions=(stored(of_length(1), number=4), stored(of_length(2), number=9)), objects={}))
    (manifest,) = [
        a.manifest for a in found.actions if isinstance(a, Create) and a.manifest["kind"] == "ControllerRevision"
    ]
    assert manifest["revision"] == 10
    assert "data" in manifest


def test_a_return_to_an_old_spec_makes_its_revision_the_newest() -> None:
    (repair,) = tend(complete(revisions=(stored(number=1), stored(of_length(2), number=2)))).actions
    assert isinstance(repair, Repair)
    assert repair.sentence == f"repair revision of ControllerRevision {stored().name}"
    assert repair.patch["revision"] == 3
    assert "data" not in repair.patch, "the data of a ControllerRevision can never change"


def test_five_old_revisions_are_kept_and_those_with_replicas_beside() -> None:
    history = tuple(stored(of_length(number), number=number, uid=f"u{number}") for number in range(1, 9))
    used = history[0].revision
    current = stored(number=9)
    held = objects()
    held[REVISION] = as_held(dict(current.live))
    known = complete(revisions=(*history, current), objects=held, replicas=(replica(0, revision=used),))
    found = tend(known)
    assert [(a.name, a.uid, a.resource_version) for a in found.actions if isinstance(a, Delete)] == [
        (history[2].name, "u3", "5"),
        (history[1].name, "u2", "5"),
    ]
    assert len(found.actions) == 2
    assert (
        tend(complete(revisions=(*history[3:], history[0], current), objects=held, replicas=known.replicas)).actions
        == ()
    )


def test_a_refused_spec_moves_nothing() -> None:
    refused = spec(service={"port": 80})
    assert tend(complete(spec=refused, findings=(ERROR,))).actions == ()


@pytest.mark.parametrize("unreadable", [False, True])
def test_while_a_spec_is_refused_the_service_is_kept_as_it_was_accepted(unreadable: bool) -> None:
    refused = {"spec": None if unreadable else spec(service={"port": 80}), "findings": (ERROR,)}
    bent = objects()
    bent[SERVICE] = bent[SERVICE] | {"spec": {}}
    (repair,) = tend(complete(objects=bent, **refused)).actions
    assert isinstance(repair, Repair)
    assert repair.patch["spec"]["ports"][0]["port"] == 8000
    gone = {place: obj for place, obj in objects().items() if place != SERVICE}
    (create,) = tend(complete(objects=gone, **refused)).actions
    assert isinstance(create, Create)
    assert create.manifest["spec"] == objects()[SERVICE]["spec"]


def test_when_nobody_knows_how_the_service_was_accepted_it_is_left_alone() -> None:
    unknown = replace(stored(), settings=None)
    bent = objects()
    bent[SERVICE] = bent[SERVICE] | {"spec": {}}
    known = complete(objects=bent, revisions=(unknown,), findings=(ERROR,))
    assert [action for action in tend(known).actions if getattr(action, "kind", "") == "Service"] == []


def test_what_is_accepted_is_kept_beside_the_revision() -> None:
    held = objects()
    held[SERVICE] = as_held(service_manifest(**PLACE, service=spec(service={"port": 80}).service))
    (repair,) = tend(complete(spec=spec(service={"port": 80}), objects=held)).actions
    assert isinstance(repair, Repair)
    assert (repair.kind, repair.patch["metadata"]["name"]) == REVISION
    (kept,) = repair.patch["metadata"]["annotations"].values()
    assert Settings.model_validate_json(kept).service.port == 80


def test_pods_of_a_stored_revision_are_rendered_from_it() -> None:
    target = target_of(complete())
    assert target is not None
    assert target.resolved == resolved()
