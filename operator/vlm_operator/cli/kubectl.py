"""`kubectl vlm`: what a VLMDeployment would become, on a laptop and without a cluster."""

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vlm_operator import __version__
from vlm_operator.api import API_VERSION, KIND

ACCEPTED, REFUSED, UNUSABLE = 0, 1, 2
"""Exit codes."""
LARGEST_FILE = 1_000_000
"""Characters; the API server would not take more either."""
ONE_AT_A_TIME = "give one VLMDeployment at a time"
UNKNOWN_UID = "00000000-0000-0000-0000-000000000000"
"""Stands in for the uid that the API server will give."""


class UnusableInputError(Exception):
    """Why a file cannot be read as one VLMDeployment, as a sentence that the file begins."""


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `kubectl vlm`."""
    parser = argparse.ArgumentParser(
        prog="kubectl vlm", description="Looks at VLMDeployments before they are applied.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"kubectl-vlm {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    render = commands.add_parser("render", help="print every object that the operator would create", allow_abbrev=False)
    render.add_argument("-f", "--filename", required=True, help="file with one VLMDeployment; - for standard input")
    options = parser.parse_args(argv)
    if not options.filename:
        render.error("argument -f/--filename: expected the name of a file")
    try:
        return _render(_read(options.filename))
    except UnusableInputError as error:
        why = str(error)
    except RecursionError:
        why = "is nested too deeply"
    sys.stderr.write(f"kubectl vlm: {'standard input' if options.filename == '-' else options.filename} {why}\n")
    return UNUSABLE


def _read(filename: str) -> dict[str, Any]:
    text = _text(filename)
    if len(text) > LARGEST_FILE:
        raise UnusableInputError(f"is larger than {LARGEST_FILE} characters")
    documents = _documents(text)
    if len(documents) > 1:
        raise UnusableInputError(f"holds {len(documents)} documents; {ONE_AT_A_TIME}")
    if not documents:
        raise UnusableInputError("is empty; it must hold one VLMDeployment")
    (found,) = documents
    if not isinstance(found, dict):
        what = "a list" if isinstance(found, list) else "text" if isinstance(found, str) else "a plain value"
        raise UnusableInputError(f"holds {what}; it must hold one VLMDeployment")
    if str(found.get("kind")).endswith("List"):
        raise UnusableInputError(f"is of kind {found['kind']}; {ONE_AT_A_TIME}")
    _must_be(found, "kind", KIND)
    _must_be(found, "apiVersion", API_VERSION)
    metadata = found.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise UnusableInputError("has no metadata.name")
    annotations = metadata.get("annotations") or {}
    if not isinstance(annotations, dict) or not all(isinstance(value, str) for value in annotations.values()):
        raise UnusableInputError("has metadata.annotations that are not a map of texts; put the values in quotes")
    return found


def _must_be(found: dict[str, Any], field: str, wanted: str) -> None:
    given = found.get(field)
    if given != wanted:
        what = f"is of {field} {given}" if given and isinstance(given, str) else f"has no {field}"
        raise UnusableInputError(f"{what}; it must be {wanted}")


def _documents(text: str) -> list[Any]:
    import yaml  # noqa: PLC0415 # keeps --help quick

    class Loader(yaml.SafeLoader):
        """As kubectl reads YAML: a date is text."""

        yaml_implicit_resolvers = {  # noqa: RUF012 # as PyYAML has it
            first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
            for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    try:
        return [document for document in yaml.load_all(text, Loader) if document is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise UnusableInputError(f"is not YAML: {where}{error.problem}") from error
    except yaml.YAMLError as error:
        raise UnusableInputError(f"is not YAML: {str(error).splitlines()[0]}") from error
    except (ValueError, AttributeError) as error:  # what PyYAML makes of `!!int x`
        raise UnusableInputError("is not YAML: a value does not fit its type") from error


def _text(filename: str) -> str:
    try:
        with contextlib.nullcontext(sys.stdin) if filename == "-" else Path(filename).open(encoding="utf-8") as file:
            text = file.read(LARGEST_FILE + 1)
        text.encode()  # standard input may let bytes through as surrogates
    except UnicodeError as error:
        raise UnusableInputError("is not UTF-8 text") from error
    except OSError as error:
        raise UnusableInputError(f"cannot be read: {str(error.strerror).lower()}") from error
    return text


def _render(resource: dict[str, Any]) -> int:
    import yaml  # noqa: PLC0415 # keeps --help quick

    from vlm_operator.replicas.offline import imagine  # noqa: PLC0415 # keeps --help quick

    imagined = imagine(resource, uid=UNKNOWN_UID)
    for finding in imagined.findings:
        sys.stderr.write(f"{finding.severity}: {finding.sentence()}\n")
    if imagined.refused:
        return REFUSED
    sys.stdout.write(yaml.safe_dump_all(imagined.objects, sort_keys=False, width=120))
    return ACCEPTED


if __name__ == "__main__":
    sys.exit(main())
