"""Write docs/reference: models.md and gpus.md from the catalogue, permissions.md and failures.md from tables in the code.

python -m reference_docs FOLDER            write the files
python -m reference_docs --check FOLDER    tell where they differ from what they are made from
"""

import difflib
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from vlm_operator.api.architecture import Architecture
from vlm_operator.engines.failures import Cause
from vlm_operator.engines.vllm import causes
from vlm_operator.replicas import kubelet, trouble
from vlm_operator.replicas.refusal import ADMISSION
from vlm_operator.replicas.scheduling import UNSCHEDULABLE
from vlm_operator.runtime.permissions import PERMISSIONS, Permission, Scope
from vlm_operator.sizing.catalogue.loading import Catalogue, builtin
from vlm_operator.sizing.catalogue.rows import GpuRow, ModelRow, QuantisedRepo, QuantizationRow
from vlm_operator.sizing.catalogue.sizes import expected_sizes

UNKNOWN = "-"
SIGNS = {"sourced": "", "computed": " (c)", "derived": " (d)", "unsourced": " (?)"}
"""What stands behind a value, by its mark."""
LEGEND = (
    "A value without a sign was read in a source of its row; (c) was counted by building the model; (d) was worked out "
    "from other values; (?) is believed but not verified. - is unknown.\n"
)
GPU_LABELS = (
    "Memory is what the driver reports, CUDA what vLLM was seen to work with. A product label is what "
    "`spec.gpu.product` takes; `-SHARED` may follow it (time slicing), or `-MIG-` and a slice.\n"
)
GENERATED = "<!-- Generated from the catalogue by `make generate`. -->\n"
PERMISSIONS_HEAD = (
    "<!-- Generated from operator/vlm_operator/runtime/permissions.py by `make generate`. -->\n",
    "What the ServiceAccount of the operator may do: exactly this. It reads no Secret and may not grant rights.\n",
)
PLACES = {
    Scope.NAMESPACED: (
        "In every namespace that is served",
        "A ClusterRole when all are served, else a Role in each.\n",
    ),
    Scope.OPERATOR_NAMESPACE: (
        "In the namespace of the operator",
        "A Role, needed with `--leader-elect` only. The chart gives the Lease the full name of the release.\n",
    ),
    Scope.CLUSTER: (
        "In the whole cluster",
        "A ClusterRole. Without it everything works; what is not known then is not checked.\n",
    ),
}

FAILURES_HEAD = """\
<!-- Generated from the tables in operator/vlm_operator by `make generate`. -->

Why a replica does not serve: the reason of a condition and of an event, and a label of the metric `vlm_operator_warnings_total`.
The message has the decisive words of scheduler, kubelet or engine, in one line without tokens and query strings. What to do
comes with a value where the words or the sizing have one.

The first that applies is told: whether the pod has a node, then its containers in their order, then its events. Of a container
the kubelet's word counts before the exit code. Of an engine its termination message counts, and where that does not tell the
cause the end of its log, which is read once for each end. Where it cannot be read, the condition says so.

Waiting *may help* where what is missing may come by itself, and *once* where it may have been passing: one more try tells. It
*is vain* where every replica like it fails as well, until something is changed.

Reasons that stand in neither table are the kubelet's own.
"""
CAUSES: dict[str, tuple[Cause, ...]] = {
    "The cluster": (UNSCHEDULABLE, ADMISSION, *kubelet.CAUSES, *trouble.CAUSES),
    "vLLM": causes.CAUSES,
}


def models_page(catalogue: Catalogue) -> str:
    """Return the page of the models, in Markdown."""
    models = catalogue.models
    return "\n".join(
        [
            "# Models\n",
            GENERATED,
            LEGEND,
            "The name is what `spec.model.name` takes, the size what `spec.model.size` may say.\n",
            "## Decoder\n",
            *table(
                (
                    "name",
                    "size",
                    "parameters (10⁹)",
                    "layers",
                    "width",
                    "heads / KV",
                    "head",
                    "MLP",
                    "experts",
                    "context",
                ),
                map(_decoder, models),
            ),
            "## Vision tower and images\n",
            *table(
                ("name", "layers", "width", "heads", "MLP", "patch", "merge", "parameters (10⁹)", "images", "videos"),
                map(_vision, models),
            ),
            "## Where it runs\n",
            "The versions of vLLM are those that were read: the first that has the class lies between the first two.\n",
            *table(
                ("name", "class", "lacking in", "seen from", "seen until", "quantised", "sources"),
                map(_running, models),
            ),
            *_notes((row.hf_id, row.notes) for row in models),
            *_sources(catalogue, models),
        ]
    )


