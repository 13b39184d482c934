"""`kubectl vlm`: what a VLMDeployment would become, on a laptop and without a cluster."""

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vlm_operator import __version__

ACCEPTED, REFUSED, UNUSABLE = 0, 1, 2
"""Exit codes."""
LARGEST_FILE = 1_000_000
"""Characters; the API server would not take more either."""
UNKNOWN_UID = "00000000-0000-0000-0000-000000000000"
"""Stands in for the uid that the API server will give."""


class UnusableInputError(Exception):
    """Why a file cannot be read as one VLMDeployment, as a sentence."""


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
    try:
        return _render(_read(options.filename))
    except UnusableInputError as error:
        sys.stderr.write(f"kubectl vlm: {error}\n")
        return UNUSABLE


def _read(filename: str) -> dict[str, Any]:
    import yaml  # noqa: PLC0415 # keeps --help quick

    text = _text(filename)
    try:
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        raise UnusableInputError(f"{filename} is not YAML: {' '.join(str(error).split())}") from error
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise UnusableInputError(f"{filename} holds {len(documents)} documents; it must hold exactly one object")
    found: dict[str, Any] = documents[0]
    if found.get("kind") != "VLMDeployment" or not isinstance(found.get("metadata"), dict):
        raise UnusableInputError(f"{filename} holds a {found.get('kind')}, not a VLMDeployment with metadata")
    return found


def _text(filename: str) -> str:
    try:
        with contextlib.nullcontext(sys.stdin) if filename == "-" else Path(filename).open(encoding="utf-8") as file:
            text = file.read(LARGEST_FILE + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableInputError(f"{filename} cannot be read: {error}") from error
    if len(text) > LARGEST_FILE:
        raise UnusableInputError(f"{filename} is larger than {LARGEST_FILE} characters")
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
