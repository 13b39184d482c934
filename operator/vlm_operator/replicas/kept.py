"""What is kept of an object that the API server sends: no more than is read. It counts with thousands of replicas."""

from collections.abc import Mapping
from typing import Any

from vlm_operator.api.names import OPERATOR

_STATUS = ("phase", "reason", "message", "podIP", "conditions", "initContainerStatuses", "containerStatuses")
_CONTAINER = ("name", "image", "startupProbe")


def kept(obj: Mapping[str, Any], *, kind: str) -> Mapping[str, Any]:
    """The object without what nothing reads. What was kept once may be given again."""
    slim = dict(obj) | {"metadata": _metadata(obj["metadata"])}
    if kind == "Pod":
        slim |= _pod(obj)
    return slim


def own_annotations(metadata: Mapping[str, Any]) -> set[str]:
    """Annotations of an object that the operator once set, as the API server remembers it."""
    found: set[str] = set()
    for entry in metadata.get("managedFields") or ():
        if entry.get("manager") == OPERATOR:
            fields = (entry.get("fieldsV1") or {}).get("f:metadata", {}).get("f:annotations", {})
            found |= {field.removeprefix("f:") for field in fields if field.startswith("f:")}
    return found & (metadata.get("annotations") or {}).keys()


def _metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata; of its bookkeeping, which is the larger part, the operator's own annotations."""
    slim = {key: part for key, part in metadata.items() if key != "managedFields"}
    own = own_annotations(metadata)
    if own:
        fields: dict[str, Any] = {"f:metadata": {"f:annotations": {f"f:{name}": {} for name in sorted(own)}}}
        slim["managedFields"] = [{"manager": OPERATOR, "fieldsV1": fields}]
    return slim


def _pod(pod: Mapping[str, Any]) -> dict[str, Any]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    containers = [{key: c[key] for key in _CONTAINER if key in c} for c in spec.get("containers") or ()]
    return {
        "spec": {"nodeName": spec.get("nodeName", ""), "containers": containers},
        "status": {key: status[key] for key in _STATUS if key in status},
    }
