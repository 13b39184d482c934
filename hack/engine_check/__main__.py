"""Make ready what `make test-engine` needs: the CPU build of vLLM and the Python parts of the known releases."""

import sys

from controlplane.errors import PrerequisiteError
from vllm_args.environment import CPU_RELEASE, cache_folder, ready, say
from vllm_args.wheels import python_part
from vlm_operator.engines.vllm.versions import KNOWN_VERSIONS, release_of


def main() -> int:
    """Install and download what is missing; a failure is told in a sentence."""
    try:
        ready()
        for release in map(release_of, KNOWN_VERSIONS):
            if release != CPU_RELEASE:
                python_part(release, root=cache_folder(), progress=say)
    except PrerequisiteError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
