"""Reads the sizes of a model from its `config.json`, as Hugging Face models bring it along.

The same size goes by many names, in the file itself or in `text_config`, `vision_config` and the like: two tables list
them. Whole numbers in quotes are taken with a warning. Nothing that JSON can hold makes this fail: what is missing or
wrong becomes a finding with the path in the file.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from vlm_operator.api.architecture import MOST_TILES, Architecture, ImageTokens, VisionArchitecture
from vlm_operator.api.base import ApiModel
from vlm_operator.api.findings import Finding
from vlm_operator.api.messages import invalid_field
from vlm_operator.sizing.config_defaults import (
    CLASS_NAMES,
    FIXED_VISION,
    IMAGES,
    PIXTRAL_IN_LLAVA,
    TEXT_DEFAULTS,
    VISION_DEFAULTS,
)
from vlm_operator.sizing.config_section import (
    INVALID_CONFIG,
    TEXT_SECTIONS,
    Section,
    Table,
    defaults_of,
    missing,
    shown,
    small,
    wrong,
)
from vlm_operator.sizing.images.tiles import LLAVA_NEXT_GRIDS

_VISION_SECTIONS = ("vision_config", "vision_tower_config", "vit_config")

# fmt: off
_TEXT: Table = (
    ("layers", ("num_hidden_layers", "n_layer", "n_layers", "num_layers")),
    ("hiddenSize", ("hidden_size", "n_embd", "d_model")),
    ("attentionHeads", ("num_attention_heads", "n_head", "n_heads")),
    ("intermediateSize", ("intermediate_size", "ffn_hidden_size", "n_inner", "moe_intermediate_size")),
    ("vocabularySize", ("vocab_size", "padded_vocab_size")),
)
"""Fields of the decoder that must be there."""
_TEXT_OPTIONAL: Table = (
    ("keyValueHeads", ("num_key_value_heads", "n_head_kv", "num_kv_heads")),
    ("headSize", ("head_dim",)),
    ("maxContext", ("max_position_embeddings", "max_sequence_length", "seq_length", "n_positions")),
)
_NESTED: Table = (
    ("experts.count", ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts")),
    ("experts.active", ("num_experts_per_tok", "moe_topk", "moe_top_k", "num_experts_per_token")),
    ("experts.intermediateSize", ("moe_intermediate_size", "expert_intermediate_size", "intermediate_size")),
    ("experts.shared", ("shared_expert_intermediate_size", "n_shared_experts", "num_shared_experts")),
    ("experts.every", ("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_freq")),
    ("experts.denseLayers", ("first_k_dense_replace",)),
    ("latentAttention.rank", ("kv_lora_rank",)),
    ("latentAttention.ropeSize", ("qk_rope_head_dim",)),
    ("localAttention.window", ("sliding_window", "attention_chunk_size")),
)
"""Fields of parts of the decoder that only some models have."""
_VISION: Table = (
    ("layers", ("num_hidden_layers", "depth", "layers", "num_layers")),
    ("hiddenSize", ("embed_dim", "width", "hidden_size")),
    ("attentionHeads", ("num_attention_heads", "num_heads", "attention_heads", "heads")),
    ("patchSize", ("patch_size", "spatial_patch_size")),
)
# fmt: on
_NAMES = dict(_NESTED)


def read_config(data: object) -> tuple[Architecture | None, tuple[Finding, ...]]:
    """Return the sizes that a `config.json` holds, None when an error is among the findings.

    `data` is the parsed file. A vision tower that is incomplete is left out with warnings.
    """
    findings: list[Finding] = []
    if not isinstance(data, dict):
        return None, (wrong("config.json", "must be a map of names and values"),)
    root = Section(values=data, findings=findings)
    text = root.inner(TEXT_SECTIONS, TEXT_DEFAULTS) or replace(root, defaults=defaults_of(data, TEXT_DEFAULTS))
    name = _class_name(root)
    values: dict[str, Any] = {"name": name} if name else {}
    origins: dict[str, str] = {"name": "architectures[0]"}
    text.read(_TEXT, values, origins, fallback=root)
    text.read(_TEXT_OPTIONAL, values, origins, fallback=root, required=False)
    origins |= {target: f"{text.path}{found}" for target, names in _NESTED if (found := text.has(*names))}
    _complete_text(values, text, root, name)
    values |= _vision_part(root, name)
    if any(finding.severity == "Error" for finding in findings):
        return None, tuple(findings)
    try:
        architecture = Architecture.model_validate(values)
    except ValidationError as error:
        findings += _out_of_range(error, Architecture, origins)
        return None, tuple(findings)
    return architecture, tuple(findings)


def _class_name(root: Section) -> str | None:
    names = root.get("architectures")
    if names is None and isinstance(kind := root.get("model_type"), str) and kind in CLASS_NAMES:
        return CLASS_NAMES[kind]
    if names is None:
        root.findings.append(missing("architectures", ()))
    elif not isinstance(names, list) or not names or not isinstance(names[0], str):
        root.findings.append(wrong("architectures", "must be a list with the name of the model's class"))
    else:
        return str(names[0])
    return None


def _complete_text(values: dict[str, Any], text: Section, root: Section, name: str | None) -> None:
    """Add what takes more than looking up: defaults by other fields, experts, kinds of attention."""
    if "attentionHeads" in values:
        values.setdefault("keyValueHeads", values["attentionHeads"])
    if name == "MolmoForCausalLM" and "intermediateSize" in values:
        values["intermediateSize"] //= 2  # its file counts gate and up projection together
    values["tiedEmbeddings"] = _flag(text, root, "tie_word_embeddings")
    crossing = text.get("cross_attention_layers")
    values["crossAttentionLayers"] = len(crossing) if isinstance(crossing, list) else 0
    parts = {
        "experts": _experts(text, values),
        "latentAttention": _latent_attention(text),
        "localAttention": _local_attention(text, values),
    }
    values |= {key: part for key, part in parts.items() if part}


def _flag(text: Section, root: Section, name: str) -> bool:
    given = [part.values[name] for part in (text, root) if part.values.get(name) is not None]
    value = given[0] if given else text.get(name)
    if value is not None and not isinstance(value, bool):
        text.findings.append(wrong(name, f"is {shown(value)} but must be true or false"))
    return value is True


def _experts(text: Section, values: dict[str, Any]) -> dict[str, Any] | None:
    count = text.whole(*_NAMES["experts.count"])
    if not count:
        return None
    # Where experts have no width of their own it is that of the MLP; Llama 4 then names the plain layers' apart.
    width = text.whole(*_NAMES["experts.intermediateSize"])
    if (plain := text.whole("intermediate_size_mlp")) is not None:
        values["intermediateSize"] = plain
    experts = {
        "count": count,
        "active": text.whole(*_NAMES["experts.active"]),
        "shared": _shared_experts(text, width),
        "intermediateSize": width,
        **_plain_layers(text),
    }
    return {key: value for key, value in experts.items() if value is not None}


def _shared_experts(text: Section, width: int | None) -> int | None:
    """Return the number of shared experts; one that is wider than the others counts as several."""
    if text.has("interleave_moe_layer_step"):
        return 1  # Llama 4 always has one
    if width and (shared := text.whole("shared_expert_intermediate_size")):
        return max(1, round(shared / width))
    return text.whole("n_shared_experts", "num_shared_experts")


def _plain_layers(text: Section) -> dict[str, int | None]:
    """Return which layers have a plain MLP: by a step, the first ones, or some that are listed."""
    listed = text.get("moe_layer_freq")
    if isinstance(listed, list):
        return {"denseLayers": sum(1 for item in listed if not item)}
    only = text.get("mlp_only_layers")
    listed_plain = len(only) if isinstance(only, list) and only else None
    return {
        "every": text.whole(*_NAMES["experts.every"]),
        "denseLayers": listed_plain or text.whole("first_k_dense_replace"),
    }


def _latent_attention(text: Section) -> dict[str, int] | None:
    if text.get("use_mla") is False or not (rank := text.whole("kv_lora_rank")):
        return None
    rope = text.whole("qk_rope_head_dim")
    if rope is None:
        text.findings.append(missing(f"{text.path}qk_rope_head_dim", ()))
        return None
    return {"rank": rank, "ropeSize": rope}


def _local_attention(text: Section, values: dict[str, Any]) -> dict[str, int] | None:
    """Return the layers with a window: as listed by layer, by a pattern, from a layer on, or all."""
    window = text.whole(*_NAMES["localAttention.window"])
    layers = values.get("layers")
    if not window or not layers or text.get("use_sliding_window") is False or window >= values.get("maxContext", 2**63):
        return None
    count = _local_layers(text, layers)
    return {"window": window, "layers": count} if count > 0 else None


def _local_layers(text: Section, layers: int) -> int:
    kinds = text.get("layer_types")
    if isinstance(kinds, list):
        return sum(1 for kind in kinds if kind in {"sliding_attention", "chunked_attention"})
    if pattern := text.whole("sliding_window_pattern", "_sliding_window_pattern"):
        return layers - layers // pattern
    if text.has("attention_chunk_size"):
        return layers - layers // 4  # Llama 4 attends to everything in every fourth layer
    if text.get("use_sliding_window") is True:
        return layers - (text.whole("max_window_layers") or 0)
    return layers


def _vision_part(root: Section, name: str | None) -> dict[str, Any]:
    """Return vision tower and images. What is wrong with the tower is a warning: the decoder does without."""
    findings: list[Finding] = []
    aside = replace(root, findings=findings)
    section = aside.inner(_VISION_SECTIONS, VISION_DEFAULTS)
    tower = _vision(section, aside, name) if section else FIXED_VISION.get(name or "")
    if tower is None and not findings:
        findings.append(missing(_VISION_SECTIONS[0]))
    root.findings.extend(replace(finding, severity="Warning") for finding in findings)
    parts = {"vision": tower, "images": _images(root, section, name)}
    return {key: part for key, part in parts.items() if part}


def _vision(section: Section, root: Section, name: str | None) -> VisionArchitecture | None:
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    section.read(_VISION, values, origins)
    if "layers" in values:
        values["layers"] += section.whole("num_global_layers") or 0  # Llama 3.2 looks at all tiles in some more
    if (width := _vision_mlp(section, values.get("hiddenSize"))) is not None:
        values["intermediateSize"] = width
    values["spatialMergeSize"] = _merge_size(section, root, values.get("patchSize"))
    # vLLM adds heads to InternViT-6B, which has 25.
    values["padsHeads"] = name == "InternVLChatModel" and values.get("attentionHeads", 0) % 2 == 1
    if any(finding.severity == "Error" for finding in section.findings):
        return None
    try:
        return VisionArchitecture.model_validate(values)
    except ValidationError as error:
        section.findings.extend(_out_of_range(error, VisionArchitecture, origins))
        return None


def _vision_mlp(section: Section, width: int | None) -> int | None:
    """Return the width of the MLP, which some files give as a multiple of the tower's own."""
    ratio = section.get("mlp_ratio")
    if section.has("intermediate_size", "mlp_dim"):
        return section.whole("intermediate_size", "mlp_dim")
    if width is not None and isinstance(ratio, int | float) and not isinstance(ratio, bool) and 0 < ratio < 100:
        return int(width * ratio)
    section.findings.append(missing(f"{section.path}intermediate_size", ("mlp_dim", "mlp_ratio")))
    return None


