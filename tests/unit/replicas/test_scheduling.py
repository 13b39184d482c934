"""What the scheduler says is shortened to its reasons, and the likeliest ways out are named."""

from unit.replicas.tables import table
from vlm_operator.replicas.scheduling import ADVICES_GIVEN, advice, evidence

TAIL = "preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
SAID = [
    ("with preemption", f"0/3 nodes are available: 3 Insufficient nvidia.com/gpu. {TAIL}"),
    ("with resource claims", f"0/3 nodes are available: 3 Insufficient nvidia.com/gpu. no new claims to deallocate, {TAIL}"),
    ("without", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."),
    ("bare", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu"),
]  # fmt: skip


@table("message", SAID)
def test_the_reasons_are_told_once(message: str) -> None:
    assert evidence(message) == "0/3 nodes are available: 3 Insufficient nvidia.com/gpu"


def test_other_words_are_left_as_they_are() -> None:
    assert evidence("") == ""
    assert evidence("running PreBind plugin (timed out)") == "running PreBind plugin (timed out)"


WAYS_OUT: list[tuple[str, str, tuple[str, ...]]] = [
    # sentence, what the scheduler says, words of the advice
    ("no GPU is free", "2 Insufficient nvidia.com/gpu", ("add nodes", "spec.replicas", "spec.parallelism.tensor")),
    ("no memory is free", "3 Insufficient memory", ("spec.podTemplate.resources",)),
    ("no node has the labels", "3 node(s) didn't match Pod's node affinity/selector",
     ("spec.gpu.products", "spec.podTemplate.nodeSelector")),
    ("nodes are tainted", "1 node(s) had untolerated taint {team: research}", ("spec.podTemplate.tolerations",)),
    ("nodes are tainted, in newer words", "1 node(s) had untolerated taint(s)", ("spec.podTemplate.tolerations",)),
    ("the taint is a node's own", "1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }", ()),
    ("the taint is a node's own, in other words",
     "1 node(s) had untolerated taint(s) {node-role.kubernetes.io/control-plane: }", ()),
    ("the claim is missing", 'persistentvolumeclaim "models" not found', ("WeightsReady",)),
    ("the claim is not bound", "pod has unbound immediate PersistentVolumeClaims", ("WeightsReady",)),
    ("no volume is there", "1 node(s) didn't find available persistent volumes to bind", ("WeightsReady",)),
    ("the volume is elsewhere", "1 node(s) had volume node affinity conflict", ("nodes that can reach it",)),
    ("pods must be apart", "1 node(s) didn't match pod anti-affinity rules", ("spec.podTemplate.affinity",)),
    ("pods must be spread", "1 node(s) didn't match pod topology spread constraints", ("topologySpreadConstraints",)),
    ("nodes are cordoned", "2 node(s) were unschedulable", ("uncordon",)),
    ("several reasons", "1 Insufficient nvidia.com/gpu, 2 node(s) didn't match Pod's node affinity/selector",
     ("spec.parallelism.tensor; or compare spec.gpu.products",)),
    ("something else", "1 node(s) had a bad day", ()),
]  # fmt: skip


@table("reasons, words", WAYS_OUT)
def test_what_can_be_done(reasons: str, words: tuple[str, ...]) -> None:
    found = advice(f"0/3 nodes are available: {reasons}. {TAIL}")
    assert all(part in found for part in words)
    assert bool(found) == bool(words)


def test_of_many_ways_out_the_likeliest_are_told() -> None:
    everything = ", ".join(reasons for _, reasons, _ in WAYS_OUT)
    assert advice(everything).count("; or ") == ADVICES_GIVEN - 1
