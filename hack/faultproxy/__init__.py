"""A proxy between a client and a real API server that does what networks and servers do on bad days, as a test tells it.

    with FaultProxy(cluster.kubeconfig) as proxy:
        operator = RunningOperator(cluster, "operator", kubeconfig=proxy.kubeconfig).start()
        with proxy.inject(Rule(Answer(429, retry_after=3), verbs={"create"}, resources={"pods"}, times=1)) as injected:
            ...
        assert injected.hits
        assert proxy.busiest_minute() < 60

Rules and faults are in `faults`, what was called and how often in `calls`; the README has tables of both.
"""

from faultproxy.calls import WRITES, Call, Target
from faultproxy.faults import (
    Answer,
    Crash,
    CutWatch,
    Delay,
    DelayEvents,
    Drop,
    EventFault,
    Expire,
    Injection,
    Keep,
    KeepEvents,
    LoseAnswer,
    LoseEvents,
    RepeatEvents,
    Rule,
)
from faultproxy.proxy import FaultProxy

__all__ = [
    "WRITES",
    "Answer",
    "Call",
    "Crash",
    "CutWatch",
    "Delay",
    "DelayEvents",
    "Drop",
    "EventFault",
    "Expire",
    "FaultProxy",
    "Injection",
    "Keep",
    "KeepEvents",
    "LoseAnswer",
    "LoseEvents",
    "RepeatEvents",
    "Rule",
    "Target",
]
