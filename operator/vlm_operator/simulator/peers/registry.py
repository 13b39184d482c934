"""The peers by name, with their standard settings, and the table of variants for the benchmark.

Every peer has a main target: the one number that its users turn. A name alone stands for the peer as documented, and
`NAME:VALUE` for the same with another main target; `static:N` always needs its number.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from vlm_operator.api.scaling import MAX_REPLICAS
from vlm_operator.scaling.policy import Signal
from vlm_operator.simulator.peers.aibrix import Aibrix, AibrixSettings, Metric, Strategy
from vlm_operator.simulator.peers.dynamo import LATENCY, THROUGHPUT, Dynamo, DynamoSettings
from vlm_operator.simulator.peers.hpa import Hpa, HpaSettings
from vlm_operator.simulator.peers.keda import Keda, KedaSettings, Query
from vlm_operator.simulator.peers.knative import Knative, KnativeSettings
from vlm_operator.simulator.peers.kubeai import Kubeai, KubeaiSettings
from vlm_operator.simulator.peers.ray import Ray, RaySettings
from vlm_operator.simulator.peers.settings import Engine, SettingsError
from vlm_operator.simulator.peers.static import Static, StaticSettings
from vlm_operator.simulator.peers.wva import (
    CHART,
    Saturation,
    SaturationSettings,
    Tokens,
    TokenSettings,
    Wva,
    WvaSettings,
)
from vlm_operator.simulator.policies import POLICIES
from vlm_operator.simulator.view import Peer

LEAST_TARGET, MOST_TARGET = 1e-3, 1e9
"""Of a main target: far beyond what makes sense, and where all arithmetic still works."""
Factory = Callable[[Engine], Peer]
"""Makes a fresh peer: one is good for one replay."""
KUBEAI_GUIDE = KubeaiSettings(target=250.0, interval_seconds=15.0, scale_down_delay_seconds=45.0)
"""The example of its guide on autoscaling."""
GPU = HpaSettings(signal=Signal.GPU_UTILIZATION, target=0.8)
"""Kubernetes ships a target of 80 % of CPUs. There are none here, and the busy share of the GPUs stands for them."""
REQUESTS = (2.0, 4.0, 8.0, 16.0, 32.0)
"""Grid of targets in requests per replica."""

LOADS = (0.05, 0.1, 0.2, 0.4, 1.0)
"""Grid of loads of an engine, in KV caches."""


class Kind(StrEnum):
    """Whose settings a variant has."""

    SHIPPED = "shipped"
    """The defaults of the code."""
    DOCUMENTED = "documented"
    """What its documents show for serving language models; the defaults of the code where they show nothing."""
    TUNED = "tuned"
    """As documented, with another main target."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """One peer."""

    name: str
    project: str
    target: str
    """What its main target is."""
    source: str
    """Where the documented settings are from."""
    shipped: Factory
    documented: Factory
    tuned: Callable[[Engine, float], Peer]
    """As documented, with another main target."""
    grid: tuple[float, ...]
    """Main targets over which it is tuned: as many for each peer."""
    most: float = MOST_TARGET
    """Largest main target that its other settings leave room for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """One peer with one set of settings."""

    name: str
    """Such as ray, shipped or ray:4."""
    family: str
    kind: Kind
    value: float | None
    """The main target of a tuned one."""
    make: Factory


