"""`kubectl vlm`: what a VLMDeployment would become, on a laptop and without a cluster; and what became of it in one.

Each command imports what it needs when it runs, so that `--help` and errors in options come at once.
"""

import argparse
import gc
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from vlm_operator import __version__
from vlm_operator.cli import simulate_options
from vlm_operator.cli.files import read_json, read_resource
from vlm_operator.runtime.files import CATALOGUE_SUFFIXES, UnusableInputError, catalogue_files, read_document

if TYPE_CHECKING:
    from vlm_operator.cli.config import Config
    from vlm_operator.sizing.catalogue.loading import Catalogue

ACCEPTED, REFUSED, UNUSABLE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes."""
UNKNOWN_UID = "00000000-0000-0000-0000-000000000000"
"""Stands in for the uid that the API server will give."""
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""As Kubernetes wants the names of namespaces."""
FILE_HELP = "file with one VLMDeployment; - for standard input"


def command() -> NoReturn:
    """Entry point of `kubectl vlm`: a process so short that every bit counts.

    It never collects garbage, looks for no plugins of pydantic, and is not taken apart in the end.
    """
    gc.disable()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    os._exit(main())


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    parser = _parser()
    options = parser.parse_args(argv)
    given = vars(options)
    for name in ("filename", "against", "config", "kubeconfig", "trace"):
        if given.get(name) == "":
            parser.error(f"argument --{name}: expected the name of a file")
    for name in ("name", "namespace"):
        if (value := given.get(name)) is not None and not LABEL.fullmatch(value):
            parser.error(f"{name} {value!r} must be a name: up to 63 lower-case letters, digits and -")
    try:
        result: int = options.run(options)
        sys.stdout.flush()
    except UnusableInputError as error:
        sys.stderr.write(f"kubectl vlm: {error}\n")
        return UNUSABLE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # `| head` has seen enough
        return ACCEPTED
    except OSError as error:
        sys.stderr.write(f"kubectl vlm: the answer cannot be written: {str(error.strerror).lower()}\n")
        return UNUSABLE
    return result


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kubectl vlm",
        description="Looks at VLMDeployments, before they are applied and after.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"kubectl-vlm {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    plan = _command(commands, "plan", _plan, "whether it fits, what is wrong with it, and what a change would restart")
    plan.add_argument("-f", "--filename", help=FILE_HELP)
    plan.add_argument("--against", metavar="OLD", help="file with the VLMDeployment that runs now")
    plan.add_argument("--config", metavar="FILE", help="config.json of a model that is not in the catalogue")
    _output(plan)
    render = _command(commands, "render", _render, "print every object that the operator would create")
    render.add_argument("-f", "--filename", required=True, help=FILE_HELP)
    for name, rows in (("models", "models"), ("gpus", "GPUs")):
        listing = _command(commands, name, _list, f"{rows} that are known; with words: those that match all of them")
        listing.add_argument("words", nargs="*", metavar="WORD", help="part of a name")
        _output(listing)
    explain = _command(
        commands, "explain", _explain, "what there is of it in the cluster, and what the operator does next"
    )
    explain.add_argument("name", metavar="NAME", help="name of the VLMDeployment")
    explain.add_argument("-n", "--namespace", help="its namespace; that of the context if not given")
    explain.add_argument("--kubeconfig", metavar="FILE", help="file to connect with, as for kubectl")
    explain.add_argument("--context", help="context within the file; the current one if not given")
    _output(explain)
    simulate = _command(
        commands, "simulate", _simulate, "replay requests under a scaling policy: who waits, and what that costs"
    )
    simulate_options.add_to(simulate)
    return parser


def _command(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
    command.set_defaults(run=run)
    command.add_argument(
        "--catalogue",
        action="append",
        default=[],
        metavar="PATH",
        help="file with further models and GPUs, or a folder of such files; may be repeated",
    )
    return command


def _output(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-o", "--output", choices=("table", "json", "yaml"), default="table", help="form of the answer"
    )


def _plan(options: argparse.Namespace) -> int:
    from vlm_operator.cli import plan  # noqa: PLC0415 # keeps --help quick

    if not options.filename and not options.config:
        raise UnusableInputError("plan needs a file: -f with a VLMDeployment, or --config with a config.json")
    if options.against and not options.filename:
        raise UnusableInputError("--against needs -f, the file that it is compared with")
    catalogue = _catalogue(options.catalogue)
    config = _config(options.config) if options.config else None
    resource = config.resource() if config and not options.filename else read_resource(options.filename)
    old = _older(resource, options.against) if options.against else None
    answer = plan.answer(resource, config=config, old=old, catalogue=catalogue)
    sys.stdout.write(plan.shown(answer, options.output))
    return ACCEPTED if answer.accepted else REFUSED


def _older(resource: dict[str, Any], filename: str) -> dict[str, Any]:
    """What runs now. Another name or namespace is another VLMDeployment; a file need not state its namespace."""
    from vlm_operator.api.resource import read_spec  # noqa: PLC0415 # keeps --help quick

    old = read_resource(filename)
    spec, findings = read_spec(old.get("spec"))
    if spec is None:
        told = "; ".join(finding.sentence() for finding in findings)
        raise UnusableInputError(f"{filename} cannot be what runs now: {told}")
    for field in ("name", "namespace"):
        was, wanted = (of["metadata"].get(field) for of in (old, resource))
        if was and wanted and was != wanted:
            raise UnusableInputError(
                f"{filename} has metadata.{field} {was}, not {wanted}: that is another VLMDeployment, with replicas of "
                "its own; --against takes the one that is changed"
            )
    return old


def _config(filename: str) -> "Config":
    from vlm_operator.cli.config import read_config_file  # noqa: PLC0415 # only needed here

    return read_config_file(read_json(filename), filename)


def _render(options: argparse.Namespace) -> int:
    import yaml  # noqa: PLC0415 # keeps --help quick

    from vlm_operator.replicas.offline import imagine  # noqa: PLC0415 # keeps --help quick

    resource = read_resource(options.filename)
    imagined = imagine(resource, uid=UNKNOWN_UID, catalogue=_catalogue(options.catalogue))
    for finding in imagined.findings:
        sys.stderr.write(f"{finding.severity}: {finding.sentence()}\n")
    if imagined.refused:
        return REFUSED
    sys.stdout.write(yaml.safe_dump_all(imagined.objects, sort_keys=False, width=120))
    return ACCEPTED


def _explain(options: argparse.Namespace) -> int:
    from vlm_operator.cli.explain import answer  # noqa: PLC0415 # keeps --help quick

    sys.stdout.write(answer(options, _catalogue(options.catalogue)))
    return ACCEPTED


def _simulate(options: argparse.Namespace) -> int:
    simulate_options.require_libraries(plot=options.plot is not None)
    from vlm_operator.cli import simulate  # noqa: PLC0415 # keeps --help quick

    gc.enable()  # this one runs long
    return ACCEPTED if simulate.run(options, _catalogue(options.catalogue)) else REFUSED


def _list(options: argparse.Namespace) -> int:
    from vlm_operator.cli import listing  # noqa: PLC0415 # keeps --help quick

    catalogue, words = _catalogue(options.catalogue), " ".join(options.words)
    found = listing.models(catalogue, words) if options.command == "models" else listing.gpus(catalogue, words)
    if not found:
        sys.stderr.write(f"kubectl vlm: nothing in the catalogue matches {words!r}; without words all are listed\n")
        return REFUSED
    sys.stdout.write(listing.shown(found, options.output))
    return ACCEPTED


def _catalogue(paths: Sequence[str]) -> "Catalogue":
    from vlm_operator.sizing.catalogue.loading import builtin, extended  # noqa: PLC0415 # keeps --help quick

    if not paths:
        return builtin()
    files, others = catalogue_files(Path(path) for path in paths)
    for file in others:
        sys.stderr.write(f"Warning: {file} is not read: its name must end with {', '.join(CATALOGUE_SUFFIXES)}\n")
    catalogue, findings = extended(builtin(), {str(file): read_document(str(file)) for file in files})
    for finding in findings:
        sys.stderr.write(f"{finding.severity}: {finding.sentence()}\n")
    if any(finding.severity == "Error" for finding in findings):
        raise UnusableInputError("the catalogue cannot be used; mend what is named above")
    return catalogue


if __name__ == "__main__":
    command()
