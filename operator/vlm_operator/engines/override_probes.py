"""Resources that between them take every way through the built-in templates: what an override must be able to render."""

from collections.abc import Iterator
from typing import Any

from vlm_operator.api.names import SERVING
from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.engines.base import Engine, PodIdentity, PodInputs, Resolved

_CLAIM = {"persistentVolumeClaim": {"claimName": "models"}}

SPECS: dict[str, dict[str, Any]] = {
    "minimal": {"model": {"name": "org/model"}, "weights": _CLAIM},
    "awq-on-two-gpus": {
        "model": {"name": "org/model-AWQ", "quantization": "AWQ", "maxModelLen": 32768},
        "weights": {"persistentVolumeClaim": {"claimName": "models", "path": "model-awq"}},
        "parallelism": {"tensor": 2},
        "multimodal": {"limitsPerPrompt": {"image": 4, "video": 1}, "processorCache": "8Gi"},
    },
    "everything-set": {
        "model": {
            "name": "org/model",
            "servedNames": ["model", "default"],
            "chatTemplate": {"configMapKeyRef": {"name": "chat-templates", "key": "model.jinja"}},
        },
        "weights": {"persistentVolumeClaim": {"claimName": "models", "path": "model"}},
        "engine": {
            "image": "registry.example.com/team/vllm:custom",
            "startupTimeout": "1h",
            "args": ["--seed", "7"],
            "env": [
                {"name": "LEVEL", "value": "info"},
                {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "engine-key", "key": "token"}}},
            ],
        },
        "gpu": {"products": ["NVIDIA-L4", "NVIDIA-A100-SXM4-80GB"]},
        "drain": {"timeout": "10m"},
        "podTemplate": {
            "metadata": {"labels": {"team": "vision"}, "annotations": {"example.com/note": "a note"}},
            "nodeSelector": {"pool": "gpu"},
            "tolerations": [{"key": "pool", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}],
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}
            ],
            "priorityClassName": "serving",
            "runtimeClassName": "nvidia",
            "imagePullSecrets": [{"name": "registry"}],
            "serviceAccountName": "engine",
            "securityContext": {
                "runAsUser": 2000,
                "runAsGroup": 3000,
                "fsGroup": 4000,
                "fsGroupChangePolicy": "Always",
                "supplementalGroups": [5000],
            },
            "resources": {
                "requests": {"cpu": "1500m", "memory": "48Gi"},
                "limits": {"memory": "64Gi", "example.com/nic": "1"},
            },
        },
    },
    "verified-by-health-on-amd": {
        "model": {"name": "org/model"},
        "weights": _CLAIM,
        "engine": {"verification": "Health", "image": "registry.example.com/vllm:rocm"},
        "gpu": {"resourceName": "amd.com/gpu"},
    },
    "text-like-yaml": {
        "model": {"name": "0x1F/1e3", "servedNames": ["null", "2026-11-30"]},
        "weights": {"persistentVolumeClaim": {"claimName": "1.0", "path": "-/=/1"}},
        "engine": {
            "args": ["--override-generation-config", '{"stop": ["}}", "{{ name }}", "{% raw %}"]}'],
            "env": [{"name": "YES", "value": "yes"}, {"name": "BLOCK", "value": "---\n- privileged: true\n"}],
        },
        "multimodal": {"limitsPerPrompt": {"image": 0}},
        "podTemplate": {"metadata": {"annotations": {"plain": "012", "note": "a: b\n  kind: Job\n"}}},
    },
}
"""By the name under which a failure is told."""


def identity(slot: int) -> PodIdentity:
    """Who the pods are."""
    return PodIdentity(
        deployment="probe",
        namespace="models",
        uid="00000000-0000-4000-8000-000000000001",
        revision="0123456789",
        slot=slot,
        role=SERVING,
    )


def probes(engine: Engine) -> Iterator[tuple[str, Resolved]]:
    """The probes by name, as an engine resolves them."""
    for name, spec in SPECS.items():
        yield name, engine.resolve(PodInputs.of(VLMDeploymentSpec.model_validate(spec)), tensor_parallel=1)
