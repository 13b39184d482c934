"""The catalogue as one value: read from this package, extended by what an admin of the cluster adds, searched.

The caller reads and parses the admin's documents; here they are plain data.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from vlm_operator.api.architecture import Architecture
from vlm_operator.api.base import ApiModel, model_in
from vlm_operator.api.findings import INVALID_FIELD, Finding
from vlm_operator.api.messages import invalid_field
from vlm_operator.sizing.catalogue.rows import (
    DenseTflops,
    GpuRow,
    KvCacheRow,
    ModelRow,
    PytorchBuild,
    QuantisedRepo,
    QuantizationRow,
    StoredWeight,
)

ROW_REPEATED = "RowRepeated"
"""A row of an admin's documents has a name that another row has, too, other than by taking a built-in row's place."""

_SHARED = "-SHARED"
_SLICE = re.compile(r"^(?P<gpu>.+)-MIG-(?P<profile>[1-9]g\.[0-9]{1,3}gb)(?:\.me)?$")
"""How NVIDIA labels a slice under the MIG strategy `single`; `.me` means with media engines."""
_MIB_PER_GB = 10**9 / 2**20
_KEPT_BY_SLICES = ("productLabels", "capability")

Further = TypeVar("Further", ModelRow, GpuRow)
Model = TypeVar("Model", bound=ApiModel)


@dataclass(frozen=True, kw_only=True)
class Match:
    """The model that a name means."""

    row: ModelRow
    repo: QuantisedRepo | None = None
    """The quantised repository, when the name is that of one."""

    @property
    def architecture(self) -> Architecture | None:
        """The sizes of what the name means: those of the model, with the padding of the repository. None: unknown."""
        sizes = self.row.architecture
        if sizes is None or self.repo is None or self.repo.intermediate_size is None:
            return sizes
        return sizes.model_copy(update={"intermediate_size": self.repo.intermediate_size})


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """All rows. Of two rows that claim the same name the later one has it."""

    models: tuple[ModelRow, ...]
    gpus: tuple[GpuRow, ...]
    methods: tuple[QuantizationRow, ...]
    kv_caches: tuple[KvCacheRow, ...] = ()
    weights: tuple[StoredWeight, ...] = ()
    """What a quantised weight takes."""
    pytorch: PytorchBuild | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    """The sources in words, by the keys that rows use."""

    def model(self, name: str) -> Match | None:
        """Return the model that is published as `name`, quantised or not; None when it is not known."""
        return self._matches.get(name)

    def gpu(self, product_label: str) -> GpuRow | None:
        """Return the GPU whose nodes bear this product label; None when it is not known.

        Of a slice (`NVIDIA-A100-SXM4-80GB-MIG-1g.10gb`) it is the row of the GPU with the memory of the slice, which is
        nominal. Under time slicing (`Tesla-T4-SHARED`) it is the row of the GPU, marked as shared.
        """
        if row := self._gpus_by_label.get(product_label):
            return row
        if product_label.endswith(_SHARED):
            whole = self.gpu(product_label.removesuffix(_SHARED))
            return whole and whole.model_copy(update={"shared": True})
        label = _SLICE.match(product_label)
        parent = self._gpus_by_label.get(label["gpu"]) if label else None
        return gpu_slice(parent, label["profile"]) if label and parent else None

    def search_models(self, text: str) -> tuple[ModelRow, ...]:
        """Return the models that have every word of `text` somewhere in their names, in any case."""
        return tuple(row for row in self.models if _has_words(text, _names_of_model(row)))

    def search_gpus(self, text: str) -> tuple[GpuRow, ...]:
        """Return the GPUs that have every word of `text` somewhere in their names, in any case."""
        return tuple(row for row in self.gpus if _has_words(text, (row.name, row.vendor, *row.product_labels)))

    @property
    def model_names(self) -> tuple[str, ...]:
        """All names of models, quantised or not."""
        return tuple(self._matches)

    @property
    def product_labels(self) -> tuple[str, ...]:
        """All product labels of whole GPUs."""
        return tuple(self._gpus_by_label)

    def source(self, key: str) -> str:
        """Return a source in words; a row may also give it in words at once."""
        return self.sources.get(key, key)

    @cached_property
    def _matches(self) -> dict[str, Match]:
        return {
            name: match
            for row in self.models
            for name, match in (
                (row.hf_id, Match(row=row)),
                *((repo.repo, Match(row=row, repo=repo)) for repo in row.quantised),
            )
        }

    @cached_property
    def _gpus_by_label(self) -> dict[str, GpuRow]:
        return {label: row for row in self.gpus for label in row.product_labels}


def gpu_slice(row: GpuRow, profile: str) -> GpuRow | None:
    """Return the row of one slice of a GPU (`1g.10gb`); None when the GPU has no slices or the profile is none.

    What a slice really has is not known: the number in its name is taken as GB of 10^9 bytes, which makes it nominal.
    Its speed is not known either.
    """
    number = re.fullmatch(r"[1-9]g\.([0-9]{1,3})gb", profile)
    if not row.mig or number is None or not 0 < int(number[1]) <= (row.nominal_gb or 0):
        return None
    return row.model_copy(
        update={
            "name": f"{row.name} MIG {profile}",
            "mig": [],
            "mig_profile": profile,
            "nominal_gb": int(number[1]),
            "memory_mib": int(int(number[1]) * _MIB_PER_GB),
            "nominal_memory": True,
            "other_memory_mib": [],
            "cuda_gib": None,
            "bandwidth": None,
            "tflops": DenseTflops(),
            "marks": {fact: mark for fact, mark in row.marks.items() if fact in _KEPT_BY_SLICES}
            | {"memory": "unsourced"},
        }
    )


@cache
def builtin() -> Catalogue:
    """Return the catalogue of this package."""
    models, gpus, quantization = (_read(name) for name in ("models", "gpus", "quantization"))
    return Catalogue(
        models=tuple(trusted(ModelRow, row) for row in models["models"]),
        gpus=tuple(trusted(GpuRow, row) for row in gpus["gpus"]),
        methods=tuple(trusted(QuantizationRow, row) for row in quantization["methods"]),
        kv_caches=tuple(trusted(KvCacheRow, row) for row in quantization["kvCache"]),
        weights=tuple(trusted(StoredWeight, row) for row in quantization["weights"]),
        pytorch=trusted(PytorchBuild, quantization["pytorch"]),
        sources=models["sources"] | gpus["sources"],
    )


def trusted(kind: type[Model], values: Mapping[str, Any]) -> Model:
    """Return values of this package as a `kind`, unchecked: pydantic would need longer to prepare than to plan takes.

    A test checks the files and that both ways of reading them come to the same.
    """
    fields = _fields(kind)
    given = {}
    for alias, value in values.items():
        name, model = fields[alias]
        given[name] = _part(model, value) if model and value is not None else value
    return kind.defaults().model_copy(update=given)


@cache
def _fields(kind: type[ApiModel]) -> dict[str, tuple[str, type[ApiModel] | None]]:
    """Return by its spelling in a file each field's name and, where it has parts, their type."""
    return {field.alias or name: (name, model_in(field.annotation)) for name, field in kind.model_fields.items()}


