"""What the chart makes of values: right pods for every kind of install, and sentences about values that are wrong."""

import itertools
import json
import subprocess
from typing import Any

import pytest
import yaml

from chart.helm import CHART, ROOT, Helm, Object, container, of_kind, only, parsed
from controlplane import ControlPlane, ensure_tools
from kustomize_base import kustomize_base
from vlm_operator import __version__

pytestmark = pytest.mark.cluster

_serial = itertools.count(1)
CLUSTER_KINDS = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}
CATALOGUE = {"ours.yaml": "models: []\n"}
TEMPLATE = {"vllm-pod.yaml.j2": "{{ not_helms }}"}
EVERYTHING: Object = {
    "replicas": 3,
    "image": {
        "registry": "registry.example.com:5000/team",
        "repository": "serving/vlm-operator",
        "tag": "1.2.3",
        "digest": f"sha256:{'a' * 64}",
        "pullPolicy": "Always",
    },
    "imagePullSecrets": [{"name": "pull"}],
    "namespaces": ["red", "blue"],
    "serviceAccount": {"name": "other", "annotations": {"example.com/account": "yes"}},
    "crds": {"annotations": {"example.com/crd": "yes"}},
    "log": {"format": "text", "level": "debug"},
    "catalogue": {"files": CATALOGUE},
    "templates": {"files": TEMPLATE},
    "podProxy": "http://proxy.example.com:3128",
    "extraArgs": ["--workers=16"],
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
    "metrics": {"service": {"port": 9090, "annotations": {"prometheus.io/scrape": "true"}, "labels": {"scrape": "me"}}},
    "podDisruptionBudget": {"maxUnavailable": "50%"},
    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": 2, "memory": "1Gi"}},
    "priorityClassName": "system-cluster-critical",
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    ],
    "terminationGracePeriodSeconds": 60,
    "labels": {"team": "vision", "app.kubernetes.io/name": "not-ours-to-lose"},
    "annotations": {"example.com/on": "everything"},
    "podLabels": {"pod": "label"},
    "podAnnotations": {"pod": "annotation"},
}
INSTALLS: dict[str, Object] = {
    "as it comes": {},
    "one replica": {"replicas": 1, "leaderElection": {"enabled": False}, "podDisruptionBudget": {"enabled": False}},
    "namespaced": {"namespaces": ["red", "blue"], "rbac": {"scope": "Namespaced"}},
    "namespaced, in its own": {"namespaces": ["restricted"], "rbac": {"scope": "Namespaced"}},
    "nothing but the operator": {
        "crds": {"install": False},
        "rbac": {"create": False},
        "serviceAccount": {"create": False},
        "metrics": {"service": {"enabled": False}},
        "podDisruptionBudget": {"enabled": False},
        "topologySpreadConstraints": [],
    },
    "others' config": {"catalogue": {"configMap": "vlm-catalogue"}, "templates": {"configMap": "vlm-templates"}},
    "everything": EVERYTHING,
}


@pytest.fixture(scope="module")
def spaces(plane: ControlPlane) -> str:
    """The namespaces that the installs name, all of them restricted; returns that of the operator."""
    for name in ("restricted", "red", "blue"):
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        plane.api.post("/api/v1/namespaces", space)
    return "restricted"


