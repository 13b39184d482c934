"""Write the facts about the arguments of a version of vLLM, from its published wheel.

    python -m vllm_args 0.33.0     writes vllm_args_0.33.json
    python -m vllm_args            writes the facts of every release that the operator knows

The wheel is downloaded (300 to 500 MB) and its own parser is asked, in an environment of 6 GB in the per-user cache that
the first run makes. Of 0.10 there are facts about the last patch release only, under its full version.
"""

import json
import re
import sys
from pathlib import Path

from controlplane.errors import PrerequisiteError
from vllm_args.environment import run, say
from vllm_args.generate import facts_text
from vlm_operator.engines.vllm.versions import KNOWN_VERSIONS, facts_version, release_of

DUMP = Path(__file__).with_name("dump.py")
FACTS = Path(__file__).parents[2] / "operator" / "vlm_operator" / "engines" / "vllm" / "facts"


def write_facts(release: str) -> Path:
    """Ask the parser of a release and write what it says. Raises PrerequisiteError when it cannot be asked."""
    say(f"asking the parser of {release} ...")
    done = run(DUMP, release=release)
    if done.returncode:
        raise PrerequisiteError(f"The parser of vLLM {release} cannot be built:\n{done.stderr[-2000:]}")
    target = FACTS / f"vllm_args_{facts_version(release)}.json"
    target.write_text(facts_text(json.loads(done.stdout)), encoding="utf-8")
    return target


def main(arguments: list[str]) -> int:
    """Write the facts of the releases named, of all known ones without a name."""
    if not all(re.fullmatch(r"\d+\.\d+\.\d+", release) for release in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        for release in arguments or [release_of(version) for version in KNOWN_VERSIONS]:
            say(f"wrote {write_facts(release)}")
    except PrerequisiteError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
