"""A resource is judged as a whole: its name, its fields and what the engine makes of them."""

from typing import Any

import pytest

from unit.replicas.examples import inputs, raw_spec, spec, stored
from unit.replicas.tables import table
from vlm_operator.replicas.evaluate import SINGLE_NODE_CLAIM, evaluate, findings_that_count, gpus_per_node
from vlm_operator.replicas.facts import Claim, GpuNode
from vlm_operator.sizing.catalogue.loading import builtin


def resource(name: Any = "m", of: Any = None, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name} | metadata, "spec": raw_spec() if of is None else of}


def test_a_good_resource_is_read_and_nothing_is_said() -> None:
    found = evaluate(resource(), catalogue=builtin())
    assert (found.spec, found.inputs, found.findings) == (spec(), inputs(), ())


@pytest.mark.parametrize("annotations", [None, {}, {"other": "x"}])
def test_without_the_annotation_nothing_is_restarted(annotations: dict[str, str] | None) -> None:
    assert evaluate(resource(annotations=annotations), catalogue=builtin()).inputs == inputs()


def test_the_annotation_enters_the_inputs() -> None:
    found = evaluate(resource(annotations={"vlm.dev/restarted-at": "2027-01-15T08:00:00Z"}), catalogue=builtin()).inputs
    assert found == inputs().model_copy(update={"restarted_at": "2027-01-15T08:00:00Z"})


NAMES: list[tuple[str, Any, bool]] = [
    ("one letter", "m", True),
    ("letters, digits and dashes", "qwen25-vl-7b", True),
    ("forty characters", "a" * 40, True),
    ("more than forty", "a" * 41, False),
    ("dots, which a Service cannot have", "qwen2.5-vl", False),
    ("a digit first", "7b", False),
    ("a dash last", "m-", False),
    ("upper case", "Qwen", False),
    ("a line break at the end", "m\n", False),
    ("nothing", "", False),
    ("no name at all", None, False),
    ("a number, as YAML may read it", 7, False),
]


@table("name, good", NAMES)
def test_names(name: Any, good: bool) -> None:
    found = evaluate(resource(name), catalogue=builtin())
    assert [(f.field, f.severity, f.reason) for f in found.findings] == (
        [] if good else [("metadata.name", "Error", "InvalidField")]
    )
    assert found.spec == spec(), "the rest is judged all the same"


def test_everything_that_is_wrong_is_said_at_once() -> None:
    wrong = raw_spec(scaling={"maxReplicas": 3, "policy": "Targets"}, engine={"version": "0.1"})
    found = evaluate(resource("Qwen", wrong), catalogue=builtin())
    assert {"metadata.name", "spec.scaling.policy", "spec.engine.version"} <= {
        finding.field for finding in found.findings
    }
    assert found.spec is not None


@pytest.mark.parametrize("version", ["0.9", "0.11", "0.33", "0.40", "0.10.2"])
def test_whatever_is_wrong_with_a_version_the_same_one_is_advised(version: str) -> None:
    vision = raw_spec(model={"name": "meta-llama/Llama-3.2-11B-Vision-Instruct"}, engine={"version": version})
    found = findings_that_count(evaluate(resource(of=vision), catalogue=builtin()))
    advices = [finding.advice for finding in found if finding.field == "spec.engine.version"]
    assert bool(advices) is (version != "0.10.2")
    assert all('to "0.10.2"' in advice for advice in advices), advices


@pytest.mark.parametrize("raw", [{}, {"model": 7}, [], "x", raw_spec(nonsense=1)], ids=str)
def test_a_spec_that_cannot_be_read_asks_for_nothing(raw: Any) -> None:
    found = evaluate(resource("m", raw), catalogue=builtin())
    assert (found.spec, found.inputs) == (None, None)
    assert any(finding.severity == "Error" for finding in found.findings)


QWEN = {"name": "Qwen/Qwen2.5-VL-7B-Instruct", "size": "7B", "maxModelLen": 32768}
THREE = raw_spec(model=QWEN, parallelism={"tensor": 3})


def test_the_sizing_refuses_a_new_revision() -> None:
    found = evaluate(resource(of=THREE), catalogue=builtin())
    errors = [finding.field for finding in findings_that_count(found) if finding.severity == "Error"]
    assert "spec.parallelism.tensor" in errors


def test_what_was_accepted_before_a_newer_catalogue_goes_on_with_a_warning() -> None:
    found = evaluate(resource(of=THREE), catalogue=builtin())
    counted = findings_that_count(found, revisions=[stored(found.inputs)])
    assert "spec.parallelism.tensor" in {finding.field for finding in counted}
    assert {finding.severity for finding in counted} == {"Warning"}


