"""The metrics of the operator itself."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

RECONCILES = Counter("vlm_operator_reconciles", "Looks at a deployment, by result.", ["result"], registry=REGISTRY)
RECONCILE_SECONDS = Histogram(
    "vlm_operator_reconcile_duration_seconds", "Duration of one look at a deployment.", registry=REGISTRY
)
QUEUE_DEPTH = Gauge("vlm_operator_queue_depth", "Deployments that wait to be looked at.", registry=REGISTRY)
API_REQUESTS = Counter(
    "vlm_operator_api_requests",
    "Calls of the Kubernetes API; code 0: no answer.",
    ["verb", "kind", "code"],
    registry=REGISTRY,
)
API_SECONDS = Histogram(
    "vlm_operator_api_request_duration_seconds", "Duration of calls of the Kubernetes API.", ["verb"], registry=REGISTRY
)
WATCH_EVENTS = Counter("vlm_operator_watch_events", "Events received from watches.", ["kind"], registry=REGISTRY)
WARNINGS = Counter(
    "vlm_operator_warnings", "Warnings told about deployments, by reason.", ["reason"], registry=REGISTRY
)
LEADER = Gauge("vlm_operator_leader", "1: this process acts. 0: it follows another one.", registry=REGISTRY)
DEPLOYMENTS = Gauge("vlm_operator_deployments", "VLMDeployments known to the operator.", registry=REGISTRY)
TEMPLATE_OVERRIDES = Gauge(
    "vlm_operator_template_overrides",
    "1: the override of a template is in this state (used, failed).",
    ["template", "state"],
    registry=REGISTRY,
)
TEMPLATE_FALLBACKS = Counter(
    "vlm_operator_template_fallbacks",
    "Pods made from a built-in template because its override failed for them.",
    ["template"],
    registry=REGISTRY,
)