@pytest.mark.parametrize("values", INSTALLS.values(), ids=INSTALLS)
def test_what_is_made_is_accepted_and_its_pods_are_admitted_as_restricted(
    plane: ControlPlane, helm: Helm, spaces: str, values: Object
) -> None:
    objects = helm.template("--set=crds.install=false", f"--namespace={spaces}", values=values)
    text = "---\n".join(json.dumps(found) + "\n" for found in objects)
    plane.kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-", input=text)
    template = only(objects, "Deployment")["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {**template["metadata"], "name": "pod"}}
    account = pod["spec"]["serviceAccountName"]
    place = f"/api/v1/namespaces/{spaces}"
    if not plane.api.answers(f"{place}/serviceaccounts/{account}"):
        plane.api.post(f"{place}/serviceaccounts", {"metadata": {"name": account}})
    plane.api.post(f"{place}/pods?dryRun=All", pod)


def test_the_restricted_level_is_in_force(plane: ControlPlane, helm: Helm, spaces: str) -> None:
    template = only(helm.template("--set=securityContext=null"), "Deployment")["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {"name": "pod"}}
    pod["spec"]["serviceAccountName"] = "default"
    with pytest.raises(Exception, match="violates PodSecurity"):
        plane.api.post(f"/api/v1/namespaces/{spaces}/pods?dryRun=All", pod)


def test_lint_has_nothing_to_say(helm: Helm) -> None:
    file = helm.home / "everything.yaml"
    file.write_text(yaml.safe_dump(EVERYTHING))
    helm("lint", "--strict", CHART)
    helm("lint", "--strict", CHART, "--values", file)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("replicas=two", "at '/replicas': got string, want integer"),
        ("replicas=-1", "at '/replicas': minimum: got -1, want 0"),
        ("replica=2", "additional properties 'replica' not allowed"),
        ("image.tags=1", "at '/image': additional properties 'tags' not allowed"),
        ("image.repository=Ours/Operator", "at '/image/repository': 'Ours/Operator' does not match pattern"),
        ("image.digest=sha256:abc", "at '/image/digest': 'sha256:abc' does not match pattern"),
        (
            "image.pullPolicy=Sometimes",
            "at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'",
        ),
        ("image.registry=http://foo", "at '/image/registry': 'http://foo' does not match pattern"),
        ("namespaces=team-a", "at '/namespaces': got string, want array"),
        ("namespaces={Team-A}", "at '/namespaces/0': 'Team-A' does not match pattern"),
        ("namespaces={a,a}", "at '/namespaces': items at 0 and 1 are equal"),
        ("rbac.scope=Everywhere", "at '/rbac/scope': value must be one of 'Cluster', 'Namespaced'"),
        ("log.level=nonsense", "at '/log/level': value must be one of 'debug', 'info', 'warning', 'error'"),
        ("podProxy=proxy:3128", "at '/podProxy': 'proxy:3128' does not match pattern"),
        ("podProxy=http://me@proxy", "at '/podProxy': 'http://me@proxy' does not match pattern"),
        ("extraArgs={workers}", "at '/extraArgs/0': 'workers' does not match pattern '^--[a-z]"),
        ("extraArgs={--workers 16}", "at '/extraArgs/0': '--workers 16' does not match pattern '^--[a-z]"),
        ("extraArgs={--workers,16}", "at '/extraArgs/1': got number, want string"),
        (r"catalogue.files.notes\.txt=x", "at '/catalogue/files': additional properties 'notes.txt' not allowed"),
        ("labels.a=true", "at '/labels/a': got boolean, want string"),
        ("labels.a=b c", "at '/labels/a': 'b c' does not match pattern"),
        ("podLabels.-a=b", "at '/podLabels': additional properties '-a' not allowed"),
        ("podAnnotations.a b=c", "at '/podAnnotations': additional properties 'a b' not allowed"),
        ("resources.limits.memory=banana", "at '/resources/limits/memory': 'banana' does not match pattern"),
        ("resources.limits.memory=-1", "at '/resources/limits/memory': minimum: got -1, want 0"),
        ("resources.limits.memroy=1Gi", "at '/resources/limits': additional properties 'memroy' not allowed"),
        ("resources.bogus=1", "at '/resources': additional properties 'bogus' not allowed"),
        ("securityContext.bogus=1", "at '/securityContext': additional properties 'bogus' not allowed"),
        ("podSecurityContext.privileged=true", "at '/podSecurityContext': additional properties 'privileged' not"),
        ("affinity.bogus=1", "at '/affinity': additional properties 'bogus' not allowed"),
        ("tolerations[0].bogus=1", "at '/tolerations/0': additional properties 'bogus' not allowed"),
        ("topologySpreadConstraints[0].maxSkew=1", "at '/topologySpreadConstraints/0': missing properties"),
        ("extraEnv[0].name=A=B", "at '/extraEnv/0/name': 'A=B' does not match pattern"),
        ("priorityClassName=A_B", "at '/priorityClassName': 'A_B' does not match pattern"),
        ("serviceAccount.name=A_B", "at '/serviceAccount/name': 'A_B' does not match pattern"),
        ("imagePullSecrets[0].name=A_B", "at '/imagePullSecrets/0/name': 'A_B' does not match pattern"),
        ("catalogue.configMap=A_B", "at '/catalogue/configMap': 'A_B' does not match pattern"),
        ("fullnameOverride=A_B", "at '/fullnameOverride': 'A_B' does not match pattern"),
        ("nameOverride=A_B", "at '/nameOverride': 'A_B' does not match pattern"),
        ("rbac.scope=Namespaced", "namespaces is empty: list those to serve, for example --set namespaces={team-a}"),
        (
            "leaderElection.enabled=false",
            "replicas: 2 without leaderElection.enabled: each would act on the same resources; set replicas: 1 or",
        ),
        (
            r"catalogue.configMap=ours,catalogue.files.a\.yaml=x",
            "catalogue.files and catalogue.configMap: give one of the two",
        ),
        ("extraArgs={--health-port=9}", "extraArgs: --health-port=9: the chart sets this option itself"),
        ("extraArgs={--pod-proxy=http://a}", "extraArgs: --pod-proxy=http://a: the chart sets this option itself"),
        ("extraArgs={--namespace=a}", "extraArgs: --namespace=a: the chart sets this option itself"),
        ("extraArgs={--leader-elect}", "extraArgs: --leader-elect: the chart sets this option itself"),
        ("extraArgs={--leader-elect-name=a}", "extraArgs: --leader-elect-name=a: the chart sets this option itself"),
        ("extraArgs={--leader-elect-namespace=a}", "--leader-elect-namespace=a: the chart sets this option itself"),
    ],
)
def test_wrong_values_are_refused_with_the_field_and_the_rule(helm: Helm, setting: str, said: str) -> None:
    done = helm.run("template", "vlm-operator", CHART, "--set", setting)
    assert done.returncode != 0
    assert said in done.stderr


