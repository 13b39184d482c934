"""Writes what the chart makes with its default values as the base for kustomize: `python -m kustomize_base FILE`."""

import re
import subprocess
import sys
from pathlib import Path

from controlplane.errors import ControlPlaneError
from controlplane.tools import HELM, ensure_tools

CHART = Path(__file__).parents[1] / "charts" / "vlm-operator"
NAMESPACE = "vlm-system"
HEADER = "# Generated from charts/vlm-operator; do not edit.\n"
_ONLY_HELMS = re.compile(r"^ *(helm\.sh/|app\.kubernetes\.io/managed-by: Helm|# Source: ).*\n", re.MULTILINE)


def kustomize_base() -> str:
    """The objects of the chart but the CustomResourceDefinition, without what is true only of a release of Helm."""
    helm = ensure_tools([HELM])["helm"]
    command: list[str | Path] = [
        helm,
        "template",
        CHART.name,
        CHART,
        f"--namespace={NAMESPACE}",
        "--set=crds.install=false",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ControlPlaneError(f"helm template {CHART} failed: {done.stderr.strip()}")
    return HEADER + _ONLY_HELMS.sub("", done.stdout)


def main() -> int:
    """Write the file; a failure is told in a sentence."""
    try:
        Path(sys.argv[1]).write_text(kustomize_base())
    except ControlPlaneError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
