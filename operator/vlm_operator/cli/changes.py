"""Which fields differ between two VLMDeployments, and which of them restart the replicas."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from vlm_operator.engines.base import PodInputs
from vlm_operator.replicas.evaluate import Judgement
from vlm_operator.replicas.revision import canonical_inputs

_RESTARTED_AT = "restartedAt"


@dataclass(frozen=True, kw_only=True)
class Change:
    """One field that differs."""

    field: str
    """Its path as a user writes it."""
    old: Any
    """Its value before; None where it was not set."""
    new: Any
    """Its value now; None where it is not set."""
    restarts: bool
    """Whether it makes a new revision, so that every replica is replaced."""


def changes(old: Judgement, new: Judgement) -> tuple[Change, ...]:
    """The fields that differ, those that restart first. Both specs must be readable."""
    if old.spec is None or new.spec is None or old.inputs is None or new.inputs is None:
        return ()
    shaping = _differences("spec", canonical_inputs(old.inputs), canonical_inputs(new.inputs))
    dumps = (judged.spec.model_dump(mode="json", exclude_defaults=True) for judged in (old, new) if judged.spec)
    names = {field.alias for field in PodInputs.model_fields.values()}
    before, after = ({name: part for name, part in dump.items() if name not in names} for dump in dumps)
    return (
        *(Change(field=_named(field), old=was, new=is_, restarts=True) for field, was, is_ in shaping),
        *(Change(field=f, old=was, new=is_, restarts=False) for f, was, is_ in _differences("spec", before, after)),
    )


def _named(field: str) -> str:
    return "metadata.annotations[vlm.dev/restarted-at]" if field == f"spec.{_RESTARTED_AT}" else field


def _differences(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, dict) or isinstance(new, dict):
        before, after = ({} if part is None else part for part in (old, new))
        for name in sorted(before.keys() | after.keys()):
            yield from _differences(f"{path}.{name}", before.get(name), after.get(name))
    elif old != new:
        yield path, old, new
