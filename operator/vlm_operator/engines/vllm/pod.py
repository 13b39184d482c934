"""The values that the pod template shows. What the pod looks like, and why, is in `templates/vllm/pod.yaml.j2`."""

from typing import Any

from vlm_operator.api import names
from vlm_operator.api.scalars import canonical_quantity, quantity_bytes
from vlm_operator.engines.base import HTTP_PORT, PodIdentity, Resolved
from vlm_operator.engines.rendering import render
from vlm_operator.engines.vllm.arguments import CHAT_TEMPLATE_PATH, MODEL_PATH
from vlm_operator.engines.vllm.command_line import literal
from vlm_operator.engines.vllm.observing import drain
from vlm_operator.engines.vllm.probes import health_probe, verification_probe
from vlm_operator.engines.vllm.resources import gpu_count, resources
from vlm_operator.engines.vllm.scheduling import affinity, spread, tolerations
from vlm_operator.engines.vllm.values import served_names, takes_images, whole_seconds

DEFAULT_USER = 10001
_GIBIBYTE = 2**30
_DEFAULT_PROCESSOR_CACHE = "4Gi"


def render_pod(template: str, resolved: Resolved, identity: PodIdentity) -> dict[str, Any]:
    """The manifest of one replica's pod. Raises ValueError when the weights are of a kind that is not supported yet."""
    return render(template, context(resolved, identity))


def context(resolved: Resolved, identity: PodIdentity) -> dict[str, Any]:
    """Everything that the template shows, as text, numbers, lists and dicts."""
    inputs = resolved.inputs
    claim = inputs.weights.persistent_volume_claim
    if claim is None:
        raise ValueError("only weights on a persistent volume claim are supported")
    wanted = plain(inputs.pod_template)
    metadata = wanted.get("metadata", {})
    startup_seconds = whole_seconds(inputs.engine.startup_timeout)
    ending = drain(resolved.engine_version)
    verifies = inputs.engine.verification == "Request"
    chat_template = inputs.model.chat_template
    labels = names.pod_labels(identity.deployment, role=identity.role, revision=identity.revision, slot=identity.slot)
    return {
        "name": identity.name,
        "namespace": identity.namespace,
        "labels": metadata.get("labels", {}) | labels,
        "annotations": metadata.get("annotations", {}),
        "owner": names.owner_reference(identity.deployment, identity.uid),
        "wanted": wanted,
        "security": {"runAsUser": DEFAULT_USER, "runAsGroup": DEFAULT_USER, "fsGroup": DEFAULT_USER}
        | wanted.get("securityContext", {}),
        "tolerations": tolerations(wanted.get("tolerations", []), inputs.gpu.resource_name),
        "affinity": affinity(wanted.get("affinity", {}), inputs.gpu.products),
        "spread": spread(wanted.get("topologySpreadConstraints", []), identity.deployment),
        "image": resolved.image,
        "arguments": [literal(word) for word in resolved.args],
        "environment": [_environment_variable(plain(variable)) for variable in inputs.engine.env],
        "port": HTTP_PORT,
        "resources": resources(wanted.get("resources", {}), resolved),
        "leave_seconds": ending.leave_seconds,
        "grace_seconds": ending.grace_seconds(whole_seconds(inputs.drain.timeout)),
        "startup_seconds": startup_seconds,
        "startup": verification_probe(startup_seconds) if verifies else health_probe(startup_seconds),
        "verifies": verifies,
        "verification": _verification_arguments(resolved),
        "scripts_name": names.scripts_name(identity.deployment),
        "model_path": MODEL_PATH,
        "claim": plain(claim),
        "chat_template": plain(chat_template.config_map_key_ref) if chat_template else None,
        "chat_template_path": CHAT_TEMPLATE_PATH,
        "shared_memory": shared_memory(resolved),
    }


def shared_memory(resolved: Resolved) -> str:
    """Size of /dev/shm: 1Gi per GPU for NCCL and vLLM's own queues, and room for the processor cache.

    vLLM asks for 160 MiB before it starts, and the 64 MiB that a container has by default make NCCL fail; the
    processor cache can be moved there by an argument. The size is only a ceiling: memory counts, against the limit of
    the container, when it is used.
    """
    cache = resolved.inputs.multimodal.processor_cache or _DEFAULT_PROCESSOR_CACHE
    return canonical_quantity(str(gpu_count(resolved) * _GIBIBYTE + quantity_bytes(cache)))


def plain(value: Any) -> Any:
    """A part of the resource as plain data, by its names on the wire and without what was not given."""
    return {} if value is None else value.model_dump(by_alias=True, exclude_defaults=True)


def _environment_variable(variable: dict[str, Any]) -> dict[str, Any]:
    return variable | ({"value": literal(variable["value"])} if "value" in variable else {})


def _verification_arguments(resolved: Resolved) -> list[str]:
    words = ["--model", served_names(resolved.inputs)[0], "--port", str(HTTP_PORT)]
    return words if takes_images(resolved.inputs) else [*words, "--text-only"]