@pytest.mark.parametrize("name", ["1st", "team.a"])
def test_a_name_of_a_release_that_no_service_can_have_is_refused(helm: Helm, name: str) -> None:
    done = helm.run("template", name, CHART)
    assert f"the objects would be called {name}-vlm-operator" in done.stderr
    assert helm.template("--set=fullnameOverride=first", name=name)


def test_every_value_of_the_schema_is_there_to_be_read(helm: Helm) -> None:
    def compare(schema: Object, values: Any, place: str) -> None:
        for name, part in schema.get("properties", {}).items():
            if place or name != "global":
                assert name in values, f"{place}/{name} has no default in values.yaml"
                compare(part, values[name], f"{place}/{name}")

    compare(json.loads((CHART / "values.schema.json").read_text()), yaml.safe_load(helm("show", "values", CHART)), "")


def test_an_install_for_some_namespaces_has_no_object_of_the_cluster_but_the_crd(helm: Helm) -> None:
    values = {"namespaces": ["team-a", "team-b"], "rbac": {"scope": "Namespaced"}}
    objects = helm.template(values=values)
    assert CLUSTER_KINDS & {found["kind"] for found in objects} == {"CustomResourceDefinition"}
    roles = of_kind(objects, "Role")
    assert sorted(role["metadata"]["namespace"] for role in roles) == ["team-a", "team-b", "vlm-system"]
    assert not CLUSTER_KINDS & {found["kind"] for found in helm.template("--set=crds.install=false", values=values)}


def test_an_install_for_some_namespaces_may_read_the_cluster_and_write_only_there(helm: Helm) -> None:
    rules = yaml.safe_load((CHART / "files/permissions.yaml").read_text())
    everywhere = only(helm.template("--set=rbac.aggregate=false"), "ClusterRole")
    listed = helm.template("--set=rbac.aggregate=false", values={"namespaces": ["team-a"]})
    assert everywhere["rules"] == rules["namespaced"] + rules["cluster"]
    assert only(listed, "ClusterRole")["rules"] == rules["cluster"]
    served, own = of_kind(listed, "Role")
    assert (served["metadata"]["namespace"], served["rules"]) == ("team-a", rules["namespaced"])
    assert (own["metadata"]["namespace"], own["rules"]) == ("vlm-system", rules["operatorNamespace"])