def test_what_is_wrong_in_itself_is_refused_whatever_runs() -> None:
    found = evaluate(resource(of=raw_spec(engine={"version": "0.1"})), catalogue=builtin())
    counted = findings_that_count(found, revisions=[stored(found.inputs)])
    assert "Error" in {finding.severity for finding in counted if finding.field == "spec.engine.version"}


CLAIMS: list[tuple[str, int, tuple[str, ...], bool]] = [
    ("one node, one replica", 1, ("ReadWriteOnce",), False),
    ("one node, two replicas", 2, ("ReadWriteOnce",), True),
    ("one pod, two replicas", 2, ("ReadWriteOncePod",), True),
    ("many readers", 2, ("ReadOnlyMany",), False),
    ("both", 2, ("ReadWriteOnce", "ReadWriteMany"), False),
    ("unknown", 2, (), False),
]


@table("replicas, modes, warned", CLAIMS)
def test_a_claim_for_one_node_and_more_replicas(replicas: int, modes: tuple[str, ...], warned: bool) -> None:
    found = evaluate(resource(of=raw_spec(replicas=replicas)), catalogue=builtin())
    claim = Claim(name="models", exists=True, phase="Bound", access_modes=modes)
    reasons = {finding.reason: finding.severity for finding in findings_that_count(found, claim=claim)}
    assert (reasons.get(SINGLE_NODE_CLAIM) == "Warning") is warned


H100, L4 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-L4"
NODES = (
    GpuNode(product=H100, resources={"nvidia.com/gpu": 4}),
    GpuNode(product=H100, resources={"nvidia.com/gpu": 2}),
    GpuNode(product=L4, resources={"nvidia.com/gpu": 8, "vendor.com/nic": 16}),
)
LARGEST: list[tuple[str, dict[str, Any], int | None]] = [
    ("any product", {}, 8),
    ("one product", {"products": [H100]}, 4),
    ("either", {"products": [H100, L4]}, 8),
    ("none there", {"products": ["NVIDIA-A10"]}, None),
    ("another resource", {"resourceName": "amd.com/gpu"}, None),
]


@table("gpu, expected", LARGEST)
def test_the_largest_node_that_may_run_a_replica(gpu: dict[str, Any], expected: int | None) -> None:
    assert gpus_per_node(spec(gpu=gpu).gpu, NODES) == expected


def test_a_replica_that_no_node_can_hold_is_refused() -> None:
    wide = raw_spec(model=QWEN, parallelism={"tensor": 4, "pipeline": 2}, gpu={"products": [H100]})
    known = evaluate(resource(of=wide), catalogue=builtin(), nodes=NODES)
    assert "GpusPerNode" in {f.reason for f in findings_that_count(known) if f.severity == "Error"}
    unknown = evaluate(resource(of=wide), catalogue=builtin())
    assert "GpusPerNode" not in {f.reason for f in findings_that_count(unknown)}


SCALED = {"maxReplicas": 3, "policy": "Targets", "targets": {"queueDepth": 4}}
NEVER = SCALED | {
    "schedules": [{"schedule": "0 0 30 2 *", "minReplicas": 2}, {"schedule": "0 7 * * *", "minReplicas": 9}]
}


def test_who_acts_on_further_fields_has_them_accepted() -> None:
    found = evaluate(resource(of=raw_spec(scaling=SCALED)), catalogue=builtin(), also=("scaling",))
    assert found.findings == ()
    assert found.spec is not None
    assert found.spec.scaling is not None
    assert found.spec.scaling.targets is not None


def test_a_wrong_value_in_such_a_field_is_to_be_mended_not_removed() -> None:
    wrong = resource(of=raw_spec(scaling=SCALED | {"targets": {"queueDepth": 0}}))
    advices = [evaluate(wrong, catalogue=builtin(), also=also).findings[0].advice for also in ((), ("scaling",))]
    assert advices[0] == "remove spec.scaling.targets, which is not supported yet"
    assert "remove" not in advices[1]


def test_a_schedule_that_never_fires_is_refused_where_schedules_count() -> None:
    never = resource(of=raw_spec(scaling=NEVER))
    found = evaluate(never, catalogue=builtin(), also=("scaling",))
    assert [(f.field, f.severity) for f in found.findings] == [
        ("spec.scaling.schedules[0].schedule", "Error"),
        ("spec.scaling.schedules[1].minReplicas", "Error"),
    ]
    fields = {finding.field for finding in evaluate(never, catalogue=builtin()).findings}
    assert fields == {"spec.scaling.policy", "spec.scaling.targets", "spec.scaling.schedules"}
