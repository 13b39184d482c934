"""What a spec is about, as far as it is known: the rows of the catalogue that it names, and the engine.

Looked up once, so that every check reads the same facts. What is unknown is None or missing, never a guess.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from vlm_operator.api.architecture import Architecture, ImageTokens, VisionArchitecture
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.sizing.catalogue.loading import Catalogue, Match, gpu_slice
from vlm_operator.sizing.catalogue.rows import GpuFact, GpuRow, ModelFact, ModelRow, QuantisedRepo, VllmVersions
from vlm_operator.sizing.engine_facts import EngineFacts
from vlm_operator.sizing.images import largest_image, largest_photo
from vlm_operator.sizing.parameters import is_text_only, language_parameters

SLICE_RESOURCE = "nvidia.com/mig-"
"""What NVIDIA's device plugin puts before the profile of a slice under the MIG strategy `mixed`."""
UNSOURCED = "unsourced"
"""Mark of a value that is believed and was not verified."""


@dataclass(frozen=True, kw_only=True)
class Product:
    """One of `spec.gpu.products` and its row."""

    index: int
    label: str
    row: GpuRow | None

    @property
    def field(self) -> str:
        """Path of the item as a user writes it."""
        return f"spec.gpu.products[{self.index}]"


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """Two stated sizes that cannot both be true."""

    field: str
    """The one to look at first, below `spec.model.architecture`."""
    message: str
    advice: str


def _contradictions(sizes: Architecture) -> Iterator[Contradiction]:
    heads, keys = sizes.attention_heads, sizes.key_value_heads
    if heads % keys:
        yield Contradiction(
            field="keyValueHeads",
            message=f"{heads} attention heads cannot share {keys} key-value heads evenly",
            advice="state both as config.json has them",
        )
    if sizes.head_size is None and sizes.hidden_size % heads:
        yield Contradiction(
            field="headSize",
            message=f"hiddenSize {sizes.hidden_size} / attentionHeads {heads} is no whole number",
            advice="set headSize",
        )
    parts = [("crossAttentionLayers", sizes.cross_attention_layers, "layers", sizes.layers)]
    if sizes.local_attention is not None:
        parts.append(("localAttention.layers", sizes.local_attention.layers, "layers", sizes.layers))
    if sizes.experts is not None:
        parts.append(("experts.denseLayers", sizes.experts.dense_layers, "layers", sizes.layers))
        parts.append(("experts.active", sizes.experts.active or 0, "experts.count", sizes.experts.count))
    for field, part, whole, most in parts:
        if part > most:
            yield Contradiction(
                field=field, message=f"{part} is more than {whole} {most}", advice=f"set {most} or less"
            )
    if sizes.images is not None and not _takes_images(sizes.images, sizes.vision):
        yield Contradiction(
            field="images",
            message=f"with these sizes a model of the rule {sizes.images.rule} would refuse every image",
            advice="state patchSize and images as config.json has them",
        )


def _takes_images(rule: ImageTokens, vision: VisionArchitecture | None) -> bool:
    """Whether there is an image that the rule does not refuse."""
    try:
        return min(search(rule, vision=vision).tokens for search in (largest_image, largest_photo)) > 0
    except ValueError:
        return False


def _with_rest_of_total(sizes: Architecture, row: ModelRow) -> Architecture:
    """The sizes with what the decoder leaves of the stated total as the vision tower, where nothing else is known of it."""
    if sizes.vision is not None or sizes.vision_parameters or row.total_parameters is None or is_text_only(sizes):
        return sizes
    rest = row.total_parameters - (sizes.language_parameters or language_parameters(sizes).total)
    return sizes.model_copy(update={"vision_parameters": rest}) if rest > 0 else sizes


@dataclass(frozen=True)
class Subject:
    """A spec together with what the catalogue says about its model and its GPUs."""

    spec: VLMDeploymentSpec
    catalogue: Catalogue
    engine: EngineFacts
    """The engine that is to run the model."""
    gpus_per_node: int | None = None
    """GPUs of the largest node that may run a replica; None when the cluster is not known."""

    @cached_property
    def match(self) -> Match | None:
        """What the name means in the catalogue."""
        return self.catalogue.model(self.spec.model.name)

    @property
    def row(self) -> ModelRow | None:
        """The model in the catalogue."""
        return self.match.row if self.match else None

    @property
    def repo(self) -> QuantisedRepo | None:
        """The quantised repository, when the name is that of one."""
        return self.match.repo if self.match else None

    @cached_property
    def architecture(self) -> Architecture | None:
        """The sizes of the model: those of the catalogue, else those that the spec states, if they make sense."""
        if self.match is not None and self.match.architecture is not None:
            return _with_rest_of_total(self.match.architecture, self.match.row)
        return None if self.contradiction else self.spec.model.architecture

    @cached_property
    def contradiction(self) -> Contradiction | None:
        """What cannot be true of the sizes that the spec states."""
        stated, known = self.spec.model.architecture, self.match is not None and self.match.architecture is not None
        return next(_contradictions(stated), None) if stated and not known else None

    @property
    def class_name(self) -> str | None:
        """The engine's class for the model."""
        if self.row is not None:
            return self.row.architecture_name
        return self.architecture.name if self.architecture else None

    @cached_property
    def versions(self) -> VllmVersions | None:
        """The engine's releases with the model's class: those of its row, else of another model of the class."""
        if self.engine.readings is None:
            return None
        if self.row is not None:
            return self.row.vllm
        name = self.class_name
        return next((row.vllm for row in self.catalogue.models if row.architecture_name == name), None)

    @cached_property
    def products(self) -> tuple[Product, ...]:
        """The allowed GPU products in the order of the spec."""
        labels = self.spec.gpu.products
        return tuple(Product(index=index, label=label, row=self._gpu(label)) for index, label in enumerate(labels))

    def _gpu(self, label: str) -> GpuRow | None:
        """The row of a product. A resource of slices (`nvidia.com/mig-1g.10gb`) stands beside the label of the whole."""
        row = self.catalogue.gpu(label)
        resource = self.spec.gpu.resource_name
        if row is None or row.mig_profile or not resource.startswith(SLICE_RESOURCE):
            return row
        return gpu_slice(row, resource.removeprefix(SLICE_RESOURCE).removesuffix(".me"))

    @property
    def data_gpus(self) -> int:
        """GPUs of a replica for each tensor-parallel GPU."""
        return self.spec.parallelism.pipeline * self.spec.parallelism.data

    def doubt(self, what: ModelFact) -> str:
        """` (unsourced)` when the catalogue has the facts about `what` without a source."""
        marks = self.row.marks if self.row and self.row.architecture else {}
        return " (unsourced)" if marks.get(what) == UNSOURCED else ""


def gpu_doubt(row: GpuRow, what: GpuFact) -> str:
    """` (unsourced)` when the catalogue has the fact `what` about a GPU without a source."""
    return " (unsourced)" if row.marks.get(what) == UNSOURCED else ""


def choices(values: Iterable[object], word: str = "or") -> str:
    """Alternatives in words: `1, 2 or 4`."""
    *first, last = map(str, values)
    return f"{', '.join(first)} {word} {last}" if first else last
