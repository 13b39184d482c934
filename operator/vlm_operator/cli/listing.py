"""The catalogue as lists: `kubectl vlm models` and `kubectl vlm gpus`."""

import json
from collections.abc import Sequence
from typing import Any

import yaml

from vlm_operator.sizing.catalogue.loading import Catalogue

Row = dict[str, Any]
_GIB = 2**30


def models(catalogue: Catalogue, words: str) -> list[Row]:
    """The models that match all words, as rows."""
    return [
        {
            "name": row.hf_id,
            "family": row.family,
            "parameters": row.total_parameters,
            "architecture": row.architecture_name,
            "maxContext": row.architecture.max_context if row.architecture else None,
            "heads": row.architecture.attention_heads if row.architecture else None,
            "keyValueHeads": row.architecture.key_value_heads if row.architecture else None,
            "lastVersion": row.vllm.last_seen_in,
            "quantised": [repo.repo for repo in row.quantised],
            "unsourced": sorted(fact for fact, mark in row.marks.items() if mark == "unsourced"),
        }
        for row in catalogue.search_models(words)
    ]


def gpus(catalogue: Catalogue, words: str) -> list[Row]:
    """The GPUs that match all words, as rows."""
    return [
        {
            "product": row.product_labels[0],
            "name": row.name,
            "memoryMiB": row.memory_mib,
            "cudaGiB": row.cuda_gib,
            "capability": row.capability,
            "interconnect": row.interconnect,
            "slices": [profile.profile for profile in row.mig],
            "unsourced": sorted(fact for fact, mark in row.marks.items() if mark == "unsourced"),
        }
        for row in catalogue.search_gpus(words)
    ]


def shown(rows: Sequence[Row], output: str) -> str:
    """Rows as a table, JSON or YAML; `?` in the table is unknown."""
    if output == "json":
        return json.dumps(rows, indent=2) + "\n"
    if output == "yaml":
        return yaml.safe_dump(rows, sort_keys=False, width=120)
    return table([list(rows[0]), *([cell(value) for value in row.values()] for row in rows)])


def table(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells in columns, the first in capitals as kubectl has it."""
    head, *body = lines
    capitals = [[name.upper() for name in head], *body]
    widths = [max(len(line[column]) for line in capitals) for column in range(len(head))]
    padded = ("   ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in capitals)
    return "".join(f"{line.rstrip()}\n" for line in padded)


def cell(value: Any) -> str:
    """A value in a table."""
    if value is None:
        return "?"
    if isinstance(value, list):
        return ",".join(map(str, value)) or "-"
    return f"{value / 1e9:.1f}B" if isinstance(value, int) and value >= 10**8 else str(value)
