"""`vlm-operator run` and `vlm-operator crd`.

What the options of `run` may be is told by the settings alone: here they are names and words for people.
"""

import argparse
import difflib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vlm_operator import __version__

DONE, FAILED, BAD_USAGE = 0, 1, 2
"""Exit codes."""
RUN_OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "kubeconfig": (
        "file to connect with (default: KUBECONFIG, else the pod's ServiceAccount, else ~/.kube/config)",
        {"metavar": "FILE"},
    ),
    "context": ("context within the kubeconfig (default: its current one)", {"metavar": "NAME"}),
    "namespace": (
        "namespace to serve; repeat it for several (default: all)",
        {"action": "append", "dest": "namespaces", "metavar": "NAME"},
    ),
    "catalogue": (
        "file with further models and GPUs, or a folder of such files; repeat it for several",
        {"action": "append", "dest": "catalogues", "metavar": "PATH"},
    ),
    "templates": ("folder with templates in place of the built-in ones", {"metavar": "PATH"}),
    "health-host": ("address of /healthz, /readyz and /metrics (default: all addresses)", {"metavar": "ADDRESS"}),
    "health-port": ("port of /healthz, /readyz and /metrics (default: 8080)", {"metavar": "PORT"}),
    "log-format": ("format of the log (default: text)", {"metavar": "{text,json}"}),
    "log-level": ("level of the log (default: info)", {"metavar": "{debug,info,warning,error}"}),
    "pod-proxy": (
        "HTTP proxy through which replicas are read at the addresses of their pods (default: none)",
        {"metavar": "URL"},
    ),
    "workers": ("deployments looked at at the same time (default: 8)", {"metavar": "N"}),
    "leader-elect": ("act only while holding a Lease, for several replicas (default: off)", {"action": "store_true"}),
    "leader-elect-name": ("name of the Lease (default: vlm-operator)", {"metavar": "NAME"}),
    "leader-elect-namespace": ("namespace of the Lease (default: that of the pod)", {"metavar": "NAME"}),
    "leader-elect-lease-seconds": (
        "seconds without a renewal until another replica takes over (default: 15)",
        {"metavar": "SECONDS"},
    ),
    "leader-elect-deadline-seconds": (
        "seconds without a renewal until the leader stops acting (default: 10)",
        {"metavar": "SECONDS"},
    ),
    "leader-elect-retry-seconds": ("seconds between renewals of the Lease (default: 2)", {"metavar": "SECONDS"}),
    "resync-seconds": ("seconds between full lists (default: 300)", {"metavar": "SECONDS"}),
}


def command() -> int:
    """Entry point of `vlm-operator`. A signal ends it without a word, until the operator runs and ends in good order."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if os.getpid() == 1:  # the first process of a container, for which signals have no default
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda received, _: os._exit(128 + received))
    return main()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    options, rest = _parser().parse_known_args(argv)
    unknown = [word for word in rest if word != "--"]
    for word in unknown:
        sys.stderr.write(f"vlm-operator: {_complaint(word)}\n")
    if unknown:
        return BAD_USAGE
    if options.command == "crd":
        return _print_crd()
    _have_a_home()
    from vlm_operator.cli.run import run_operator  # noqa: PLC0415 # keeps --help quick

    return run_operator(options)


def _print_crd() -> int:
    from vlm_operator.api.crd import crd_yaml  # noqa: PLC0415 # keeps --help quick

    if sys.stdout is None:
        return _cannot_write("it is closed")
    try:
        sys.stdout.write(crd_yaml())
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough
        sys.stderr.close()
    except OSError as error:
        return _cannot_write(str(error.strerror).lower())
    return DONE


def _cannot_write(why: str) -> int:
    sys.stderr.write(f"vlm-operator: cannot write to standard output: {why}\n")
    return FAILED


def _have_a_home() -> None:
    """Libraries look for the home of the user as they are imported; in a container there may be none."""
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = "/"


def _complaint(word: str) -> str:
    option = word.partition("=")[0]
    close = difflib.get_close_matches(option, [f"--{name}" for name in RUN_OPTIONS], n=1)
    advice = f"did you mean {close[0]}?" if close else "`vlm-operator run --help` lists what there is"
    return f"{option} is {'an unknown option' if option.startswith('-') else 'one word too many'}; {advice}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vlm-operator", description="Serves vision-language models on Kubernetes GPUs.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"vlm-operator {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("crd", help="print the CustomResourceDefinition", allow_abbrev=False)
    # No defaults here: those of the settings hold.
    run = commands.add_parser("run", help="run the operator", allow_abbrev=False, argument_default=argparse.SUPPRESS)
    for name, (help_text, options) in RUN_OPTIONS.items():
        run.add_argument(f"--{name}", help=help_text, **options)
    return parser


if __name__ == "__main__":
    sys.exit(command())
