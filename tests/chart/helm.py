"""Helm, and the chart as it renders, for tests."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "vlm-operator"


@dataclass(frozen=True, kw_only=True)
class Helm:
    """The helm command with a home of its own."""

    program: Path
    home: Path
    kubeconfig: Path

    @property
    def environment(self) -> dict[str, str]:
        """What helm is told by its environment."""
        homes = {f"HELM_{name}_HOME": str(self.home / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
        return {"KUBECONFIG": str(self.kubeconfig), "PATH": "/usr/bin:/bin", "HOME": str(self.home), **homes}

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run it to its end, which may be a failure."""
        command = [self.program, *arguments]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=120, check=False
        )

    def __call__(self, *arguments: str | Path) -> str:
        """Run it and return what it prints; it must succeed."""
        done = self.run(*arguments)
        assert done.returncode == 0, f"helm {' '.join(map(str, arguments))}: {done.stderr}{done.stdout}"
        return done.stdout

    def template(self, *arguments: str | Path, values: Mapping[str, Any] | None = None) -> list[Object]:
        """The objects that the chart makes of the values."""
        file = self.home / "values.yaml"
        file.write_text(yaml.safe_dump(dict(values or {})))
        text = self("template", "vlm-operator", CHART, "--namespace=vlm-system", "--values", file, *arguments)
        return [document for document in yaml.safe_load_all(text) if document]


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    """The objects of a kind."""
    return [found for found in objects if found["kind"] == kind]


def only(objects: list[Object], kind: str) -> Object:
    """The one object of a kind."""
    (found,) = of_kind(objects, kind)
    return found


def container(deployment: Object) -> Object:
    """The operator in its Deployment."""
    (found,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(found)
