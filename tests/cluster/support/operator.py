"""The operator as a program of its own, and VLMDeployments in a namespace, for tests on the real API server."""

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from controlplane import Api, AuditTrail, ControlPlane, wait_until
from installation import operator_kubeconfig, refused
from simengine import SimEngines

Object = dict[str, Any]

ROOT = Path(__file__).parents[3]
CRD = ROOT / "crds" / "vlmdeployments.vlm.dev.yaml"
GROUP = "/apis/vlm.dev/v1alpha1"


_trails: dict[Path, AuditTrail] = {}


@cache
def engines() -> SimEngines:
    """The engines at the addresses of all pods, idle unless a test has one busy. They end with the tests."""
    return SimEngines().__enter__()


def refused_calls() -> list[str]:
    """Calls for which operators had no right, on all control planes, since this was asked last."""
    return [call for log, trail in _trails.items() if log.exists() for call in refused(trail.news())]


def assert_permitted() -> None:
    """No operator may ask for what it has no right to: its list of permissions would lack something."""
    without_right = refused_calls()
    assert not without_right, "\n".join(["not in runtime/permissions.py:", *without_right])


def judge_calls(test: pytest.Item) -> None:
    """The same for one test, and what the fixtures `permitted` do after each; the marker `forbidden` allows it."""
    if test.get_closest_marker("forbidden"):
        refused_calls()
    else:
        assert_permitted()


@dataclass
class RunningOperator:
    """An operator that watches a control plane, with the account and the rights of an installation unless others are given."""

    control_plane: ControlPlane
    name: str
    arguments: tuple[str, ...] = ()
    kubeconfig: Path | None = None
    within: Sequence[str] = ()
    """A command that runs the program where it needs no kubeconfig."""
    program: tuple[str | Path, ...] = ("-m", "vlm_operator.cli.operator")
    """What Python runs."""
    log: Path = field(init=False)

    def __post_init__(self) -> None:
        _trails.setdefault(self.control_plane.audit_log, AuditTrail(self.control_plane.audit_log))

    def start(self) -> "RunningOperator":
        """Start it and wait until it is ready."""
        self.log = self.launch()
        wait_until(lambda: self.answer("/readyz")[0] == 200, f"{self.name} is ready")
        return self

    def launch(self) -> Path:
        """Start it without waiting; returns its log."""
        program = [sys.executable, *self.program, "run"]
        if not self.within:
            program.append(f"--kubeconfig={self.kubeconfig or operator_kubeconfig(self.control_plane)}")
        place = ["--health-host=127.0.0.1", "--health-port=0", f"--pod-proxy={engines().proxy_url}"]
        self.log = self.control_plane.start_program(self.name, [*self.within, *program, *place, *self.arguments])
        return self.log

    def stop(self) -> None:
        """End it with SIGTERM."""
        self.control_plane.stop_program(self.name)

    def text(self) -> str:
        """What it has logged."""
        return self.log.read_text(errors="replace")

    def answer(self, path: str) -> tuple[int, str]:
        """Status and body of a page of its health server; (0, reason) when it does not answer."""
        ports = re.findall(r"health and metrics on 127\.0\.0\.1:(\d+)", self.text())
        if not ports:
            return 0, "no port in the log yet"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{ports[-1]}{path}", timeout=5) as reply:  # loopback
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)


@contextmanager
def launching(plane: ControlPlane) -> Iterator[Callable[..., RunningOperator]]:
    """Launches operators by name, arguments and other fields, and ends in the end what is left of them."""
    launched: list[RunningOperator] = []

    def launch(name: str, *arguments: str, **how: Any) -> RunningOperator:
        operator = RunningOperator(plane, name, arguments, **how)
        operator.launch()
        launched.append(operator)
        return operator

    yield launch
    for operator in launched:
        operator.stop()


