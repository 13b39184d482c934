"""From the object as written to what it asks for and everything that is wrong with it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vlm_operator.api.findings import INVALID_FIELD, Finding
from vlm_operator.api.names import NAME_MESSAGE, NAME_PATTERN, RESTARTED_AT
from vlm_operator.api.resource import read_spec
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.engines.base import PodInputs
from vlm_operator.engines.registry import engine


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What a resource asks for, as far as it can be read, and what is to be said about it."""

    spec: VLMDeploymentSpec | None
    inputs: PodInputs | None
    findings: tuple[Finding, ...]


def evaluate(resource: Mapping[str, Any]) -> Judgement:
    """Read and check a resource as the API server holds it, or as a file has it."""
    metadata = resource["metadata"]
    named = tuple(_name(metadata.get("name")))
    spec, findings = read_spec(resource.get("spec"))
    if spec is None:
        return Judgement(spec=None, inputs=None, findings=named + findings)
    inputs = PodInputs.of(spec, restarted_at=(metadata.get("annotations") or {}).get(RESTARTED_AT))
    return Judgement(spec=spec, inputs=inputs, findings=named + findings + engine(spec.engine.type).check(inputs))


def _name(name: Any) -> Iterator[Finding]:
    if not isinstance(name, str) or not re.fullmatch(NAME_PATTERN, name):
        yield Finding(
            reason=INVALID_FIELD,
            severity="Error",
            field="metadata.name",
            message=f"{NAME_MESSAGE}; it is {str(name)[:80]!r}",
        )