def test_releases_share_no_object_but_the_crd(helm: Helm) -> None:
    def made(name: str, namespace: str, *arguments: str) -> set[tuple[str, ...]]:
        objects = helm.template(f"--namespace={namespace}", "--set=crds.install=false", *arguments, name=name)
        whole = [(one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]) for one in objects]
        assert len(whole) == len(set(whole))
        return set(whole)

    everything = made("vlm-operator", "red"), made("vlm-operator", "blue"), made("other", "red")
    for one, other in itertools.combinations(everything, 2):
        assert not one & other
    # Not even where two names, joined with a hyphen, would be the same.
    assert not made("vlm-operator", "a-b") & made("b-vlm-operator", "a", "--set=fullnameOverride=b-vlm-operator")


@pytest.mark.parametrize("name", ["vlm-operator", "two"])
def test_each_release_has_a_lease_of_its_own_and_may_have_no_other(helm: Helm, name: str) -> None:
    objects = helm.template("--set=namespaces={team-a}", name=name)
    full = only(objects, "Deployment")["metadata"]["name"]
    assert f"--leader-elect-name={full}" in container(only(objects, "Deployment"))["args"]
    listed = yaml.safe_load((CHART / "files/permissions.yaml").read_text())["operatorNamespace"]
    expected = [rule | ({"resourceNames": [full]} if "resourceNames" in rule else {}) for rule in listed]
    (own,) = [role for role in of_kind(objects, "Role") if role["metadata"]["namespace"] == "vlm-system"]
    assert own["rules"] == expected
    assert (expected == listed) == (name == "vlm-operator")


def test_the_image_is_named_by_registry_repository_tag_and_digest(helm: Helm) -> None:
    def image(*arguments: str) -> str:
        return str(container(only(helm.template(*arguments), "Deployment"))["image"])

    assert image() == f"vlm-operator:{__version__}"
    ours = ("--set=image.registry=registry.example.com:5000/team/", "--set=image.repository=serving/operator")
    assert image(*ours, "--set-string=image.tag=2") == "registry.example.com:5000/team/serving/operator:2"
    digest = f"sha256:{'a' * 64}"
    assert image("--set-string=image.tag=2", f"--set=image.digest={digest}") == f"vlm-operator@{digest}"


