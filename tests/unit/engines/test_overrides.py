"""An override may change the pod, save for what the operator relies on; whatever it does else is told in a sentence."""

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given, settings

from strategies import supported_specs
from vlm_operator.engines import rendering
from vlm_operator.engines.base import PodInputs
from vlm_operator.engines.override_probes import SPECS, identity, probes
from vlm_operator.engines.overrides import Override, OverrideError, forgiving, probed
from vlm_operator.engines.registry import engine
from vlm_operator.engines.rendering import Manifest, installed, template_names

TEMPLATE = "vllm/pod.yaml.j2"
BUILT_IN = (files("vlm_operator.engines") / "templates" / TEMPLATE).read_text()
SIDECAR = "  - name: logs\n    image: example.com/logs:1\n"


def changed(old: str, new: str) -> str:
    assert old in BUILT_IN
    return BUILT_IN.replace(old, new, 1)


WITH_SIDECAR = changed("  volumes:\n", SIDECAR + "  volumes:\n").replace(
    "  annotations: {{ annotations }}", "  annotations: {{ dict(annotations, ours='yes') }}"
)


def pod_of(name: str = "minimal", slot: int = 0) -> Manifest:
    vllm = engine("vLLM")
    return vllm.render_pod(dict(probes(vllm))[name], identity(slot))


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    with installed({}):
        yield


@pytest.mark.parametrize("template", template_names())
def test_a_copy_of_a_built_in_template_passes_and_changes_nothing(template: str) -> None:
    override = probed(template, (files("vlm_operator.engines") / "templates" / template).read_text())
    before = [pod_of(name) for name in SPECS]
    with installed({template: override.render}):
        assert [pod_of(name) for name in SPECS] == before


@pytest.mark.parametrize("template", template_names())
def test_the_probes_use_every_template(template: str) -> None:
    with pytest.raises(OverrideError, match=r"^probe "):
        probed(template, "kind: Job\n")


def test_an_override_is_used_until_another_is_installed() -> None:
    rendering.install({TEMPLATE: probed(TEMPLATE, WITH_SIDECAR).render})
    pod = pod_of("everything-set")
    assert [container["name"] for container in pod["spec"]["containers"]] == ["engine", "logs"]
    assert pod["metadata"]["annotations"] == {"example.com/note": "a note", "ours": "yes"}
    rendering.install({})
    assert len(pod_of("everything-set")["spec"]["containers"]) == 1


@settings(max_examples=40)
@given(supported_specs())
def test_an_override_that_passed_renders_any_resource(spec: Any) -> None:
    override = probed_once()
    vllm = engine("vLLM")
    resolved = vllm.resolve(PodInputs.of(spec), tensor_parallel=2)
    plain = vllm.render_pod(resolved, identity(3))
    with installed({TEMPLATE: override.render}):
        pod = vllm.render_pod(resolved, identity(3))
    assert pod["spec"].pop("containers")[0] == plain["spec"].pop("containers")[0]
    assert pod["spec"] == plain["spec"]
    assert pod["metadata"].pop("annotations") == plain["metadata"].pop("annotations") | {"ours": "yes"}
    assert pod["metadata"] == plain["metadata"]


_PROBED: list[Override] = []


def probed_once() -> Override:
    if not _PROBED:
        _PROBED.append(probed(TEMPLATE, WITH_SIDECAR))
    return _PROBED[0]


ALLOWED = {
    "a label more": changed("labels: {{ labels }}", "labels: {{ dict(labels, team='vision') }}"),
    "the network of the node": changed("  containers:\n", "  hostNetwork: true\n  containers:\n"),
    "a folder of the node": changed("  volumes:\n", "  volumes:\n  - {name: d, hostPath: {path: /dev}}\n"),
    "a privileged engine": changed("allowPrivilegeEscalation: false", "privileged: true"),
    "another grace": changed("{{ grace_seconds }}", "{{ grace_seconds + 20 }}"),
    "a date without quotes": changed("spec:\n", "spec:\n  schedulerName: 2026-11-30\n"),
    "another command": changed("exec vllm serve", "exec nsys profile vllm serve"),
}


