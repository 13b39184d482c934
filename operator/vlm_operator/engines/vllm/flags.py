"""Which arguments a version of vLLM knows: the facts files of this package, read once.

Names are compared exactly. vLLM itself accepts abbreviations (`--tensor-parallel 2`), so it would silently take a typo.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from vlm_operator.engines.vllm.versions import DEFAULT_VERSION

Kind = Literal["switch", "value", "optional", "list"]


@dataclass(frozen=True, kw_only=True)
class Flag:
    """One option of the parser."""

    name: str
    """Its main spelling."""
    kind: Kind
    """What follows: nothing, one value, at most one value, one value or more."""
    choices: tuple[str, ...] = ()
    """Allowed values; empty when the parser does not restrict them."""


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
def known_flags(minor_version: str) -> KnownFlags | None:
    """The options of a version (`0.33`), None when there is no facts file for it."""
    source = files("vlm_operator.engines.vllm") / "facts" / f"vllm_args_{minor_version}.json"
    if not source.is_file():
        return None
    spellings: dict[str, Flag] = {}
    for name, facts in json.loads(source.read_text(encoding="utf-8")).items():
        flag = Flag(name=name, kind=facts["kind"], choices=tuple(facts.get("choices", ())))
        spellings |= dict.fromkeys([name, *facts.get("aliases", []), *facts.get("negations", [])], flag)
    return KnownFlags(version=minor_version, spellings=spellings)


def newest_flags() -> KnownFlags:
    """The options of the newest version that the operator knows."""
    flags = known_flags(DEFAULT_VERSION)
    assert flags is not None  # noqa: S101 # the file is part of the package
    return flags
