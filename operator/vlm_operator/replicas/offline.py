"""What would become of a VLMDeployment, without a cluster: the same reading, checking and planning as in one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vlm_operator.api.findings import Finding
from vlm_operator.engines.registry import engine
from vlm_operator.replicas.actions import Create, CreatePod
from vlm_operator.replicas.evaluate import Judgement, evaluate, findings_that_count
from vlm_operator.replicas.facts import Facts
from vlm_operator.replicas.plan import plan
from vlm_operator.replicas.size import decide_size
from vlm_operator.sizing.catalogue.loading import Catalogue


@dataclass(frozen=True, kw_only=True)
class Imagined:
    """What a new VLMDeployment gives."""

    findings: tuple[Finding, ...]
    judged: Judgement
    """What was read and sized."""
    objects: tuple[dict[str, Any], ...]
    """The manifests of everything that would be created, none when it is refused."""

    @property
    def refused(self) -> bool:
        """Whether an error forbids it."""
        return any(finding.severity == "Error" for finding in self.findings)


def imagine(resource: Mapping[str, Any], *, uid: str, catalogue: Catalogue) -> Imagined:
    """The findings about a resource and the objects that the operator would create for it as a new one."""
    metadata = resource["metadata"]
    judged = evaluate(resource, catalogue=catalogue)
    findings = findings_that_count(judged)
    facts = Facts(
        name=str(metadata.get("name", "")),
        namespace=str(metadata.get("namespace", "default")),
        uid=uid,
        generation=1,
        spec=judged.spec,
        inputs=judged.inputs,
        findings=findings,
        assessment=judged.assessment,
    )
    objects: list[dict[str, Any]] = []
    for action in plan(facts, decide_size(facts), now=0.0).actions:
        if isinstance(action, Create):
            objects.append(action.manifest)
        elif isinstance(action, CreatePod):
            kind = action.resolved.inputs.engine.type
            objects.append(engine(kind).render_pod(action.resolved, action.identity))
    return Imagined(findings=findings, judged=judged, objects=tuple(objects))
