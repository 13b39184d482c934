"""Helm, and the chart as it renders, for tests."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from controlplane import ControlPlane, wait_until

Object = dict[str, Any]

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "vlm-operator"
SAMPLE = ROOT / "manifests/samples/qwen2.5-vl-7b-awq.yaml"
NAME = "vlm-operator"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/vlmdeployments.vlm.dev"


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
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=120, check=False)

    def __call__(self, *arguments: str | Path) -> str:
        """Run it and return what it prints; it must succeed."""
        done = self.run(*arguments)
        assert done.returncode == 0, f"helm {' '.join(map(str, arguments))}: {done.stderr}{done.stdout}"
        return done.stdout

    def template(
        self, *arguments: str | Path, name: str = NAME, values: Mapping[str, Any] | None = None
    ) -> list[Object]:
        """The objects that the chart makes of the values."""
        file = self.home / "values.yaml"
        file.write_text(yaml.safe_dump(dict(values or {})))
        text = self("template", name, CHART, "--namespace=vlm-system", "--values", file, *arguments)
        return [document for document in parsed(text) if document]


class Release:
    """The release of a namespace, and what it made."""

    def __init__(self, plane: ControlPlane, helm: Helm, namespace: str) -> None:
        self.plane = plane
        self.helm = helm
        self.namespace = namespace

    def run(self, verb: str, *arguments: str | Path) -> str:
        """Run a command of helm about it."""
        return self.helm(verb, NAME, *arguments, "--namespace", self.namespace)

    def get(self, path: str) -> Any:
        """Read an object of its namespace."""
        group, _, rest = path.partition(" ")
        return self.plane.api.get(f"{group}/namespaces/{self.namespace}/{rest}")

    @property
    def deployment(self) -> Object:
        """The Deployment of the operator."""
        return dict(self.get(f"/apis/apps/v1 deployments/{NAME}"))

    def live(self, wanted: Object) -> Object:
        """An object as the API server has it."""
        place = [wanted["kind"], wanted["metadata"]["name"], "--namespace", self.namespace]
        (found,) = parsed(self.plane.kubectl("get", *place, "--output=json"))
        return dict(found)

    def uid_of_the_sample(self) -> str:
        """The identity of a user's object."""
        return str(self.get("/apis/vlm.dev/v1alpha1 vlmdeployments/qwen25-vl-7b")["metadata"]["uid"])

    def pods(self) -> set[str]:
        """The uids of the operator's pods that are there to stay."""
        found = self.get(f"/api/v1 pods?labelSelector=app.kubernetes.io/name={NAME}")["items"]
        return {pod["metadata"]["uid"] for pod in found if "deletionTimestamp" not in pod["metadata"]}

    def until_two_pods(self) -> set[str]:
        """Wait until the rollout is over; returns the pods."""
        wait_until(lambda: len(self.pods()) == 2, "there are two operators")
        return self.pods()


def parsed(text: str) -> list[Any]:
    """The documents in a text. The loader in C makes the CRD a matter of milliseconds."""
    return list(yaml.load_all(text, Loader=yaml.CSafeLoader))


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
