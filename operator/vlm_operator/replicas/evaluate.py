"""From the object as written to what it asks for and everything that is wrong with it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vlm_operator.api.findings import INVALID_FIELD, Finding
from vlm_operator.api.hardware import Gpu
from vlm_operator.api.names import NAME_MESSAGE, NAME_PATTERN, RESTARTED_AT
from vlm_operator.api.resource import read_spec
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.api.support import acted_on
from vlm_operator.engines.base import PodInputs
from vlm_operator.engines.registry import engine
from vlm_operator.replicas.revision import revision_of
from vlm_operator.replicas.settings import Settings
from vlm_operator.sizing.assess import Assessment, assess
from vlm_operator.sizing.catalogue.loading import Catalogue
from vlm_operator.sizing.subject import Subject
from vlm_operator.sizing.versions import versions_with_class

if TYPE_CHECKING:  # on a laptop there are none
    from vlm_operator.replicas.facts import Claim, GpuNode, StoredRevision

REPLICAS_IGNORED = "ReplicasIgnored"
"""spec.replicas was edited while scaling decides the size."""
SINGLE_NODE_CLAIM = "SingleNodeClaim"
"""The claim can be mounted on one node only, and there may be more than one replica."""


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What a resource asks for, as far as it can be read, and what is to be said about it."""

    spec: VLMDeploymentSpec | None
    inputs: PodInputs | None
    findings: tuple[Finding, ...]
    """What is wrong in itself."""
    assessment: Assessment | None = None
    """What the sizing says, None where the spec could not be read."""


def evaluate(
    resource: Mapping[str, Any],
    *,
    catalogue: Catalogue,
    nodes: "Iterable[GpuNode]" = (),
    also: tuple[str, ...] = (),
) -> Judgement:
    """Read and check a resource as the API server holds it, or as a file has it.

    `nodes`: those of the cluster, if known. `also`: fields that the caller acts on although the operator does not yet.
    """
    metadata = resource["metadata"]
    named = tuple(_name(metadata.get("name")))
    spec, findings = read_spec(resource.get("spec"), also)
    if spec is None:
        return Judgement(spec=None, inputs=None, findings=named + findings)
    inputs = PodInputs.of(spec, restarted_at=(metadata.get("annotations") or {}).get(RESTARTED_AT))
    chosen = engine(spec.engine.type)
    subject = Subject(spec, catalogue, chosen.sizing(inputs), gpus_per_node(spec.gpu, nodes))
    return Judgement(
        spec=spec,
        inputs=inputs,
        findings=named + findings + _schedules(spec, also) + chosen.check(inputs, having=versions_with_class(subject)),
        assessment=assess(subject),
    )


def gpus_per_node(gpu: Gpu, nodes: "Iterable[GpuNode]") -> int | None:
    """GPUs of the largest node that may run a replica; None while there is no such node, which may yet be added."""
    fitting = (node for node in nodes if not gpu.products or node.product in gpu.products)
    counts = (node.resources[gpu.resource_name] for node in fitting if gpu.resource_name in node.resources)
    return max(counts, default=None)


def findings_that_count(
    judged: Judgement,
    *,
    revisions: "Iterable[StoredRevision]" = (),
    claim: "Claim | None" = None,
    status: Mapping[str, Any] | None = None,
) -> tuple[Finding, ...]:
    """All findings about a deployment in its place, whose status is as it was last written.

    What the sizing holds against a revision that was accepted before is a warning: a newer catalogue must not turn away
    what runs.
    """
    sizing = judged.assessment.findings if judged.assessment else ()
    accepted = {known.revision for known in revisions}
    if accepted and judged.inputs is not None and revision_of(judged.inputs) in accepted:
        sizing = tuple(replace(finding, severity="Warning") for finding in sizing)
    return (*judged.findings, *sizing, *_claim(judged.spec, claim), *_size(judged.spec, status or {}))


def _most(spec: VLMDeploymentSpec) -> int:
    """The most replicas that there may be at once, but for a rollout."""
    settings = Settings.of(spec)
    if settings.scaling is not None and settings.active:
        return settings.scaling.max_replicas
    return spec.replicas + settings.pool_size


def _size(spec: VLMDeploymentSpec | None, status: Mapping[str, Any]) -> Iterator[Finding]:
    """Once scaling decides the size, an edit of spec.replicas, as `kubectl scale` makes it, has no effect but for 0."""
    started_with = (status.get("scaling") or {}).get("startingReplicas")
    if spec is None or spec.scaling is None or spec.scaling.mode == "Advisory" or not started_with:
        return
    if spec.replicas not in {0, started_with}:
        yield Finding(
            reason=REPLICAS_IGNORED,
            severity="Warning",
            field="spec.replicas",
            message=f"spec.replicas is {spec.replicas} now; scaling began with {started_with} and decides the size since",
            advice="change spec.scaling.minReplicas and maxReplicas, or set spec.scaling.mode to Advisory",
        )


def _claim(spec: VLMDeploymentSpec | None, claim: "Claim | None") -> Iterator[Finding]:
    if spec is None or claim is None or _most(spec) < 2 or not claim.access_modes:
        return
    if not {"ReadOnlyMany", "ReadWriteMany"} & set(claim.access_modes):
        yield Finding(
            reason=SINGLE_NODE_CLAIM,
            severity="Warning",
            field="spec.weights.persistentVolumeClaim.claimName",
            message=f"claim {claim.name} is {', '.join(claim.access_modes)}: one node can mount it,"
            f" and there may be {_most(spec)} replicas",
            advice="use a claim with the access mode ReadOnlyMany or ReadWriteMany",
        )


def _schedules(spec: VLMDeploymentSpec, also: tuple[str, ...]) -> tuple[Finding, ...]:
    """What is wrong with the times of schedules. Where they are refused as a whole, nobody is sent to mend them."""
    if spec.scaling is None or not spec.scaling.schedules or not acted_on("scaling.schedules", also):
        return ()
    from vlm_operator.scaling.from_spec import problems  # noqa: PLC0415 # most specs have none

    return problems(spec.scaling)


def _name(name: Any) -> Iterator[Finding]:
    if not isinstance(name, str) or not re.fullmatch(NAME_PATTERN, name):
        yield Finding(
            reason=INVALID_FIELD,
            severity="Error",
            field="metadata.name",
            message=f"{NAME_MESSAGE}; it is {str(name)[:80]!r}",
        )
