"""Why no node takes a pod: what the scheduler says, without what it says twice, and what a user can do about it."""

import re

from vlm_operator.engines.failures import Cause, Waiting

UNSCHEDULABLE = Cause(
    reason="Unschedulable",
    meaning="no node takes the replica: too few GPUs are free, or products, taints, volumes or limits of the nodes do not fit",
    seen_in="condition PodScheduled, in the scheduler's words",
    advice="as the message says: free GPUs or add nodes, or change spec.gpu.products, spec.podTemplate or spec.replicas",
    waiting=Waiting.MAY_HELP,
)

PREEMPTION = re.compile(r"[.\s]*(?:no new claims to deallocate,\s*)?preemption: .*", re.DOTALL)
"""The scheduler tries again with other pods pushed aside, and tells that in the same words."""

ADVICE: tuple[tuple[str, str], ...] = (
    (
        r"persistentvolumeclaim|PersistentVolumeClaims|persistent volumes to bind",
        "condition WeightsReady has the way out",
    ),
    (
        r"Insufficient [\w.-]+/",
        "free GPUs, add nodes with enough of them, or lower spec.replicas or spec.parallelism.tensor",
    ),
    (r"Insufficient (?:cpu|memory|ephemeral-storage)", "add larger nodes, or lower spec.podTemplate.resources"),
    (
        r"didn't match Pod's node affinity/selector",
        "compare spec.gpu.products, spec.podTemplate.nodeSelector and spec.podTemplate.affinity with the labels of the nodes",
    ),
    # A node's own taints say that it is not for pods, or not ready: no toleration would help.
    (
        r"untolerated taint(?!\(?s?\)? \{node(?:-role)?\.kubernetes\.io/)",
        "add the taint to spec.podTemplate.tolerations",
    ),
    (r"affinity rules", "loosen spec.podTemplate.affinity"),
    (r"topology spread constraints", "loosen spec.podTemplate.topologySpreadConstraints"),
    (r"volume node affinity|PersistentVolume's node affinity", "the volume is elsewhere: use nodes that can reach it"),
    (r"were unschedulable", "kubectl uncordon the nodes"),
    (r"Too many pods", "add nodes"),
)
"""What to do, by the words of the scheduler: the first is the likeliest way out."""
ADVICES_GIVEN = 2


def evidence(message: str) -> str:
    """The scheduler's reasons, node by node."""
    return PREEMPTION.sub("", message).rstrip(". ")


def advice(message: str) -> str:
    """The likeliest ways out; empty where none is known."""
    found = (way for words, way in ADVICE if re.search(words, evidence(message)))
    return "; or ".join(list(found)[:ADVICES_GIVEN])
