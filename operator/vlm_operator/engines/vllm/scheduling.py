"""Where a replica may run: the user's wishes together with what the GPUs ask for."""

from typing import Any

from vlm_operator.api import names

Fields = dict[str, Any]


def tolerations(wanted: list[Fields], gpu_resource: str) -> list[Fields]:
    """The wanted tolerations, and one for the taint that keeps pods without a GPU off GPU nodes.

    Clouds taint such nodes with the name of the GPU resource, and not every cluster adds the toleration by itself. A
    wanted toleration for that key, or for every key, is left to stand alone.
    """
    if any(_covers(toleration, gpu_resource) for toleration in wanted):
        return wanted
    return [*wanted, {"key": gpu_resource, "operator": "Exists", "effect": "NoSchedule"}]


def _covers(toleration: Fields, gpu_resource: str) -> bool:
    if "key" in toleration:
        return bool(toleration["key"] == gpu_resource)
    return toleration.get("effect") in {None, "NoSchedule"}


def affinity(wanted: Fields, products: list[str]) -> Fields:
    """The wanted affinity, restricted to nodes with one of `products` (any, when empty).

    Terms of a node selector are alternatives, so the restriction goes into each of them.
    """
    if not products:
        return wanted
    restriction = {"key": names.GPU_PRODUCT_LABEL, "operator": "In", "values": products}
    nodes = wanted.get("nodeAffinity", {})
    required = nodes.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms = required.get("nodeSelectorTerms") or [{"matchExpressions": []}]
    restricted = [{"matchExpressions": [*term["matchExpressions"], restriction]} for term in terms]
    nodes = nodes | {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": restricted}}
    return wanted | {"nodeAffinity": nodes}


def spread(wanted: list[Fields], deployment: str) -> list[Fields]:
    """The wanted spread, by default softly over nodes; a constraint without a selector means this deployment."""
    selector = {"labelSelector": {"matchLabels": {names.DEPLOYMENT_LABEL: deployment}}}
    softly = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    return [selector | constraint for constraint in wanted or [softly]]