@dataclass(frozen=True, kw_only=True)
class Deployments:
    """The VLMDeployments of one namespace and what belongs to them."""

    control_plane: ControlPlane
    namespace: str

    @property
    def api(self) -> Api:
        """The API server, as administrator."""
        return self.control_plane.api

    def create(self, name: str = "qwen", **spec: Any) -> Object:
        """Create a small deployment; `spec` replaces top-level fields of it."""
        body: Object = self.api.post(f"{GROUP}/namespaces/{self.namespace}/vlmdeployments", manifest(name, **spec))
        return body

    def get(self, name: str = "qwen") -> Object:
        """The deployment."""
        found: Object = self.api.get(self._path(name))
        return found

    def patch(self, name: str = "qwen", **spec: Any) -> Object:
        """Merge into the spec."""
        return self.merge(name, {"spec": spec})

    def merge(self, name: str, patch: Object) -> Object:
        """Merge into the object."""
        found: Object = self.api.merge_patch(self._path(name), patch)
        return found

    def delete(self, name: str = "qwen", *, cascade: str = "Background") -> None:
        """Delete it."""
        self.api.delete(self._path(name), {"propagationPolicy": cascade})

    def status(self, name: str = "qwen") -> Object:
        """Its status, empty before the operator has seen it."""
        found: Object = self.get(name).get("status") or {}
        return found

    def condition(self, kind: str, name: str = "qwen") -> Object:
        """One of its conditions, empty when it is not there; only as judged by the current generation."""
        resource = self.get(name)
        conditions = (resource.get("status") or {}).get("conditions") or []
        current = (resource.get("status") or {}).get("observedGeneration") == resource["metadata"]["generation"]
        return next((c for c in conditions if current and c["type"] == kind), {})

    def until(
        self, kind: str, status: str, *, reason: str | None = None, name: str = "qwen", timeout_seconds: float = 60
    ) -> Object:
        """Wait until a condition has that status (and reason), and return it."""

        def look() -> Object | None:
            found = self.condition(kind, name)
            wanted = found.get("status") == status and reason in {None, found.get("reason")}
            return found if wanted else None

        what = f"{kind} of {name} is {status} {reason or ''}; it is {json.dumps(self.status(name))[:1500]}"
        found = wait_until(look, what, timeout_seconds=timeout_seconds)
        assert found
        return found

    def until_ready(self, name: str = "qwen", *, timeout_seconds: float = 60) -> None:
        """Wait until it is Ready for its current generation."""
        self.until("Ready", "True", name=name, timeout_seconds=timeout_seconds)

    def children(self, kind: str, name: str = "qwen", *, group: str = "/api/v1") -> dict[str, Object]:
        """Objects with its label, by name."""
        items = self.api.get(f"{group}/namespaces/{self.namespace}/{kind}?labelSelector=vlm.dev/deployment={name}")[
            "items"
        ]
        return {item["metadata"]["name"]: item for item in items}

    def pods(self, name: str = "qwen") -> dict[str, Object]:
        """Its pods that are not terminating, by name."""
        return {
            key: pod for key, pod in self.children("pods", name).items() if "deletionTimestamp" not in pod["metadata"]
        }

    def ready_pods(self, name: str = "qwen") -> set[str]:
        """Names of its ready pods."""
        return {
            key
            for key, pod in self.pods(name).items()
            if any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ()))
        }

    def until_pods(
        self, holds: Callable[[dict[str, Object]], Any], what: str, *, name: str = "qwen"
    ) -> dict[str, Object]:
        """Wait until `holds` is true of its live pods, and return them."""

        def look() -> tuple[dict[str, Object]] | None:
            pods = self.pods(name)
            return (pods,) if holds(pods) else None

        found = wait_until(look, f"the pods of {name} {what}")
        assert found
        return found[0]

    def revision(self, name: str = "qwen") -> str:
        """The wanted revision."""
        return str(self.status(name).get("updatedRevision"))

    def events(self, name: str = "qwen") -> list[Object]:
        """Events about it."""
        items = self.api.get(f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")["items"]
        return [e for e in items if e["regarding"]["kind"] == "VLMDeployment" and e["regarding"]["name"] == name]

    def core(self, kind: str, name: str = "") -> str:
        """Path of core objects in the namespace."""
        return f"/api/v1/namespaces/{self.namespace}/{kind}" + (f"/{name}" if name else "")

    def annotate_pod(self, name: str, **notes: str) -> None:
        """Steer the imitation of a pod; underscores stand for dashes."""
        annotations = {f"sim.vlm.dev/{key.replace('_', '-')}": value for key, value in notes.items()}
        self.api.merge_patch(self.core("pods", name), {"metadata": {"annotations": annotations}})

    def _path(self, name: str) -> str:
        return f"{GROUP}/namespaces/{self.namespace}/vlmdeployments/{name}"


def manifest(name: str, **spec: Any) -> Object:
    """A small valid VLMDeployment on one GPU; `spec` replaces top-level fields."""
    base = {
        "model": {"name": "Qwen/Qwen2.5-VL-7B-Instruct", "quantization": "AWQ"},
        "weights": {"persistentVolumeClaim": {"claimName": "models"}},
        "multimodal": {"maxPixels": 1003520},
        "podTemplate": {"resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}},
    }
    return {
        "apiVersion": "vlm.dev/v1alpha1",
        "kind": "VLMDeployment",
        "metadata": {"name": name},
        "spec": {**base, **spec},
    }


def cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `vlm-operator` to its end."""
    command = [sys.executable, "-m", "vlm_operator.cli.operator", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