def _merge_size(section: Section, root: Section, patch: int | None) -> int | None:
    """Return how many patches per side become one token; files name it, its inverse or the tokens of an image."""
    for part in (section, root):
        if part.has("spatial_merge_size", "merge_kernel_size", "scale_factor"):
            return part.whole("spatial_merge_size", "merge_kernel_size", "scale_factor")
    projector = root.inner(("projector_config",), {})
    for part in (section, root, projector or root):
        ratio = part.get("pixel_shuffle_ratio") or part.get("downsample_ratio")
        if isinstance(ratio, int | float) and not isinstance(ratio, bool) and 1 / 64 <= ratio <= 64:
            return round(1 / ratio if ratio < 1 else ratio)
    tokens, side = small(root.get("mm_tokens_per_image")), small(section.get("image_size"))
    return round(side / patch / tokens**0.5) if tokens and side and patch and 0 < patch <= side else None


def _images(root: Section, section: Section | None, name: str | None) -> ImageTokens | None:
    """Return the family's way of making tokens of images, with the tiles that the file itself names."""
    images = IMAGES.get(name or "")
    if images is None or (images.rule == "LlavaNext" and not _has_grids_of_llava_next(root, section)):
        if section is not None and name:
            root.findings.append(_unknown_images(name))
        return None
    if images.rule == "Llava" and section and section.get("model_type") == "pixtral":
        return PIXTRAL_IN_LLAVA
    slices = root.inner(("slice_config",), {})
    tiles = small(root.get("max_dynamic_patch")) or small(slices and slices.get("max_slice_nums"))
    if tiles is not None and tiles > MOST_TILES:
        where = "max_dynamic_patch" if root.has("max_dynamic_patch") else "slice_config.max_slice_nums"
        told = wrong(where, f"is {tiles} but must be at most {MOST_TILES}: {images.max_tiles} is taken")
        root.findings.append(replace(told, severity="Warning"))
        tiles = None
    side = small(section.get("image_size")) if section and images.rule in {"SmolVLM", "LlavaNext"} else None
    return images.model_copy(
        update={"max_tiles": tiles or images.max_tiles, "tile_size": side or images.tile_size},
    )


def _has_grids_of_llava_next(root: Section, section: Section | None) -> bool:
    """Whether the grids of the file, heights before widths in pixels, are those that the rule knows."""
    side, given = small(section and section.get("image_size")), root.get("image_grid_pinpoints")
    return given is None or given == [[rows * (side or 0), columns * (side or 0)] for columns, rows in LLAVA_NEXT_GRIDS]


def _unknown_images(name: str) -> Finding:
    return Finding(
        reason=INVALID_CONFIG,
        severity="Warning",
        field="architectures[0]",
        message=f"how {name} makes tokens of images is not known, so that they are not counted",
        advice="set spec.model.architecture.images.rule to that of a family that does it alike",
    )


def _out_of_range(error: ValidationError, kind: type[ApiModel], origins: dict[str, str]) -> Iterator[Finding]:
    """What the types refuse, with the names of the file."""
    for details in error.errors():
        target = ".".join(str(part) for part in details["loc"])
        yield replace(
            invalid_field(details, root=kind, name=target),
            reason=INVALID_CONFIG,
            field=origins.get(target, target),
        )
