"""Probes an override in a process of its own: one that never ends or takes all memory must not take the operator with it."""

import json
import os
import resource
import subprocess
import sys

from vlm_operator.engines.overrides import OverrideError, probed

LIMIT_SECONDS = 20.0
"""For all probes together, the start of the process included. They take well under a second of it."""
LIMIT_BYTES = 2**28
"""Memory that the process may ask for, several times what it needs."""


def trial(template: str, source: str, *, seconds: float = LIMIT_SECONDS) -> str:
    """Why the override of `template` with the text `source` cannot be used; empty when it can."""
    command = [sys.executable, "-m", __name__]
    given = json.dumps({"template": template, "source": source})
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=seconds, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return f"the probes did not end within {seconds:.0f} s"
    if done.returncode != 0:
        last_words = "".join(done.stderr.strip().splitlines()[-1:])
        return f"the probes ended with exit code {done.returncode}: {last_words[:300]}"
    return str(json.loads(done.stdout))


def main() -> None:
    """Read the override from standard input, write why it cannot be used to standard output."""
    given = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    most = int(2 * LIMIT_SECONDS)  # in case nobody is left to end it
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    complaint = ""
    try:
        probed(given["template"], given["source"])
    except OverrideError as error:
        complaint = str(error)
    json.dump(complaint, sys.stdout)


if __name__ == "__main__":
    main()
