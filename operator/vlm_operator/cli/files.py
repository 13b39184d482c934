"""Files that people give: one VLMDeployment as YAML or JSON, or a config.json. What cannot be used is told in a sentence."""

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

from vlm_operator.api import API_VERSION, KIND

LARGEST_FILE = 1_000_000
"""Characters; the API server would not take more either."""
MOST_VALUES = 100_000
"""Values of a document once its aliases are written out."""
ONE_AT_A_TIME = "give one VLMDeployment at a time"


class UnusableInputError(Exception):
    """Why a file cannot be used, as a sentence that begins with its name."""


class _Unusable(Exception):  # noqa: N818 # an UnusableInputError that does not know the name of the file yet
    pass


def read_resource(filename: str) -> dict[str, Any]:
    """The one VLMDeployment in a file (`-`: standard input). Raises UnusableInputError."""
    with _named(filename):
        return _resource(_text(filename))


def read_json(filename: str) -> Any:
    """The JSON value in a file (`-`: standard input). Raises UnusableInputError."""
    with _named(filename):
        try:
            return json.loads(_text(filename))
        except ValueError as error:
            raise _Unusable(f"is not JSON: {error}") from error


def read_document(filename: str) -> Any:
    """The one YAML or JSON document in a file. Raises UnusableInputError."""
    with _named(filename):
        return _one(_documents(_text(filename)), "document")


@contextlib.contextmanager
def _named(filename: str) -> Any:
    try:
        yield
    except _Unusable as error:
        why = str(error)
    except RecursionError:
        why = "is nested too deeply"
    else:
        return
    raise UnusableInputError(f"{'standard input' if filename == '-' else filename} {why}")


def _resource(text: str) -> dict[str, Any]:
    found = _one(_documents(text), KIND)
    if not isinstance(found, dict):
        what = "a list" if isinstance(found, list) else "text" if isinstance(found, str) else "a plain value"
        raise _Unusable(f"holds {what}; it must hold one {KIND}")
    if str(found.get("kind")).endswith("List"):
        raise _Unusable(f"is of kind {found['kind']}; {ONE_AT_A_TIME}")
    _must_be(found, "kind", KIND)
    _must_be(found, "apiVersion", API_VERSION)
    metadata = found.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise _Unusable("has no metadata.name")
    annotations = metadata.get("annotations") or {}
    if not isinstance(annotations, dict) or not all(isinstance(value, str) for value in annotations.values()):
        raise _Unusable("has metadata.annotations that are not a map of texts; put the values in quotes")
    return found


def _one(documents: list[Any], what: str) -> Any:
    if len(documents) > 1:
        raise _Unusable(f"holds {len(documents)} documents; {ONE_AT_A_TIME}")
    if not documents:
        raise _Unusable(f"is empty; it must hold one {what}")
    return documents[0]


def _must_be(found: dict[str, Any], field: str, wanted: str) -> None:
    given = found.get(field)
    if given != wanted:
        what = f"is of {field} {given}" if given and isinstance(given, str) else f"has no {field}"
        raise _Unusable(f"{what}; it must be {wanted}")


def _documents(text: str) -> list[Any]:
    if text.lstrip().startswith("{"):  # JSON writes some characters in a way that YAML does not know
        with contextlib.suppress(ValueError):
            return [json.loads(text)]
    import yaml  # noqa: PLC0415 # keeps --help quick

    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc, valid-type] # whichever PyYAML was built with
        """As kubectl reads YAML: a date is text."""

        yaml_implicit_resolvers = {  # noqa: RUF012 # as PyYAML has it
            first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
            for first, resolvers in base.yaml_implicit_resolvers.items()
        }

    try:
        documents = [document for document in yaml.load_all(text, Loader) if document is not None]  # safe
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise _Unusable(f"is not YAML: {where}{error.problem}") from error
    except yaml.YAMLError as error:
        raise _Unusable(f"is not YAML: {str(error).splitlines()[0]}") from error
    except (ValueError, AttributeError) as error:  # what PyYAML makes of `!!int x`
        raise _Unusable("is not YAML: a value does not fit its type") from error
    if _values(documents, {}) > MOST_VALUES:
        raise _Unusable(f"holds more than {MOST_VALUES} values once its aliases are written out")
    return documents


def _values(value: Any, known: dict[int, int]) -> int:
    """How many values there are, each alias counted as what it stands for."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in known:
        parts = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_values(part, known) for part in parts)
    return known[id(value)]


def _text(filename: str) -> str:
    try:
        with contextlib.nullcontext(sys.stdin) if filename == "-" else Path(filename).open(encoding="utf-8") as file:
            text = file.read(LARGEST_FILE + 1)
        text.encode()  # standard input may let bytes through as surrogates
    except UnicodeError as error:
        raise _Unusable("is not UTF-8 text") from error
    except OSError as error:
        raise _Unusable(f"cannot be read: {str(error.strerror).lower()}") from error
    if len(text) > LARGEST_FILE:
        raise _Unusable(f"is larger than {LARGEST_FILE} characters")
    return text
