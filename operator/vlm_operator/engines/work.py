"""What a replica works on, from its own answers."""

import math
from dataclasses import dataclass
from typing import Any

from vlm_operator.engines.drain import Draining
from vlm_operator.engines.metrics import Metrics, Names


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """The work of a replica at one moment. None: it did not tell, which is never to be taken for nothing."""

    in_flight: int | None
    """Requests that it has not answered to the end. None counts as busy."""
    running: int | None
    """Of these, the requests that its engine computes now."""
    waiting: int | None
    """Those that wait for the engine."""
    generated_tokens: int | None
    """Given out so far. Begins anew with each start of the engine."""
    alive: bool
    """It told something."""

    def stands_still_since(self, before: "Work") -> bool:
        """Whether it had work then, has some now, and nothing came out in between: its engine hangs, given enough time."""
        busy = bool(self.running and before.running)
        return busy and self.generated_tokens is not None and self.generated_tokens == before.generated_tokens


def work_of(metrics: Metrics, draining: Draining, *, model: str, figures: str | None, load: str | None) -> Work:
    """Read the answers at `metrics.path` and at `draining.load_path`; None where there was none.

    `model` is the first name that the model is served under. Both must tell: a request that waits for its image is not with
    the engine yet, and one whose client has gone may still be.
    """
    running, waiting, tokens = (
        None if figures is None else total(figures, names, label=metrics.model_label, value=model)
        for names in (metrics.running, metrics.waiting, metrics.generated_tokens)
    )
    requests = None if load is None else draining.in_flight(load)
    in_flight = None
    if running is not None and waiting is not None and requests is not None:
        in_flight = max(running + waiting, requests)
    return Work(
        in_flight=in_flight,
        running=running,
        waiting=waiting,
        generated_tokens=tokens,
        alive=figures is not None or load is not None,
    )


def kv_cache_tokens(metrics: Metrics, figures: str) -> int | None:
    """Tokens that fit into the KV cache of a replica, as it says itself; None where it does not."""
    for name in metrics.cache_info:
        samples = _samples(figures, name)
        tokens = [metrics.cache_tokens(sample.labels) for sample in samples or ()]
        if tokens:
            told = [found for found in tokens if found is not None and found > 0]
            return sum(told) if len(told) == len(tokens) else None
    return None


def total(figures: str, names: Names, *, label: str, value: str) -> int | None:
    """The sum of a metric over all series with that label, under the first of its names that is there; None without any.

    `figures` is text in the format of Prometheus. An engine that is several ranks has a series for each.
    """
    for name in names:
        samples = _samples(figures, name)
        if samples is None:
            return None
        values = [sample.value for sample in samples if sample.labels.get(label) == value]
        if values:
            found = sum(values)
            return int(found) if math.isfinite(found) and min(values) >= 0 else None
    return None


def _samples(figures: str, name: str) -> list[Any] | None:
    """The samples of a metric; None where they cannot be read."""
    # Imported late: it brings an HTTP server, and a spec is judged quickly without one.
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415

    ours = "\n".join(line for line in figures.split("\n") if line.startswith((f"{name}{{", f"{name} ")))
    try:
        samples = [sample for family in text_string_to_metric_families(ours) for sample in family.samples]
    except (ValueError, LookupError):
        return None
    return [sample for sample in samples if sample.name == name]