FAMILIES: tuple[Family, ...] = (
    Family(
        name="hpa",
        project="kubernetes/kubernetes",
        target="waiting requests per replica",
        source="Google's tutorial for vLLM on several hosts",
        shipped=lambda _: Hpa(GPU),
        documented=lambda _: Hpa(),
        tuned=lambda _, value: Hpa(HpaSettings(target=value)),
        grid=(1.0, 2.0, 5.0, 10.0, 20.0),
    ),
    Family(
        name="hpa-running",
        project="kubernetes/kubernetes",
        target="running requests per replica",
        source="Google's guide to autoscaling: the batch for lower latency; 10 as in an example for vLLM",
        shipped=lambda _: Hpa(GPU),
        documented=lambda _: Hpa(HpaSettings(signal=Signal.RUNNING_REQUESTS, target=10.0)),
        tuned=lambda _, value: Hpa(HpaSettings(signal=Signal.RUNNING_REQUESTS, target=value)),
        grid=REQUESTS,
    ),
    Family(
        name="hpa-gpu",
        project="kubernetes/kubernetes",
        target="busy share of the GPU",
        source="the default target of autoscaling/v2, which is on CPUs",
        shipped=lambda _: Hpa(GPU),
        documented=lambda _: Hpa(GPU),
        tuned=lambda _, value: Hpa(replace(GPU, target=value)),
        grid=(0.5, 0.6, 0.7, 0.8, 0.9),
        most=1.0,
    ),
    Family(
        name="keda",
        project="kedacore/keda",
        target="running and waiting requests per replica",
        source="KServe, LLM metrics: 2 running requests; the waiting ones are added",
        shipped=lambda _: Keda(KedaSettings(query=Query.WAITING, threshold=5.0)),
        documented=lambda _: Keda(),
        tuned=lambda _, value: Keda(KedaSettings(threshold=value)),
        grid=REQUESTS,
    ),
    Family(
        name="knative",
        project="knative/serving",
        target="concurrent requests per replica, of which 70 % are aimed at",
        source="KServe, Knative autoscaler: a target of 1",
        shipped=lambda _: Knative(),
        documented=lambda _: Knative(KnativeSettings(target=1.0)),
        tuned=lambda _, value: Knative(KnativeSettings(target=value)),
        grid=REQUESTS,
    ),
    Family(
        name="kubeai",
        project="substratusai/kubeai",
        target="open requests per replica",
        source="its guide on autoscaling",
        shipped=lambda _: Kubeai(),
        documented=lambda _: Kubeai(KUBEAI_GUIDE),
        tuned=lambda _, value: Kubeai(KubeaiSettings(target=value)),
        grid=REQUESTS,
    ),
    Family(
        name="ray",
        project="ray-project/ray",
        target="ongoing requests per replica",
        source="its guide on autoscaling, which shows the default",
        shipped=lambda _: Ray(),
        documented=lambda _: Ray(),
        tuned=lambda _, value: Ray(RaySettings(target=value)),
        grid=REQUESTS,
    ),
    Family(
        name="wva",
        project="llm-d/llm-d-workload-variant-autoscaler",
        target="most use of the tokens that replicas can hold",
        source="its default thresholds, followed as kindly as its guide allows",
        shipped=lambda engine: Wva(engine, Tokens(engine), WvaSettings(behavior=CHART)),
        documented=lambda engine: Wva(engine, Tokens(engine)),
        tuned=lambda engine, value: Wva(engine, Tokens(engine, _tokens(value))),
        grid=(0.4, 0.5, 0.6, 0.7, 0.85),
    ),
    Family(
        name="wva-v1",
        project="llm-d/llm-d-workload-variant-autoscaler",
        target="least spare of a queue of five",
        source="its default thresholds, followed as kindly as its guide allows",
        shipped=lambda engine: Wva(engine, Saturation(), WvaSettings(behavior=CHART)),
        documented=lambda engine: Wva(engine, Saturation()),
        tuned=lambda engine, value: Wva(engine, Saturation(SaturationSettings(queue_spare=value))),
        grid=(2.0, 3.0, 4.0, 4.5, 4.9),
        most=SaturationSettings().queue_threshold,
    ),
    Family(
        name="dynamo",
        project="ai-dynamo/dynamo",
        target="load of an engine from which on it adds one",
        source="the planner guide: the target to begin with",
        shipped=lambda engine: Dynamo(engine, THROUGHPUT),
        documented=lambda engine: Dynamo(engine, THROUGHPUT),
        tuned=lambda engine, value: Dynamo(engine, _thresholds(THROUGHPUT, value)),
        grid=LOADS,
    ),
    Family(
        name="dynamo-latency",
        project="ai-dynamo/dynamo",
        target="load of an engine from which on it adds one",
        source="the planner guide: the target for strict latencies",
        shipped=lambda engine: Dynamo(engine, LATENCY),
        documented=lambda engine: Dynamo(engine, LATENCY),
        tuned=lambda engine, value: Dynamo(engine, _thresholds(LATENCY, value)),
        grid=LOADS,
    ),
    Family(
        name="aibrix",
        project="vllm-project/aibrix",
        target="running requests per replica",
        source="its samples: half of the KV cache",
        shipped=lambda _: Aibrix(AibrixSettings(as_coded=True)),
        documented=lambda _: Aibrix(),
        tuned=lambda _, value: Aibrix(AibrixSettings(metric=Metric.RUNNING, target=value)),
        grid=REQUESTS,
    ),
    Family(
        name="aibrix-kpa",
        project="vllm-project/aibrix",
        target="running requests per replica",
        source="its samples: half of the KV cache",
        shipped=lambda _: Aibrix(AibrixSettings(strategy=Strategy.KPA, as_coded=True)),
        documented=lambda _: Aibrix(AibrixSettings(strategy=Strategy.KPA)),
        tuned=lambda _, value: Aibrix(
            AibrixSettings(strategy=Strategy.KPA, metric=Metric.RUNNING, target=value),
        ),
        grid=REQUESTS,
    ),
)
"""Those that scale, in the order in which they are shown."""

