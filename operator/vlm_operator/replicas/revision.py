"""A revision: what shapes a pod, named by its hash and stored so that pods can be rendered from it later.

The hash covers the inputs as the user means them: canonical spellings, fields equal to their defaults left out. The
defaults of a version of the API never change, so neither does the hash of an unchanged spec.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from vlm_operator.api.names import REVISION_LABEL, child_labels, owner_reference, revision_name
from vlm_operator.engines.base import PodInputs, Resolved
from vlm_operator.replicas.settings import Settings

HEX_DIGITS = 10
SETTINGS = "vlm.dev/settings"
"""Annotation: what else was wanted when the revision was last accepted. The data of a revision can never change."""


def canonical_inputs(inputs: PodInputs) -> dict[str, Any]:
    """The inputs without what is unset or equal to its default."""
    canonical = _without_empty(inputs.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude_none=True))
    return canonical if isinstance(canonical, dict) else {}


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        parts = {key: _without_empty(part) for key, part in value.items()}
        return {key: part for key, part in parts.items() if part not in ({}, [])}
    return [_without_empty(part) for part in value] if isinstance(value, list) else value


def revision_of(inputs: PodInputs) -> str:
    """The name of a revision: the first 10 hex digits of the SHA-256 of its canonical inputs."""
    text = json.dumps(canonical_inputs(inputs), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:HEX_DIGITS]


def revision_manifest(
    *,
    deployment: str,
    namespace: str,
    uid: str,
    revision: str,
    number: int,
    resolved: Resolved,
    annotations: Mapping[str, str],
) -> dict[str, Any]:
    """The ControllerRevision that stores a revision, and as annotations what was learned of it."""
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": revision_name(deployment, revision),
            "namespace": namespace,
            "labels": child_labels(deployment, component="revision") | {REVISION_LABEL: revision},
            "ownerReferences": [owner_reference(deployment, uid)],
            "annotations": dict(annotations),
        },
        "data": {"resolved": resolved.model_dump(mode="json", by_alias=True, exclude_none=True)},
        "revision": number,
    }


def settings_annotation(settings: Settings) -> str:
    """The settings as they are kept."""
    return json.dumps(settings.model_dump(mode="json", by_alias=True, exclude_none=True), sort_keys=True)