@pytest.mark.parametrize("source", ALLOWED.values(), ids=ALLOWED.keys())
def test_what_is_the_business_of_the_admin_is_allowed(source: str) -> None:
    with installed({TEMPLATE: probed(TEMPLATE, source).render}):
        assert pod_of() != {}


LINES = BUILT_IN.count("\n")
LINE_OF_GROUPS = BUILT_IN.partition("supplementalGroups: {{")[0].count("\n") + 1
BROKEN = {
    "a statement without end": (BUILT_IN + "{% if affinity %}\n", f"line {LINES + 1}: Unexpected end of template"),
    "an unknown statement": ("{% dance %}", "line 1: Encountered unknown tag 'dance'"),
    "an undefined variable": (BUILT_IN + "x: {{ nmae }}\n", f"probe minimal: line {LINES + 1}: 'nmae' is undefined"),
    "another of some ways": (
        changed("supplementalGroups: {{ security.supplementalGroups }}", "a: {{ nmae }}"),
        f"probe everything-set: line {LINE_OF_GROUPS}: 'nmae' is undefined",
    ),
    "a way out of the sandbox": (
        BUILT_IN + "x: {{ ''.__class__.__mro__ }}\n",
        f"probe minimal: line {LINES + 1}: access to attribute '__class__' of 'str' object is unsafe",
    ),
    "a change of a value": (
        BUILT_IN + "x: {{ labels.update({}) }}\n",
        f"probe minimal: line {LINES + 1}: access to attribute 'update' of 'dict' object is unsafe",
    ),
    "a division by zero": (BUILT_IN + "x: {{ 1 / 0 }}\n", f"probe minimal: line {LINES + 1}: division by zero"),
    "another file": (
        BUILT_IN + "{% include 'a' %}",
        f"probe minimal: line {LINES + 1}: no loader for this environment",
    ),
    "a long loop": (
        BUILT_IN + "{% for i in range(999999) %}x{% endfor %}",
        f"probe minimal: line {LINES + 1}: Range too big",
    ),
    "a huge output": (
        BUILT_IN + "{% for i in range(99999) %}# a long comment\n{% endfor %}",
        "probe minimal: gives more than 1000000 characters",
    ),
    "an alias bomb": (
        "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdef", "bcdefg", strict=True)),
        "probe minimal: gives a text that holds more than 100000 values once its aliases are written out",
    ),
    "an endless recursion": (
        "{% macro f() %}{{ f() }}{% endmacro %}\n{{ f() }}",
        "probe minimal: line 1: is nested too deeply",
    ),
    "a value that contains itself": ("a: &a [*a]\n", "probe minimal: is nested too deeply"),
    "a part of a value": (
        changed("name: {{ name }}", "name: x-{{ name }}"),
        'probe minimal: metadata.name is "x-\\"probe-0123456789-0\\"" but must be "probe-0123456789-0"',
    ),
    "text that is not YAML": (
        changed("image: {{ image }}", "image: {{ image }}x"),
        "probe minimal: gives a text that is not YAML: line ",
    ),
    "nothing": ("{# nothing #}", "probe minimal: gives a text that is empty; it must hold one Pod"),
    "two documents": (BUILT_IN + "---\na: 1\n", "probe minimal: gives a text that holds 2 documents; give one Pod"),
    "a list": ("[1, 2]", "probe minimal: gives [1, 2]; it must give one Pod"),
    "not a Pod": (changed("kind: Pod", "kind: Job"), 'probe minimal: kind is "Job" but must be "Pod"'),
    "another version": (
        changed("apiVersion: v1", "apiVersion: v2"),
        'probe minimal: apiVersion is "v2" but must be "v1"',
    ),
    "another namespace": (
        changed("namespace: {{ namespace }}", "namespace: kube-system"),
        'probe minimal: metadata.namespace is "kube-system" but must be "models"',
    ),
    "no owner": (
        changed("  ownerReferences: {{ [owner] }}\n", ""),
        "probe minimal: metadata.ownerReferences is missing; it must be [{",
    ),
    "no labels": (changed("  labels: {{ labels }}\n", ""), "probe minimal: metadata.labels is missing"),
    "lost labels": (
        changed("labels: {{ labels }}", "labels: {team: vision}"),
        'probe minimal: metadata.labels[app.kubernetes.io/name] is missing; it must be "vlm"',
    ),
    "labels of the user that are lost": (
        changed("labels: {{ labels }}", "labels: {{ dict(labels, team='ours') }}"),
        'probe everything-set: metadata.labels[team] is "ours" but must be "vision"',
    ),
    "a label of the operator": (
        changed("labels: {{ labels }}", "labels: {{ dict(labels, **{'vlm.dev/x': 'y'}) }}"),
        "probe minimal: metadata.labels[vlm.dev/x] is not one of the operator's; labels of vlm.dev/ are its own",
    ),
    "no engine": (
        changed("- name: engine", "- name: motor"),
        "probe minimal: spec.containers has no containers named engine; it must have one",
    ),
    "two engines": (
        changed("  containers:\n", "  containers:\n  - {name: engine}\n"),
        "probe minimal: spec.containers has 2 containers named engine; it must have one",
    ),
    "another image": (
        changed("image: {{ image }}", "image: mine:1"),
        'probe minimal: image of container engine is "mine:1" but must be "vllm/vllm-openai:',
    ),
    "one argument less": (
        changed("for argument in arguments %}", "for argument in arguments[1:] %}"),
        "probe minimal: args of container engine is [",
    ),
    "no GPU": (
        changed("resources: {{ resources }}", "resources: {}"),
        'probe minimal: resources.requests[nvidia.com/gpu] of container engine is missing; it must be "1"',
    ),
    "always one GPU": (
        changed("resources: {{ resources }}", "resources: {requests: &r {nvidia.com/gpu: '1'}, limits: *r}"),
        'probe awq-on-two-gpus: resources.requests[nvidia.com/gpu] of container engine is "1" but must be "2"',
    ),
    "no probe of readiness": (
        changed("readinessProbe:", "livenessProbe:"),
        "probe minimal: readinessProbe of container engine is missing; a replica would get requests before it can",
    ),
    "the name elsewhere": (
        changed("annotations: {{ annotations }}", "annotations: {{ dict(annotations, pod=name) }}"),
        "probe minimal: the pods of two slots differ in more than metadata.name and the label vlm.dev/slot",
    ),
    "a number as a key": (BUILT_IN + "1: a\n", "probe minimal: the Pod has a key that is no text: 1"),
    "no number": (BUILT_IN + "a: [.nan]\n", "probe minimal: a[0] is neither text nor a number: NaN"),
    "bytes": (BUILT_IN + "a: !!binary aGk=\n", "probe minimal: a is neither text nor a number: "),
}


