"""The smallest engine that keeps the contract: what a second one has to bring, and nothing of the first."""

from typing import Any

from vlm_operator.api.findings import Finding
from vlm_operator.api.names import owner_reference, pod_labels
from vlm_operator.api.scalars import duration_seconds
from vlm_operator.engines.base import CONTAINER, HTTP_PORT, PodIdentity, PodInputs, Resolved
from vlm_operator.engines.drain import Draining
from vlm_operator.engines.failures import Cause, Failure, Rule, Waiting, first_failure
from vlm_operator.engines.metrics import Metrics
from vlm_operator.engines.question import Question
from vlm_operator.sizing.engine_facts import EngineFacts

BROKEN = Cause(
    reason="ToyBroken", meaning="it broke", seen_in="message", advice="mend the toy", waiting=Waiting.IS_VAIN
)
RULES = (Rule(("toy: broken",), BROKEN),)


class Toy:
    """It runs one version, takes any argument, and counts what it still works on."""

    template = "toy/pod.yaml.j2"

    def version(self, inputs: PodInputs) -> str:
        return inputs.engine.version or "1.0"

    def check(self, inputs: PodInputs, *, having: tuple[str, ...] | None = None) -> tuple[Finding, ...]:
        if self.version(inputs) == "1.0":
            return ()
        advice = f"set it to {having[-1]}" if having else "serve another model" if having == () else "leave it out"
        return (
            Finding(
                reason="UnsupportedVersion",
                severity="Error",
                field="spec.engine.version",
                message=f"is {self.version(inputs)}, and there is a toy 1.0 alone",
                advice=advice,
            ),
        )

    def sizing(self, inputs: PodInputs) -> EngineFacts:
        return EngineFacts(name="Toy", version=self.version(inputs), memory_as=(0, 33, 0), supported=("1.0",))

    def resolve(self, inputs: PodInputs, *, tensor_parallel: int | None = None) -> Resolved:
        given = inputs.parallelism.tensor
        tensor = given if isinstance(given, int) else tensor_parallel
        if tensor is None:
            raise ValueError("the degree is missing")
        return Resolved(
            inputs=inputs,
            engine_version=self.version(inputs),
            image=inputs.engine.image or "registry.example.com/toy:1.0",
            tensor_parallel=tensor,
            host_memory="1Gi",
            args=["--model", "/weights", *inputs.engine.args],
        )

    def render_pod(self, resolved: Resolved, identity: PodIdentity) -> dict[str, Any]:
        inputs, draining = resolved.inputs, self.drain(resolved.engine_version)
        assert inputs.weights.persistent_volume_claim
        claim = {"claimName": inputs.weights.persistent_volume_claim.claim_name}
        degrees = inputs.parallelism
        gpus = {inputs.gpu.resource_name: str(resolved.tensor_parallel * degrees.pipeline * degrees.data)}
        probe = {"httpGet": {"path": "/up", "port": "http"}, "periodSeconds": 5, "failureThreshold": 360}
        container = {
            "name": CONTAINER,
            "image": resolved.image,
            "command": ["toy"],
            "args": resolved.args,
            "ports": [{"name": "http", "containerPort": HTTP_PORT}],
            "startupProbe": probe,
            "readinessProbe": probe,
            "lifecycle": {"preStop": {"sleep": {"seconds": draining.leave_seconds}}},
            "resources": {"requests": gpus, "limits": gpus},
            "volumeMounts": [{"name": "weights", "mountPath": "/weights"}],
        }
        labels = pod_labels(identity.deployment, role=identity.role, revision=identity.revision, slot=identity.slot)
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": identity.name,
                "namespace": identity.namespace,
                "labels": labels,
                "ownerReferences": [owner_reference(identity.deployment, identity.uid)],
            },
            "spec": {
                "containers": [container],
                "volumes": [{"name": "weights", "persistentVolumeClaim": claim}],
                "terminationGracePeriodSeconds": draining.grace_seconds(
                    -int(-duration_seconds(inputs.drain.timeout) // 1)
                ),
            },
        }

    def scripts(self) -> dict[str, str]:
        return {}

    def metrics(self, version: str) -> Metrics:
        return Metrics(
            path="/stats",
            model_label="model",
            running=("toy_running",),
            waiting=("toy_waiting", f"toy_{version.replace('.', '_')}_waiting"),
            kv_cache_usage=("toy_cache",),
            generated_tokens=("toy_tokens_total",),
            cache_info=("toy_cache_info",),
            cache_tokens=lambda labels: int(labels["tokens"]),
        )

    def drain(self, version: str) -> Draining:
        assert version
        return Draining(
            leave_seconds=3,
            teardown_seconds=1,
            timeout_flag=None,
            load_path="/busy",
            in_flight=lambda answer: int(answer) if answer.isdecimal() and answer.isascii() else None,
        )

    def question(self, version: str, *, model: str) -> Question:
        assert version
        return Question(path="/say", body=f'"{model}"', wrong=lambda answer: answer != "yes", health_path="/up")

    def failure(self, exit_code: int | None, text: str) -> Failure | None:
        assert exit_code != 0 or text is not None
        return first_failure(RULES, text.splitlines())