def _part(model: type[ApiModel], value: Any) -> Any:
    return [trusted(model, part) for part in value] if isinstance(value, list) else trusted(model, value)


def _read(name: str) -> dict[str, Any]:
    text = (Path(__file__).parent / f"{name}.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def extended(catalogue: Catalogue, documents: Mapping[str, object]) -> tuple[Catalogue, tuple[Finding, ...]]:
    """Return the catalogue with the rows of an admin's documents, and what is wrong with those that are left out.

    Each document, by its name, is a map with `models` and `gpus` (lists of rows) and `sources` (texts by key). A row
    with the key of a known one takes its place: `hfId` of a model, the first of `productLabels` of a GPU. Other names
    that rows share are told.
    """
    findings: list[Finding] = []
    models: dict[str, ModelRow] = {}
    gpus: dict[str, GpuRow] = {}
    sources: dict[str, str] = {}
    known: tuple[ModelRow | GpuRow, ...] = (*catalogue.models, *catalogue.gpus)
    taken = {name: key_of(row) for row in known for name in _names_of(row)}
    for name, document in documents.items():
        lists = _sections(document, name, findings)
        _add(models, lists["models"], ModelRow, f"{name}: models", findings=findings, taken=taken)
        _add(gpus, lists["gpus"], GpuRow, f"{name}: gpus", findings=findings, taken=taken)
        sources |= lists["sources"]
    extension = replace(
        catalogue,
        models=(*(row for row in catalogue.models if key_of(row) not in models), *models.values()),
        gpus=(*(row for row in catalogue.gpus if key_of(row) not in gpus), *gpus.values()),
        sources={**catalogue.sources, **sources},
    )
    return extension, tuple(findings)


def key_of(row: ModelRow | GpuRow) -> str:
    """Return what tells a row from all others of its kind."""
    return _names_of(row)[0]


def _names_of(row: ModelRow | GpuRow) -> tuple[str, ...]:
    """Return all names by which a row is found, its key first."""
    return (
        (row.hf_id, *(repo.repo for repo in row.quantised)) if isinstance(row, ModelRow) else tuple(row.product_labels)
    )


def _sections(document: object, name: str, findings: list[Finding]) -> dict[str, Any]:
    """Return the parts of a document; those of the wrong kind are empty."""
    empty: dict[str, Any] = {"models": [], "gpus": [], "sources": {}}
    if not isinstance(document, dict):
        findings.append(_wrong(name, "must be a map with models, gpus and sources"))
        return empty
    if document.get("kind") == "ConfigMap":
        findings.append(_wrong(name, "is a ConfigMap", advice="give the file that is in its data"))
        return empty
    findings += [
        _wrong(f"{name}: {key}", "is unknown", advice="use models, gpus or sources")
        for key in document
        if key not in empty
    ]
    for key, nothing in empty.items():
        given = document.get(key)
        if isinstance(given, type(nothing)) and (key != "sources" or _all_text(given)):
            empty[key] = given
        elif given is not None:
            findings.append(
                _wrong(f"{name}: {key}", "must map keys to texts" if key == "sources" else "must be a list")
            )
    return empty


def _all_text(given: dict[object, object]) -> bool:
    return all(isinstance(part, str) for pair in given.items() for part in pair)


def _add(
    rows: dict[str, Further],
    given: Iterable[object],
    kind: type[Further],
    name: str,
    *,
    findings: list[Finding],
    taken: dict[str, str],
) -> None:
    for index, values in enumerate(given):
        where = f"{name}[{index}]"
        try:
            row = kind.model_validate(values)
        except ValidationError as error:
            findings += (invalid_field(details, root=kind, name=where) for details in error.errors())
            continue
        findings += _inconsistent(row, where)
        key = key_of(row)
        findings += (
            _repeated(where, name, taken[name])
            for name in _names_of(row)
            if taken.get(name, key) != key or (name == key and key in rows)
        )
        taken |= dict.fromkeys(_names_of(row), key)
        rows[key] = row


def _repeated(where: str, name: str, key: str) -> Finding:
    before = "has a row before" if name == key else f"also names another row, that of {key}"
    return Finding(
        reason=ROW_REPEATED,
        severity="Warning",
        field=where,
        message=f"{name} {before}; this one counts",
        advice="remove one of them",
    )


def _inconsistent(row: object, where: str) -> Iterator[Finding]:
    """A class name that is given twice must be the same, and CUDA reports less memory than the driver."""
    sizes = row.architecture if isinstance(row, ModelRow) else None
    if isinstance(row, ModelRow) and sizes is not None and sizes.name != row.architecture_name:
        yield replace(
            _wrong(f"{where}.architecture.name", f"is {sizes.name} but architectureName is {row.architecture_name}"),
            severity="Warning",
        )
    if isinstance(row, GpuRow) and row.cuda_gib and row.memory_mib:
        most = max([row.memory_mib, *row.other_memory_mib])
        if row.cuda_gib * 1024 > most:
            message = f"is {row.cuda_gib:g} GiB, which is more than memoryMib {most} = {most / 1024:.2f} GiB"
            advice = "state what CUDA reports as total, or remove it"
            yield replace(_wrong(f"{where}.cudaGib", message, advice=advice), severity="Warning")


def _wrong(where: str, message: str, *, advice: str = "") -> Finding:
    return Finding(reason=INVALID_FIELD, severity="Error", field=where, message=message, advice=advice)


def _names_of_model(row: ModelRow) -> tuple[str, ...]:
    return (row.hf_id, row.family, row.architecture_name, *(repo.repo for repo in row.quantised))


def _has_words(text: str, names: Iterable[str]) -> bool:
    everything = "\n".join(names).lower()
    return all(word in everything for word in text.lower().split())