STATIC = "static"
_BY_NAME = {family.name: family for family in FAMILIES}


def factory(spelled: str) -> Factory:
    """The peer of a name: `NAME` as documented, `NAME:VALUE` with another main target, `static:N`.

    Raises SettingsError for a name or a value that there is not, with those that there are.
    """
    name, colon, value = spelled.partition(":")
    if name == STATIC:
        return _static(spelled, value)
    if name not in _BY_NAME:
        raise SettingsError(f"there is no policy {spelled!r}; there are {', '.join(POLICIES)}")
    family = _BY_NAME[name]
    return tuned(name, _number(spelled, value, family)) if colon else family.documented


def tuned(name: str, value: float) -> Factory:
    """The peer of a name, as documented with another main target."""
    family = _BY_NAME[name]
    return lambda engine: family.tuned(engine, value)


def variants(name: str) -> tuple[Variant, ...]:
    """Every variant of one peer: as shipped, as documented, and the grid."""
    family = _BY_NAME[name]
    return (
        Variant(name=f"{name}, shipped", family=name, kind=Kind.SHIPPED, value=None, make=family.shipped),
        Variant(name=f"{name}, documented", family=name, kind=Kind.DOCUMENTED, value=None, make=family.documented),
        *(
            Variant(name=f"{name}:{value:g}", family=name, kind=Kind.TUNED, value=value, make=tuned(name, value))
            for value in family.grid
        ),
    )


def _static(spelled: str, value: str) -> Factory:
    digits = re.fullmatch(r"0*([1-9][0-9]{0,8})", value)
    if digits is None or int(digits[1]) > MAX_REPLICAS:
        rule = f"a number of replicas from 1 to {MAX_REPLICAS}, such as {STATIC}:3"
        raise SettingsError(f"the policy {spelled!r} needs {rule}")
    settings = StaticSettings(replicas=int(digits[1]))
    return lambda _: Static(settings)


def _number(spelled: str, value: str, family: Family) -> float:
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not LEAST_TARGET <= number <= family.most:
        rule = f"a number from {LEAST_TARGET:g} to {family.most:g} after the colon"
        raise SettingsError(f"the policy {spelled!r} needs {rule}: {family.target}")
    return number


def _tokens(most: float) -> TokenSettings:
    """With the two boundaries as far from each other as they are by default."""
    usual = TokenSettings()
    return replace(usual, scale_up=most, scale_down=most * usual.scale_down / usual.scale_up)


def _thresholds(usual: DynamoSettings, most: float) -> DynamoSettings:
    """The planner's target `load`, whose thresholds are the user's: as far from each other as the usual ones."""
    return replace(usual, scale_up=most, scale_down=most * usual.scale_down / usual.scale_up)
