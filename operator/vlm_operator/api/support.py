"""Which fields this version acts on. A field outside the list is refused when set, never ignored.

Extend `ACTED_ON` when a feature arrives; `EXCEPT` holds the parts of a listed field that are still to come. Who acts on
further fields, as the simulator does, names them as `also`.
"""

import re
from typing import Any

from vlm_operator.api.findings import UNSUPPORTED_FIELD, Finding

ACTED_ON: tuple[str, ...] = (
    "model",
    "weights.persistentVolumeClaim",
    "engine",
    "parallelism",
    "gpu",
    "multimodal",
    "replicas",
    "scaling.mode",
    "scaling.minReplicas",
    "scaling.maxReplicas",
    "warmPool",
    "rollout",
    "drain",
    "podDisruptionBudget",
    "service",
    "podTemplate",
    "checks",
)

EXCEPT: tuple[str, ...] = (
    "weights.persistentVolumeClaim.prefetch",
    "podTemplate.compileCache",
)


def acted_on(path: str, also: tuple[str, ...] = ()) -> bool:
    """Tell whether this version acts on the field at `path` (`engine.type`), by JSON names and without list indices."""
    return _within(path, ACTED_ON + also) and not _within(path, EXCEPT)


def leads_to_acted_on(path: str) -> bool:
    """Tell whether this version acts on something below `path` (`weights`), though not on all of it."""
    return any(entry.startswith(f"{path}.") for entry in ACTED_ON)


def missing_part(path: str, also: tuple[str, ...] = ()) -> str:
    """Return the part of the spec around `path` that this version does not act on; empty when it acts on the field."""
    names = re.sub(r"\[[^]]*\]", "", path).split(".")
    heads = (".".join(names[:length]) for length in range(1, len(names) + 1))
    return next((head for head in heads if not acted_on(head, also) and not leads_to_acted_on(head)), "")


def _within(path: str, entries: tuple[str, ...]) -> bool:
    return any(path == entry or path.startswith(f"{entry}.") for entry in entries)


def unsupported(spec: dict[str, Any], also: tuple[str, ...] = ()) -> tuple[Finding, ...]:
    """Return a finding for each part of `spec` (as written, by JSON names) that nothing acts on yet."""
    fields = [*_outside("", spec, ACTED_ON + also), *(path for path in EXCEPT if _at(spec, path) is not None)]
    return tuple(_finding(path) for path in fields)


def _outside(prefix: str, value: Any, entries: tuple[str, ...]) -> list[str]:
    """Paths below `prefix` that no entry covers, each as short as possible."""
    if prefix in entries:
        return []
    if (prefix and not leads_to_acted_on(prefix)) or not isinstance(value, dict):
        return [prefix] if prefix and value is not None else []
    return [path for key, part in value.items() for path in _outside(f"{prefix}.{key}".lstrip("."), part, entries)]


def _at(value: Any, path: str) -> Any:
    for key in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _finding(path: str) -> Finding:
    return Finding(
        reason=UNSUPPORTED_FIELD,
        severity="Error",
        field=f"spec.{path}",
        message="this field is not supported yet",
        advice="remove it",
    )