def test_everything_that_was_set_arrives(helm: Helm) -> None:
    objects = helm.template(values=EVERYTHING)
    deployment = only(objects, "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    operator = container(deployment)
    for field in ("priorityClassName", "nodeSelector", "tolerations", "affinity", "terminationGracePeriodSeconds"):
        assert pod[field] == EVERYTHING[field]
    assert pod["topologySpreadConstraints"] == EVERYTHING["topologySpreadConstraints"]
    assert pod["imagePullSecrets"] == EVERYTHING["imagePullSecrets"]
    assert pod["serviceAccountName"] == "other"
    assert operator["resources"] == EVERYTHING["resources"]
    assert operator["env"] == EVERYTHING["extraEnv"]
    assert {found["metadata"]["annotations"]["example.com/on"] for found in objects} == {"everything"}
    assert {found["metadata"]["labels"]["team"] for found in objects} == {"vision"}
    assert {found["metadata"]["labels"]["app.kubernetes.io/name"] for found in objects} == {"vlm-operator"}
    assert only(objects, "PodDisruptionBudget")["spec"]["maxUnavailable"] == "50%"
    assert only(objects, "Service")["spec"]["ports"] == [{"name": "http", "port": 9090, "targetPort": "http"}]
    assert {found["metadata"]["name"]: found["data"] for found in of_kind(objects, "ConfigMap")} == {
        "vlm-operator-catalogue": CATALOGUE,
        "vlm-operator-templates": TEMPLATE,
    }


def test_files_restart_the_operators_when_they_change(helm: Helm) -> None:
    def annotations(catalogue: str) -> Object:
        template = only(helm.template(values={"catalogue": {"files": {"a.yaml": catalogue}}}), "Deployment")["spec"][
            "template"
        ]
        return dict(template["metadata"]["annotations"])

    assert annotations("models: []") == annotations("models: []")
    assert annotations("models: []") != annotations("gpus: []")


def test_no_annotation_stands_there_twice_and_those_of_the_chart_win(helm: Helm) -> None:
    theirs = {"kubectl.kubernetes.io/default-container": "x", "checksum/catalogue": "x", "checksum/templates": "mine"}
    values = {"catalogue": {"files": CATALOGUE}, "podAnnotations": theirs}
    found = only(helm.template(values=values), "Deployment")["spec"]["template"]["metadata"]["annotations"]
    assert found["kubectl.kubernetes.io/default-container"] == "operator"
    assert len(found["checksum/catalogue"]) == 64
    assert found["checksum/templates"] == "mine"
    assert (
        helm("template", "vlm-operator", CHART, "--set", r"podAnnotations.checksum/catalogue=x").count("checksum/") == 1
    )


def test_the_selectors_find_the_pods_and_no_others(helm: Helm) -> None:
    objects = helm.template(values=EVERYTHING)
    labels = only(objects, "Deployment")["spec"]["template"]["metadata"]["labels"].items()
    for selector in (
        only(objects, "Deployment")["spec"]["selector"]["matchLabels"],
        only(objects, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        only(objects, "Service")["spec"]["selector"],
        only(helm.template(), "Deployment")["spec"]["template"]["spec"]["topologySpreadConstraints"][0][
            "labelSelector"
        ]["matchLabels"],
    ):
        assert selector.items() <= labels
        assert selector == {"app.kubernetes.io/name": "vlm-operator", "app.kubernetes.io/instance": "vlm-operator"}


def test_a_long_name_of_a_release_still_gives_names_that_are_accepted(
    plane: ControlPlane, helm: Helm, spaces: str
) -> None:
    text = helm(
        "template", "r" * 53, CHART, f"--namespace={spaces}", f"--set=crds.install=false,nameOverride={'n' * 60}"
    )
    plane.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", input=text)


def test_the_crd_is_that_of_the_operator_and_stays(helm: Helm) -> None:
    crd = only(helm.template(values=EVERYTHING), "CustomResourceDefinition")
    (ours,) = parsed((ROOT / "crds/vlmdeployments.vlm.dev.yaml").read_text())
    assert crd["spec"] == ours["spec"]
    assert crd["metadata"]["name"] == ours["metadata"]["name"]
    assert crd["metadata"]["annotations"] == {
        "helm.sh/resource-policy": "keep",
        "example.com/crd": "yes",
        "example.com/on": "everything",
    }


def test_the_chart_is_of_the_operators_version(helm: Helm) -> None:
    chart = yaml.safe_load(helm("show", "chart", CHART))
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_the_kustomize_base_is_what_the_chart_makes(helm: Helm) -> None:
    assert (ROOT / "manifests/base/vlm-operator.yaml").read_text() == kustomize_base(), "run make generate"
    kubectl = ensure_tools()["kubectl"]
    built = subprocess.run([kubectl, "kustomize", ROOT / "manifests/base"], capture_output=True, text=True, check=True)
    objects = parsed(built.stdout)
    assert only(objects, "Namespace")["metadata"]["name"] == "vlm-system"
    charted = helm.template()
    for found in charted:
        metadata = found["metadata"]
        metadata["labels"] = {k: v for k, v in metadata["labels"].items() if "helm" not in f"{k}{v}".lower()}
        metadata.pop("annotations", None)
    ours = [found for found in objects if found["kind"] != "Namespace"]
    crd = only(ours, "CustomResourceDefinition")
    crd["metadata"]["labels"] = only(charted, "CustomResourceDefinition")["metadata"]["labels"]
    key = lambda found: (found["kind"], found["metadata"]["name"])  # noqa: E731
    assert sorted(ours, key=key) == sorted(charted, key=key)
