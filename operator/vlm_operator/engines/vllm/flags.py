"""Which arguments a version of vLLM knows: the facts files of this package, read once.

Names are compared exactly. vLLM itself accepts abbreviations (`--tensor-parallel 2`), so it would silently take a typo.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from vlm_operator.engines.vllm.versions import KNOWN_VERSIONS, facts_version, nearest_known

Kind = Literal["switch", "value", "optional", "list"]
ValueType = Literal["integer", "number", "size", "json", "object-or-text", "object-or-pair"]
MemberType = Literal["integer", "number", "boolean"]
Bound = Literal["ge", "gt", "le", "lt"]
BOUNDS: tuple[Bound, ...] = get_args(Bound)


@dataclass(frozen=True, kw_only=True)
class Member:
    """What may stand under a key of an object; only one of keys, choices and type is given."""

    keys: tuple[str, ...] = ()
    """The keys of an object."""
    choices: tuple[str, ...] = ()
    """The allowed words, compared exactly unless `folds`."""
    folds: bool = False
    """Whether the choices, then in capitals, are taken in any case."""
    type: MemberType | None = None
    """What a value must be, as such or as text."""
    bounds: Mapping[Bound, float] = field(default_factory=dict)
    """Between which numbers it must be: greater or equal, greater than, less or equal, less than."""


@dataclass(frozen=True, kw_only=True)
class Flag:
    """One option of the parser."""

    name: str
    """Its main spelling."""
    kind: Kind
    """What follows: nothing, one value, at most one value, one value or more."""
    choices: tuple[str, ...] = ()
    """Allowed values; empty when the parser does not restrict them."""
    folds: bool = False
    """Whether the parser takes the choices in any case, with dashes for underscores."""
    type: ValueType | None = None
    """What a value must be; None when the parser takes any text. A size is a whole number or one such as `4k`,
    a pair is `name=path`."""
    none: bool = False
    """Whether `None` and an empty word stand for no value, where the type would not allow them."""
    object: bool = False
    """Whether JSON must be an object."""
    suffixes: bool = False
    """Whether numbers in JSON may be written as sizes."""
    keys: tuple[str, ...] = ()
    """Keys that a JSON object may have; empty when it may have any."""
    members: dict[str, Member] = field(default_factory=dict)
    """Key -> what may stand under it, where that is restricted."""
    negations: frozenset[str] = frozenset()
    """Spellings that turn a switch off."""


GATHERED = frozenset({"--middleware"})
"""Flags that may be repeated: vLLM gathers their values. Of any other flag, lists included, it keeps the last."""


@dataclass(frozen=True, kw_only=True)
class KnownFlags:
    """The options of one minor version, by every spelling."""

    version: str
    spellings: dict[str, Flag]

    def find(self, spelled: str) -> Flag | None:
        """The option meant by a word such as `--max_model_len`, `-tp`, `-O3` or `--limit-mm-per-prompt.image`."""
        base, _, _ = spelled.partition(".")
        if spelled.startswith("--"):
            return self.spellings.get(base.replace("_", "-"))
        return self.spellings.get(base) or self.spellings.get(spelled[:2])  # one letter with its value attached


@cache
def known_flags(version: str) -> KnownFlags | None:
    """The options of a version (`0.33`, `0.33.1`, `0.10.2`), None when there are no facts about it."""
    kept_as = facts_version(version)
    if kept_as not in KNOWN_VERSIONS:
        return None
    source = Path(__file__).parent / "facts" / f"vllm_args_{kept_as}.json"
    spellings: dict[str, Flag] = {}
    for name, facts in json.loads(source.read_text(encoding="utf-8")).items():
        flag = Flag(
            name=name,
            kind=facts["kind"],
            choices=tuple(facts.get("choices", ())),
            folds=facts.get("folds", False),
            type=facts.get("type"),
            none=facts.get("none", False),
            object=facts.get("object", False),
            suffixes=facts.get("suffixes", False),
            keys=tuple(facts.get("keys", ())),
            members={key: _member(member) for key, member in facts.get("members", {}).items()},
            negations=frozenset(facts.get("negations", ())),
        )
        spellings |= dict.fromkeys([name, *facts.get("aliases", []), *facts.get("negations", [])], flag)
    return KnownFlags(version=kept_as, spellings=spellings)


def _member(facts: Mapping[str, Any]) -> Member:
    return Member(
        keys=tuple(facts.get("keys", ())),
        choices=tuple(facts.get("choices", ())),
        folds=facts.get("folds", False),
        type=facts.get("type"),
        bounds={bound: facts[bound] for bound in BOUNDS if bound in facts},
    )


def assumed_flags(version: str) -> KnownFlags:
    """The options by which a version is judged: its own, else those of the known version that comes nearest."""
    return _existing(nearest_known(version))


def newest_flags() -> KnownFlags:
    """The options of the newest version that the operator knows."""
    return _existing(KNOWN_VERSIONS[-1])


def versions_with(spelled: str) -> list[str]:
    """The known versions that have an option, oldest first."""
    return [version for version in KNOWN_VERSIONS if _existing(version).find(spelled)]


def _existing(version: str) -> KnownFlags:
    flags = known_flags(version)
    assert flags is not None  # noqa: S101 # the files are part of the package
    return flags