def gpus_page(catalogue: Catalogue) -> str:
    """Return the page of the GPUs and of what they can run, in Markdown."""
    gpus = catalogue.gpus
    return "\n".join(
        [
            "# GPUs\n",
            GENERATED,
            LEGEND,
            GPU_LABELS,
            *table(
                ("GPU", "product labels", "memory (MiB)", "CUDA (GiB)", "capability", "GB/s", "sources"),
                map(_gpu, gpus),
            ),
            "## Slices (MIG)\n",
            "The memory of a slice is the nominal one in its name, in GB of 10⁹ bytes; what is usable is not known.\n",
            *table(("GPU", "slices and how many fit"), ((row.name, _slices(row)) for row in gpus if row.mig)),
            "## Quantisation\n",
            "Least compute capability by version of vLLM; native is where the multiplication itself runs in the format.\n",
            *table(
                ("method", "formats", "vLLM's names", "least in 0.33", "least in 0.10.2", "native", "notes"),
                map(_method, catalogue.methods),
            ),
            *_notes((row.name, row.notes) for row in gpus),
            *_sources(catalogue, gpus),
        ]
    )


def permissions_page() -> str:
    """Return the page of the permissions, in Markdown."""
    lines = ["# Permissions\n", *PERMISSIONS_HEAD]
    for scope, (title, how) in PLACES.items():
        rows = ((_api(one), _resource(one), one.verb, one.why) for one in PERMISSIONS if one.scope is scope)
        lines += [f"## {title}\n", how, *table(("API group", "resource", "verb", "what for"), rows)]
    return "\n".join(lines)


def _api(permission: Permission) -> str:
    return f"`{permission.kind.group}`" if permission.kind.group else "core"


def _resource(permission: Permission) -> str:
    names = ", ".join(f"`{name}`" for name in permission.names)
    return f"`{permission.resource}`" + (f", only {names}" if names else "")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return a table as lines of Markdown; None is unknown."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(_cell(value) for value in line)} |" for line in lines] + [""]


def _cell(value: object) -> str:
    return UNKNOWN if value is None or value == "" else str(value).replace("|", "\\|")


def _marked(value: object, row: ModelRow | GpuRow, fact: str) -> object:
    sign = SIGNS[dict(row.marks).get(fact, "sourced")]  # type: ignore[call-overload]
    return None if value is None else f"{value}{sign}"


def _decoder(row: ModelRow) -> Sequence[object]:
    sizes = row.architecture
    parameters = _marked(_billions(row.total_parameters), row, "parameters")
    name_and_size = (row.hf_id, " or ".join(expected_sizes(row)), parameters)
    if sizes is None:
        return (*name_and_size, *[None] * 7)
    return (
        *name_and_size,
        _marked(sizes.layers, row, "dimensions"),
        sizes.hidden_size,
        f"{sizes.attention_heads} / {sizes.key_value_heads}",
        sizes.head_size,
        sizes.intermediate_size,
        _experts(sizes, row),
        _marked(sizes.max_context, row, "maxContext"),
    )


def _experts(sizes: Architecture, row: ModelRow) -> object:
    experts = sizes.experts
    if experts is None:
        return "none"
    shared = f" + {experts.shared}" if experts.shared else ""
    return _marked(f"{experts.active}{shared} of {experts.count}, {experts.intermediate_size} wide", row, "experts")


def _vision(row: ModelRow) -> Sequence[object]:
    sizes = row.architecture
    tower = sizes.vision if sizes else None
    if sizes is None or tower is None:
        return (row.hf_id, *[None] * 9)
    return (
        row.hf_id,
        _marked(tower.layers, row, "vision"),
        tower.hidden_size,
        f"{tower.attention_heads}{' (padded)' if tower.pads_heads else ''}",
        tower.intermediate_size,
        tower.patch_size,
        tower.spatial_merge_size,
        _marked(_billions(sizes.vision_parameters), row, "parameters"),
        _marked(_images(sizes), row, "images"),
        _marked(row.video, row, "video"),
    )


