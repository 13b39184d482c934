"""Command line: a control plane in the background, its programs, and a place where pod addresses are local."""

import argparse
import os
import shlex
import sys

from controlplane import background, pod_network
from controlplane.accompany import accompany
from controlplane.errors import ControlPlaneError
from controlplane.tools import FAMILIES, HELM, ensure_tools


def main() -> int:
    """Obey one command; a failure is told in a sentence, without a traceback."""
    parser = argparse.ArgumentParser(prog="controlplane", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="start a control plane in the background, or find it, and print its KUBECONFIG line")
    commands.add_parser("down", help="stop the control plane in the background")
    commands.add_parser("tools", help="build the programs that are missing and print where they are")
    commands.add_parser("serve")
    companion = commands.add_parser("accompany")
    companion.add_argument("name")
    companion.add_argument("argv", nargs="+")
    within = commands.add_parser("inside", help="run a command where it can answer at the addresses of pods")
    within.add_argument("argv", nargs=argparse.REMAINDER, metavar="COMMAND")
    options = parser.parse_args()
    command = options.command
    try:
        if command == "up":
            print(f"export KUBECONFIG={shlex.quote(str(background.up()))}", flush=True)
            kubectl = shlex.quote(str(ensure_tools()["kubectl"]))
            print(f"# then: {kubectl} apply --server-side -k crds/; .venv/bin/vlm-operator run", file=sys.stderr)
        elif command == "down":
            print("stopped" if background.down() else "no control plane was running")
        elif command == "serve":
            background.serve()
        elif command == "accompany":
            return accompany(options.name, options.argv)
        elif command == "inside":
            ensure_tools()  # there is no network inside
            argv = pod_network.inside(options.argv)
            os.execvp(argv[0], argv)  # noqa: S606
        else:
            for path in ensure_tools([*FAMILIES, HELM]).values():
                print(path)
    except ControlPlaneError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
