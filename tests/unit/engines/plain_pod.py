"""The pod once more, built from plain dicts: what the template is held to.

Written apart from the product on purpose. It shares no code with it but the names of labels and the arguments.
"""

import math
from typing import Any

from vlm_operator.api.scalars import duration_seconds, quantity_value
from vlm_operator.engines.base import PodIdentity, Resolved

Fields = dict[str, Any]

ENVIRONMENT = {
    "HOME": "/cache",
    "USER": "vllm",
    "XDG_CACHE_HOME": "/cache/xdg",
    "XDG_CONFIG_HOME": "/cache/xdg-config",
    "HF_HOME": "/cache/huggingface",
    "VLLM_CACHE_ROOT": "/cache/vllm",
    "VLLM_CONFIG_ROOT": "/cache/vllm-config",
    "TRITON_CACHE_DIR": "/cache/triton",
    "TORCHINDUCTOR_CACHE_DIR": "/cache/torchinductor",
    "NUMBA_CACHE_DIR": "/cache/numba",
    "OUTLINES_CACHE_DIR": "/cache/outlines",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_MEDIA_URL_ALLOW_REDIRECTS": "0",
}
SERVE = (
    'PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}/scripts" exec vllm serve "$@" --middleware vlm_draining.CloseWhileDraining'
)


def plain_pod(resolved: Resolved, identity: PodIdentity) -> Fields:
    """The manifest that the template must give."""
    wanted = resolved.inputs.model_dump(by_alias=True, exclude_defaults=True).get("podTemplate", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(wanted.get("metadata", {}), identity),
        "spec": _spec(resolved, identity, wanted),
    }


