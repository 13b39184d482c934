"""Where the weights of the model lie: exactly one source."""

from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints

from vlm_operator.api import patterns
from vlm_operator.api.base import ApiModel, Rule
from vlm_operator.api.references import ImageReference, SecretKeyRef
from vlm_operator.api.scalars import Memory, ObjectName, matching

RelativePath = Annotated[str, matching(patterns.RELATIVE_PATH, max_length=512)]
Uri = Annotated[str, matching(patterns.URI, max_length=1024)]


class Prefetch(ApiModel):
    """Fill the claim once from object storage before the first replica starts."""

    uri: Uri
    """Where to copy from, for example `s3://bucket/folder`."""
    credentials_secret: ObjectName | None = None
    """Name of a Secret whose keys become environment variables of the copying pod."""
    image: ImageReference | None = None
    """Image of the copying pod. Default: the one that the operator was installed with."""


class ClaimWeights(ApiModel):
    """Weights on a PersistentVolumeClaim, mounted read-only."""

    claim_name: ObjectName
    """Name of the claim, in the namespace of the deployment. With more than one replica it must be mountable by several
    nodes (ReadOnlyMany or ReadWriteMany)."""
    path: RelativePath = ""
    """Folder of the model within the volume, without a leading slash. Default: the root of the volume."""
    prefetch: Prefetch | None = None
    """Fill the folder before the first replica starts."""


class CsiWeights(ApiModel):
    """Weights on an inline volume of a CSI driver for object storage."""

    driver: ObjectName
    """Name of the CSI driver."""
    volume_attributes: Annotated[
        dict[
            Annotated[str, StringConstraints(min_length=1, max_length=128)],
            Annotated[str, StringConstraints(max_length=1024)],
        ],
        Field(max_length=32),
    ] = Field(default_factory=dict)
    """Attributes that the driver documents, for example the bucket."""
    node_publish_secret: ObjectName | None = None
    """Name of a Secret with the driver's credentials."""
    path: RelativePath = ""
    """Folder of the model within the volume."""


class ImageWeights(ApiModel):
    """Weights in an OCI image, mounted as an image volume."""

    reference: ImageReference
    """The image, with a tag or, better, a digest."""
    path: RelativePath = ""
    """Folder of the model within the image."""


class HuggingFaceCache(ApiModel):
    """Where downloaded weights are kept."""

    claim_name: ObjectName | None = None
    """A claim shared by the replicas. Default: scratch space that goes with the pod."""
    size_limit: Memory | None = None
    """Largest size of the scratch space."""


class HuggingFaceWeights(ApiModel):
    """Weights downloaded from the Hugging Face hub when a replica starts."""

    revision: Annotated[str, matching(patterns.GIT_REVISION, max_length=128)] | None = None
    """Branch, tag or, better, commit."""
    token_secret_ref: SecretKeyRef | None = None
    """Access token for gated models."""
    cache: HuggingFaceCache | None = None
    """Where downloads are kept."""


SOURCES = ("persistentVolumeClaim", "csi", "image", "huggingFace")


def _sources_set(weights: "Weights") -> int:
    sources = (weights.persistent_volume_claim, weights.csi, weights.image, weights.hugging_face)
    return sum(source is not None for source in sources)


class Weights(ApiModel):
    """Where the weights lie. Exactly one source must be set."""

    persistent_volume_claim: ClaimWeights | None = None
    """A PersistentVolumeClaim, for example object storage mounted by a CSI driver."""
    csi: CsiWeights | None = None
    """An inline CSI volume."""
    image: ImageWeights | None = None
    """An OCI image volume."""
    hugging_face: HuggingFaceWeights | None = None
    """A download from the Hugging Face hub."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=f"[{', '.join(f'has(self.{source})' for source in SOURCES)}].filter(given, given).size() == 1",
            message=f"exactly one weights source must be set; choose one of {', '.join(SOURCES)}",
            holds=lambda weights: _sources_set(weights) == 1,
        ),
    )
