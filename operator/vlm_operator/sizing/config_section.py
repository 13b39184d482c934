"""One part of a `config.json`: looks up a value by any of its names, and says what is wrong with it."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from vlm_operator.api.findings import Finding

INVALID_CONFIG = "InvalidConfig"
"""A `config.json` lacks a value, or has one that cannot be."""

Table = tuple[tuple[str, tuple[str, ...]], ...]
"""Fields with their names in the file, the usual one first."""

TEXT_SECTIONS = ("text_config", "llm_config", "language_config")
"""Names of the part about the decoder."""

_WHOLE = re.compile(r"^[0-9]{1,18}$")
_LONGEST_VALUE = 40
_TOO_LARGE = 10**18


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the file that is a map, with its path and the defaults of its class."""

    values: Mapping[str, Any]
    findings: list[Finding]
    path: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def inner(self, names: Iterable[str], defaults: Mapping[str, Mapping[str, Any]]) -> "Section | None":
        """Return the first of the named parts that is there."""
        for name in names:
            values = self.values.get(name)
            if isinstance(values, dict):
                return Section(
                    values=values,
                    findings=self.findings,
                    path=f"{self.path}{name}.",
                    defaults=defaults_of(values, defaults),
                )
            if values is not None:
                self.findings.append(wrong(f"{self.path}{name}", "must be a map of names and values"))
        return None

    def get(self, name: str) -> Any:
        """Return a value, else the default of the class, else None; null means the same as nothing."""
        given = self.values.get(name)
        return self.defaults.get(name) if given is None else given

    def whole(self, *names: str) -> int | None:
        """Return the first of the named values as a whole number; None when there is none or it is none."""
        for name in names:
            if (value := self.get(name)) is not None:
                return self._as_whole(name, value)
        return None

    def has(self, *names: str) -> str | None:
        """Return the first of the names that has a value."""
        return next((name for name in names if self.get(name) is not None), None)

    def read(
        self,
        table: Table,
        values: dict[str, Any],
        origins: dict[str, str],
        *,
        fallback: "Section | None" = None,
        required: bool = True,
    ) -> None:
        """Read the fields of a table into `values`, and where they stood into `origins`."""
        for target, names in table:
            holder = next((part for part in (self, fallback) if part and part.has(*names)), None)
            if holder is None:
                if required:
                    self.findings.append(missing(f"{self.path}{names[0]}", names[1:]))
                continue
            origins[target] = f"{holder.path}{holder.has(*names)}"
            number = holder.whole(*names)
            if number is not None:
                values[target] = number

    def _as_whole(self, name: str, value: Any) -> int | None:
        if isinstance(value, list) and value and all(isinstance(item, int) and item == value[0] for item in value):
            value = value[0]  # a patch or a kernel may be given per side
        where = f"{self.path}{name}"
        if (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and abs(value) < _TOO_LARGE
            and value % 1 == 0
        ):
            return int(value)
        if isinstance(value, str) and _WHOLE.match(value):
            text = f'is "{value}" in quotes, taken as {int(value)}'
            self.findings.append(replace(wrong(where, text, "write it without quotes"), severity="Warning"))
            return int(value)
        self.findings.append(wrong(where, f"is {shown(value)} but must be a whole number below 10^18"))
        return None


def defaults_of(values: Mapping[str, Any], defaults: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the defaults of the class that a part names as its `model_type`."""
    kind = values.get("model_type")
    return defaults.get(kind, {}) if isinstance(kind, str) else {}


def wrong(where: str, message: str, advice: str = "") -> Finding:
    """Return the finding for a value that cannot be."""
    return Finding(reason=INVALID_CONFIG, severity="Error", field=where, message=message, advice=advice)


def missing(where: str, other_names: Iterable[str] = ()) -> Finding:
    """Return the finding for a value that is not there, under none of its names."""
    others = ", ".join(other_names)
    return wrong(where, "is missing" + (f", also as {others}" if others else ""))


def shown(value: Any) -> str:
    """Return a value as the file has it, of a long one the beginning, of a list or a map only that."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a map"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "..."


def small(value: object) -> int | None:
    """Return a whole number of 1 to 4096; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 4096 else None
