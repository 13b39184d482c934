"""Files that people give, read with care: of bounded size, and what cannot be used is told in a sentence with their name."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vlm_operator.api.documents import LARGEST_TEXT, UnusableTextError, only, parse


class UnusableInputError(Exception):
    """Why a file cannot be used, as a sentence that begins with its name."""


def read_document(filename: str) -> Any:
    """The one YAML or JSON document in a file. Raises UnusableInputError."""
    with named(filename):
        return only(parse(text_of(filename)), "document")


def read_text(filename: str) -> str:
    """The text in a file. Raises UnusableInputError."""
    with named(filename):
        return text_of(filename)


@contextlib.contextmanager
def named(filename: str) -> Iterator[None]:
    """Put the name of a file before what is said about its text. Raises UnusableInputError."""
    try:
        yield
    except UnusableTextError as error:
        why = str(error)
    except RecursionError:
        why = "is nested too deeply"
    else:
        return
    raise UnusableInputError(f"{'standard input' if filename == '-' else filename} {why}")


def text_of(filename: str) -> str:
    """The text in a file (`-`: standard input). Raises UnusableTextError."""
    try:
        with contextlib.nullcontext(sys.stdin) if filename == "-" else Path(filename).open(encoding="utf-8") as file:
            text = file.read(LARGEST_TEXT + 1)
        text.encode()  # standard input may let bytes through as surrogates
    except UnicodeError as error:
        raise UnusableTextError("is not UTF-8 text") from error
    except OSError as error:
        raise UnusableTextError(f"cannot be read: {str(error.strerror).lower()}") from error
    if len(text) > LARGEST_TEXT:
        raise UnusableTextError(f"is larger than {LARGEST_TEXT} characters")
    return text
