"""The golden files: a VLMDeployment and, below it, the pod that it becomes.

After an intended change of the pod, write them again with `make generate` and review the difference.
"""

from pathlib import Path
from typing import Any

import yaml

from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.engines.base import PodIdentity, PodInputs
from vlm_operator.engines.registry import engine

FOLDER = Path(__file__).parent / "golden"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))


def resource_and_pod(name: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The two documents of a golden file; the second is None in a new file."""
    documents = list(yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text(encoding="utf-8")))
    return documents[0], documents[1] if len(documents) > 1 else None


def inputs_of(resource: dict[str, Any]) -> PodInputs:
    return PodInputs.of(VLMDeploymentSpec.model_validate(resource["spec"]))


def rendered(resource: dict[str, Any]) -> dict[str, Any]:
    """The pod of slot 0 of a made-up revision."""
    return rendered_from(inputs_of(resource), resource["metadata"]["name"])


def rendered_from(inputs: PodInputs, name: str) -> dict[str, Any]:
    chosen = engine(inputs.engine.type)
    identity = PodIdentity(
        deployment=name,
        namespace="models",
        uid="00000000-0000-4000-8000-000000000001",
        revision="0123456789",
        slot=0,
        role="serving",
    )
    return chosen.render_pod(chosen.resolve(inputs), identity)


def main() -> None:
    for name in NAMES:
        path = FOLDER / f"{name}.yaml"
        written, _, _ = path.read_text(encoding="utf-8").partition("\n---\n")
        resource, _ = resource_and_pod(name)
        pod = yaml.safe_dump(rendered(resource), sort_keys=False, width=120)
        path.write_text(f"{written.rstrip()}\n---\n{pod}", encoding="utf-8")


if __name__ == "__main__":
    main()
