"""References to other objects and to images."""

from typing import Annotated

from vlm_operator.api import patterns
from vlm_operator.api.base import ApiModel
from vlm_operator.api.scalars import DataKey, ObjectName, matching

ImageReference = Annotated[str, matching(patterns.IMAGE_REFERENCE, max_length=512)]


class ConfigMapKeyRef(ApiModel):
    """One key of a ConfigMap in the namespace of the deployment."""

    name: ObjectName
    """Name of the ConfigMap."""
    key: DataKey
    """Key within the ConfigMap."""


class SecretKeyRef(ApiModel):
    """One key of a Secret in the namespace of the deployment. Only the kubelet reads it."""

    name: ObjectName
    """Name of the Secret."""
    key: DataKey
    """Key within the Secret."""
