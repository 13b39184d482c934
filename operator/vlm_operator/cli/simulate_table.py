"""What `kubectl vlm simulate` says in words: the trace, what was assumed, and what came of it."""

from dataclasses import dataclass

from vlm_operator.api.spec import VLMDeploymentSpec
from vlm_operator.simulator.measures import Measures
from vlm_operator.simulator.physics import Physics
from vlm_operator.simulator.result import Result
from vlm_operator.simulator.routing import Routing
from vlm_operator.simulator.trace import Trace

_ROUTED = {
    Routing.RANDOM: "a replica at random",
    Routing.LEAST_OUTSTANDING: "the replica with the fewest requests",
    Routing.FEWEST_UNSTARTED: "the replica with the fewest requests that have no first token",
}
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Question:
    """What is replayed, and how."""

    name: str
    """Of the trace."""
    trace: Trace
    spec: VLMDeploymentSpec | None
    policy: str
    least: int
    most: int
    """Bounds of the size."""
    physics: Physics
    routing: Routing
    scrape_seconds: float
    slo_seconds: float
    seed: int

    @property
    def title(self) -> str:
        """In a few words."""
        return f"{self.name} under {self.policy}"


def lines(question: Question, result: Result, measures: Measures) -> list[str]:
    """The answer as text."""
    return [
        f"{question.title}: {measures.attainment:.2%} in time, {measures.gpu_hours:.2f} GPU hours",
        "",
        *_trace(question.trace),
        "",
        *_assumed(question, result),
        "",
        *_measured(question, measures),
    ]


def _trace(trace: Trace) -> list[str]:
    prompt, vision = (float(column.mean(dtype="float64")) for column in (trace.prompt_tokens, trace.vision_tokens))
    output, images = (float(column.mean(dtype="float64")) for column in (trace.output_tokens, trace.images))
    rate = f", {len(trace) / trace.seconds:.3g} per second" if trace.seconds else ""
    of_images = f", {vision / prompt:.0%} of them of images" if vision else ""
    return [
        f"Requests: {len(trace)} within {duration(trace.seconds)}{rate}",
        f"Prompt of a request: {prompt:.0f} tokens on average{of_images}; images: {images:.3g}",
        f"Answer to a request: {output:.0f} tokens on average",
    ]


def _assumed(question: Question, result: Result) -> list[str]:
    physics = question.physics
    front_end = "none"
    if physics.front_end_seconds_per_image:
        each = f"{physics.front_end_seconds_per_image:g} s for each image"
        front_end = f"{each}, {physics.front_end_seconds_per_request:g} s for each request, {physics.front_end_workers} at a time"
    return [
        (
            f"Scaling: {question.policy}, from {question.least} to {question.most} replicas, read every "
            f"{question.scrape_seconds:g} s; a request goes to {_ROUTED[question.routing]}"
        ),
        (
            f"Replica: {result.gpus_per_replica} {'GPU' if result.gpus_per_replica == 1 else 'GPUs'}, "
            f"{physics.slots} requests at once, {physics.kv_tokens:.0f} tokens of KV cache"
        ),
        (
            f"  Prompts: {physics.prompt_tokens_per_second:g} tokens per second, "
            f"{physics.encode_seconds_per_image:g} s for each image, {physics.seconds_per_request:g} s for each request"
        ),
        (
            f"  Answers: {physics.decode_step_seconds:g} s for each token, "
            f"{physics.decode_step_seconds_per_request:g} s more for each request that runs"
        ),
        f"  Front end: {front_end}",
        f"  Cold start: {physics.cold_start_seconds:g} s, give or take {physics.cold_start_spread:.0%}",
    ]


def _measured(question: Question, measures: Measures) -> list[str]:
    changes = measures.scale_events
    flaps = f", {measures.flaps} of them up within 10 minutes after down" if changes else ""
    return [
        (
            f"In the queue for up to {question.slo_seconds:g} s: {measures.attainment:.2%} of the requests, "
            f"{measures.worst_10_minutes:.2%} in the worst 10 minutes"
        ),
        (
            f"Wait in the queue: half up to {measures.p50_wait:.3g} s, 95% up to {measures.p95_wait:.3g} s, "
            f"99% up to {measures.p99_wait:.3g} s"
        ),
        f"GPU hours: {measures.gpu_hours:.2f}",
        f"Changes of the size: {changes}{flaps}",
    ]


def duration(seconds: float) -> str:
    """A time in its two largest units."""
    rest = seconds
    parts: list[str] = []
    for unit, name in _UNITS:
        if rest >= unit or parts:
            parts.append(f"{int(rest // unit)} {name}")
            rest %= unit
    return " ".join([*parts, f"{rest:.3g} s" if not parts else f"{int(rest)} s"][:2])
