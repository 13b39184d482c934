"""Runs an operator beside simulated engines: python -m simengine PROGRAM ARGUMENT... gets `--pod-proxy` and ends with it."""

import signal
import subprocess
import sys

from simengine import SimEngines


def main(program: list[str]) -> int:
    """Run the program; returns its exit status."""
    with SimEngines() as engines:
        child = subprocess.Popen([*program, f"--pod-proxy={engines.proxy_url}"], stdin=subprocess.DEVNULL)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda received, _: child.send_signal(received))
        return child.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