def _metadata(wanted: Fields, identity: PodIdentity) -> Fields:
    deployment = identity.deployment
    return {
        "name": f"{deployment}-{identity.revision}-{identity.slot}",
        "namespace": identity.namespace,
        "labels": {
            **wanted.get("labels", {}),
            "app.kubernetes.io/name": "vlm",
            "app.kubernetes.io/component": "engine",
            "app.kubernetes.io/managed-by": "vlm-operator",
            "app.kubernetes.io/part-of": deployment,
            "vlm.dev/deployment": deployment,
            "vlm.dev/role": identity.role,
            "vlm.dev/revision": identity.revision,
            "vlm.dev/slot": str(identity.slot),
        },
        "annotations": wanted.get("annotations", {}),
        "ownerReferences": [
            {
                "apiVersion": "vlm.dev/v1alpha1",
                "kind": "VLMDeployment",
                "name": deployment,
                "uid": identity.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


def _spec(resolved: Resolved, identity: PodIdentity, wanted: Fields) -> Fields:
    inputs = resolved.inputs
    spec: Fields = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 10 + math.ceil(duration_seconds(inputs.drain.timeout)) + 20,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "tolerations": _tolerations(wanted.get("tolerations", []), inputs.gpu.resource_name),
        "topologySpreadConstraints": _spread(wanted.get("topologySpreadConstraints"), identity.deployment),
        "securityContext": _security(wanted.get("securityContext", {})),
        "containers": [_container(resolved, wanted)],
        "volumes": _volumes(resolved, identity),
    }
    for field in ("serviceAccountName", "priorityClassName", "runtimeClassName", "imagePullSecrets", "nodeSelector"):
        if field in wanted:
            spec[field] = wanted[field]
    if affinity := _affinity(wanted.get("affinity", {}), inputs.gpu.products):
        spec["affinity"] = affinity
    return spec


def _tolerations(wanted: list[Fields], gpu: str) -> list[Fields]:
    for one in wanted:
        if one.get("key") == gpu or ("key" not in one and one.get("effect", "NoSchedule") == "NoSchedule"):
            return wanted
    return [*wanted, {"key": gpu, "operator": "Exists", "effect": "NoSchedule"}]


def _spread(wanted: list[Fields] | None, deployment: str) -> list[Fields]:
    ours = {"matchLabels": {"vlm.dev/deployment": deployment}}
    soft = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    return [one if "labelSelector" in one else {**one, "labelSelector": ours} for one in wanted or [soft]]


def _security(wanted: Fields) -> Fields:
    defaults = {"runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10001, "fsGroupChangePolicy": "OnRootMismatch"}
    return {**defaults, **wanted, "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def _affinity(wanted: Fields, products: list[str]) -> Fields:
    if not products:
        return wanted
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    product = {"key": "nvidia.com/gpu.product", "operator": "In", "values": products}
    nodes = wanted.get("nodeAffinity", {})
    expressions = [term["matchExpressions"] for term in nodes.get(required, {}).get("nodeSelectorTerms", [])] or [[]]
    terms = [{"matchExpressions": [*one, product]} for one in expressions]
    return {**wanted, "nodeAffinity": {**nodes, required: {"nodeSelectorTerms": terms}}}


def _container(resolved: Resolved, wanted: Fields) -> Fields:
    inputs = resolved.inputs
    variables = [{"name": name, "value": value} for name, value in ENVIRONMENT.items()]
    seconds = math.ceil(duration_seconds(inputs.engine.startup_timeout))
    variables.append({"name": "VLLM_ENGINE_READY_TIMEOUT_S", "value": str(seconds)})
    health = {"path": "/health", "port": "http"}
    return {
        "name": "engine",
        "image": resolved.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", SERVE, "vllm"],
        "args": [word.replace("$", "$$") for word in resolved.args],
        "env": variables + [_variable(one.model_dump(by_alias=True, exclude_none=True)) for one in inputs.engine.env],
        "ports": [{"name": "http", "containerPort": 8000, "protocol": "TCP"}],
        "startupProbe": _startup_probe(resolved, seconds),
        "readinessProbe": {"httpGet": health, "periodSeconds": 5, "timeoutSeconds": 15, "failureThreshold": 10},
        "lifecycle": {"preStop": {"sleep": {"seconds": 10}}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": _resources(resolved, wanted.get("resources", {})),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": _mounts(resolved),
    }


def _startup_probe(resolved: Resolved, seconds: int) -> Fields:
    engine = resolved.inputs.engine
    if engine.verification == "Health":
        return {
            "httpGet": {"path": "/health", "port": "http"},
            "periodSeconds": 5,
            "timeoutSeconds": 5,
            "failureThreshold": math.ceil(seconds / 5),
            "terminationGracePeriodSeconds": 5,
        }
    period = math.ceil(seconds / math.ceil(seconds / 60))
    command = ["python3", "-I", "-S", "/scripts/verify_engine.py"]
    command += ["--model", resolved.inputs.model.name, "--port", "8000"]
    limits = resolved.inputs.multimodal.limits_per_prompt
    if limits is not None and limits.image == 0:
        command.append("--text-only")
    return {
        "exec": {"command": [*command, "--seconds", str(period - min(5, period // 2))]},
        "periodSeconds": period,
        "timeoutSeconds": period,
        "failureThreshold": math.ceil(seconds / period),
        "terminationGracePeriodSeconds": 5,
    }


def _gpus(resolved: Resolved) -> int:
    return resolved.tensor_parallel * resolved.inputs.parallelism.pipeline * resolved.inputs.parallelism.data


def _resources(resolved: Resolved, wanted: Fields) -> Fields:
    gpus = _gpus(resolved)
    gpu = {resolved.inputs.gpu.resource_name: str(gpus)}
    limits = wanted.get("limits", {})
    defaults = {"cpu": str(4 * gpus), "memory": resolved.host_memory}
    defaults = {name: quantity for name, quantity in defaults.items() if name not in limits}
    return {"requests": {**defaults, **wanted.get("requests", {}), **gpu}, "limits": {**limits, **gpu}}


def _mounts(resolved: Resolved) -> list[Fields]:
    claim = resolved.inputs.weights.persistent_volume_claim
    assert claim is not None
    weights = {"name": "weights", "mountPath": "/models", "readOnly": True}
    if claim.path:
        weights["subPath"] = claim.path
    places = {"shm": "/dev/shm", "cache": "/cache", "tmp": "/tmp"}  # noqa: S108 # paths in the container
    mounts: list[Fields] = [weights, *({"name": name, "mountPath": path} for name, path in places.items())]
    mounts.append({"name": "scripts", "mountPath": "/scripts", "readOnly": True})
    mounts.append({"name": "podinfo", "mountPath": "/podinfo", "readOnly": True})
    if resolved.inputs.model.chat_template:
        mounts.append({"name": "chat-template", "mountPath": "/chat-template", "readOnly": True})
    return mounts


def _volumes(resolved: Resolved, identity: PodIdentity) -> list[Fields]:
    inputs = resolved.inputs
    claim = inputs.weights.persistent_volume_claim
    assert claim is not None
    volumes: list[Fields] = [
        {"name": "weights", "persistentVolumeClaim": {"claimName": claim.claim_name, "readOnly": True}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": _shared_memory(resolved)}},
        {"name": "cache", "emptyDir": {"sizeLimit": "10Gi"}},
        {"name": "tmp", "emptyDir": {"sizeLimit": "4Gi"}},
    ]
    scripts = {"name": f"{identity.deployment}-engine-scripts", "defaultMode": 0o555, "optional": False}
    volumes.append({"name": "scripts", "configMap": scripts})
    role = {"path": "role", "fieldRef": {"fieldPath": "metadata.labels['vlm.dev/role']"}}
    volumes.append({"name": "podinfo", "downwardAPI": {"items": [role]}})
    if inputs.model.chat_template:
        source = inputs.model.chat_template.config_map_key_ref
        items = [{"key": source.key, "path": "chat_template.jinja"}]
        volumes.append({"name": "chat-template", "configMap": {"name": source.name, "items": items, "optional": False}})
    return volumes


def _shared_memory(resolved: Resolved) -> str:
    """1Gi per GPU and the processor cache, with the largest binary suffix that divides it."""
    size = _gpus(resolved) * 2**30 + int(quantity_value(resolved.inputs.multimodal.processor_cache or "4Gi"))
    for power, suffix in ((40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")):
        if size % 2**power == 0:
            return f"{size // 2**power}{suffix}"
    return str(size)


def _variable(variable: dict[str, Any]) -> dict[str, Any]:
    return variable | ({"value": variable["value"].replace("$", "$$")} if "value" in variable else {})
