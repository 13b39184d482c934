"""A finding: something about a resource that its owner should know, as a value."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["Error", "Warning"]

INVALID_FIELD = "InvalidField"
"""A field has a value that the API server should have refused; it got in some other way (an older CRD, for example)."""
UNSUPPORTED_FIELD = "NotSupportedYet"
"""A field is set that this version of the operator does not act on."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One judgement. An Error refuses the spec; a Warning is only shown."""

    reason: str
    severity: Severity
    field: str
    """Path of the field as a user writes it, for example `spec.parallelism.tensor`."""
    message: str
    """What is wrong, with the value and the rule."""
    advice: str = ""
    """The way out."""

    def sentence(self) -> str:
        """Field, message and advice in one line."""
        return f"{self.field}: {self.message}" + (f"; {self.advice}" if self.advice else "")
