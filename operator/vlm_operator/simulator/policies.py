"""Names of the policies that a replay can follow. It imports nothing, so that `--help` stays quick."""

OPERATOR = ("work-based", "targets")
"""Of the operator itself."""
PEERS = (
    "hpa",
    "hpa-running",
    "hpa-gpu",
    "keda",
    "knative",
    "kubeai",
    "ray",
    "wva",
    "wva-v1",
    "dynamo",
    "dynamo-latency",
    "aibrix",
    "aibrix-kpa",
    "static:N",
)
"""Of other projects, in the order of `peers.registry`. Of all but the last, NAME:VALUE is the same with another main target."""
POLICIES = (*OPERATOR, *PEERS)
"""What users may name."""
