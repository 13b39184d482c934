"""Files that people give, read with care: of bounded size, and what cannot be used is told in a sentence with their name."""

import contextlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from vlm_operator.api.documents import LARGEST_TEXT, UnusableTextError, only, parse

CATALOGUE_SUFFIXES = (".yaml", ".yml", ".json")
"""Of files in a folder, those that hold a catalogue."""


class UnusableInputError(Exception):
    """Why a file cannot be used, as a sentence that begins with its name."""


def read_document(filename: str) -> Any:
    """The one YAML or JSON document in a file. Raises UnusableInputError."""
    with named(filename):
        return only(parse(text_of(filename)), "document")


def catalogue_files(paths: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """The files that hold a catalogue: those given, and those in a folder by their suffixes; then the others of a folder.

    Raises UnusableInputError.
    """
    files: list[Path] = []
    others: list[Path] = []
    for path in paths:
        if path.is_dir():
            for file in files_of(path):
                (files if file.suffix in CATALOGUE_SUFFIXES else others).append(file)
        else:
            files.append(path)
    return files, others


def files_of(folder: Path) -> list[Path]:
    """The files in a folder, in the order of their names. Raises UnusableInputError.

    In a mounted ConfigMap they are links through a hidden folder, which is left out.
    """
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith(".") and path.is_file())
    except OSError as error:
        raise UnusableInputError(f"{folder} cannot be read: {str(error.strerror).lower()}") from error


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
    if filename == "-" and sys.stdin is None:
        raise UnusableTextError("is closed")
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
