"""How vLLM's parser divides a list of words into flags and their values, and how words reach it. Nothing is judged here."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

END_OF_FLAGS = "--"
"""Ends the flags: the parser takes what follows for arguments without one."""
_FLAG = re.compile(r"(-[^\s=]+)(?:=(.*))?", re.DOTALL)
_NEGATIVE_NUMBER = re.compile(r"-\d+|-\d*\.\d+")


def literal(text: str) -> str:
    """How a manifest spells a word that must reach the process as it is.

    The kubelet replaces `$(NAME)` in arguments and in values of variables, and turns `$$` into `$` wherever it stands.
    """
    return text.replace("$", "$$")


@dataclass(frozen=True, kw_only=True)
class Given:
    """A flag with the words that follow it up to the next flag."""

    index: int
    """Position of the flag in the list; 0 for words in front of the first flag."""
    flag: str
    """The flag as written, without `=` and what follows; empty for words in front of the first flag."""
    values: tuple[str, ...]
    """With `--flag=value`, that value comes first."""
    attached: bool = False
    """Whether the first value was written with `=`; words after it belong to no flag."""
    following: str = ""
    """The word that ends the values, as it begins like a flag; empty at the end of the list."""

    @property
    def option(self) -> str:
        """The flag as the parser looks it up: without the `.key` of a part, with dashes for underscores."""
        base = self.flag.partition(".")[0]
        return base.replace("_", "-") if base.startswith("--") else base

    @property
    def key(self) -> str:
        """Which part of a JSON object is set by `--flag.key value`; empty for the whole."""
        return self.flag.partition(".")[2]

    @property
    def keys(self) -> list[str]:
        """The names on the way to that part."""
        return self.key.removesuffix("+").split(".")

    @property
    def is_part(self) -> bool:
        """Whether it is spelled as a part of an object, even with an empty key."""
        return "." in self.flag

    def position(self, value: int) -> int:
        """Where in the list the value with this number stands."""
        return self.index + value + (1 if self.flag and not self.attached else 0)


def divide(words: Sequence[str]) -> list[Given]:
    """The flags in `words`, in order."""
    found: list[Given] = []
    flag, index, values, attached = "", 0, list[str](), False
    for position, word in enumerate(words):
        match = _FLAG.fullmatch(word)
        if match is None or _NEGATIVE_NUMBER.fullmatch(word):
            values.append(word)
            continue
        found.append(Given(index=index, flag=flag, values=tuple(values), attached=attached, following=word))
        flag, index, attached = match[1], position, match[2] is not None
        values = [match[2]] if attached else []
    found.append(Given(index=index, flag=flag, values=tuple(values), attached=attached))
    return [given for given in found if given.flag or given.values]
