"""Reading a VLMDeployment object as the API server holds it."""

from dataclasses import replace
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from vlm_operator.api.findings import Finding
from vlm_operator.api.messages import invalid_field
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.api.support import missing_part, unsupported


def read_spec(raw: Any, also: tuple[str, ...] = ()) -> tuple[VLMDeploymentSpec | None, tuple[Finding, ...]]:
    """Return the typed `spec`, or None with an Error for each field that is wrong.

    A spec whose fields are right but partly not supported yet is returned together with its findings. `also`: fields that
    the caller acts on although the operator does not yet.
    """
    read = _as_the_server_reads(raw)
    try:
        spec = VLMDeploymentSpec.model_validate(read, by_alias=True, by_name=False)
    except ValidationError as error:
        found = error.errors(include_url=False)
        return None, tuple(_finding(details, also) for details in found)
    return spec, unsupported(read, also)


def _finding(details: ErrorDetails, also: tuple[str, ...]) -> Finding:
    """Never send anybody to mend a field that will then be refused as a whole."""
    finding = invalid_field(details, root=VLMDeploymentSpec, name="spec")
    part = missing_part(finding.field.removeprefix("spec").removeprefix("."), also)
    if not part or details["type"] == "extra_forbidden":
        return finding
    whole = f"spec.{part}"
    advice = "remove it, it is" if finding.field == whole else f"remove {whole}, which is"
    return replace(finding, advice=f"{advice} not supported yet")


def _as_the_server_reads(value: Any) -> Any:
    """Leave out nulls in maps and take 2.0 for 2, as the API server does before it validates."""
    match value:
        case dict():
            return {key: _as_the_server_reads(part) for key, part in value.items() if part is not None}
        case list():
            return [_as_the_server_reads(part) for part in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value