@pytest.mark.parametrize(("source", "sentence"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_override_is_told_by_probe_and_line(source: str, sentence: str) -> None:
    with pytest.raises(OverrideError) as caught:
        probed(TEMPLATE, source)
    told = str(caught.value)
    assert told.startswith(sentence)
    assert len(told) < 1000
    assert "\n" not in told
    assert len(pod_of()["spec"]["containers"]) == 1, "nothing of the probes stays installed"


def test_where_an_override_fails_later_the_built_in_template_gives_the_pod() -> None:
    sometimes = BUILT_IN + "{% if grace_seconds == 107 %}x: {{ missing }}{% endif %}\n"
    told: list[tuple[str, str]] = []
    override = forgiving(
        probed(TEMPLATE, sometimes), lambda built_in, complaint: told.append((built_in["metadata"]["name"], complaint))
    )
    minimal = dict(probes(engine("vLLM")))["minimal"]
    drain = minimal.inputs.drain.model_copy(update={"timeout": "77s"})
    outside = minimal.model_copy(update={"inputs": minimal.inputs.model_copy(update={"drain": drain})})
    plain = engine("vLLM").render_pod(outside, identity(0))
    with installed({TEMPLATE: override}):
        assert engine("vLLM").render_pod(outside, identity(0)) == plain
        assert told == [("probe-0123456789-0", f"line {LINES + 1}: 'missing' is undefined")]
        assert pod_of() != {}
    assert len(told) == 1
