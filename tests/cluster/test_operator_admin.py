"""What the admin mounts into the operator shapes real pods and real verdicts, and cannot stop the operator."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from cluster.support.operator import CRD, Deployments, RunningOperator, cli
from controlplane import ControlPlane, Timing, l4
from installation import operator_kubeconfig

pytestmark = pytest.mark.cluster

TEMPLATE = "vllm/pod.yaml.j2"
BUILT_IN = (files("vlm_operator.engines") / "templates" / TEMPLATE).read_text()
OURS = BUILT_IN.replace(
    "  annotations: {{ annotations }}", "  annotations: {{ dict(annotations, **{'example.com/ours': 'yes'}) }}"
).replace("  volumes:\n", "  - name: logs\n    image: example.com/logs:1\n  volumes:\n")
LATER = OURS + "{% if grace_seconds == 107 %}x: {{ missing }}{% endif %}\n"
CATALOGUE = """
models:
- hfId: our/vl-9b
  family: Ours
  architectureName: Qwen2_5_VLForConditionalGeneration
  totalParameters: 9000000000
  architecture:
    {name: Qwen2_5_VLForConditionalGeneration, layers: 28, hiddenSize: 3456, attentionHeads: 27, keyValueHeads: 3,
     intermediateSize: 18944, vocabularySize: 152064}
"""


@pytest.fixture(scope="module")
def own_plane() -> Iterator[ControlPlane]:
    """A control plane of this module's own: its operators follow one another."""
    with ControlPlane(timing=Timing()) as cluster:
        cluster.add_gpu_nodes(l4("gpu-l4", gpus=8))
        cluster.install_crd(CRD)
        yield cluster


def _namespace(plane: ControlPlane, name: str) -> Deployments:
    plane.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    plane.bound_claim(name, "models")
    return Deployments(control_plane=plane, namespace=name)


def _mounted(folder: Path, name: str, text: str) -> Path:
    """A folder as the kubelet mounts a ConfigMap."""
    (folder / "..1").mkdir(parents=True)
    (folder / "..1" / name).write_text(text)
    (folder / "..data").symlink_to("..1")
    (folder / name).symlink_to(Path("..data") / name)
    return folder


def _states(operator: RunningOperator) -> dict[str, str]:
    lines = operator.answer("/metrics")[1].splitlines()
    found = [line for line in lines if line.startswith("vlm_operator_template_overrides{")]
    return {line.partition('state="')[2].partition('"')[0]: line.split()[-1] for line in found}


def test_models_and_templates_of_the_admin_are_used(own_plane: ControlPlane, tmp_path: Path) -> None:
    catalogue = _mounted(tmp_path / "catalogue", "ours.yaml", CATALOGUE)
    templates = _mounted(tmp_path / "templates", "vllm-pod.yaml.j2", LATER)
    deployments = _namespace(own_plane, "used")
    operator = RunningOperator(own_plane, "used", (f"--catalogue={catalogue}", f"--templates={templates}")).start()
    assert _states(operator) == {"used": "1.0", "failed": "0.0"}

    deployments.create()
    deployments.until_ready()
    (pod,) = deployments.pods().values()
    assert pod["metadata"]["annotations"]["example.com/ours"] == "yes"
    assert [container["name"] for container in pod["spec"]["containers"]] == ["engine", "logs"]

    # 27 heads: a degree that the built-in catalogue knows nothing against.
    deployments.create("heads", model={"name": "our/vl-9b"}, parallelism={"tensor": 2})
    refused = deployments.until("Accepted", "False", name="heads")
    assert "27" in refused["message"]

    # A resource that no probe is like: the pod is made all the same.
    deployments.create("later", drain={"timeout": "77s"})
    deployments.until_ready("later")
    (pod,) = deployments.pods("later").values()
    assert [container["name"] for container in pod["spec"]["containers"]] == ["engine"]
    assert "is made from the built-in template vllm/pod.yaml.j2, its override fails: line " in operator.text()
    operator.stop()


def test_a_broken_template_leaves_the_operator_at_work(own_plane: ControlPlane, tmp_path: Path) -> None:
    templates = _mounted(tmp_path / "templates", "vllm-pod.yaml.j2", OURS + "x: {{ nmae }}\n")
    deployments = _namespace(own_plane, "broken")
    operator = RunningOperator(own_plane, "broken", (f"--templates={templates}",)).start()
    deployments.create()
    deployments.until_ready()
    (pod,) = deployments.pods().values()
    assert "example.com/ours" not in pod["metadata"].get("annotations", {})
    assert f"{templates}/vllm-pod.yaml.j2 is not: probe minimal: line " in operator.text()
    assert "'nmae' is undefined" in operator.text()
    assert _states(operator) == {"used": "0.0", "failed": "1.0"}
    # Its successor has another template: nothing that serves is replaced.
    operator.stop()
    templates = _mounted(tmp_path / "better", "vllm-pod.yaml.j2", OURS)
    operator = RunningOperator(own_plane, "better", (f"--templates={templates}",)).start()
    before = set(deployments.pods())
    deployments.patch(replicas=2)
    deployments.until_pods(lambda pods: len(pods) == 2, "are two")
    deployments.until_ready()
    assert before < set(deployments.pods())
    with_logs = {name for name, pod in deployments.pods().items() if len(pod["spec"]["containers"]) == 2}
    assert with_logs == set(deployments.pods()) - before
    operator.stop()


def test_a_wrong_catalogue_is_told_and_ends_it(own_plane: ControlPlane, tmp_path: Path) -> None:
    catalogue = _mounted(tmp_path / "catalogue", "ours.yaml", CATALOGUE.replace("layers: 28", "layers: 0"))
    done = cli("run", f"--kubeconfig={operator_kubeconfig(own_plane)}", "--health-port=0", f"--catalogue={catalogue}")
    assert done.returncode == 1
    sentence = "ours.yaml: models[0].architecture.layers: is 0 but must be at least 1"
    assert done.stderr.splitlines()[-1] == f"vlm-operator: {catalogue}/{sentence}"
    assert "Traceback" not in done.stderr
