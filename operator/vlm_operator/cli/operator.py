"""`vlm-operator run` and `vlm-operator crd`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vlm_operator import __version__


def _path(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return Path(text)


RUN_OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "kubeconfig": ("file to connect with (default: KUBECONFIG, else the pod's ServiceAccount)", {"type": Path}),
    "context": ("context within the kubeconfig (default: its current one)", {}),
    "namespace": (
        "namespace to serve; repeat it for several (default: all)",
        {"action": "append", "dest": "namespaces", "metavar": "NAME"},
    ),
    "catalogue": (
        "file with further models and GPUs, or a folder of such files; repeat it for several",
        {"action": "append", "dest": "catalogues", "type": _path, "metavar": "PATH"},
    ),
    "templates": ("folder with templates in place of the built-in ones", {"type": _path, "metavar": "PATH"}),
    "health-host": ("address of /healthz, /readyz and /metrics (default: all addresses)", {"metavar": "ADDRESS"}),
    "health-port": ("port of /healthz, /readyz and /metrics (default: 8080)", {"type": int, "metavar": "PORT"}),
    "log-format": ("format of the log (default: text)", {"choices": ("text", "json")}),
    "log-level": ("level of the log (default: info)", {"choices": ("debug", "info", "warning", "error")}),
    "workers": ("deployments looked at at the same time (default: 8)", {"type": int, "metavar": "N"}),
    "leader-elect": ("act only while holding a Lease, for several replicas (default: off)", {"action": "store_true"}),
    "leader-elect-namespace": ("namespace of the Lease (default: that of the pod)", {"metavar": "NAME"}),
    "leader-elect-lease-seconds": (
        "seconds without a renewal until another replica takes over (default: 15)",
        {"type": int, "metavar": "SECONDS"},
    ),
    "leader-elect-deadline-seconds": (
        "seconds without a renewal until the leader stops acting (default: 10)",
        {"type": float, "metavar": "SECONDS"},
    ),
    "leader-elect-retry-seconds": (
        "seconds between renewals of the Lease (default: 2)",
        {"type": float, "metavar": "SECONDS"},
    ),
    "resync-seconds": ("seconds between full lists (default: 300)", {"type": float, "metavar": "SECONDS"}),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `vlm-operator`."""
    parser = _parser()
    options = parser.parse_args(argv)
    if options.command == "crd":
        from vlm_operator.api.crd import crd_yaml  # noqa: PLC0415 # keeps --help quick

        sys.stdout.write(crd_yaml())
        return 0
    from vlm_operator.cli.run import run_operator  # noqa: PLC0415 # keeps --help quick

    return run_operator(options)


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
    sys.exit(main())