def _images(sizes: Architecture) -> str | None:
    images = sizes.images
    if images is None:
        return None
    tiles = f"up to {images.max_tiles} tiles" if images.max_tiles else ""
    side = f"of {images.tile_size} px" if images.tile_size else ""
    pixels = f"{images.min_pixels} to {images.max_pixels} px" if images.max_pixels else ""
    return " ".join(part for part in (images.rule, tiles, side, pixels) if part)


def _running(row: ModelRow) -> Sequence[object]:
    seen = row.vllm
    return (
        row.hf_id,
        row.architecture_name,
        seen.absent_in,
        _marked(seen.first_seen_in, row, "vllm"),
        seen.last_seen_in,
        ", ".join(map(_repo, row.quantised)) or "none known",
        ", ".join(row.sources),
    )


def _repo(repo: QuantisedRepo) -> str:
    return f"{repo.repo} ({repo.format}, {repo.bits} bit){SIGNS[repo.mark]}"


def _gpu(row: GpuRow) -> Sequence[object]:
    return (
        row.name,
        _marked(", ".join(f"`{label}`" for label in row.product_labels), row, "productLabels"),
        _marked(row.memory_mib or row.vram_label, row, "memory"),
        _marked(row.cuda_gib, row, "cudaTotal"),
        _marked(row.capability, row, "capability"),
        _marked(row.bandwidth, row, "speed"),
        ", ".join(row.sources),
    )


def _slices(row: GpuRow) -> str:
    return ", ".join(f"{one.profile} x {one.count}" for one in row.mig) + SIGNS[row.marks["mig"]]


def _method(row: QuantizationRow) -> Sequence[object]:
    names = ", ".join(row.engine_names) or ("chosen by itself" if row.in_tree else "plugin")
    return (
        row.id,
        ", ".join(row.formats),
        names,
        row.min_capability,
        row.legacy_min_capability,
        row.native_from,
        row.notes,
    )


def _billions(parameters: int | None) -> str | None:
    return None if parameters is None else f"{parameters / 1e9:.3f}"


def _notes(notes: Iterable[tuple[str, str | None]]) -> list[str]:
    return ["## Notes\n", *(f"- {name}: {note}" for name, note in notes if note), ""]


def _sources(catalogue: Catalogue, rows: Iterable[ModelRow | GpuRow]) -> list[str]:
    keys = sorted({key for row in rows for key in row.sources})
    return ["## Sources\n", *(f"- {key}: {catalogue.source(key)}" for key in keys), ""]


def failures_page() -> str:
    """Return the page of the reasons for which replicas do not serve, in Markdown."""
    lines = ["# Failures\n", FAILURES_HEAD]
    for title, told in CAUSES.items():
        rows = ((f"`{c.reason}`", c.meaning, c.seen_in, c.advice, c.waiting.value) for c in told)
        lines += [
            f"## {title}\n",
            *table(("reason", "what it means", "where it is seen", "what to do", "waiting"), rows),
        ]
    return "\n".join(lines)


PAGES: dict[str, Callable[[], str]] = {
    "models.md": lambda: models_page(builtin()),
    "gpus.md": lambda: gpus_page(builtin()),
    "permissions.md": permissions_page,
    "failures.md": failures_page,
}


def write(folder: Path) -> None:
    """Write the pages into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


def differences(folder: Path) -> str:
    """Return how the pages in `folder` differ from what they are made from, as a diff; empty when they do not."""
    changes: list[str] = []
    for name, page in PAGES.items():
        path = folder / name
        there = path.read_text(encoding="utf-8") if path.is_file() else ""
        changes += difflib.unified_diff(
            there.splitlines(), page().splitlines(), str(path), "as it would be written", n=0
        )
    return "\n".join(changes)


def main(arguments: list[str]) -> int:
    """Write the pages, or with --check print how they differ and fail."""
    match arguments:
        case ["--check", folder]:
            changes = differences(Path(folder))
            if changes:
                print(changes)
            return 1 if changes else 0
        case [folder]:
            write(Path(folder))
            return 0
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
