"""The tables of accepted and refused specs, and what a row says."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Raw = dict[str, Any]

MINIMAL: Raw = {
    "model": {"name": "llava"},
    "weights": {"persistentVolumeClaim": {"claimName": "models"}},
}
_FOLDER = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Case:
    """One row: an overlay over the minimal spec; for a refused one also who is to blame and in which words."""

    name: str
    overlay: Raw = field(default_factory=dict)
    metadata: Raw = field(default_factory=dict)
    field: str = ""
    message: str = ""
    types_field: str = ""
    finding: str = ""

    @property
    def spec(self) -> Raw:
        """The whole spec."""
        return MINIMAL | self.overlay

    @property
    def blamed_by_types(self) -> str:
        """The field that the types blame."""
        return self.types_field or self.field

    @property
    def words_of_types(self) -> str:
        """What the types say."""
        return self.finding or self.message


def manifest(spec: Any, name: str = "llava") -> Raw:
    """Return a VLMDeployment with `spec`."""
    return {"apiVersion": "vlm.dev/v1alpha1", "kind": "VLMDeployment", "metadata": {"name": name}, "spec": spec}


def _cases(file: str) -> list[Case]:
    rows = yaml.safe_load((_FOLDER / file).read_text())
    return [Case(overlay=row.pop("spec", {}), **row) for row in rows]


ACCEPTED = _cases("accepted.yaml")
REFUSED = _cases("refused.yaml")
